#!/usr/bin/env python3
"""Kills `hone serve`, its device process and its runners with SIGKILL at random moments under load.

Every accepted job must end exactly once, with the right answer; the database must be intact; nothing may be left.

  kill_service.py HONE [KILLS] [SEED]
"""
import contextlib
import os
import pathlib
import random
import signal
import sqlite3
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "service"))
os.environ["HONE_BIN"] = sys.argv[1]
from harness import Server, bench, candidate, descendants, hone_processes  # noqa: E402

class Load(threading.Thread):
    """Submits jobs with keys of its own and repeats until each is accepted; notes what must come of it."""

    def __init__(self, server, number, stop):
        super().__init__(daemon=True)
        self.server, self.number, self.stop, self.accepted, self.sent = server, number, stop, {}, 0

    def run(self):
        chance = random.Random(self.number)
        while not self.stop.is_set():
            what = chance.choice(["good", "baseline", "crash", "compile"])
            job = {"good": bench(candidate(name="good")), "baseline": bench(), "crash": bench(candidate("*(volatile int*)0 = 1;", name="crash")),
                   "compile": {"kind": "compile", "request": {"task": "softmax_f32", "candidate": candidate(name="good")}}}[what]
            self.sent += 1
            key = f"k-{self.number}-{self.sent}"
            while not self.stop.is_set():
                try:
                    answer = self.server.request("POST", "/v1/jobs", job, headers={"Idempotency-Key": key}, timeout=5)
                except OSError:
                    time.sleep(0.05)
                    continue
                except Exception:          # a torn answer: the job may or may not be accepted; the key tells
                    continue
                if answer.status in (200, 202):
                    self.accepted[answer.json["id"]] = what
                    break
                if answer.status not in (429, 503):
                    sys.exit(f"POST answered {answer.status}: {answer.body}")
                time.sleep(0.1)
            time.sleep(chance.uniform(0, 0.6))


def right(what, job):
    result = job["result"]
    if job["state"] != "done" or not result:
        return False
    if what == "compile":
        return result.get("failed") == 0
    workload = (result.get("report") or {}).get("workloads", [{}])[0]
    if what == "crash":
        return (workload.get("error") or result.get("error") or {}).get("kind") == "crash"
    return workload.get("verdict") == "PASS"


def main():
    kills = int(sys.argv[2]) if len(sys.argv) > 2 else 12
    chance = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    excused = set()                        # jobs that this test itself has made end in another way
    hit = {}                               # jobs by how often their device process was killed
    with Server("--queue", "64") as server:
        stop = threading.Event()
        loads = [Load(server, n, stop) for n in range(3)]
        for each in loads:
            each.start()
        done = {"service": 0, "device": 0, "compiler": 0, "runner": 0}
        without = list(server.arguments)
        while sum(done.values()) < kills:
            time.sleep(chance.uniform(0.02, 1.5))
            what = chance.choice(list(done))
            if what == "service":
                server.kill()
                server.arguments = without + chance.choice([[], ["--compilers", "2"]])
                server.start(port=server.port)
                done[what] += 1
                continue
            if what == "compiler":
                if compilers := server.compiler_pids():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(chance.choice(compilers), signal.SIGKILL)
                        done[what] += 1
                continue
            device = server.device_pid()
            if not device:
                continue
            with contextlib.suppress(ProcessLookupError):
                os.kill(device, signal.SIGSTOP)        # so that it is known whose process is killed
                victims = [device] if what == "device" else [pid for pid in descendants(device) if "hone-runner" in hone_processes().get(pid, "")]
                for row in server.health().json["devices"]:
                    if row["job"] and victims:
                        hit[row["job"]] = hit.get(row["job"], 0) + 1
                        if what == "runner" or hit[row["job"]] >= 3:
                            excused.add(row["job"])
                if victims:
                    os.kill(chance.choice(victims), signal.SIGKILL)
                    done[what] += 1
                os.kill(device, signal.SIGCONT)
        stop.set()
        for each in loads:
            each.join(timeout=30)
        jobs = {id_: what for each in loads for id_, what in each.accepted.items()}
        wrong = []
        for id_, what in jobs.items():
            job = server.finish(id_, 300)
            # A runner killed by a stranger's hand looks like its program's death; three device processes are the limit.
            if not right(what, job) and id_ not in excused:
                result = job["result"] or {}
                rows = (result.get("report") or {}).get("workloads", [])
                wrong.append((id_, what, job["state"], job["leases"], result.get("error"), [(row["verdict"], row["error"]) for row in rows]))
        if wrong:
            sys.exit(f"{len(wrong)} of {len(jobs)} jobs ended wrongly: {wrong[:5]}")
        server.process.terminate()
        server.process.wait(timeout=90)
        with sqlite3.connect(server.data / "service.db") as database:
            if (found := database.execute("PRAGMA integrity_check").fetchall()) != [("ok",)]:
                sys.exit(f"integrity_check: {found}")
            rows = dict(database.execute("SELECT id, state FROM jobs"))
            ends = dict(database.execute("SELECT job, count(*) FROM events WHERE name IN ('done', 'cancelled') GROUP BY job"))
        if lost := set(jobs) - set(rows):
            sys.exit(f"lost jobs: {lost}")
        if several := {id_: n for id_, n in ends.items() if n != 1} or [id_ for id_, state in rows.items() if state != "done"]:
            sys.exit(f"jobs that did not end exactly once: {several}")
    time.sleep(0.5)
    if left := hone_processes():
        sys.exit(f"processes left: {left}")
    print(f"ok: {done}, {len(jobs)} jobs accepted, each ended once")


if __name__ == "__main__":
    main()
