#!/usr/bin/env python3
"""Starting, draining, dying, losing devices and disks: the real `hone serve`."""
import contextlib
import os
import pathlib
import signal
import struct
import subprocess
import tempfile
import time
import unittest

from harness import HONE, Server, bench, candidate, hone, hone_processes, kind_of, seconds, sha256, wait_for


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
            self.assertEqual([(row["id"], row["verdict"]) for row in rows], [("small", "PASS")], rows)
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

    def test_compilers_beside_the_device_keep_it_free(self):
        burn = "static constexpr int burn(int x) { for (int i = 0; i < 20; ++i) for (int j = 0; j < 200000; ++j) x = x * 31u + j; return x; }\n"
        slow = burn + "".join(f"constexpr int b{i} = burn({i});\n" for i in range(40))
        with Server("--compilers", "2") as server:
            held = server.submit(bench(candidate(name="slow", head=slow)))
            wait_for(lambda: "compiling" in [each["name"] for each in server.request("GET", f"/v1/jobs/{held}?after=0").json["events"]], 30, "it compiles")
            self.assertEqual(server.run(bench(candidate(name="good")))["result"]["report"]["passed"], 1)
            refused = server.run(bench(candidate(name="bad", head="oops;\n")))
            self.assertEqual((kind_of(refused), refused["leases"]), ("compile", 0))
            self.assertEqual(server.run({"kind": "compile", "request": {"task": "softmax_f32", "candidate": candidate(name="good")}})["result"]["failed"], 0)
            self.assertEqual(server.request("GET", f"/v1/jobs/{held}").json["state"], "queued")
            self.assertEqual(server.request("POST", f"/v1/jobs/{held}/cancel").json["state"], "cancelled")

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
                expires = server.submit({"kind": "exec", "request": {"argv": ["/bin/echo", "never"]}, "queue_timeout_s": 2})
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
                self.assertEqual(kind_of(server.finish(expires)), "queue_timeout")
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
