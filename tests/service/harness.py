"""A `hone serve` of one's own for a test, and plain HTTP to it (standard library only)."""
import contextlib
import ctypes
import datetime
import hashlib
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

HONE = os.environ.get("HONE_BIN", "build/dev/bin/hone")
SOURCE = pathlib.Path(__file__).resolve().parents[2]

HONEST = """#include <hone/kernel.h>
#include <cmath>
void softmax(const hone::Block& block, const float* x, float* y, std::int64_t n) {
  const float* in = x + block.index.x * n;
  float* out = y + block.index.x * n;
  BODY
  float top = in[0], sum = 0;
  for (std::int64_t i = 1; i < n; ++i) top = std::fmax(top, in[i]);
  for (std::int64_t i = 0; i < n; ++i) sum += out[i] = std::exp(in[i] - top);
  for (std::int64_t i = 0; i < n; ++i) out[i] /= sum;
}
"""
PLAN = """#include <hone/plan.h>
void plan(const hone::Problem& problem, hone::Plan& plan) {
  plan.launch(plan.module("kernel.cpp"), "softmax", {problem.axis("M")}).args(problem.tensor("x"), problem.tensor("y"), problem.axis("N"));
}
"""


def candidate(body="", name="mine", head="", plan=PLAN):
    return {"name": name, "files": {"kernel.cpp": head + HONEST.replace("BODY", body), "plan.cpp": plan}}


def bench(what=None, **more):
    request = {"task": "softmax_f32", "workloads": ["small"], "samples": 3}
    if what:
        request["candidate"] = what
    request.update(more)
    return {"kind": "bench", "request": request}


def wait_for(condition, seconds, what):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds} s: {what}")


class Answer:
    def __init__(self, response, body):
        self.status, self.headers, self.body = response.status, {k.lower(): v for k, v in response.getheaders()}, body

    @property
    def json(self):
        return json.loads(self.body)


class Server:
    """Started in a folder that goes with it; `home` keeps the compile cache between servers."""

    def __init__(self, *flags, data=None, home=None, env=None, prefix=(), ready=True):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hone-service-"))
        self.data = pathlib.Path(data) if data else self.folder / "data"
        self.env = dict(os.environ, **(env or {}))
        cache = os.environ.get("HONE_SERVICE_TEST_CACHE") or str(pathlib.Path(tempfile.gettempdir()) / f"hone-service-cache-{os.getuid()}")
        self.env["HONE_HOME"] = str(home or self.folder / "home")
        os.makedirs(self.env["HONE_HOME"], exist_ok=True)
        os.makedirs(cache, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.symlink(cache, os.path.join(self.env["HONE_HOME"], "cache"))
        self.log = open(self.folder / "log", "ab")
        self.arguments = [*prefix, HONE, "serve", "--port", "0", "--data", str(self.data), "--json", *flags]
        self.process = self.port = None
        self.start(ready)

    def start(self, ready=True, port="0"):
        arguments = list(self.arguments)
        arguments[arguments.index("--port") + 1] = str(port)
        self.process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=self.log, env=self.env, text=True)
        if not ready:
            return
        line = self.process.stdout.readline()
        if not line.strip():
            raise AssertionError(f"the service did not start: exit {self.process.wait()}\n{self.read_log()}")
        told = json.loads(line)
        self.url, self.port = told["url"], int(told["url"].rsplit(":", 1)[1])

    def read_log(self):
        return (self.folder / "log").read_text(errors="replace")[-4000:]

    def request(self, method, path, body=None, headers=None, token=None, timeout=60):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        headers = dict(headers or {})
        if token:
            headers["Authorization"] = "Bearer " + token
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
            headers.setdefault("Content-Type", "application/json")
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return Answer(response, response.read())
        finally:
            connection.close()

    def submit(self, job, **more):
        answer = self.request("POST", "/v1/jobs", job, **more)
        assert answer.status in (200, 202), (answer.status, answer.body)
        return answer.json["id"]

    def finish(self, job, seconds=120, token=None):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            answer = self.request("GET", f"/v1/jobs/{job}?wait=10", token=token)
            assert answer.status == 200, (answer.status, answer.body)
            if answer.json["state"] in ("done", "cancelled"):
                return answer.json
        raise AssertionError(f"job {job} did not end: {self.read_log()}")

    def run(self, job, seconds=120, **more):
        return self.finish(self.submit(job, **more), seconds, more.get("token"))

    def health(self):
        return self.request("GET", "/health")

    def metric(self, name):
        for line in self.request("GET", "/metrics").body.decode().splitlines():
            if line.startswith(name + " ") or line.startswith(name + "{"):
                return float(line.rsplit(" ", 1)[1])
        return None

    def device_pid(self):
        return self.health().json["devices"][0]["pid"]

    def compiler_pids(self):
        return [each["pid"] for each in self.health().json["compilers"] if each["pid"]]

    def rss(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/statm").read_text().split()
        return int(fields[1]) * os.sysconf("SC_PAGESIZE")

    def kill(self, number=signal.SIGKILL):
        self.process.send_signal(number)
        return self.process.wait(timeout=90)

    def close(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout=90)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process.stdout.close()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def raw(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)


def children(pid):
    out = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                out += [int(word) for word in pathlib.Path(f"/proc/{pid}/task/{task}/children").read_text().split()]
    return out


def descendants(pid):
    out = []
    for child in children(pid):
        out += [child, *descendants(child)]
    return out


# What a killed service leaves becomes ours, so that it is told from other services of this machine.
if ctypes.CDLL(None, use_errno=True).prctl(36, 1, 0, 0, 0) != 0:   # PR_SET_CHILD_SUBREAPER
    raise OSError(ctypes.get_errno(), "prctl")


def hone_processes():
    """Every process that this test has begun, or whose parents it has, that serves, works or runs a candidate."""
    out = {}
    for pid in descendants(os.getpid()):
        with contextlib.suppress(OSError):
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            state = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0]
            name = os.path.basename(words[0])
            if state != "Z" and (name in (b"hone-jail", b"hone-runner") or (name == b"hone" and len(words) > 1 and words[1] in (b"worker", b"serve"))):
                out[pid] = b" ".join(words[:3]).decode(errors="replace")
    return out


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def hone(*arguments, env=None, timeout=180):
    with tempfile.TemporaryDirectory(prefix="hone-client-") as home:
        full = dict(os.environ, HONE_HOME=home)
        full.update(env or {})
        return subprocess.run([HONE, *arguments], capture_output=True, text=True, timeout=timeout, env=full)


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
