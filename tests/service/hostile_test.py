#!/usr/bin/env python3
"""Hostile and broken clients: the real `hone serve`."""
import contextlib
import os
import re
import socket
import time
import unittest

from harness import Shared, bench, candidate, kind_of, sha256


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
            s.sendall(b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1073741824\r\n\r\n")
            self.assertIn(b" 413 ", s.recv(4096).split(b"\r\n")[0])
        with self.server.raw() as s:       # without telling its length
            s.sendall(b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
            with contextlib.suppress(OSError):
                for _ in range(1024):
                    s.sendall(b"100000\r\n" + b"x" * 0x100000 + b"\r\n")
            with contextlib.suppress(OSError):
                self.assertIn(b" 413 ", s.recv(4096).split(b"\r\n")[0])
        self.grew_less(before, 128 << 20)

    def test_torn_uploads_leave_nothing(self):
        data = os.urandom(1 << 20)
        with self.server.raw() as s:
            s.sendall(f"PUT /v1/blobs/{sha256(data)} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data[: 1 << 19])
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
            each.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
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
            s.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\nGET /nothing HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            data = b""
            while part := s.recv(65536):
                data += part
        self.assertEqual(re.findall(rb"HTTP/1.1 (\d+)", data), [b"200", b"404"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
