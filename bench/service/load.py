#!/usr/bin/env python3
"""Load on `hone serve`, both sides on this machine, isolation on.

  load.py [--seconds 60] [--clients 200] [--jobs 50000]    prints one JSON record

latency: one client, one small cached job after the other; a job's time beyond what the device spent on it.
clients: many connections at once for a while; nothing but 429 and 503 may be refused.
memory: the front's resident memory over many jobs.
"""
import argparse
import http.client
import json
import os
import pathlib
import statistics
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/service"))
from harness import Server, candidate  # noqa: E402

JOB = json.dumps({"kind": "compile", "request": {"task": "softmax_f32", "workloads": ["small"], "candidate": candidate(name="load")}}).encode()
HEADERS = {"Content-Type": "application/json"}


class Client:
    def __init__(self, server):
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)

    def ask(self, method, path, body=None):
        self.connection.request(method, path, body, HEADERS if body else {})
        response = self.connection.getresponse()
        return response.status, response.read()

    def job(self):
        """(status, id, seconds on the device)"""
        status, body = self.ask("POST", "/v1/jobs", JOB)
        if status != 202:
            return status, None, 0
        number = json.loads(body)["id"]
        while True:
            status, body = self.ask("GET", f"/v1/jobs/{number}?wait=30")
            job = json.loads(body)
            if job["state"] == "done":
                assert job["result"]["failed"] == 0, job
                return 200, number, job["ran_s"]


def latency(server, count):
    client, beyond, whole, ran = Client(server), [], [], []
    for _ in range(20):
        client.job()
    for _ in range(count):
        begin = time.perf_counter()
        _, _, seconds = client.job()
        whole.append(1e3 * (time.perf_counter() - begin))
        ran.append(1e3 * seconds)
        beyond.append(whole[-1] - ran[-1])
    pick = lambda values: {"p50_ms": statistics.median(values), "p95_ms": statistics.quantiles(values, n=20)[-1]}
    return {"jobs": count, "whole": pick(whole), "on_device": pick(ran), "beyond": pick(beyond)}


def crowd(server, clients, seconds, most=None):
    done, refused, wrong, end, lock = [0], [0], [], time.monotonic() + seconds, threading.Lock()

    def one():
        client = Client(server)
        while time.monotonic() < end and (most is None or done[0] < most):
            try:
                status, _, _ = client.job()
            except Exception as fault:      # noqa: BLE001: whatever it is, it is a failure to report
                with lock:
                    wrong.append(repr(fault))
                return
            with lock:
                if status == 200:
                    done[0] += 1
                elif status in (429, 503):
                    refused[0] += 1
                else:
                    wrong.append(status)
            if status != 200:
                time.sleep(0.05)

    begin = time.monotonic()
    threads = [threading.Thread(target=one) for _ in range(clients)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    took = time.monotonic() - begin
    return {"clients": clients, "seconds": took, "jobs": done[0], "jobs_per_s": done[0] / took, "refused": refused[0], "wrong": wrong[:10], "wrong_count": len(wrong)}


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--seconds", type=float, default=60)
    options.add_argument("--clients", type=int, default=200)
    options.add_argument("--jobs", type=int, default=50000)
    options = options.parse_args()
    with Server("--queue", "4096", "--queue-of-token", "4096") as server:
        out = {"schema": "hone.record.service/1", "latency": latency(server, 300)}
        out["crowd"] = crowd(server, options.clients, options.seconds)
        marks = []
        for part in range(5):
            crowd(server, 16, 3600, options.jobs // 5)
            marks.append(server.rss())
        out["memory"] = {"jobs": options.jobs, "resident_bytes": marks}
        out["cores"] = os.cpu_count()
    print(json.dumps(out, indent=1))


if __name__ == "__main__":
    main()
