"""A run of its own for a test, and `hone mcp` spoken to line by line (standard library only)."""
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

HONE = os.environ.get("HONE_BIN", "build/dev/bin/hone")
SOURCE = pathlib.Path(__file__).resolve().parents[2]
SCALE = SOURCE / "tests/faults/scale"


class Home:
    """HONE_HOME with a compile cache that is kept; removed at the end."""

    def __init__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="hone-mcp-"))
        self.env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.path), "HONE_SHARE": os.environ["HONE_SHARE"], "HONE_HOME": str(self.path / "home"), "LC_ALL": "C.UTF-8"}
        self.env.update({name: value for name, value in os.environ.items() if name.endswith("SAN_OPTIONS")})
        (self.path / "home").mkdir()
        if cache := os.environ.get("HONE_SERVICE_TEST_CACHE"):
            os.makedirs(cache, exist_ok=True)
            (self.path / "home/cache").symlink_to(cache)

    def hone(self, *arguments, **more):
        return subprocess.run([HONE, *map(str, arguments)], env=self.env, capture_output=True, text=True, timeout=120, **more)

    def init(self, task, name="run"):
        done = self.hone("init", "--task", task, "--dir", self.path / name)
        assert done.returncode == 0, done.stderr
        return self.path / name

    def close(self):
        shutil.rmtree(self.path, ignore_errors=True)


class Peer:
    """Sends lines, and holds every byte that comes back to being one JSON-RPC message a line."""

    def __init__(self, home, *arguments, **env):
        self.process = subprocess.Popen([HONE, "mcp", *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**home.env, **env})
        self.left, self.all = b"", []
        os.set_blocking(self.process.stderr.fileno(), False)

    def send(self, message):
        self.raw((json.dumps(message) if not isinstance(message, (str, bytes)) else message))

    def raw(self, text):
        data = text if isinstance(text, bytes) else text.encode()
        self.process.stdin.write(data + b"\n")
        self.process.stdin.flush()

    def next(self, seconds=60):
        end = time.monotonic() + seconds
        while b"\n" not in self.left:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))
            assert ready, f"no message within {seconds} s"
            got = os.read(self.process.stdout.fileno(), 65536)
            assert got, "the server closed standard output"
            self.left += got
        line, self.left = self.left.split(b"\n", 1)
        message = json.loads(line)
        assert message["jsonrpc"] == "2.0" and ("method" in message) != ("result" in message or "error" in message), line
        self.all.append(message)
        return message

    def answer(self, identity, seconds=60):
        while True:
            message = self.next(seconds)
            if "method" not in message and message.get("id") == identity:
                return message

    def ask(self, identity, method, params=None, seconds=60):
        self.send({"jsonrpc": "2.0", "id": identity, "method": method, "params": params or {}})
        return self.answer(identity, seconds)

    def call(self, identity, name, seconds=60, **arguments):
        return self.ask(identity, "tools/call", {"name": name, "arguments": arguments}, seconds)["result"]

    def end(self, seconds=30):
        """Closes standard input; the exit code, and what was left on standard output must be messages."""
        self.process.stdin.close()
        rest = self.left + self.process.stdout.read()
        code = self.process.wait(timeout=seconds)
        for line in rest.splitlines():
            self.all.append(json.loads(line))
        self.process.stdout.close()
        self.process.stderr.close()
        return code

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            try:
                stream.close()
            except BrokenPipeError:
                pass


def children(pid):
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    out = []
    for task in tasks:
        try:
            out += [int(word) for word in pathlib.Path(f"/proc/{pid}/task/{task}/children").read_text().split()]
        except OSError:
            pass
    return out


def wait_for(condition, seconds, what):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds} s: {what}")
