#!/usr/bin/env python3
"""Public Humanize (`hmz`) over a run: the flow of `relay/`, in which real claude and real codex alternate, as one agent of the launcher."""
import json
import os
import pathlib
import re
import unittest

import bed
import model_server
from model_server import Say, Script, mcp, shell, write
import turns

HONE = os.environ.get("HONE_BIN", "build/dev/bin/hone")
HERE = pathlib.Path(__file__).resolve().parent
SCALE = HERE.parent / "faults" / "scale" / "baseline"
TURN = """#!/bin/sh
exec {hmz} exec -f {flow} -a first=claude/scripted:low -a second=codex/scripted:low -p turns=2 -p budget.duration=180 -- "$(cat)"
"""
DONE, LACK = {}, {}


def chaser(request):
    """Reads the assignment, writes a plain loop, has it measured."""
    number = (re.search(r"Turn (\d+)\. ", request.text) or [0, "0"])[1]
    folder = f"candidates/slow_scale/scratch/chaser{number}"
    steps = [shell("cat ../PROMPT.md"), write(f"{folder}/kernel.cpp", (SCALE / "kernel.cpp").read_text() + f"// by chaser {number}\n"),
             write(f"{folder}/plan.cpp", (SCALE / "plan.cpp").read_text()), mcp("bench", candidate=f"chaser{number}", budget_s=2), Say("Done.")]
    return steps[min(len(request.results), len(steps) - 1)]


def run(server, have):
    with bed.Home(server.url("chase", "humanize"), HONE_SHARE=os.environ["HONE_SHARE"], IS_SANDBOX="1") as home:
        for name in ("claude", "codex"):
            home.link(name, have[name])
        home.env["HONE_HOME"] = str(home.path / "hone")
        if cache := os.environ.get("HONE_SERVICE_TEST_CACHE"):
            os.makedirs(cache, exist_ok=True)
            (home.path / "hone").mkdir()
            (home.path / "hone/cache").symlink_to(cache)
        folder = home.path / "run"
        made = home.run([HONE, "init", "--task", HERE / "slow_scale", "--dir", folder])
        assert made.returncode == 0, made.stderr
        # hmz starts both with the person's own configuration: the server is put there as docs/agents-humanize.md says.
        (home.path / ".claude.json").write_text((folder / "agents/mcp.json").read_text())
        codex = (folder / "agents/config.toml").read_text()
        with open(home.path / ".codex/config.toml", "a") as file:
            file.write("\n" + codex[codex.index("[mcp_servers.hone]"):])
        turn = home.path / "turn.sh"
        turn.write_text(TURN.format(hmz=have["hmz"], flow=HERE / "relay"))
        turn.chmod(0o755)
        command = [HONE, "run", "--run", folder, "--flow", "goal", "--agent", f"command:{turn}", "--target", "1000x", "--budget", "turns=1,duration=4m"]
        for name in [*home.names, "HONE_HOME"]:
            command += ["--pass-env", name]
        done = home.run(command, timeout=280)
        ledger = [json.loads(line) for line in (folder / "ledger.jsonl").read_text().splitlines()]
        frontier = json.loads((folder / "worktree/candidates/slow_scale/frontier/index.json").read_text())
        return done, ledger, frontier, server.requests("humanize")


def prepare(have, lack):
    LACK.update(lack)
    if LACK:
        return
    server = model_server.Server({"chase": Script(chaser)})
    DONE.update(turns.run_all({"run": lambda: run(server, have)}))
    server.stop()


class Humanize(unittest.TestCase):
    def test_two_roles_alternate_and_a_kernel_is_retained(self):
        if LACK:
            self.skipTest("; ".join(f"{name}: {why}" for name, why in LACK.items()))
        if isinstance(DONE["run"], Exception):
            raise DONE["run"]
        done, ledger, frontier, requests = DONE["run"]
        shown = f"exit {done.returncode}\n{(done.stdout + done.stderr)[-3000:]}\n{json.dumps(ledger)[-3000:]}"
        self.assertEqual(done.returncode, 4, shown)                # one turn was the budget
        self.assertEqual([each["api"] for each in requests if not each["results"] and not each["side"]], ["messages", "responses"], shown)
        measured = [row["data"]["candidate"] for row in ledger if row["kind"] == "evaluation"]
        self.assertEqual(measured, ["chaser1", "chaser2"], shown)
        self.assertIn("chaser1", json.dumps(frontier), shown)
        self.assertEqual([row for row in ledger if row["kind"] == "record_restored"], [], shown)


if __name__ == "__main__":
    turns.main(("claude", "codex", "hmz"), __name__, prepare)
