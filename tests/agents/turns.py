"""One turn of a driver with a real program: agents_drive in a home of its own, and what it reported."""
import concurrent.futures
import json
import os
import subprocess
import sys
import threading
import time
import unittest
from xml.sax.saxutils import quoteattr

import bed
import programs

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


def processes_with(mark, home):
    """Ids of the processes of a home whose command line holds a mark: what a program left running."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                said = file.read()
            with open(f"/proc/{name}/environ", "rb") as file:
                if mark.encode() in said and str(home).encode() in file.read():
                    found.append(int(name))
        except OSError:
            pass
    return found


def kill_from_outside(mark, home, path, signal):
    """Once a tool's process is there: a signal to the program that it descends from."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        for pid in processes_with(mark, home):
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


def drive(server, script, run, program, path, prompt="Do the task.", spec=None, port=None, mark=None, kill=None, servers=None, env=None, **options):
    """Options become flags of agents_drive: wall=20 is --wall 20."""
    url = server.url(script, run) if port is None else f"http://127.0.0.1:{port}/{script}/{run}"
    with bed.Home(url, codex_provider=FEW_TRIES, HONE_SHARE=os.environ["HONE_SHARE"], CLAUDE_CODE_MAX_RETRIES="1", API_TIMEOUT_MS="20000", **(env or {})) as home:
        home.link(program, path)
        command = [DRIVE, spec or home.spec(program, path), "--cwd", str(home.work), "--log", str(home.path / "agent.log"), "--wall", str(options.pop("wall", 50))]
        if servers:
            (home.path / "agents").mkdir()
            (home.path / "agents/mcp.json").write_text(json.dumps({"mcpServers": servers}))
            command += ["--config", str(home.path / "agents")]
        for name, value in options.items():
            command += ["--" + name.replace("_", "-"), *([] if value is True else [str(value)])]
        for name in home.names:
            command += ["--pass", name]
        if kill:
            threading.Thread(target=kill_from_outside, args=(mark, home.path, path, kill), daemon=True).start()
        done = subprocess.run(command, input=prompt, env=home.env, capture_output=True, text=True, timeout=120, errors="replace")
        if not done.stdout.strip():
            raise AssertionError(f"agents_drive: exit {done.returncode}: {done.stderr[-2000:]}")
        log = (home.path / "agent.log").read_text(errors="replace") if (home.path / "agent.log").exists() else ""
        assert bed.KEY not in done.stdout, "the key stands in the report"
        if mark:
            end = time.monotonic() + 3
            while processes_with(mark, home.path) and time.monotonic() < end:
                time.sleep(0.1)
        report = Report(json.loads(done.stdout), server.requests(run), processes_with(mark, home.path) if mark else [])
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


class _Kept(unittest.TextTestResult):
    """Remembers what became of each test."""

    def __init__(self, *args, **more):
        super().__init__(*args, **more)
        self.outcomes = []

    def addSuccess(self, test):
        super().addSuccess(test)
        self.outcomes.append((test.id(), "passed", ""))

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.outcomes.append((test.id(), "failed", ""))

    addError = addFailure

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.outcomes.append((test.id(), "skipped", reason))


def write_report(outcomes):
    """As GoogleTest writes one where GTEST_OUTPUT asks for it: scripts/test counts tests and shows reasons from it."""
    folder = os.environ.get("GTEST_OUTPUT", "")
    if not folder.startswith("xml:") or not folder.endswith("/"):
        return
    name = "agents_" + os.path.basename(sys.argv[0]).removesuffix("_test.py")
    failed = sum(what == "failed" for _, what, _ in outcomes)
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f'<testsuites tests="{len(outcomes)}" failures="{failed}" disabled="0" errors="0" name="AllTests">']
    for test, what, why in outcomes:
        lines.append(f'  <testcase name={quoteattr(test)} status="run" result="{"skipped" if what == "skipped" else "completed"}">')
        if what == "skipped":
            lines += [f"    <skipped message={quoteattr(why)}><![CDATA[{test}", f"{why}]]></skipped>"]
        lines.append("  </testcase>")
    with open(os.path.join(folder.removeprefix("xml:"), f"test_{name}.xml"), "w") as file:
        file.write("\n".join([*lines, "</testsuites>", ""]))


def main(names, module, prepare):
    """Programs while there is a network, then the namespace, then what `prepare` runs, then the tests.

    What can't be had is said, and its tests are skipped; 77 when nothing can.
    """
    have, lack = {}, {}
    for name in names:
        try:
            have[name] = programs.find(name)
        except programs.Missing as why:
            lack[name] = str(why)
            print(f"skipped: {name}: {why}", flush=True)
    closed = ""
    try:
        bed.enter()
    except (bed.Closed, OSError) as why:
        closed = str(why)
    if closed or not have:
        print(f"skipped: {closed or 'no program'}", flush=True)
        write_report([("all", "skipped", closed or "; ".join(f"{name}: {why}" for name, why in lack.items()))])
        sys.exit(77)
    prepare(have, lack)
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules[module])
    result = unittest.TextTestRunner(resultclass=_Kept).run(suite)
    write_report(result.outcomes)
    sys.exit(0 if result.wasSuccessful() else 1)
