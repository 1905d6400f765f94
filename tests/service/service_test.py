#!/usr/bin/env python3
"""The evaluation service as its clients meet it, well-meaning and hostile: the real `hone serve`."""
import contextlib
import datetime
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from harness import HONE, SOURCE, Server, bench, candidate, children, hone_processes, sha256, wait_for


def hone(*arguments, env=None, timeout=180):
    with tempfile.TemporaryDirectory(prefix="hone-client-") as home:
        full = dict(os.environ, HONE_HOME=home)
        full.update(env or {})
        return subprocess.run([HONE, *arguments], capture_output=True, text=True, timeout=timeout, env=full)


# Shifts the wall clock by the seconds in a mapped file.
CLOCK = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *offset;
__attribute__((constructor)) static void start(void) {
  const char *name = getenv("HONE_TEST_CLOCK");
  int fd = name ? open(name, O_RDONLY) : -1;
  void *at = fd >= 0 ? mmap(0, 8, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
  if (at != MAP_FAILED) offset = at;
}
int clock_gettime(clockid_t id, struct timespec *t) {
  int code = syscall(SYS_clock_gettime, id, t);
  if (code == 0 && offset && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) t->tv_sec += *offset;
  return code;
}
int gettimeofday(struct timeval *t, void *zone) {
  struct timespec now;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &now);
  t->tv_sec = now.tv_sec, t->tv_usec = now.tv_nsec / 1000;
  return 0;
}
time_t time(time_t *out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out) *out = now.tv_sec;
  return now.tv_sec;
}
"""


def seconds(begin, end):
    when = [datetime.datetime.fromisoformat(each.replace("Z", "+00:00")) for each in (begin, end)]
    return (when[1] - when[0]).total_seconds()


def kind_of(job):
    result = job["result"] or {}
    error = result.get("error")
    if not error and "report" in result:
        error = result["report"]["workloads"][0]["error"]
    return error["kind"] if error else None


class Shared(unittest.TestCase):
    """One service for all of a class's tests."""
    flags = ()

    @classmethod
    def setUpClass(cls):
        cls.server = Server(*cls.flags)

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def grew_less(self, before, limit):
        if "ASAN_OPTIONS" not in os.environ:      # a sanitizer keeps freed memory back
            self.assertLess(self.server.rss() - before, limit)

    def error(self, answer, status, kind=None):
        self.assertEqual(answer.status, status, answer.body[:400])
        body = answer.json
        self.assertEqual(body["schema"], "hone.error/1")
        self.assertTrue(body["request_id"])
        self.assertNotIn("\n", body["error"]["message"])
        if kind:
            self.assertEqual(body["error"]["kind"], kind)
        return body["error"]


class Jobs(Shared):
    flags = ("--exec",)

    def test_a_bench_is_judged_and_its_artifacts_are_there(self):
        job = self.server.run(bench(candidate()))
        self.assertEqual(job["state"], "done")
        self.assertEqual(job["result"]["report"]["passed"], 1, job)
        self.assertGreater(job["ran_s"], 0)
        receipt = self.server.request("GET", f"/v1/jobs/{job['id']}/artifacts/receipt.json").json
        self.assertEqual(receipt["schema"], "hone.receipt/1")
        self.assertEqual(receipt["task"]["name"], "softmax_f32")
        trace = self.server.request("GET", f"/v1/jobs/{job['id']}/artifacts/trace.json").json
        names = [each["name"] for each in trace["traceEvents"]]
        self.assertEqual(names[:2], ["queued", "leased"])
        self.assertEqual(names[-1], "done")
        self.error(self.server.request("GET", f"/v1/jobs/{job['id']}/artifacts/passwd"), 404)

    def test_the_same_key_is_the_same_job(self):
        one = self.server.request("POST", "/v1/jobs", bench(), headers={"Idempotency-Key": "k1"})
        two = self.server.request("POST", "/v1/jobs", bench(), headers={"Idempotency-Key": "k1"})
        self.assertEqual((one.status, two.status), (202, 200))
        self.assertEqual(one.json["id"], two.json["id"])
        self.error(self.server.request("POST", "/v1/jobs", bench(samples=4), headers={"Idempotency-Key": "k1"}), 409, "conflict")
        self.server.finish(one.json["id"])

    def test_a_compile_answers_with_plans_and_located_errors(self):
        job = self.server.run({"kind": "compile", "request": {"task": "softmax_f32", "candidate": candidate()}})
        self.assertEqual(job["result"]["failed"], 0)
        self.assertEqual(len(job["result"]["plans"]), 4)
        job = self.server.run({"kind": "compile", "request": {"task": "softmax_f32", "candidate": candidate("oops;")}})
        error = job["result"]["workloads"][0]["error"]
        self.assertEqual(error["kind"], "compile")
        self.assertEqual(error["place"]["file"], "kernel.cpp")

    def test_kinds_without_a_room_are_unavailable(self):
        for kind in ("check", "inspect"):
            answer = self.server.request("POST", "/v1/jobs", {"kind": kind, "request": {}})
            self.error(answer, 501, "unavailable")

    def test_an_exec_runs_in_the_sandbox(self):
        job = self.server.run({"kind": "exec", "request": {"argv": ["/bin/sh", "-c", "cat; cat /etc/shadow; echo $HOME; ls /proc | grep -c '^[0-9]'"], "stdin": "in"}})
        result = job["result"]
        self.assertTrue(result["stdout"].startswith("in"))
        self.assertNotIn("root:", result["stdout"])
        self.assertNotEqual(result["stderr"], "")

    def test_cancel_ends_a_waiting_and_a_running_job(self):
        first = self.server.submit({"kind": "exec", "request": {"argv": ["/bin/sleep", "60"]}})
        second = self.server.submit(bench())
        wait_for(lambda: self.server.request("GET", f"/v1/jobs/{first}").json["state"] == "running", 10, "the first runs")
        self.assertEqual(self.server.request("GET", f"/v1/jobs/{second}").json["ahead"], 0)
        answer = self.server.request("POST", f"/v1/jobs/{second}/cancel")
        self.assertEqual(answer.json["state"], "cancelled")
        begun = time.monotonic()
        self.server.request("POST", f"/v1/jobs/{first}/cancel")
        ended = self.server.finish(first)
        self.assertEqual(ended["state"], "cancelled")
        self.assertEqual(kind_of(ended), "cancelled")
        self.assertLess(time.monotonic() - begun, 15)
        self.assertEqual(self.server.run(bench())["result"]["report"]["passed"], 1)

    def test_events_arrive_while_a_job_runs(self):
        job = self.server.submit(bench(candidate(name="events")))
        answer = self.server.request("GET", f"/v1/jobs/{job}/events")
        self.assertEqual(answer.headers["content-type"], "text/event-stream")
        names = re.findall(r"^event: (\w+)$", answer.body.decode(), re.M)
        self.assertEqual(names[:2], ["queued", "leased"])
        self.assertEqual(names[-1], "done")
        ids = [int(n) for n in re.findall(r"^id: (\d+)$", answer.body.decode(), re.M)]
        self.assertEqual(ids, list(range(1, len(ids) + 1)))
        later = self.server.request("GET", f"/v1/jobs/{job}/events?after={ids[-2]}")
        self.assertEqual(len(re.findall(r"^event: ", later.body.decode(), re.M)), 1)

    def test_blobs_carry_sources(self):
        kernel = candidate()["files"]["kernel.cpp"].encode()
        name = sha256(kernel)
        self.assertEqual(self.server.request("PUT", f"/v1/blobs/{name}", kernel).status, 201)
        self.assertEqual(self.server.request("PUT", f"/v1/blobs/{name}", kernel).status, 200)
        self.assertEqual(self.server.request("GET", f"/v1/blobs/{name}").body, kernel)
        head = self.server.request("HEAD", f"/v1/blobs/{name}")
        self.assertEqual((head.status, head.headers["content-length"], head.body), (200, str(len(kernel)), b""))
        what = candidate()
        what["files"]["kernel.cpp"] = {"sha256": name}
        self.assertEqual(self.server.run(bench(what))["result"]["report"]["passed"], 1)
        what["files"]["kernel.cpp"] = {"sha256": "0" * 64}
        self.error(self.server.request("POST", "/v1/jobs", bench(what)), 404, "not_found")
        self.error(self.server.request("PUT", f"/v1/blobs/{'1' * 64}", b"others"), 409, "contract")
        self.error(self.server.request("GET", f"/v1/blobs/{'1' * 64}"), 404)

    # C19: the clock of a job starts when the job does.
    def test_waiting_does_not_count_against_the_timeout(self):
        # The case says ten of 3 s; HONE_FULL=1 does that.
        count, second = (10, 3) if "HONE_FULL" in os.environ else (6, 1)
        sleep = {"kind": "exec", "request": {"argv": ["/bin/sleep", str(second)]}, "timeout_s": second + (2 if second == 3 else 1)}
        ids = [self.server.submit(sleep) for _ in range(count)]
        short = self.server.submit({**sleep, "queue_timeout_s": 1})
        ended = [self.server.finish(each) for each in ids]
        self.assertEqual([kind_of(each) for each in ended], [None] * count)
        self.assertGreater(ended[-1]["queued_s"], (count - 1) * second - 1)
        self.assertLess(ended[-1]["ran_s"], second + 1)
        late = self.server.finish(short)
        self.assertEqual(kind_of(late), "queue_timeout")
        self.assertEqual(late["ran_s"], 0)

    def test_a_job_that_runs_too_long_ends_with_what_it_had(self):
        job = self.server.run({**bench(candidate("for (volatile long i = 0; ; ++i) {}")), "timeout_s": 1.5})
        self.assertEqual(kind_of(job), "timeout")
        self.assertEqual(self.server.run(bench())["result"]["report"]["passed"], 1)

    # C17, on the CPU device: a crash is its candidate's, and nobody else's.
    def test_after_a_crash_the_next_jobs_pass(self):
        replaced = self.server.metric("hone_worker_replaced_total")
        crash = self.server.run(bench(candidate("*(volatile int*)0 = 1;")))
        self.assertEqual(kind_of(crash), "crash")
        error = crash["result"]["report"]["workloads"][0]["error"]
        self.assertIn("softmax", error["message"])
        for _ in range(2):
            self.assertEqual(self.server.run(bench())["result"]["report"]["passed"], 1)
        self.assertEqual(self.server.health().status, 200)
        self.assertEqual(self.server.metric("hone_worker_replaced_total"), replaced)

    # C24: output that never ends costs neither memory nor the next job.
    def test_floods_of_output_are_bounded(self):
        before = self.server.rss()
        what = candidate(head='#pragma message "x"\n' * 2_000_000)
        with tempfile.TemporaryDirectory() as folder:
            for name, text in what["files"].items():
                (pathlib.Path(folder) / name).write_text(text)
            for where in (self.server.url, "local"):
                flood = hone("bench", folder, "--task", "softmax_f32", "--workload", "small", "--remote", where, "--json")
                self.assertEqual(flood.returncode, 1, flood.stdout[:2000] + flood.stderr[:2000])
                error = json.loads(flood.stdout)["workloads"][0]["error"]
                self.assertEqual((error["kind"], error["place"]["line"]), ("output_limit", 1), error)
                self.assertIn("truncated", json.dumps(error["notes"]))
        head = "#include <unistd.h>\n#include <vector>\n"
        writes = self.server.run(bench(candidate("static char b[1 << 20]; for (;;) if (write(1, b, sizeof b) < 0) break;", head=head, name="writes")))
        self.assertIn(kind_of(writes), ("output_limit", "forbidden"))
        self.assertEqual(self.server.run(bench())["result"]["report"]["passed"], 1)
        self.grew_less(before, 64 << 20)

    def test_metrics_follow_the_conventions(self):
        text = self.server.request("GET", "/metrics").body.decode()
        families = re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M)
        self.assertIn(("hone_jobs_total", "counter"), families)
        for name, kind in families:
            self.assertRegex(name, r"^(hone|process)_[a-z_]+$")
            self.assertEqual(kind == "counter", name.endswith("_total"), name)
        for line in text.splitlines():
            self.assertRegex(line, r'^(# (HELP|TYPE) .*|[a-z_]+(\{.*\})? [-+0-9.einfa]+)$')

    def test_tasks_are_told_with_their_hashes(self):
        tasks = {each["name"]: each for each in self.server.request("GET", "/v1/tasks").json["tasks"]}
        self.assertIn("softmax_f32", tasks)
        self.assertEqual(tasks["softmax_f32"], self.server.request("GET", "/v1/tasks/softmax_f32").json)
        wrong = self.server.run(bench(task_sha256="0" * 64))
        self.assertEqual(kind_of(wrong), "conflict")
        self.assertEqual(kind_of(self.server.run(bench(task="nothing"))), "not_found")


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
            done = hone("run", "--run", str(run), "--agent", "tuner", "--budget", "evaluations=2,time=30s", env=env)
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


class Hostile(Shared):
    """Whatever comes, the answer is in time and of the right kind, and the service stays as it was."""

    def tearDown(self):
        self.assertIsNone(self.server.process.poll())
        self.assertEqual(self.server.health().status, 200)

    def test_bad_bodies_are_400_with_the_place(self):
        post = lambda body: self.server.request("POST", "/v1/jobs", body, headers={"Content-Type": "application/json"})
        for body in (b"", b"{", b"[]", b"null", b'{"kind": "bench", "kind": "bench", "request": {}}', b"[" * 100_000, b'{"kind": "\xff"}',
                     b'{"kind": "bench"}', b'{"kind": "bench", "request": {"task": 3}}', b'{"kind": "bench", "request": {"task": "softmax_f32", "sampels": 3}}',
                     b'{"kind": "bench", "request": {"task": "softmax_f32", "samples": 1e99}}', b'{"kind": "bench", "request": {"task": "../../etc"}}',
                     b'{"kind": "bench", "request": {"task": "softmax_f32"}, "priority": 11}', b'{"kind": "bench", "request": {"task": "softmax_f32"}, "timeout_s": -1}'):
            self.error(post(body), 400)
        error = self.error(post(b'{"kind": "bench", "request": {"task": "softmax_f32", "sampels": 3}}'), 400)
        self.assertIn("sampels", error["message"])

    def test_path_tricks_in_names_go_nowhere(self):
        for name in ("../x", "/etc/passwd", "a/../../b", "", ".hidden", "a//b", "a\\b", "x\x00y", "a/./b", "a\nb"):
            what = candidate()
            what["files"][name] = "text"
            job = self.server.request("POST", "/v1/jobs", bench(what))
            if job.status == 202:
                self.assertEqual(kind_of(self.server.finish(job.json["id"])), "contract", name)
            else:
                self.error(job, 400)
        for path in ("/v1/tasks/..%2f..%2fetc", "/v1/blobs/..%2f..%2fetc%2fpasswd", "/v1/jobs/%00", "/v1/jobs/j-%2e%2e"):
            self.error(self.server.request("GET", path), 404)
        self.error(self.server.request("GET", "/v1/jobs/%zz"), 400)
        self.error(self.server.request("GET", "/v1/jobs?limit=0"), 400)
        self.error(self.server.request("GET", "/v1/jobs?limit=1&limit=2"), 400)
        self.error(self.server.request("GET", "/v1/jobs?nonsense=1"), 400)

    def test_routes_and_methods(self):
        self.error(self.server.request("GET", "/"), 404)
        answer = self.server.request("DELETE", "/v1/jobs")
        self.error(answer, 405)
        self.assertEqual(answer.headers["allow"], "POST, GET")
        self.error(self.server.request("POST", "/v1/jobs", b"{}", headers={"Content-Type": "text/plain"}), 415)
        answer = self.server.request("GET", "/health", headers={"X-Request-Id": "my-id"})
        self.assertEqual(answer.headers["x-request-id"], "my-id")
        answer = self.server.request("GET", "/health", headers={"X-Request-Id": "evil id\x01"})
        self.assertNotIn("evil", answer.headers["x-request-id"])

    def test_a_body_of_a_gigabyte_is_refused_at_once(self):
        before = self.server.rss()
        with self.server.raw() as s:
            s.sendall(b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1073741824\r\n\r\n")
            self.assertIn(b" 413 ", s.recv(4096).split(b"\r\n")[0])
        with self.server.raw() as s:       # without telling its length
            s.sendall(b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
            with contextlib.suppress(OSError):
                for _ in range(1024):
                    s.sendall(b"100000\r\n" + b"x" * 0x100000 + b"\r\n")
            with contextlib.suppress(OSError):
                self.assertIn(b" 413 ", s.recv(4096).split(b"\r\n")[0])
        self.grew_less(before, 128 << 20)

    def test_torn_uploads_leave_nothing(self):
        data = os.urandom(1 << 20)
        with self.server.raw() as s:
            s.sendall(f"PUT /v1/blobs/{sha256(data)} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data[: 1 << 19])
        time.sleep(0.3)
        self.error(self.server.request("GET", f"/v1/blobs/{sha256(data)}"), 404)
        left = [each for each in (self.server.data / "blobs").rglob("*") if each.is_file()]
        self.assertEqual([each for each in left if each.stat().st_size == 1 << 19], [])
        self.assertEqual(self.server.request("PUT", f"/v1/blobs/{sha256(data)}", data).status, 201)

    def test_broken_heads(self):
        for head, status in ((b"NONSENSE\r\n\r\n", b" 400 "), (b"GET / HTTP/9.9\r\n\r\n", b" 400 "), (b"GET /" + b"a" * 20000 + b" HTTP/1.1\r\n\r\n", b" 4"),
                             (b"GET / HTTP/1.1\r\nX: " + b"y" * 20000 + b"\r\n\r\n", b" 431 "), (b"POST /v1/jobs HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b" 400 "),
                             (b"POST /v1/jobs HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", b" 400 "),
                             (b"GET / HTTP/1.1\r\nbad header\r\n\r\n", b" 400 ")):
            with self.server.raw() as s:
                s.sendall(head)
                self.assertIn(status, s.recv(4096).split(b"\r\n")[0], head[:40])

    def test_half_closed_and_silent_connections_do_not_matter(self):
        silent = [self.server.raw() for _ in range(50)]
        for each in silent[:25]:
            each.sendall(b"GET /health HTTP/1.1\r\nHost")
        for each in silent[25:]:
            each.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            each.shutdown(socket.SHUT_WR)
        begun = time.monotonic()
        self.assertEqual(self.server.health().status, 200)
        self.assertLess(time.monotonic() - begun, 5)
        for each in silent[25:]:
            self.assertIn(b"200 OK", each.recv(4096))
        for each in silent:
            each.close()

    def test_pipelined_requests_are_answered_in_order(self):
        with self.server.raw() as s:
            s.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\nGET /nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            data = b""
            while part := s.recv(65536):
                data += part
        self.assertEqual(re.findall(rb"HTTP/1.1 (\d+)", data), [b"200", b"404"])


class Tokens(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="hone-tokens-"))
        cls.file = cls.folder / "tokens.json"
        cls.secrets = {}
        for name, scope, quota in (("alice", "submit,read", "jobs=1"), ("bob", "submit,read", ""), ("reader", "read", ""), ("root", "admin", ""), ("shell", "submit,read,exec", ""),
                                   ("slow", "submit,read", "requests=1,bytes=100")):
            cls.secrets[name] = cls.token("create", name, "--scope", scope, *(["--quota", quota] if quota else [])).strip()
        cls.server = Server("--tokens", str(cls.file), "--exec")

    @classmethod
    def tearDownClass(cls):
        cls.server.close()
        shutil.rmtree(cls.folder)

    @classmethod
    def token(cls, *arguments):
        done = hone("token", *arguments, "--tokens", str(cls.file))
        assert done.returncode == 0, done.stderr
        return done.stdout

    def ask(self, who, method, path, body=None, **more):
        return self.server.request(method, path, body, token=self.secrets.get(who, who), **more)

    def test_who_may_do_what(self):
        self.assertEqual(self.server.request("GET", "/v1/jobs").status, 401)
        self.assertEqual(self.ask("hone_" + "x" * 43, "GET", "/v1/jobs").status, 401)
        self.assertEqual(self.server.request("GET", "/v1/jobs", headers={"Authorization": "Basic eDp5"}).status, 401)
        self.assertEqual(self.server.health().status, 200)
        self.assertEqual(self.ask("reader", "POST", "/v1/jobs", bench()).status, 403)
        self.assertEqual(self.ask("alice", "POST", "/v1/jobs", {"kind": "exec", "request": {"argv": ["/bin/true"]}}).status, 403)
        self.assertEqual(self.ask("root", "POST", "/v1/jobs", {"kind": "exec", "request": {"argv": ["/bin/true"]}}).status, 403)
        self.assertEqual(self.ask("shell", "POST", "/v1/jobs", {"kind": "exec", "request": {"argv": ["/bin/true"]}}).status, 202)

    def test_a_token_sees_its_own_only(self):
        job = self.ask("alice", "POST", "/v1/jobs", bench()).json["id"]
        for path in (f"/v1/jobs/{job}", f"/v1/jobs/{job}/events", f"/v1/jobs/{job}/artifacts/trace.json"):
            self.assertEqual(self.ask("bob", "GET", path).status, 404)
            self.assertEqual(self.ask("root", "GET", path).status, 200)
        self.assertEqual(self.ask("bob", "POST", f"/v1/jobs/{job}/cancel").status, 404)
        self.assertNotIn(job, [each["id"] for each in self.ask("bob", "GET", "/v1/jobs").json["jobs"]])
        data = b"alice's"
        self.assertEqual(self.ask("alice", "PUT", f"/v1/blobs/{sha256(data)}", data).status, 201)
        self.assertEqual(self.ask("bob", "GET", f"/v1/blobs/{sha256(data)}").status, 404)
        what = candidate()
        what["files"]["kernel.cpp"] = {"sha256": sha256(data)}
        self.assertEqual(self.ask("bob", "POST", "/v1/jobs", bench(what)).status, 404)

    def test_quotas(self):
        answers = [self.ask("slow", "GET", "/v1/jobs") for _ in range(4)]
        refused = [each for each in answers if each.status == 429]
        self.assertTrue(refused)
        self.assertGreater(int(refused[0].headers["retry-after"]), 0)
        time.sleep(3)
        data = b"x" * 101
        self.assertEqual(self.ask("slow", "PUT", f"/v1/blobs/{sha256(data)}", data).status, 429)

    def test_secrets_are_nowhere(self):
        self.ask("alice", "GET", "/v1/jobs")
        self.ask("alice", "POST", "/v1/jobs", b"{")
        self.ask("hone_wrong-secret-of-somebody", "GET", "/v1/jobs")
        for file in [*self.server.data.rglob("*"), self.server.folder / "log", self.file]:
            if file.is_file():
                data = file.read_bytes()
                for secret in [*self.secrets.values(), "hone_wrong-secret"]:
                    self.assertNotIn(secret.encode(), data, file)
        rows = [json.loads(line) for line in (self.server.data / "audit.jsonl").read_text().splitlines()]
        self.assertTrue(any(row["path"] == "/v1/jobs" and row["status"] == 400 for row in rows))
        self.assertTrue(any(row["token"] == "unknown" and row["status"] == 401 for row in rows))

    def test_revoking_works_on_a_running_service(self):
        self.secrets["late"] = self.token("create", "late").strip()
        wait_for(lambda: self.ask("late", "GET", "/v1/jobs").status == 200, 5, "a new token is known")
        self.token("revoke", "late")
        wait_for(lambda: self.ask("late", "GET", "/v1/jobs").status == 401, 5, "a revoked token is refused")


class Life(unittest.TestCase):
    # C18: /health is about what can run, not about a flag.
    def test_a_stopped_device_process_shows_in_health_and_is_replaced(self):
        with Server() as server:
            worker = server.device_pid()
            os.kill(worker, signal.SIGSTOP)
            begun = time.monotonic()
            bad = wait_for(lambda: (a := server.health()).status == 503 and a, 12, "/health is 503")
            self.assertLess(time.monotonic() - begun, 10.5)
            self.assertEqual(bad.json["reasons"][0]["code"], "device_stuck")
            job = server.submit(bench())
            os.kill(worker, signal.SIGKILL)
            self.assertEqual(server.finish(job)["result"]["report"]["passed"], 1)
            self.assertEqual(server.health().status, 200)
            self.assertEqual(server.metric("hone_worker_replaced_total"), 1)

    def test_a_device_process_that_dies_with_a_job_is_replaced_and_the_job_ends_once(self):
        with Server() as server:
            job = server.submit(bench(samples=200))
            wait_for(lambda: server.request("GET", f"/v1/jobs/{job}").json["state"] == "running", 20, "it runs")
            os.kill(server.device_pid(), signal.SIGKILL)
            ended = server.finish(job)
            self.assertEqual(ended["result"]["report"]["passed"], 1)
            self.assertEqual(ended["leases"], 2)

    def test_kill_9_of_the_service_loses_nothing(self):
        with Server() as server:
            before = set(hone_processes()) - {server.process.pid}
            jobs = [server.submit(bench(candidate(name=f"c{i}"))) for i in range(3)]
            time.sleep(1.0)
            server.kill()
            wait_for(lambda: not (set(hone_processes()) & before), 10, "nothing is left of the killed service")
            server.start()
            for job in jobs:
                self.assertEqual(server.finish(job)["result"]["report"]["passed"], 1)

    def test_sigterm_drains(self):
        with Server("--exec") as server:
            job = server.submit({"kind": "exec", "request": {"argv": ["/bin/sleep", "1.5"]}})
            wait_for(lambda: server.request("GET", f"/v1/jobs/{job}").json["state"] == "running", 20, "it runs")
            later = server.submit(bench())
            server.process.terminate()
            wait_for(lambda: server.health().status == 503, 2, "/health says so")
            self.assertEqual(server.request("POST", "/v1/jobs", bench()).status, 503)
            self.assertEqual(server.process.wait(timeout=30), 0)
            server.start()
            self.assertEqual(kind_of(server.finish(job)), None)
            self.assertEqual(server.finish(later)["result"]["report"]["passed"], 1)

    def test_only_loopback_without_tokens_and_one_service_a_folder(self):
        with tempfile.TemporaryDirectory() as data:
            done = hone("serve", "--host", "0.0.0.0", "--port", "0", "--data", data)
            self.assertEqual(done.returncode, 2)
            self.assertIn("token", done.stderr)
            done = hone("serve", "--host", "0.0.0.0", "--port", "0", "--data", data, "--sandbox", "off")
            self.assertEqual(done.returncode, 2)
            with Server(data=data) as server:
                self.assertEqual(hone("serve", "--port", "0", "--data", data).returncode, 2)
                self.assertEqual(hone("serve", "--port", str(server.port), "--data", data + "/other").returncode, 3)

    # C22: what the machine refuses is said, and nothing runs.
    def test_without_namespaces_it_does_not_start(self):
        script = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$0" serve --port 0 --data "$1"'
        with tempfile.TemporaryDirectory() as data:
            unshare = subprocess.run(["unshare", "-Ur", "sh", "-c", "echo 0 > /proc/sys/user/max_user_namespaces"], capture_output=True)
            if unshare.returncode != 0:
                self.skipTest("this machine lets nobody lower max_user_namespaces")
            done = subprocess.run(["unshare", "-Ur", "sh", "-c", script, HONE, data], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("user namespaces", done.stderr)
        self.assertIn("--sandbox=off", done.stderr)

    def test_without_a_sandbox_every_receipt_says_so(self):
        with Server("--sandbox", "off") as server:
            job = server.run(bench(candidate()))
            self.assertEqual(job["result"]["report"]["passed"], 1, job)
            self.assertEqual(job["result"]["receipt"]["sandbox"], "off")
            self.assertEqual(server.health().json["devices"][0]["device"]["sandbox"], "off")

    # C26: the receipt's hash is that of the bytes that were compiled.
    def test_two_clients_compile_one_candidate_once_and_edits_are_seen(self):
        with Server() as server:
            what = candidate(name="shared", head=f"// {time.time_ns()}\n")
            jobs = [server.submit(bench(what)) for _ in range(2)]
            receipts = [server.finish(each)["result"]["receipt"] for each in jobs]
            self.assertEqual(receipts[0]["binaries"]["candidate"]["modules"][0]["sha256"], receipts[1]["binaries"]["candidate"]["modules"][0]["sha256"])
            self.assertEqual([each["binaries"]["candidate"]["modules"][0]["cached"] for each in receipts], [False, True])
            what["files"]["kernel.cpp"] += "// edited\n"
            again = server.run(bench(what))["result"]["receipt"]
            self.assertNotEqual(again["candidate"]["sha256"], receipts[0]["candidate"]["sha256"])
            self.assertFalse(again["binaries"]["candidate"]["modules"][0]["cached"])

    def test_a_full_queue_pushes_back_and_the_client_waits(self):
        with Server("--exec", "--queue", "2") as server:
            sleep = {"kind": "exec", "request": {"argv": ["/bin/sleep", "1"]}}
            answers = [server.request("POST", "/v1/jobs", sleep) for _ in range(6)]
            refused = [each for each in answers if each.status == 503]
            self.assertTrue(refused)
            self.assertGreater(int(refused[0].headers["retry-after"]), 0)
            done = hone("submit", "--kind", "exec", "--wait", "--remote", server.url, "--", "/bin/true")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("waiting", done.stderr)

    def test_what_was_measured_before_a_process_was_lost_is_told(self):
        with Server() as server:
            job = server.submit({"kind": "bench", "request": {"task": "softmax_f32", "workloads": ["small", "attention"], "samples": 400,
                                                              "candidate": candidate()}})
            for lease in (1, 2, 3):        # a job may cost three device processes
                wait_for(lambda: [each["name"] for each in server.request("GET", f"/v1/jobs/{job}?after=0").json["events"]].count("judged") == lease, 120,
                         f"the first workload's verdict in lease {lease}")
                os.kill(server.device_pid(), signal.SIGKILL)
            ended = server.finish(job)
            self.assertEqual(kind_of(ended), "device")
            rows = ended["result"]["partial"]["workloads"]
            self.assertEqual([(row["id"], row["verdict"]) for row in rows], [("small", "PASS")])
            self.assertGreater(rows[0]["ratio"], 0)

    def test_a_job_that_costs_every_process_ends_with_kind_device(self):
        with Server("--exec") as server:
            job = server.submit({"kind": "exec", "request": {"argv": ["/bin/sleep", "30"]}})
            for lease in (1, 2, 3):
                wait_for(lambda: (at := server.request("GET", f"/v1/jobs/{job}").json)["state"] == "running" and at["leases"] == lease, 30, f"lease {lease}")
                os.kill(server.device_pid(), signal.SIGKILL)
            self.assertEqual(kind_of(server.finish(job)), "device")
            self.assertEqual(server.run(bench())["result"]["report"]["passed"], 1)

    def test_waiting_again_after_a_loss_is_not_running(self):
        with Server("--exec") as server:
            job = server.submit({"kind": "exec", "request": {"argv": ["/bin/sleep", "3"]}})
            wait_for(lambda: server.request("GET", f"/v1/jobs/{job}").json["state"] == "running", 20, "it runs")
            time.sleep(1.5)
            os.kill(server.device_pid(), signal.SIGKILL)
            ended = server.finish(job)
            self.assertEqual(ended["leases"], 2)
            # The second and a half of the lost lease is neither waiting nor the result's own running time.
            self.assertGreater(ended["ran_s"], 2.9)
            begun = [each["time"] for each in server.request("GET", f"/v1/jobs/{job}?after=0").json["events"] if each["name"] == "leased"]
            self.assertLess(ended["queued_s"], seconds(begun[0], begun[1]) - 1.2)

    def test_a_full_disk_takes_nothing_in_and_loses_nothing(self):
        mount = 'mount -t tmpfs -o size=48m tmpfs "$0" && exec "$@"'
        namespaces = ["--mount"] if os.geteuid() == 0 else ["--user", "--map-current-user", "--keep-caps", "--mount"]
        with tempfile.TemporaryDirectory() as data:
            if subprocess.run(["unshare", *namespaces, "sh", "-c", mount, data, "true"], capture_output=True).returncode != 0:
                self.skipTest("this machine does not let tests mount a file system")
            with Server("--exec", data=data, prefix=("unshare", *namespaces, "sh", "-c", mount, data)) as server:
                inside = pathlib.Path(f"/proc/{server.process.pid}/root{data}")
                running = server.submit({"kind": "exec", "request": {"argv": ["/bin/sh", "-c", "sleep 3; echo done"]}})
                waits = server.submit({"kind": "exec", "request": {"argv": ["/bin/echo", "later"]}})
                wait_for(lambda: server.request("GET", f"/v1/jobs/{running}").json["state"] == "running", 20, "it runs")
                self.fill(inside / "filler")
                health = wait_for(lambda: (a := server.health()).status == 503 and a, 5, "/health is 503")
                self.assertIn("disk_full", [each["code"] for each in health.json["reasons"]])
                blob = os.urandom(1 << 20)
                refused = server.request("PUT", f"/v1/blobs/{sha256(blob)}", blob)
                self.assertEqual(refused.status, 503, refused.body)
                accepted = []
                for _ in range(200):                           # until not even a row has room
                    answer = server.request("POST", "/v1/jobs", {"kind": "exec", "request": {"argv": ["/bin/cat"], "stdin": "x" * 20000}})
                    if answer.status != 202:
                        break
                    accepted.append(answer.json["id"])
                self.assertEqual(answer.status, 503, answer.body)
                self.assertGreater(int(answer.headers["retry-after"]), 0)
                time.sleep(4)                                  # the job ends while nothing can be written
                (inside / "filler").unlink()
                self.assertEqual(server.finish(running)["result"]["stdout"], "done\n")
                self.assertEqual(server.finish(waits)["result"]["stdout"], "later\n")
                for job in accepted:
                    self.assertEqual(server.finish(job)["result"]["exit_code"], 0)
                wait_for(lambda: server.health().status == 200, 5, "/health is 200 again")
                self.assertEqual(server.request("PUT", f"/v1/blobs/{sha256(blob)}", blob).status, 201)

    @staticmethod
    def fill(path):
        with open(path, "wb", buffering=0) as file:
            for block in (1 << 20, 1 << 12):
                with contextlib.suppress(OSError):
                    while True:
                        file.write(b"x" * block)

    # The wall clock is for people only: no wait, limit or figure comes from it.
    def test_the_clock_may_jump(self):
        with tempfile.TemporaryDirectory() as folder:
            offset, shim = pathlib.Path(folder) / "offset", folder + "/clock.so"
            offset.write_bytes(struct.pack("q", 0))
            (pathlib.Path(folder) / "clock.c").write_text(CLOCK)
            subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", shim, folder + "/clock.c"], check=True)
            env = {"LD_PRELOAD": shim, "HONE_TEST_CLOCK": str(offset)}
            if "ASAN_OPTIONS" in os.environ:
                env["ASAN_OPTIONS"] = os.environ["ASAN_OPTIONS"] + ":verify_asan_link_order=0"
            with Server("--exec", env=env) as server:
                sleep = {"kind": "exec", "timeout_s": 30, "queue_timeout_s": 60, "request": {"argv": ["/bin/sleep", "1.5"]}}
                jobs = [server.submit(sleep) for _ in range(3)]
                year = None
                for jump in (400 * 86400, -400 * 86400):
                    with open(offset, "r+b") as file:          # in place: it is mapped
                        file.write(struct.pack("q", jump))
                    time.sleep(1)
                    told = server.request("POST", "/v1/jobs", sleep).json
                    jobs.append(told["id"])
                    self.assertNotEqual(told["accepted"][:4], year, "the clock did jump")
                    year = told["accepted"][:4]
                    self.assertEqual(server.health().status, 200)
                    begun = time.monotonic()
                    self.assertEqual(server.request("GET", f"/v1/jobs/{told['id']}?wait=1&after=1").status, 200)
                    self.assertLess(time.monotonic() - begun, 10)
                for job in jobs:
                    ended = server.finish(job)
                    self.assertEqual(ended["result"].get("exit_code"), 0, ended)
                    self.assertLess(ended["queued_s"], 60)
                    self.assertLess(ended["ran_s"], 30)
                    self.assertEqual(server.request("GET", f"/v1/jobs/{job}/artifacts/trace.json").status, 200)

    def test_tls(self):
        with tempfile.TemporaryDirectory() as folder:
            cert, key = folder + "/cert.pem", folder + "/key.pem"
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
                            "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", cert], check=True, capture_output=True)
            with Server("--tls-cert", cert, "--tls-key", key, "--host", "localhost") as server:
                done = hone("jobs", "list", "--remote", f"https://localhost:{server.port}", env={"SSL_CERT_FILE": cert})
                self.assertEqual(done.returncode, 0, done.stderr)
                refused = hone("jobs", "list", "--remote", f"https://localhost:{server.port}")
                self.assertEqual(refused.returncode, 3)
                self.assertIn("trusted", refused.stderr)

    def test_slow_heads_are_cut_off(self):
        with Server() as server:
            with server.raw() as s:
                s.settimeout(60)
                begun = time.monotonic()
                with contextlib.suppress(OSError):
                    for _ in range(100):
                        s.sendall(b"G")
                        time.sleep(0.5)
                        s.settimeout(0.01)
                        with contextlib.suppress(TimeoutError):
                            if s.recv(4096) == b"":
                                break
                self.assertLess(time.monotonic() - begun, 45)
            self.assertEqual(server.health().status, 200)


if __name__ == "__main__":
    unittest.main(verbosity=2)
