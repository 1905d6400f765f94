#!/usr/bin/env python3
"""Tokens, scopes and quotas: the real `hone serve`."""
import json
import pathlib
import shutil
import tempfile
import time
import unittest

from harness import Server, bench, candidate, hone, sha256, wait_for


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
        self.assertEqual(self.ask("bob", "POST", "/v1/jobs", {**bench(), "priority": 1}).status, 403)
        self.assertEqual(self.ask("bob", "POST", "/v1/jobs", {**bench(), "priority": -1}).status, 202)
        self.assertEqual(self.ask("root", "POST", "/v1/jobs", {**bench(), "priority": 1}).status, 202)

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
        self.ask("alice", "POST", "/v1/jobs", b"{", headers={"Content-Type": "application/json"})
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


if __name__ == "__main__":
    unittest.main(verbosity=2)
