#!/usr/bin/env python3
"""Kills `hone run` with SIGKILL at random moments and resumes it.

After each kill the ledger must be readable, and in the end the run must have the same number of
evaluations as an undisturbed one, none of them of the same source.

  kill_resume.py HONE [KILLS] [SEED]
"""
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

EVALUATIONS = 8

def hone(*arguments, check=(0,)):
    done = subprocess.run([HONE, *arguments], capture_output=True, text=True, timeout=600)
    if done.returncode not in check:
        sys.exit(f"hone {' '.join(arguments)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def status(run):
    facts = json.loads(hone("status", "--run", run, "--json"))
    if facts["faults"]:
        sys.exit(f"the ledger is damaged: {facts['faults']}")
    return facts


def make_run(home, name):
    run = hone("init", "--task", str(HERE / "scale"), "--name", name, "--dir", str(home / name), "--seed", "7").splitlines()[-1]
    scratch = pathlib.Path(run) / "worktree/candidates/scale/scratch"
    shutil.copytree(HERE / "candidate", scratch / "twice")
    return run


def run_arguments(run):
    return ["run", "--run", run, "--resume", "--quiet", "--budget", f"evaluations={EVALUATIONS}"]


def main():
    kills = int(sys.argv[2]) if len(sys.argv) > 2 else 8
    chance = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    with tempfile.TemporaryDirectory(prefix="hone-kill-") as folder:
        home = pathlib.Path(folder)
        os.environ["HONE_HOME"] = str(home / "home")
        calm = make_run(home, "calm")
        began = time.monotonic()
        hone(*run_arguments(calm), check=(0, 4))
        length = time.monotonic() - began
        expected = status(calm)["evaluations"]["used"]

        done, number = 0, 0
        while done < kills:
            number += 1
            run = make_run(home, f"disturbed{number}")
            while done < kills:
                process = subprocess.Popen([HONE, *run_arguments(run)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                # Mostly within one evaluation, now and then within the whole run.
                wait = chance.uniform(0, length / EVALUATIONS * 2) if chance.random() < 0.7 else chance.uniform(0, length)
                try:
                    process.wait(timeout=wait)
                    break                      # it came to its end
                except subprocess.TimeoutExpired:
                    process.send_signal(signal.SIGKILL)
                    process.wait()
                    done += 1
                    status(run)
            hone(*run_arguments(run), check=(0, 4))
            facts = json.loads(hone("report", "--run", run, "--json"))
            sources = [each["sha256"] for each in facts["experiments"] if each["kind"] == "search"]
            if facts["faults"] or len(sources) != expected or len(set(sources)) != len(sources):
                sys.exit(f"run {number}: {len(sources)} evaluations of {len(set(sources))} sources, expected {expected}; faults {facts['faults']}")
            again = hone(*run_arguments(run), check=(0, 4))
            if len(json.loads(hone("report", "--run", run, "--json"))["experiments"]) != len(facts["experiments"]):
                sys.exit(f"run {number}: resuming a finished run measured something\n{again}")
            print(f"run {number}: {expected} evaluations as undisturbed, {done} kills so far", flush=True)
    print(f"ok: {done} kills")


if len(sys.argv) < 2:
    sys.exit(__doc__)
HONE = os.path.abspath(sys.argv[1])
HERE = pathlib.Path(__file__).resolve().parent
main()
