#!/usr/bin/env python3
"""`hone profile` and `hone sanitize` on a GPU, against the real tools: key figures of a GEMM, a correct kernel that is clean, and
seeded faults that are each found with their source line; then the same through a service.

  watch_cases.py HONE KERNELS [--case NAME]... [--out DIR]

KERNELS is the folder with `bf16_gemm/warp_specialized` and `softmax_cuda/registers`. One JSON object on standard output. Exit 1
when a case is not as it must be, 77 without a GPU. A case whose tool is not here, or may not count, is skipped and says so.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

PLAN = """#include <hone/plan.h>

void plan(const hone::Problem& problem, hone::Plan& plan) {
  const auto m = problem.axis("M"), n = problem.axis("N");
  plan.launch(plan.module("kernel.cu"), "body", {hone::ceil_div(m * n + 1, 256)}, {256})
      .args(problem.tensor("x"), problem.tensor("y"), m * n);
}
"""
HEAD = """#include <cstdint>
__global__ void body(const float* x, float* y, std::int64_t n) {
  const std::int64_t i = blockIdx.x * std::int64_t{256} + threadIdx.x;
"""
# Each of them ends as a kernel; the lines that a finding must name are marked.
FAULTS = {
    "bounds": ("memcheck", "out_of_bounds", "  if (i <= n) y[i] = i < n ? x[i] : 0;   // HERE\n}\n"),
    "race": ("racecheck", "race", """  __shared__ float tile[256];
  tile[threadIdx.x] = i < n ? x[i] : 0;   // HERE
  const float other = tile[255 - threadIdx.x];   // HERE
  if (i < n) y[i] = other;
}
"""),
    "unwritten": ("initcheck", "uninitialised", "  if (i < n) y[i] += x[i];   // HERE\n}\n"),
}


class Skip(Exception):
    pass


class Bed:
    def __init__(self, hone, kernels, scratch, out):
        self.hone, self.kernels, self.scratch, self.out = hone, kernels, scratch, out
        self.ncu = None

    def tables(self):
        """The tables that the figures were read from, beside ncu's own reports."""
        for raw in self.out.glob("*.ncu-rep") if self.ncu else []:
            table = subprocess.run([self.ncu, "--import", str(raw), "--csv", "--page", "raw", "--print-units", "base"], capture_output=True, text=True, timeout=60)
            raw.with_suffix(".csv").write_text(table.stdout + table.stderr)

    def look(self, verb, *arguments):
        done = subprocess.run([self.hone, verb, *map(str, arguments), "--timeout", "90", "--json", "--quiet"], capture_output=True, text=True, timeout=400)
        try:
            report = json.loads(done.stdout)
        except ValueError:
            raise AssertionError(f"exit {done.returncode}, no JSON: {done.stderr[-500:]}")
        error = report.get("error") or {}
        if done.returncode == 3 and error.get("kind") == "environment":
            raise Skip(f"skipped: {error['message']}")
        if verb == "profile":
            self.ncu = report.get("tool", self.ncu)
        return done.returncode, report

    def seeded(self, name):
        folder = self.scratch / name
        folder.mkdir(exist_ok=True)
        source = HEAD + FAULTS[name][2]
        (folder / "kernel.cu").write_text(source)
        (folder / "plan.cpp").write_text(PLAN)
        (folder / "candidate.yaml").write_text("language: cuda\n")
        return folder, {i for i, line in enumerate(source.splitlines(), 1) if "// HERE" in line}


def check_profile(code, report, workload):
    assert code == 0 and report["failed"] == 0, (code, report["workloads"])
    row = report["workloads"][0]
    assert row["id"] == workload and len(row["launches"]) >= 1, row
    launch = max(row["launches"], key=lambda each: each["figures"]["duration_us"] or 0)
    figures = launch["figures"]
    raw = pathlib.Path(row["raw"])
    assert raw.stat().st_size > 10_000, raw
    return {"kernel": launch["kernel"], "seconds": row["seconds"], "raw_bytes": raw.stat().st_size, **figures}


def gemm(bed):
    """Key figures of a tensor-core kernel."""
    out = check_profile(*bed.look("profile", bed.kernels / "bf16_gemm/warp_specialized", "--task", "bf16_gemm", "--workload", "square-4096", "--out", bed.out), "square-4096")
    for key in ("duration_us", "compute_pct", "memory_pct", "limiting", "tensor_pct", "l2_hit_pct", "bank_conflicts", "occupancy_pct", "registers"):
        assert out[key] is not None, out
    assert out["tensor_pct"] > 50 and out["stalls"] and 100 < out["duration_us"] < 1000, out
    return out


def clean(bed):
    """A correct kernel."""
    code, report = bed.look("sanitize", bed.kernels / "softmax_cuda/registers", "--task", "softmax_cuda", "--workload", "small")
    row = report["workloads"][0]
    out = {"exit": code, "tools": row.get("tools"), "findings": row.get("findings"), "row_error": row["error"]}
    assert code == 0 and report["findings"] == 0 and len(row["tools"]) == 4, out
    return out


def check_finding(code, report, name, lines):
    tool, kind, _ = FAULTS[name]
    row = report["workloads"][0]
    out = {"exit": code, "tools": row.get("tools"), "findings": row.get("findings", [])[:4], "row_error": row["error"]}
    assert code == 1 and report["findings"] >= 1 and row["error"] is None, out
    finding = row["findings"][0]
    assert finding["kind"] == kind and finding["tool"] == tool and finding["severity"] == "error", out
    places = {(finding["file"], finding["line"])} | {(each["file"], each["line"]) for each in finding["related"]}
    assert {line for file, line in places if file == "kernel.cu"} == lines, (out, sorted(lines))
    assert "body" in finding["kernel"], out
    return out


def fault(name):
    def case(bed):
        folder, lines = bed.seeded(name)
        return check_finding(*bed.look("sanitize", folder, "--task", "softmax_cuda", "--workload", "small", "--tool", FAULTS[name][0]), name, lines)
    case.__doc__ = f"A seeded fault: {name}."
    return case


def service(bed):
    """The same as jobs."""
    server = subprocess.Popen([bed.hone, "serve", "--gpus", "0", "--port", "0", "--data", str(bed.scratch / "service"), "--json"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        url = json.loads(server.stdout.readline())["url"]
        folder, lines = bed.seeded("bounds")
        task = ["--task", "softmax_cuda", "--workload", "small", "--remote", url]
        found = check_finding(*bed.look("sanitize", folder, *task, "--tool", "memcheck"), "bounds", lines)
        figures = check_profile(*bed.look("profile", bed.kernels / "softmax_cuda/registers", *task, "--out", bed.out), "small")
        return {"finding": found["findings"][0], "figures": figures}
    finally:
        server.terminate()
        server.wait(60)


CASES = {"gemm": gemm, "clean": clean, **{name: fault(name) for name in FAULTS}, "service": service}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("hone")
    parser.add_argument("kernels", type=pathlib.Path)
    parser.add_argument("--case", action="append", choices=list(CASES))
    parser.add_argument("--out", type=pathlib.Path, help="where ncu's own reports go")
    options = parser.parse_args()
    facts = json.loads(subprocess.run([options.hone, "doctor", "--json"], capture_output=True, text=True).stdout)
    if "gpu0" not in json.dumps(facts):
        print("skipped: no GPU", file=sys.stderr)
        return 77
    results, bad = {}, 0
    with tempfile.TemporaryDirectory() as scratch:
        os.environ.setdefault("HONE_HOME", scratch + "/home")
        bed = Bed(options.hone, options.kernels.resolve(), pathlib.Path(scratch), (options.out or pathlib.Path(scratch) / "raw").resolve())
        for name in options.case or CASES:
            begin = time.time()
            try:
                results[name] = {"ok": True, **CASES[name](bed)}
            except Skip as reason:
                results[name] = {"ok": True, "skipped": str(reason)}
            except Exception as error:   # every case is told, whatever became of the one before
                bad += 1
                results[name] = {"ok": False, "error": f"{type(error).__name__}: {error}"[:3000]}
            results[name]["seconds_in_all"] = round(time.time() - begin, 1)
            print(f"{name}: {'ok' if results[name]['ok'] else 'FAILED'} {results[name].get('skipped', '')} {results[name].get('error', '')[:600]}", file=sys.stderr)
        bed.tables()
    print(json.dumps(results, indent=1))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
