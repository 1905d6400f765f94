#!/usr/bin/env python3
"""Faults that people met with agent programs, whole: the built command, the CPU device, scripted programs.

  field_cases.py HONE CASE...    lingering, reading, cancelled, budgets, hostile, confined, watching
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
FAULTS = HERE.parent / "faults"
AGENTS = HERE / "agents"


def expect(holds, *facts):
    if not holds:
        sys.exit("not so: " + " ".join(str(each) for each in facts))


class Run:
    def __init__(self, home, name):
        self.home = home
        self.env = {"PATH": f"{home / 'bin'}:/usr/local/bin:/usr/bin:/bin", "HOME": str(home), "HONE_HOME": str(home / "home"), "LC_ALL": "C.UTF-8",
                    "HONE_SHARE": os.environ["HONE_SHARE"]}
        made = self.hone("init", "--task", str(FAULTS / "scale"), "--name", name, "--dir", str(home / name), "--seed", "7")
        self.root = pathlib.Path(made.stdout.splitlines()[-1])

    def hone(self, *arguments, check=(0,), **more):
        done = subprocess.run([HONE, *arguments], capture_output=True, text=True, timeout=300, env=self.env, **more)
        expect(done.returncode in check, f"hone {' '.join(arguments)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def program(self, name, source):
        (self.home / "bin").mkdir(exist_ok=True)
        (self.home / "bin" / name).symlink_to(source)

    def work(self, *arguments, check=(0, 4), **more):
        return self.hone("run", "--run", str(self.root), "--quiet", *arguments, check=check, **more)

    def rows(self, *kinds):
        lines = (self.root / "ledger.jsonl").read_text().splitlines()
        return [row for row in map(json.loads, lines) if row["kind"] in kinds]

    def status(self):
        return json.loads(self.hone("status", "--run", str(self.root), "--json").stdout)

    def trace(self, kind):
        events = [json.loads(line) for file in sorted((self.root / "trace").glob("*.jsonl")) for line in file.read_text().splitlines()]
        return [each for each in events if each["kind"] == kind]


def sleepers():
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cmdline").read_bytes() == b"sleep\x00100000\x00":
                found.append(int(entry.name))
        except OSError:
            pass
    return set(found)


def lingering(home):
    """C27: the program says it is done and stays; a child keeps its output open."""
    run = Run(home, "lingering")
    run.program("claude", AGENTS / "lingering_claude.sh")
    before, began = sleepers(), time.monotonic()
    run.work("--flow", "goal", "--agent", "claude", "--target", "2x", "--budget", "turns=2", "--breakers", "no_progress=0", check=(4,))
    expect(time.monotonic() - began < 40, "two turns took", time.monotonic() - began)
    expect(sleepers() <= before, "left:", sleepers() - before)
    ends = run.trace("end")
    expect([each["cause"] for each in ends] == ["result", "result"], ends)
    expect(abs(run.status()["cost"]["used"] - 0.84) < 1e-9, run.status()["cost"])


def reading(home):
    """C29: the program reads its standard input to the end first; the launcher's own never ends."""
    run = Run(home, "reading")
    run.program("codex", AGENTS / "reading_codex.sh")
    endless = subprocess.Popen(["sleep", "1000"], stdout=subprocess.PIPE)
    try:
        run.work("--flow", "goal", "--agent", "codex", "--target", "2x", "--budget", "turns=1", check=(4,), stdin=endless.stdout)
    finally:
        endless.kill()
        endless.wait()
    first = [each["at_s"] for each in run.trace("text")]
    expect(first and first[0] < 5, first)
    expect(run.trace("begin")[0]["stdin"] == "the prompt, then end of file", run.trace("begin"))
    expect(run.status()["tokens"]["used"] == 18, run.status()["tokens"])


def cancelled(home):
    """C30: cancelled for time, the program says it ended well and used nothing."""
    run = Run(home, "cancelled")
    run.work("--flow", "goal", "--agent", f"acp:{AGENTS / 'cancelled_acp.py'}", "--target", "2x", "--budget", "duration=4s,tokens=1000", check=(4,))
    ended, = run.rows("turn_ended")
    expect(ended["data"]["end"] == "cancelled" and ended["data"]["cause"] == "budget: duration", ended)
    expect(ended["data"]["usage"]["output_tokens"] is None, ended)
    facts = run.status()
    expect(facts["tokens"] == {"used": 0, "unknown_turns": 1, "budget": 1000} and facts["frontier"] == 0, facts)


def budgets(home):
    """C35: kills and resumes neither renew a budget nor measure again."""
    run = Run(home, "budgets")
    flags = ["--flow", "goal", "--agent", f"command:{FAULTS / 'chaser.py'} agent 30", "--target", "50x", "--grace", "0s", "--resume"]

    def killed_after(evaluations):
        process = subprocess.Popen([HONE, "run", "--run", str(run.root), "--quiet", *flags, "--budget", "evaluations=10,cost=1"], env=run.env,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while len(run.rows("evaluation")) < evaluations and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        expect(len(run.rows("evaluation")) >= evaluations, run.status()["state"])

    killed_after(7)
    killed_after(9)
    run.work(*flags, check=(4,))
    sources = [row["data"]["sha256"] for row in run.rows("evaluation")]
    expect(len(sources) == 10 and len(set(sources)) == 10, len(sources), len(set(sources)))
    turns = len(run.rows("turn_started"))
    run.work(*flags, check=(4,))
    facts = run.status()
    expect(len(run.rows("turn_started")) == turns and facts["evaluations"] == {"used": 10, "budget": 10}, facts)
    expect(facts["cost"]["unknown_turns"] > 0 and facts["cost"]["budget"] == 1, facts["cost"])
    run.work(*flags, "--budget", "evaluations=13", check=(4,))
    sources = [row["data"]["sha256"] for row in run.rows("evaluation")]
    expect(len(sources) == 13 and len(set(sources)) == 13, len(sources), len(set(sources)))


def hostile(home):
    """A program that edits the record and speaks for a person."""
    run = Run(home, "hostile")
    prompt = (run.root / "PROMPT.md").read_text()
    task = (run.root / "worktree/task/task.yaml").read_text()
    run.work("--flow", "goal", "--agent", f"command:{AGENTS / 'hostile.py'}", "--target", "2x", "--budget", "turns=2", check=(4,))
    facts = run.status()
    expect(facts["best"] is None and not facts["faults"] and facts["reason"] == "budget: turns", facts)
    expect(not (run.root / "worktree/took-over").exists(), "it spoke for a person")
    expect((run.root / "PROMPT.md").read_text() == prompt and (run.root / "worktree/task/task.yaml").read_text() == task, "not put back")
    told = {each["path"] for each in facts["restored"]}
    expect({"ledger.jsonl", "PROMPT.md", "worktree/task/task.yaml"} <= told, told)
    expect("put back" in (run.root / "brief.md").read_text(), "the next brief does not tell")
    # Nobody works now: a person may steer, but there is nothing to stop.
    run.hone("steer", "look at the strides", "--run", str(run.root))
    expect("look at the strides" in run.hone("status", "--run", str(run.root)).stdout, "the word waits")
    run.hone("stop", "--run", str(run.root), check=(3,))
    expect("<svg" in run.hone("report", "--run", str(run.root), "--format", "html").stdout, "no curve")
    expect("agents" in run.hone("watch", "--run", str(run.root), "--once").stdout, "no frame")


def confined(home):
    """A confined program works, and neither sees a sibling run nor writes outside the worktree."""
    sibling, run = Run(home, "sibling"), Run(home, "confined")
    run.work("--flow", "goal", "--agent", f"command:{AGENTS / 'peeping.sh'} {sibling.root} {FAULTS / 'chaser.py'}", "--target", "50x", "--budget", "turns=1", "--confined",
             check=(4,))
    ended, = run.rows("turn_ended")
    expect(ended["data"]["cause"] == "result" and len(run.rows("evaluation")) == 1, ended, (run.root / "logs/turn-0001-1.log").read_text()[-600:])
    took = run.root / "worktree/took-over"
    expect(not took.exists(), took.exists() and took.read_text())
    expect(not (sibling.root / "written").exists() and not run.rows("record_restored"), "it wrote")


def watching(home):
    """Another agent summarises the run from copies: it reaches nothing of it, and is held to its rows."""
    run = Run(home, "watching")
    run.work("--flow", "goal", "--agent", f"command:{FAULTS / 'chaser.py'} agent 1", "--target", "50x", "--budget", "turns=1", check=(4,))
    before = (run.root / "ledger.jsonl").read_bytes()
    seen = run.hone("watch", "--run", str(run.root), "--agent", f"command:{AGENTS / 'observer.sh'} {run.root}", "--once").stdout
    expect("best is t1-agent-1 (row 4)\n" in seen, seen)
    expect("faster than light (row 4000)  [no such row: 4000]" in seen and "trust me  [cites no row]" in seen, seen)
    expect("the run is not there" in seen and "reached the run" not in seen, seen)
    expect((run.root / "ledger.jsonl").read_bytes() == before and not (run.root / "written").exists(), "it wrote to the run")
    expect((run.root / "watch/summary-000001.md").exists(), "no file")


if len(sys.argv) < 3:
    sys.exit(__doc__)
HONE = os.path.abspath(sys.argv[1])
for case in sys.argv[2:]:
    with tempfile.TemporaryDirectory(prefix="hone-case-") as folder:
        began = time.monotonic()
        globals()[case](pathlib.Path(folder))
        print(f"ok: {case}, {time.monotonic() - began:.1f} s", flush=True)
