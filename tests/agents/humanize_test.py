#!/usr/bin/env python3
"""Public Humanize drives a run directory of ours: the flow of `relay/`, claude and codex in turns, an evaluation service.

Humanize starts the programs itself, fenced in, so what they measure goes to a service outside the fence; the record and the
frontier are those of the run all the same.
"""
import contextlib
import json
import os
import pathlib
import subprocess
import unittest

import bed
import model_server
from model_server import Say, Script, shell, write
import turns

HONE = os.environ.get("HONE_BIN", "build/dev/bin/hone")
HERE = pathlib.Path(__file__).resolve().parent
SCALE = HERE.parent / "faults" / "scale" / "baseline"
FOUND, LACK = {}, {}


def turn(request):
    """claude's and codex's candidates differ, and the later one sees what the earlier one left."""
    name = "from-claude" if "Bash" in request.tools else "from-codex"
    folder = f"worktree/candidates/slow_scale/scratch/{name}"
    steps = [shell(f"cat PROMPT.md; {HONE} status"), write(f"{folder}/kernel.cpp", (SCALE / "kernel.cpp").read_text() + f"// {name}\n"),
             write(f"{folder}/plan.cpp", (SCALE / "plan.cpp").read_text()), shell(f"{HONE} bench {folder}"),
             shell(f"{HONE} frontier add {folder}"), Say("Measured and retained.")]
    return steps[min(len(request.results), len(steps) - 1)]


@contextlib.contextmanager
def service(home):
    """`hone serve` with the test's task among its own."""
    share = home.path / "share"
    share.mkdir()
    for each in pathlib.Path(home.env["HONE_SHARE"]).iterdir():
        if each.name != "tasks":
            (share / each.name).symlink_to(each.resolve())
    (share / "tasks").mkdir()
    (share / "tasks/slow_scale").symlink_to(HERE / "slow_scale")
    home.env["HONE_SHARE"] = str(share)
    with open(home.path / "service.log", "w") as log:
        process = subprocess.Popen([HONE, "serve", "--device", "cpu", "--port", "0", "--data", str(home.path / "data"), "--json"], env=home.env,
                                   stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        line = process.stdout.readline()
        assert line.strip(), (home.path / "service.log").read_text()
        yield json.loads(line)["url"]
    finally:
        process.terminate()
        process.wait(30)
        process.stdout.close()


def drive(server, have):
    # Humanize starts claude with approvals bypassed, which claude refuses root unless told that it is in a sandbox: the namespace is one.
    with bed.Home(server.url("relay"), HONE_SHARE=os.environ["HONE_SHARE"], IS_SANDBOX="1") as home:
        for name in ("claude", "codex"):
            home.link(name, have[name])
        home.env["HONE_HOME"] = str(home.path / "hone")
        with service(home) as url:
            folder = home.path / "run"
            made = home.run([HONE, "init", "--task", "slow_scale", "--dir", folder, "--remote", url])
            assert made.returncode == 0, made.stdout + made.stderr
            done = home.run([have["hmz"], "exec", "-f", HERE / "relay", "-a", "first=claude/scripted:high,second=codex/scripted:high",
                             "-p", "turns=2,budget.duration=200", "--json", "Read PROMPT.md and make the kernel faster."], cwd=folder, timeout=240)
            listed = home.run([HONE, "frontier", "list", "--run", folder, "--json"])
            verified = home.run([HONE, "status", "--run", folder, "--json"])
        FOUND.update(done=done, requests=server.requests("1"), frontier=listed.stdout, status=verified.stdout,
                     events=[json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")])


def prepare(have, lack):
    LACK.update(lack)
    if lack:
        return
    server = model_server.Server({"relay": Script(turn)})
    try:
        drive(server, have)
    finally:
        server.stop()


class Humanize(unittest.TestCase):
    def setUp(self):
        for name, why in LACK.items():
            self.skipTest(f"{name}: {why}")
        self.shown = f"{FOUND['done'].returncode}\n{FOUND['done'].stdout[-3000:]}\n{FOUND['done'].stderr[-2000:]}\n{FOUND['status']}"

    def test_two_programs_take_turns(self):
        self.assertEqual(FOUND["done"].returncode, 0, self.shown)
        self.assertEqual([each["cli"] for each in FOUND["events"] if each["kind"] == "begins"], ["claude", "codex"], self.shown)

    def test_kernels_are_retained(self):
        names = sorted(each["name"] for each in json.loads(FOUND["frontier"])["entries"])
        self.assertIn("from-claude", names, self.shown)

    def test_the_record_is_the_runs_own(self):
        second = next(each for each in FOUND["requests"] if each["api"] == "responses" and len(each["results"]) == 1)
        self.assertIn("from-claude", second["results"][0], "the second program saw what the first had measured")
        last = max((each for each in FOUND["requests"] if each["api"] == "responses"), key=lambda each: len(each["results"]))
        self.assertIn("passed: 2/2", last["results"][3], self.shown)


if __name__ == "__main__":
    turns.main(("claude", "codex", "hmz"), __name__, prepare)
