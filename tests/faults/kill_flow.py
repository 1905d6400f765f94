#!/usr/bin/env python3
"""Kills the launcher of a flame-chase with SIGKILL at random moments and resumes it.

After each kill the ledger must be readable, every process of the turn gone, and the turn that was cut taken again by the
same chaser. In the end the run has exactly the evaluations of its budget, each of a source of its own, and turns that
alternate.

  kill_flow.py HONE [KILLS] [SEED]
"""
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

EVALUATIONS = 7
MARK = "HONE_KILL_FLOW"


def hone(*arguments, check=(0,)):
    done = subprocess.run([HONE, *arguments], capture_output=True, text=True, timeout=600)
    if done.returncode not in check:
        sys.exit(f"hone {' '.join(arguments)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def rows(run):
    facts = json.loads(hone("status", "--run", run, "--json"))
    if facts["faults"]:
        sys.exit(f"the ledger is damaged: {facts['faults']}")
    return [json.loads(line) for line in (pathlib.Path(run) / "ledger.jsonl").read_text().splitlines() if line]


def marked():
    """Processes of an agent's turn: the variable goes to them and to all that they start."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if f"{MARK}={TOKEN}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                found.append((int(entry.name), (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")))
        except OSError:
            pass
    return found


def no_orphans(launcher):
    end = time.monotonic() + 10
    while orphans := [each for each in marked() if each[0] != launcher]:
        if time.monotonic() > end:
            sys.exit(f"left by a killed launcher: {orphans}")
        time.sleep(0.05)


def make_run(home, name):
    return hone("init", "--task", str(HERE / "scale"), "--name", name, "--dir", str(home / name), "--seed", "7").splitlines()[-1]


def arguments(run, evaluations=EVALUATIONS):
    chaser = HERE / "chaser.py"
    agents = [each for role in ("first_chaser", "second_chaser") for each in ("--agent", f"{role}=command:{chaser} {role}")]
    return ["run", "--run", run, "--resume", "--quiet", "--flow", "flame-chase", *agents, "--budget", f"evaluations={evaluations}", "--grace", "1",
            "--breakers", "plateau=0,no_progress=0", "--pass-env", MARK]


def check_turns(ledger):
    """Turns that count alternate; one that was cut is followed by the same chaser under the same number."""
    turns = []
    for row in ledger:
        if row["kind"] == "turn_started":
            turns.append({**row["data"], "counted": False, "open": True})
        elif row["kind"] == "turn_ended":
            turns[-1].update(counted=row["data"]["counted"], open=False)
    for before, after in zip(turns, turns[1:]):
        if before["open"]:
            sys.exit(f"turn {before['turn']} was left open: {turns}")
        same = before["role"] == after["role"]
        if before["counted"] == same or after["turn"] != before["turn"] + (1 if before["counted"] else 0):
            sys.exit(f"after {before} came {after}")
    return turns


def check_end(run, evaluations=EVALUATIONS):
    ledger = rows(run)
    judged = [row["data"]["sha256"] for row in ledger if row["kind"] == "evaluation"]
    if len(judged) != evaluations or len(set(judged)) != len(judged):
        sys.exit(f"{len(judged)} evaluations of {len(set(judged))} sources, expected {evaluations}")
    if any(row["kind"] == "record_restored" for row in ledger):
        sys.exit("the launcher took its own record for somebody else's")
    return check_turns(ledger)


def main():
    kills = int(sys.argv[2]) if len(sys.argv) > 2 else 6
    chance = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    with tempfile.TemporaryDirectory(prefix="hone-kill-") as folder:
        home = pathlib.Path(folder)
        os.environ["HONE_HOME"] = str(home / "home")
        os.environ[MARK] = TOKEN
        done, number, length = 0, 0, 3.0 * EVALUATIONS
        while done < kills:
            number += 1
            run = make_run(home, f"run{number}")
            while done < kills:
                process = subprocess.Popen([HONE, *arguments(run)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
                # Mostly within a turn or two, now and then at the very start.
                wait = chance.uniform(0, 0.5) if chance.random() < 0.25 else chance.uniform(0, length / EVALUATIONS * 2)
                try:
                    process.wait(timeout=wait)
                    break                      # it came to its end
                except subprocess.TimeoutExpired:
                    process.send_signal(signal.SIGKILL)
                    process.wait()
                    done += 1
                    rows(run)
                    no_orphans(process.pid)
            hone(*arguments(run), check=(4,))
            turns = check_end(run)
            count = len(rows(run))
            hone(*arguments(run), check=(4,))
            started = [row["kind"] for row in rows(run)[count:]]
            if "turn_started" in started or "evaluation" in started:
                sys.exit(f"resuming a finished run began something: {started}")
            no_orphans(0)
            print(f"run {number}: {EVALUATIONS} evaluations, {len(turns)} turns with those cut, {done} kills so far", flush=True)
        hone(*arguments(run, EVALUATIONS + 3), check=(4,))
        check_end(run, EVALUATIONS + 3)
    print(f"ok: {done} kills")


if len(sys.argv) < 2:
    sys.exit(__doc__)
HONE = os.path.abspath(sys.argv[1])
HERE = pathlib.Path(__file__).resolve().parent
TOKEN = f"{os.getpid()}-{time.time_ns()}"
main()
