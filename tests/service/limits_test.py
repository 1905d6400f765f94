#!/usr/bin/env python3
"""What is held and for how long, who gets in: the real `hone serve`."""
import json
import os
import pathlib
import signal
import socket
import tempfile
import time
import unittest

from harness import Server, bench, candidate, hone, sha256, wait_for

EXEC = {"kind": "exec", "request": {"argv": ["/bin/true"]}}


class Access(unittest.TestCase):
    def test_without_its_last_token_nobody_gets_in(self):
        with tempfile.TemporaryDirectory() as folder:
            file = f"{folder}/tokens.json"
            self.assertEqual(hone("token", "create", "ci", "--tokens", file).returncode, 0)
            with Server("--tokens", file, "--exec") as server:
                self.assertEqual(server.request("GET", "/v1/jobs").status, 401)
                self.assertEqual(hone("token", "revoke", "ci", "--tokens", file).returncode, 0)
                time.sleep(2)
                self.assertEqual(server.request("POST", "/v1/jobs", EXEC).status, 401)
                os.unlink(file)
                time.sleep(2)
                self.assertEqual(server.request("POST", "/v1/jobs", EXEC).status, 401)
            self.assertEqual(hone("token", "create", "again", "--tokens", file).returncode, 0)
            self.assertEqual(hone("token", "revoke", "again", "--tokens", file).returncode, 0)
            with Server("--tokens", file) as server:
                self.assertEqual(server.request("GET", "/v1/jobs").status, 401)

    def test_a_web_page_is_not_this_machine(self):
        with Server("--exec") as server:
            for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Host": "127.0.0.1.evil.example"}):
                answer = server.request("POST", "/v1/jobs", EXEC, headers=headers)
                self.assertEqual((answer.status, answer.json["error"]["kind"]), (403, "unauthorized"), headers)
            self.assertEqual(server.request("POST", "/v1/jobs", json.dumps(EXEC).encode()).status, 415)
            for host in ("localhost", "127.0.0.1:1", "[::1]:8000"):
                self.assertEqual(server.request("GET", "/v1/jobs", headers={"Host": host}).status, 200, host)
            self.assertEqual(server.data.stat().st_mode & 0o777, 0o700)

    def test_flags_from_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "serve.toml")
            file.write_text('queue = 1\nexec = true\nhost = "::1"\n')
            with Server("--config", str(file), "--host", "127.0.0.1") as server:   # the command line wins
                self.assertTrue(server.health().json["exec"])
                held = server.submit({"kind": "exec", "request": {"argv": ["/bin/sleep", "20"]}})
                wait_for(lambda: server.request("GET", f"/v1/jobs/{held}").json["state"] == "running", 20, "it runs")
                server.submit(EXEC)
                self.assertEqual(server.request("POST", "/v1/jobs", EXEC).status, 503)
                server.request("POST", f"/v1/jobs/{held}/cancel")
            for text, said in (("prot = 1\n", "`prot` is no flag"), ("port = \n", "serve.toml:1"), ("[serve]\nqueue = 1\n", "serve"), ("queue = 0\n", "serve.toml:1"),
                               ('queue = "x"\n', "serve.toml:1"), ("queue = 1.5\n", "takes a text"), ("queue = []\n", "takes a text")):
                file.write_text(text)
                done = hone("serve", "--config", str(file), "--port", "0", "--data", folder + "/data", timeout=20)
                self.assertEqual(done.returncode, 2, (text, done.stderr))
                self.assertIn(said, done.stderr)
            done = hone("serve", "--config", folder + "/none.toml", timeout=20)
            self.assertEqual((done.returncode, "no such file" in done.stderr), (2, True), done.stderr)


class Held(unittest.TestCase):
    def test_a_job_that_is_sent_again_is_known_though_the_queue_is_full(self):
        with Server("--exec", "--queue", "1") as server:
            held = server.submit({"kind": "exec", "request": {"argv": ["/bin/sleep", "20"]}})
            wait_for(lambda: server.request("GET", f"/v1/jobs/{held}").json["state"] == "running", 20, "it runs")
            once = server.request("POST", "/v1/jobs", EXEC, headers={"Idempotency-Key": "k"})
            self.assertEqual(once.status, 202)
            self.assertEqual(server.request("POST", "/v1/jobs", EXEC).status, 503)
            again = server.request("POST", "/v1/jobs", EXEC, headers={"Idempotency-Key": "k"})
            self.assertEqual((again.status, again.json["id"]), (200, once.json["id"]))
            server.request("POST", f"/v1/jobs/{held}/cancel")

    def test_bytes_of_a_token_are_its_blobs_and_its_jobs(self):
        with tempfile.TemporaryDirectory() as folder:
            file = f"{folder}/tokens.json"
            secret = hone("token", "create", "a", "--tokens", file, "--quota", "bytes=1MiB").stdout.strip()
            with Server("--tokens", file) as server:
                data = os.urandom(600_000)
                for status in (201, 200):                  # the second takes no room
                    self.assertEqual(server.request("PUT", f"/v1/blobs/{sha256(data)}", data, token=secret).status, status)
                other = os.urandom(600_000)
                self.assertEqual(server.request("PUT", f"/v1/blobs/{sha256(other)}", other, token=secret).status, 429)
                large = candidate()
                large["files"]["notes.txt"] = "x" * 600_000
                answer = server.request("POST", "/v1/jobs", {"kind": "compile", "request": {"task": "softmax_f32", "candidate": large}}, token=secret)
                self.assertEqual((answer.status, answer.json["error"]["kind"]), (429, "quota"))

    def test_blobs_have_their_room_and_no_more(self):
        with Server("--blobs", "1MiB") as server:
            for _ in range(4):                             # older ones make room
                data = os.urandom(400_000)
                self.assertEqual(server.request("PUT", f"/v1/blobs/{sha256(data)}", data).status, 201)
                self.assertLessEqual(server.metric("hone_blob_bytes"), 1 << 20)
            data = os.urandom(1_200_000)
            self.assertEqual(server.request("PUT", f"/v1/blobs/{sha256(data)}", data).status, 503)

    def test_results_are_kept_for_each_token(self):
        with tempfile.TemporaryDirectory() as folder:
            file = f"{folder}/tokens.json"
            one, two = (hone("token", "create", name, "--tokens", file, "--scope", "submit,read,exec").stdout.strip() for name in "ab")
            with Server("--tokens", file, "--exec", "--keep-jobs", "2") as server:
                mine = server.submit(EXEC, token=one)
                server.finish(mine, token=one)
                theirs = [server.submit(EXEC, token=two) for _ in range(5)]
                for each in theirs:
                    server.finish(each, token=two)
                wait_for(lambda: server.request("GET", f"/v1/jobs/{theirs[0]}", token=two).status == 404, 60, "the oldest of many goes")
                self.assertEqual(server.request("GET", f"/v1/jobs/{mine}", token=one).status, 200)

    def test_silent_connections_make_room_for_those_that_ask(self):
        with Server() as server:
            silent = []
            try:
                for _ in range(1100):
                    silent.append(socket.create_connection(("127.0.0.1", server.port), timeout=20))
                for _ in range(20):
                    self.assertEqual(server.health().status, 200)
            finally:
                for each in silent:
                    each.close()

    def test_unfinished_bodies_have_a_limit_together(self):
        with Server() as server:
            before, open_ones, refused = server.rss(), [], 0
            head = b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 33000000\r\n\r\n"
            try:
                for _ in range(20):
                    s = socket.create_connection(("127.0.0.1", server.port), timeout=60)
                    open_ones.append(s)
                    try:
                        s.sendall(head + b" " * 32_000_000)
                    except OSError:
                        pass                               # refused while it was being sent
                for s in open_ones:
                    s.settimeout(0.5)
                    try:
                        refused += s.recv(64).startswith(b"HTTP/1.1 503")
                    except OSError:
                        pass
                self.assertGreater(refused, 5)
                self.assertEqual(server.health().status, 200)
                if "ASAN_OPTIONS" not in os.environ:
                    self.assertLess(server.rss() - before, 400 << 20)
            finally:
                for each in open_ones:
                    each.close()


class Stopping(unittest.TestCase):
    # Nobody has cancelled it: it is done again, not ended by the end of the service.
    def test_a_job_that_outlasts_the_drain_is_done_at_the_next_start(self):
        for job in ({"kind": "exec", "request": {"argv": ["/bin/sh", "-c", "sleep 4; echo A"]}}, bench(samples=400)):
            with Server("--exec", "--drain", "1s") as server:
                id_ = server.submit(job)
                wait_for(lambda: server.request("GET", f"/v1/jobs/{id_}").json["state"] == "running", 20, "it runs")
                time.sleep(0.5)
                self.assertEqual(server.kill(signal.SIGTERM), 0)
                server.start()
                ended = server.finish(id_)
                self.assertEqual((ended["state"], ended["leases"], ended["cancel_asked"]), ("done", 2, False))
                if job["kind"] == "exec":
                    self.assertEqual(ended["result"]["stdout"], "A\n")
                else:
                    self.assertEqual(ended["result"]["report"]["passed"], 1)
                    self.assertFalse(ended["result"]["report"]["cancelled"])

    def test_what_has_brought_a_job_can_be_followed(self):
        with Server("--exec") as server:
            job = server.submit(EXEC, headers={"X-Request-Id": "my-req-42"})
            server.finish(job)
            events = server.request("GET", f"/v1/jobs/{job}?after=0").json["events"]
            self.assertEqual(events[0]["data"]["request_id"], "my-req-42")
            self.assertTrue(any(job in line and "my-req-42" in line for line in server.read_log().splitlines()))


if __name__ == "__main__":
    unittest.main(verbosity=2)
