#!/usr/bin/env python3
"""Field cases that need a GPU, against the real binary: C02, C08, C14 and C17.

  field_cases.py HONE TESTS [--case C02]... [--tries N] [--idle SECONDS]

TESTS is the folder with `tasks/steady_cuda` and `steady_twin_cuda`. One JSON object on standard output; a line a case on
standard error. Exit 1 when a case is not as it must be, 77 without a GPU.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

PLAN = """#include <hone/plan.h>

void plan(const hone::Problem& problem, hone::Plan& plan) {
  const auto m = problem.axis("M"), n = problem.axis("N");
  (void)m, (void)n;
  auto module = plan.module("kernel.cu");
  (void)module;
  @
}
"""
LAUNCH = """plan.launch(module, "body", {m}, {256})$
      .args(problem.tensor("x"), problem.tensor("w"), problem.tensor("y"), static_cast<std::int32_t>(m), static_cast<std::int32_t>(n));"""
HEAD = "#include <hone/types.h>\n__global__ void body(const hone::bf16* x, const hone::bf16* w, hone::bf16* y, int m, int n) "


class Bed:
    def __init__(self, hone, tests, scratch):
        self.hone, self.tests, self.scratch = hone, tests, scratch
        self.tries, self.idle = 20, 60.0

    def bench(self, *arguments):
        done = subprocess.run([self.hone, "bench", *map(str, arguments), "--json", "--quiet"], capture_output=True, text=True, timeout=300)
        try:
            return done.returncode, json.loads(done.stdout)
        except ValueError:
            return done.returncode, {"error": {"kind": "no JSON", "message": done.stderr[-500:]}}

    def candidate(self, name, body, launch):
        folder = self.scratch / name
        folder.mkdir(exist_ok=True)
        (folder / "kernel.cu").write_text(HEAD + body)
        (folder / "plan.cpp").write_text(PLAN.replace("@", launch))
        (folder / "candidate.yaml").write_text("language: cuda\n")
        return folder

    def steady(self, workload, *arguments):
        code, report = self.bench(self.tests / "steady_twin_cuda", "--task", self.tests / "tasks/steady_cuda", "--workload", workload, *arguments)
        assert code == 0, (code, report)
        return report["workloads"][0]


def c02(bed):
    """Nothing launched, nothing written: never a pass on what an earlier job left behind."""
    task = ["--task", "rmsnorm_bf16_cuda", "--workload", "odd"]
    code, report = bed.bench("baseline", *task, "--budget", "time=2s")
    assert code == 0, report
    out = {}
    for name, body in (("returns", "{}"), ("guarded", "{ if (n < 0) y[0].bits = 1; }")):
        code, report = bed.bench(bed.candidate(name, body, LAUNCH.replace("$", "")), *task)
        row = report["workloads"][0]
        out[name] = [code, row["verdict"], row["error"]["kind"], row["error"]["message"]]
        assert code == 1 and row["verdict"] == "FAIL" and row["error"]["kind"] == "not_written", out
        assert str(25013 * 5003) in row["error"]["message"].replace(",", ""), out
    code, report = bed.bench(bed.candidate("no_launch", "{}", ""), *task)
    out["no_launch"] = [code, report["error"]["kind"], report["error"]["message"]]
    assert code == 2 and report["error"]["kind"] in ("contract", "plan") and "launches" in report["error"]["message"], out
    code, report = bed.bench(bed.candidate("too_much_shared", "{}", LAUNCH.replace("$", ".shared(1 << 20)")), *task)
    error = report.get("error") or report["workloads"][0]["error"]
    out["too_much_shared"] = [code, error["kind"], error["message"]]
    assert code == 2, out
    return out


def c08(bed):
    """The same kernel under two names, after idling: no decision, and the interval holds 1."""
    rows = []
    for i in range(bed.tries):
        time.sleep(bed.idle)
        row = bed.steady("fifteen-us", "--budget", "time=3s")
        rows.append({"ratio": row["ratio"], "ci": row["ratio_ci"], "baseline_us": row["baseline_us"], "samples": row["samples"]})
    held = sum(row["ci"][0] <= 1 <= row["ci"][1] for row in rows)
    middle = statistics.median(row["ratio"] for row in rows)
    out = {"tries": bed.tries, "idle_s": bed.idle, "interval_holds_1": held, "median_ratio": middle,
           "baseline_us": [min(row["baseline_us"] for row in rows), max(row["baseline_us"] for row in rows)], "rows": rows}
    assert held >= 0.9 * bed.tries and abs(middle - 1) <= 0.005, out
    return out


def c14(bed):
    """A cold compile cache has no part in a 4 us kernel's time."""
    home = pathlib.Path(os.environ["HONE_HOME"])
    rows = []
    for cold in (True, False, True):
        if cold:
            for each in home.glob("**/cache"):
                shutil.rmtree(each, ignore_errors=True)
        row = bed.steady("four-us", "--samples", "400")
        rows.append({key: row[key] for key in ("candidate_us", "baseline_us", "ratio", "conditions") if key in row} | {"cache": "cold" if cold else "warm"})
    out, times = {"rows": rows}, [row["candidate_us"] for row in rows]
    assert max(times) <= 1.01 * min(times) and max(times) <= 7, out
    return out


def memory_mib():
    found = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "-i", "0"], capture_output=True, text=True)
    return int(found.stdout.split()[0]) if found.returncode == 0 else None


def c17(bed):
    """An illegal address costs its own job, and nobody else's."""
    server = subprocess.Popen([bed.hone, "serve", "--gpus", "0", "--port", "0", "--data", str(bed.scratch / "service"), "--json"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        url = json.loads(server.stdout.readline())["url"]

        def get(path):
            try:
                with urllib.request.urlopen(url + path, timeout=5) as answer:
                    return answer.status, answer.read().decode()
            except urllib.error.HTTPError as error:
                return error.code, error.read().decode()

        deadline = time.time() + 60
        while get("/health")[0] != 200 and time.time() < deadline:
            time.sleep(0.1)
        task = ["--task", "rmsnorm_bf16_cuda", "--remote", url, "--samples", "40"]

        def baseline():
            code, report = bed.bench("baseline", *task)
            assert code == 0 and report["passed"] == report["total"], report
            return {row["id"]: row["baseline_us"] for row in report["workloads"]}

        before, undisturbed = memory_mib(), baseline()
        health, stop = [], threading.Event()

        def poll():
            while not stop.wait(0.1):
                health.append(get("/health")[0])

        thread = threading.Thread(target=poll)
        thread.start()
        crash = bed.candidate("null_store", "{ *reinterpret_cast<volatile int*>(0) = 1; }", LAUNCH.replace("$", ""))
        code, report = bed.bench(crash, *task)
        errors = [row["error"] for row in report["workloads"]]
        after = [baseline(), baseline()]
        stop.set()
        thread.join()
        drift = max(abs(run[key] / undisturbed[key] - 1) for run in after for key in undisturbed)
        replaced = [line for line in get("/metrics")[1].splitlines() if line.startswith("hone_worker_replaced_total")]
        out = {"exit": code, "kinds": [error["kind"] for error in errors], "message": errors[0]["message"], "drift": drift,
               "health": {str(status): health.count(status) for status in sorted(set(health))}, "replaced": replaced,
               "memory_mib": [before, memory_mib()], "undisturbed_us": undisturbed}
        assert code == 1 and all(error["kind"] == "illegal_address" for error in errors), out
        assert drift <= 0.01 and set(health) <= {200, 503}, out
        assert before is None or abs(out["memory_mib"][1] - before) <= 16, out
        return out
    finally:
        server.terminate()
        server.wait(60)


CASES = {"C02": c02, "C14": c14, "C17": c17, "C08": c08}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("hone")
    parser.add_argument("tests", type=pathlib.Path)
    parser.add_argument("--case", action="append", choices=sorted(CASES))
    parser.add_argument("--tries", type=int, default=20, help="processes of C08")
    parser.add_argument("--idle", type=float, default=60, help="seconds before each of them")
    options = parser.parse_args()
    facts = json.loads(subprocess.run([options.hone, "doctor", "--json"], capture_output=True, text=True).stdout)
    if "gpu0" not in json.dumps(facts):
        print("skipped: no GPU", file=sys.stderr)
        return 77
    results, bad = {}, 0
    with tempfile.TemporaryDirectory() as scratch:
        os.environ.setdefault("HONE_HOME", scratch + "/home")
        bed = Bed(options.hone, options.tests.resolve(), pathlib.Path(scratch))
        bed.tries, bed.idle = options.tries, options.idle
        for name in options.case or CASES:
            begin = time.time()
            try:
                results[name] = {"ok": True, **CASES[name](bed)}
            except Exception as error:   # every case is told, whatever became of the one before
                bad += 1
                results[name] = {"ok": False, "error": f"{type(error).__name__}: {error}"[:3000]}
            results[name]["seconds"] = round(time.time() - begin, 1)
            print(f"{name}: {'ok' if results[name]['ok'] else results[name]['error'][:600]} ({results[name]['seconds']} s)", file=sys.stderr)
    print(json.dumps(results, indent=1))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
