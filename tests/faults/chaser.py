#!/usr/bin/env python3
"""An agent program without a model: in each turn it judges candidates whose source depends on the turn alone, so that a
turn that is taken again brings the same bytes.

  chaser.py ROLE [CANDIDATES]    the prompt on standard input, the run's worktree as working directory
"""
import os
import pathlib
import subprocess
import sys

PLAN = """#include <hone/plan.h>

void plan(const hone::Problem& problem, hone::Plan& plan) {
  auto module = plan.module("kernel.cpp", {});
  plan.launch(module, "twice", {1}).args(problem.tensor("x"), problem.tensor("y"), problem.axis("N"));
}
"""
KERNEL = """#include <hone/kernel.h>

// %s
void twice(const hone::Block&, const float* x, float* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] + x[i];
}
"""

role, prompt, turn = sys.argv[1], sys.stdin.read(), os.environ["HONE_TURN"]
if role != "agent" and f"you are {role}" not in prompt or f"# Turn {turn} of" not in prompt:
    sys.exit(f"this is not the brief of turn {turn} for {role}:\n{prompt[:300]}")
for number in range(1, 1 + (int(sys.argv[2]) if len(sys.argv) > 2 else 2)):
    name = f"t{turn}-{role}-{number}"
    folder = pathlib.Path("candidates/scale/scratch") / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "plan.cpp").write_text(PLAN)
    (folder / "kernel.cpp").write_text(KERNEL % name)
    done = subprocess.run(["hone", "bench", str(folder), "--quiet"], capture_output=True, text=True)
    print(done.stdout, done.stderr, flush=True)
    if done.returncode not in (0, 4):
        sys.exit(f"hone bench: exit {done.returncode}")
