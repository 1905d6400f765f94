#!/usr/bin/env python3
"""Gives `hone serve` bad candidates of every kind, good ones among them: each is answered with the right kind, and no
good one's verdict changes.

  bad_candidates.py HONE [BAD] [SEED]
"""
import os
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "service"))
os.environ["HONE_BIN"] = sys.argv[1]
from harness import Server, bench, candidate, hone_processes  # noqa: E402

UNISTD = "#include <unistd.h>\n#include <cstdlib>\n#include <cstring>\n#include <vector>\n#include <fstream>\n#include <stdexcept>\n"
BAD = {
    "null store": ("*(volatile int*)0 = 1;", {"crash"}),
    "division": ("volatile int zero = 0; volatile int many = 7 / zero; (void)many;", {"crash"}),
    "abort": ("std::abort();", {"crash"}),
    "exception": ('throw std::runtime_error("words");', {"crash"}),
    "exit": ("_exit(0);", {"crash"}),
    "hang": ("for (volatile long i = 0; ; ++i) {}", {"timeout"}),
    "memory": ("for (;;) { char* p = static_cast<char*>(std::malloc(64 << 20)); std::memset(p, 1, 64 << 20); }", {"out_of_memory", "crash"}),
    "fork bomb": ("for (;;) if (fork() < 0) break;", {"forbidden"}),
    "flood": ("static char b[1 << 20]; for (;;) if (write(1, b, sizeof b) < 0) break;", {"output_limit", "forbidden"}),
    "file": ('std::ifstream("/etc/passwd").get();', {"forbidden"}),
    "exec": ('execl("/bin/sh", "sh", nullptr);', {"forbidden"}),
    "out of bounds": ("y[-3] = 1;", {"out_of_bounds", "crash"}),
    "input": ("const_cast<float*>(in)[0] = 1;", {"input_modified"}),
    "nothing": ("return;", {"not_written"}),
    "wrong": ("for (std::int64_t i = 0; i < n; ++i) out[i] = 0; return;", {"wrong_result"}),
    "nan": ("for (std::int64_t i = 0; i < n; ++i) out[i] = 0.0f / (in[0] - in[0]); return;", {"non_finite"}),
    "syntax": ("oops;", {"compile"}),
    "shadow": ('\n#include "/etc/shadow"\n', {"compile"}),
    "compile bomb": None,
    "zero grid": None,
    "no kernel": None,
}
PLANS = {
    "zero grid": ('#include <hone/plan.h>\nvoid plan(const hone::Problem& p, hone::Plan& plan) { plan.launch(plan.module("kernel.cpp"), "softmax", {0}).args(p.tensor("x"), p.tensor("y"), p.axis("N")); }\n', {"plan"}),
    "no kernel": ('#include <hone/plan.h>\nvoid plan(const hone::Problem& p, hone::Plan& plan) { plan.launch(plan.module("kernel.cpp"), "nothing", {1}).args(p.tensor("x"), p.tensor("y"), p.axis("N")); }\n', {"kernel_name"}),
}


def kind_of(job):
    result = job["result"] or {}
    error = result.get("error") or (result["report"]["workloads"][0]["error"] if "report" in result else None)
    return error["kind"] if error else "none"


def bad_job(name):
    if name in PLANS:
        return bench(candidate(name="bad", plan=PLANS[name][0])), PLANS[name][1]
    if name == "compile bomb":
        head = "template <int N> struct B { B<N - 1> a; B<N - 2> b; };\ntemplate <> struct B<0> {};\ntemplate <> struct B<1> {};\nstatic B<880> bomb;\n#pragma GCC poison never\nint never;\n"
        return bench(candidate(name="bad", head=head)), {"compile", "timeout", "out_of_memory"}
    body, kinds = BAD[name]
    return bench(candidate(body, name="bad", head=UNISTD)), kinds


def main():
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 42
    chance = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    wrong, good = [], 0
    with Server() as server:
        names = list(BAD)
        for number in range(count):
            name = names[number % len(names)] if number < len(names) else chance.choice(names)
            job, kinds = bad_job(name)
            found = kind_of(server.run(job, 180))
            if found not in kinds:
                wrong.append((name, found))
            if number % 3 == 0:
                good += 1
                ended = server.run(bench(candidate(name="good")))
                if ended["result"]["report"]["passed"] != 1:
                    wrong.append(("good one after " + name, str(ended["result"])[:300]))
        if server.health().status != 200:
            wrong.append(("health", server.health().body))
        replaced = server.metric("hone_worker_replaced_total")
    left = hone_processes()
    if wrong or left:
        sys.exit(f"wrong: {wrong}\nleft: {left}")
    print(f"ok: {count} bad candidates, {good} good ones among them, device processes replaced: {replaced:.0f}")


if __name__ == "__main__":
    main()
