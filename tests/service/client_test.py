#!/usr/bin/env python3
"""The commands that speak to a service: the real `hone serve`."""
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from harness import HONE, SOURCE, Shared, candidate, hone, wait_for


class Client(Shared):
    flags = ("--exec",)

    def test_bench_says_the_same_here_and_there(self):
        arguments = ["bench", str(SOURCE / "kernels/softmax_f32/pipelined"), "--task", "softmax_f32", "--samples", "5"]
        remote = hone(*arguments, "--remote", self.server.url)
        local = hone(*arguments)
        self.assertEqual((remote.returncode, local.returncode), (0, 0), remote.stdout + remote.stderr)
        shape = lambda text: re.sub(r"[0-9.]+|receipt: \S+", "#", text)
        self.assertEqual([line.split()[0] for line in shape(remote.stdout).splitlines() if line.strip()],
                         [line.split()[0] for line in shape(local.stdout).splitlines() if line.strip()])
        self.assertIn("passed: 4/4", remote.stdout)
        keys = lambda text: sorted(json.loads(text))
        self.assertEqual(keys(hone(*arguments, "--json", "--remote", self.server.url).stdout), keys(hone(*arguments, "--json").stdout))

    def test_a_look_says_the_same_here_and_there(self):
        for verb in ("compile", "inspect"):
            arguments = [verb, str(SOURCE / "kernels/softmax_f32/pipelined"), "--workload", "small"]
            remote, local = hone(*arguments, "--remote", self.server.url), hone(*arguments)
            self.assertEqual((remote.returncode, local.returncode), (0, 0), remote.stdout + remote.stderr)
            self.assertEqual(remote.stdout, local.stdout)
            self.assertIn("compiled: 1/1 workloads for cpu", remote.stdout)
            submitted = hone("submit", str(SOURCE / "kernels/softmax_f32/pipelined"), "--task", "softmax_f32", "--workload", "small",
                             "--kind", verb, "--wait", "--remote", self.server.url)
            self.assertEqual(submitted.stdout.split("\n", 1)[1], local.stdout)

    def test_a_fault_has_the_same_exit_code(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in candidate("oops;")["files"].items():
                (pathlib.Path(folder) / name).write_text(text)
            done = hone("bench", folder, "--task", "softmax_f32", env={"HONE_URL": self.server.url})
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("kernel.cpp:", done.stdout + done.stderr)
            (pathlib.Path(folder) / "plan.cpp").write_text("#include <hone/plan.h>\nvoid plan(const hone::Problem&, hone::Plan&) {}\n")
            done = hone("bench", folder, "--task", "softmax_f32", env={"HONE_URL": self.server.url})
            self.assertEqual(done.returncode, 2, done.stdout + done.stderr)

    def test_an_unreachable_service_is_exit_3_with_a_hint(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{taken.getsockname()[1]}"
            done = hone("init", "--task", "softmax_f32", "--remote", url)
        self.assertEqual(done.returncode, 3)
        self.assertIn("cannot reach", done.stderr)
        self.assertIn("hone serve", done.stderr)
        self.assertEqual(hone("jobs", "list", "--remote", "ftp://x").returncode, 2)
        self.assertEqual(hone("jobs", "list").returncode, 2)

    def test_a_run_is_made_and_tuned_through_the_service(self):
        with tempfile.TemporaryDirectory() as home:
            env = {"HONE_HOME": home}
            made = hone("init", "--task", "grouped_gemm_f32", "--name", "far", "--remote", self.server.url, env=env)
            self.assertEqual(made.returncode, 0, made.stderr)
            run = pathlib.Path(made.stdout.splitlines()[-1])
            manifest = json.loads((run / "manifest.json").read_text())
            self.assertEqual(manifest["remote"], self.server.url)
            self.assertEqual(manifest["device"]["name"], "cpu")
            self.assertIn(self.server.url, (run / "PROMPT.md").read_text())
            done = hone("run", "--run", str(run), "--agent", "tuner", "--budget", "evaluations=2,time=10m", env=env)
            self.assertIn(done.returncode, (0, 4), done.stdout + done.stderr)
            facts = json.loads(hone("status", "--run", str(run), "--json", env=env).stdout)
            self.assertEqual(facts["evaluations"]["used"], 2, facts)
            self.assertTrue(list((run / "receipts").glob("*.json")))

    def test_submit_and_jobs(self):
        url = ("--remote", self.server.url)
        done = hone("submit", "baseline", "--task", "softmax_f32", "--workload", "small", "--samples", "3", "--wait", *url)
        self.assertEqual(done.returncode, 0, done.stderr)
        job = done.stdout.splitlines()[0]
        self.assertIn("passed: 1/1", hone("jobs", "show", job, *url).stdout)
        self.assertIn(job, hone("jobs", "list", *url).stdout)
        self.assertIn("leased", hone("jobs", "logs", job, *url).stdout)
        self.assertEqual(hone("jobs", "show", "j-0000000000000000", *url).returncode, 2)
        done = hone("submit", "--kind", "exec", "--wait", "--json", *url, "--", "/bin/echo", "words")
        self.assertEqual(json.loads(done.stdout)["result"]["stdout"], "words\n", done.stdout + done.stderr)

    def test_ctrl_c_cancels_the_job_and_keeps_what_was_done(self):
        with tempfile.TemporaryDirectory() as home:
            process = subprocess.Popen([HONE, "bench", "baseline", "--task", "softmax_f32", "--remote", self.server.url, "--json"], stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True, env=dict(os.environ, HONE_HOME=home))
            wait_for(lambda: self.server.health().json["devices"][0]["job"], 20, "the job runs")
            time.sleep(1)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 4, err)
        self.assertTrue(json.loads(out)["cancelled"])
        wait_for(lambda: not self.server.health().json["devices"][0]["job"], 20, "the device is free")


if __name__ == "__main__":
    unittest.main(verbosity=2)
