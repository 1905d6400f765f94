#!/usr/bin/env python3
"""Whole runs of real programs on the CPU device: each reads the assignment, writes a candidate, measures it through `hone mcp`
and so delivers the target; claude and codex alternate in a flame-chase run."""
import json
import os
import pathlib
import re
import subprocess
import unittest

import bed
import model_server
from model_server import Say, Script, mcp, shell, write
import turns

HONE = os.environ.get("HONE_BIN", "build/dev/bin/hone")
HERE = pathlib.Path(__file__).resolve().parent
SCALE = HERE.parent / "faults" / "scale" / "baseline"
CANDIDATE = "candidates/slow_scale/scratch/{}"
NATIVE, ACP = ("claude", "codex"), ("vibe", "fast-agent", "claude-code-acp")


def seeks(name, tail=""):
    """Reads the assignment, writes a plain loop, has it measured."""
    folder = CANDIDATE.format(name)
    return [shell("cat ../PROMPT.md || echo no PROMPT.md"), write(f"{folder}/kernel.cpp", (SCALE / "kernel.cpp").read_text() + tail),
            write(f"{folder}/plan.cpp", (SCALE / "plan.cpp").read_text()), mcp("bench", candidate=folder), Say("The target is reached, I claim.")]


def chaser(request):
    """Each chaser and turn has a candidate of its own: the brief says which turn it is."""
    turn = re.search(r"# Turn (\d+)", request.text)
    number = turn.group(1) if turn else "0"
    steps = seeks(f"turn{number}", f"// {request.run} in turn {number}\n")
    return steps[min(len(request.results), len(steps) - 1)]


# The hooks of settings.json: the record may be read, not written.
TRESPASS = [write("../receipts/forged.json", "{}"), shell("echo forged >> ../ledger.jsonl"), shell("head -c 10 ../manifest.json; echo read"),
            write("../forged.txt", "x"), mcp("note", text="a claim"), Say("Done.")]
MEDDLE = [write("../receipts/mine.json", "{}\n"), shell("echo '{}' >> ../ledger.jsonl; echo '{}' >> ../receipts/mine.json; echo meddled"),
          Say("The ledger says 10x now.")]
SCRIPTS = {"goal": Script(seeks("plain")), "trespass": Script(TRESPASS), "meddles": Script(MEDDLE),
           "claims": Script([Say("I made it 10x faster. All measured. Done.")]), "chase": Script(chaser)}
RUNS, LACK = {}, {}


class Done:
    """A run that ended: exit code, output, facts of `hone status`, ledger rows, requests to the model."""

    def __init__(self, home, folder, done, requests):
        self.code, self.output, self.requests = done.returncode, done.stdout + done.stderr, requests
        self.ledger = [json.loads(line) for line in (folder / "ledger.jsonl").read_text().splitlines()]
        status = home.run([HONE, "status", "--run", folder, "--json"])
        self.status = json.loads(status.stdout) if status.returncode in (0, 1) and status.stdout.strip() else {}
        self.leaks = [str(path) for path in folder.rglob("*") if path.is_file() and bed.KEY.encode() in path.read_bytes()]
        self.leaks += ["the output"] if bed.KEY in self.output + status.stdout else []
        self.files = {path.name for path in folder.iterdir()}
        self.frontier = json.loads((folder / "worktree/candidates/slow_scale/frontier/index.json").read_text())

    def rows(self, kind):
        return [each for each in self.ledger if each.get("kind", each.get("event", each.get("type"))) == kind]

    def __str__(self):
        called = [each["called"] for each in self.requests]
        last = [text[-600:] for text in (self.requests[-1]["results"] if self.requests else [])]
        return f"exit {self.code}\n{self.output[-3000:]}\ncalled {called}\nresults {last}\nledger {json.dumps(self.ledger)[-2500:]}"


def run(server, have, script, name, agents, flow="goal", budget="turns=2,duration=4m", target="1.2x", flags=()):
    run_id = name.replace(" ", "-")
    with bed.Home(server.url(script, run_id), HONE_SHARE=os.environ["HONE_SHARE"]) as home:
        for program, path in have.items():
            home.link(program, path)
        home.link("hone", HONE)
        home.env.update(XDG_DATA_HOME=str(home.path / "data"), HONE_HOME=str(home.path / "hone"))
        cache = os.environ.get("HONE_SERVICE_TEST_CACHE")
        if cache:
            os.makedirs(cache, exist_ok=True)
            (home.path / "hone").mkdir()
            (home.path / "hone/cache").symlink_to(cache)
        folder = home.path / "run"
        made = home.run([HONE, "init", "--task", HERE / "slow_scale", "--dir", folder])
        assert made.returncode == 0, made.stdout + made.stderr
        command = [HONE, "run", "--run", folder, "--flow", flow, "--budget", budget, "--turn-limit", "90s", "--silence", "60s", *flags]
        if target:
            command += ["--target", target]
        for role, each in agents:
            command += ["--agent", (f"{role}=" if role else "") + home.spec(each, have[each])]
        for each in home.names:
            command += ["--pass-env", each]
        try:
            done = home.run(command, timeout=280)
        except subprocess.TimeoutExpired as late:
            raise AssertionError(f"{name}: no end in 280 s\n{late.stdout}\n{late.stderr}") from late
        return Done(home, folder, done, server.requests(run_id))


def prepare(have, lack):
    LACK.update(lack)
    server = model_server.Server(SCRIPTS)
    cases = {f"goal {name}": lambda name=name: run(server, have, "goal", f"goal {name}", [("", name)]) for name in have}
    if "claude" in have:
        cases["trespass"] = lambda: run(server, have, "trespass", "trespass", [("", "claude")], budget="turns=1,duration=4m")
        cases["claims"] = lambda: run(server, have, "claims", "claims", [("", "claude")])
    if "codex" in have:
        cases["meddles codex"] = lambda: run(server, have, "meddles", "meddles codex", [("", "codex")], budget="turns=1,duration=4m")
    for name in set(NATIVE) & set(have):
        cases[f"confined {name}"] = lambda name=name: run(server, have, "goal", f"confined {name}", [("", name)], flags=["--confined"])
    if "claude" in have and "codex" in have:
        cases["chase"] = lambda: run(server, have, "chase", "chase", [("first_chaser", "claude"), ("second_chaser", "codex")], "flame-chase", "turns=4,duration=4m", None)
    RUNS.update(turns.run_all(cases, workers=2))
    server.stop()


class Runs(unittest.TestCase):
    def of(self, name, *programs):
        for each in programs:
            if each in LACK:
                self.skipTest(f"{each}: {LACK[each]}")
        found = RUNS[name]
        if isinstance(found, Exception):
            raise found
        return found

    def goal(self, program, how="goal"):
        done = self.of(f"{how} {program}", program)
        self.assertEqual(done.code, 0, done)                       # the launcher measured the target twice
        self.assertIn("slow_scale", done.requests[1]["results"][0] if len(done.requests) > 1 else "", done)   # it saw the assignment
        self.assertTrue(any("passed" in text or "2/2" in text for each in done.requests for text in each["results"][3:4]), done)
        self.assertTrue(done.frontier.get("entries") or done.frontier.get("candidates"), done)
        self.assertEqual(done.leaks, [], done)

    def test_claude_reaches_the_target(self):
        self.goal("claude")

    def test_codex_reaches_the_target(self):
        self.goal("codex")

    def test_vibe_reaches_the_target(self):
        self.goal("vibe")

    def test_fast_agent_reaches_the_target(self):
        self.goal("fast-agent")

    def test_a_badly_behaved_agent_reaches_the_target(self):
        self.goal("claude-code-acp")

    def test_confined_claude_reaches_the_target(self):
        self.goal("claude", "confined")

    def test_confined_codex_reaches_the_target(self):
        self.goal("codex", "confined")

    def untouched(self, program):
        done = self.of(f"meddles {program}", program)
        self.assertEqual(done.code, 4, done)
        self.assertEqual([each["seq"] for each in done.ledger], list(range(1, len(done.ledger) + 1)), done)
        for said in done.requests[-1]["results"]:
            self.assertRegex(said, "hone guard: |Read-only file system", done)
        self.assertFalse(done.status["faults"] if "faults" in done.status else [], done)
        self.assertFalse(done.frontier.get("entries") or done.frontier.get("candidates"), done)

    def test_codex_cannot_write_the_record(self):
        self.untouched("codex")

    def test_a_claim_ends_no_run(self):
        done = self.of("claims", "claude")
        self.assertEqual(done.code, 4, done)
        self.assertIn("turns", done.output)
        self.assertEqual(done.leaks, [], done)

    def test_the_guard_keeps_a_program_off_the_record(self):
        done = self.of("trespass", "claude")
        results = max((each["results"] for each in done.requests), key=len)
        self.assertEqual(len(results), 5, done)
        for denied in (results[0], results[1], results[3]):
            self.assertIn("hone guard: ", denied, done)
        self.assertIn("read", results[2], done)
        self.assertEqual(done.rows("record_restored"), [], done)     # nothing had to be mended: it was never written
        self.assertNotIn("forged.txt", done.files)
        self.assertEqual([each["data"]["text"] for each in done.rows("finding")], ["a claim"], done)

    def test_two_programs_alternate(self):
        done = self.of("chase", "claude", "codex")
        self.assertEqual(done.code, 4, done)                       # four turns were the budget
        apis = [each["api"] for each in done.requests if not each["results"] and not each["side"]]
        self.assertEqual(apis, ["messages", "responses", "messages", "responses"], done)
        self.assertEqual(done.leaks, [], done)


if __name__ == "__main__":
    turns.main(NATIVE + ACP, __name__, prepare)
