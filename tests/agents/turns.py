"""One turn of a driver with a real program: agents_drive in a home of its own, and what it reported."""
import concurrent.futures
import json
import os
import subprocess
import sys
import threading
import time
import unittest

import bed
import model_server

DRIVE = os.environ.get("HONE_DRIVE", "build/dev/tests/agents/agents_drive")
# Codex has no variables for these; with them a refusal is reported after one more try instead of five or thirty.
FEW_TRIES = "request_max_retries = 1\nstream_max_retries = 1\n"


class Report:
    """What agents_drive printed, what the model service was asked, and what stayed behind."""

    def __init__(self, told, requests, marks):
        self.error, self.events, self.result = told["error"], told["events"], told["result"] or {}
        self.requests, self.marks = requests, marks
        self.end, self.reason = self.result.get("end"), self.result.get("reason") or ""

    def kinds(self):
        return [each["kind"] for each in self.events]

    def of(self, kind):
        return [each for each in self.events if each["kind"] == kind]

    def __str__(self):
        shown = [(round(each["at_s"], 1), each["kind"], each["tool"], each["text"][:120]) for each in self.events[-12:]]
        return f"error={self.error}\nresult={json.dumps(self.result)}\nrequests={len(self.requests)} events={len(self.events)} last={shown}"


def processes_with(mark):
    """Ids of the processes whose command line holds a mark: what a program left running."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                if mark.encode() in file.read() and int(name) != os.getpid():
                    found.append(int(name))
        except OSError:
            pass
    return found


def kill_from_outside(mark, path, signal):
    """Once a tool's process is there: a signal to the program that it descends from."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        for pid in processes_with(mark):
            found = None
            while pid > 1:
                try:
                    if os.path.samefile(f"/proc/{pid}/exe", path):
                        found = pid       # the topmost: codex's sandbox is the same program
                    with open(f"/proc/{pid}/stat") as file:
                        pid = int(file.read().rsplit(")", 1)[1].split()[1])
                except (OSError, ValueError, IndexError):
                    break
            if found:
                os.kill(found, signal)
                return
        time.sleep(0.2)


def drive(server, script, run, program, path, prompt="Do the task.", spec=None, port=None, mark=None, kill=None, env=None, **options):
    """Options become flags of agents_drive: wall=20 is --wall 20."""
    url = server.url(script, run) if port is None else f"http://127.0.0.1:{port}/{script}/{run}"
    with bed.Home(url, codex_provider=FEW_TRIES, HONE_SHARE=os.environ["HONE_SHARE"], CLAUDE_CODE_MAX_RETRIES="1", API_TIMEOUT_MS="20000", **(env or {})) as home:
        home.link(program, path)
        command = [DRIVE, spec or home.spec(program, path), "--cwd", str(home.work), "--log", str(home.path / "agent.log"), "--wall", str(options.pop("wall", 50))]
        for name, value in options.items():
            command += ["--" + name.replace("_", "-"), str(value)]
        for name in home.names:
            command += ["--pass", name]
        if kill:
            threading.Thread(target=kill_from_outside, args=(mark, path, kill), daemon=True).start()
        done = subprocess.run(command, input=prompt, env=home.env, capture_output=True, text=True, timeout=120, errors="replace")
        if not done.stdout.strip():
            raise AssertionError(f"agents_drive: exit {done.returncode}: {done.stderr[-2000:]}")
        log = (home.path / "agent.log").read_text(errors="replace") if (home.path / "agent.log").exists() else ""
        assert bed.KEY not in done.stdout, "the key stands in the report"
        if mark:
            end = time.monotonic() + 3
            while processes_with(mark) and time.monotonic() < end:
                time.sleep(0.1)
        report = Report(json.loads(done.stdout), server.requests(run), processes_with(mark) if mark else [])
        report.log, report.files = log, {each.name: each.read_text() for each in home.work.iterdir() if each.is_file()}
        return report


def run_all(cases, workers=2):
    """name -> Report or exception, each from a call of its own; two at a time."""
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        futures = {name: pool.submit(call) for name, call in cases.items()}
        out = {}
        for name, future in futures.items():
            try:
                out[name] = future.result()
            except Exception as error:    # shown by the test that asks for it
                out[name] = error
        return out


def per_program(*names):
    """A test method `check_x(self, program)` becomes `test_x_PROGRAM` for each program; see `spread`."""
    def mark(method):
        method.programs = names
        return method
    return mark


def spread(case):
    for name, method in list(vars(case).items()):
        for program in getattr(method, "programs", ()):
            setattr(case, f"test_{name.removeprefix('check_')}_{program}".replace("-", "_"), lambda self, method=method, program=program: method(self, program))
    return case


def main(names, module, prepare):
    """prepare(have) -> None runs before the tests; programs that can't be had are said and their tests skipped."""
    def run(have, lack):
        for name, why in lack.items():
            print(f"skipped: {name}: {why}", flush=True)
        if not have:
            sys.exit(77)
        prepare(have, lack)
        unittest.main(module=module, argv=sys.argv[:1] + ["-v"] if "-v" in sys.argv else sys.argv)
    bed.main(names, run)
