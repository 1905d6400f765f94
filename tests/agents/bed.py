"""Where the agent programs run: only loopback, an empty environment, a home of their own, fake keys, a scripted model."""
import ctypes
import fcntl
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import tempfile

import programs

KEY = "fake-key-for-tests-only"         # must never be seen in a trace, a status or a report
CODEX_CONFIG = """model = "scripted"
model_provider = "scripted"
[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
{provider}
[otel]
metrics_exporter = "none"
[features]
plugins = false
[analytics]
enabled = false
"""
VIBE_CONFIG = """active_model = "scripted"
enable_telemetry = false
enable_update_checks = false
[[providers]]
name = "scripted"
api_base = "{url}/v1"
api_key_env_var = "SCRIPTED_API_KEY"
backend = "generic"
api_style = "openai"
[[models]]
name = "scripted"
provider = "scripted"
alias = "scripted"
"""


class Closed(Exception):
    """No network namespace can be had."""


def enter():
    """Moves this process into a network namespace with nothing but its own loopback. Before the first thread."""
    libc = ctypes.CDLL(None, use_errno=True)
    new_user, new_net = 0x10000000, 0x40000000
    uid, gid = os.getuid(), os.getgid()
    if libc.unshare(new_net if uid == 0 else new_user | new_net):
        raise Closed(f"no network namespace: {os.strerror(ctypes.get_errno())}")
    if uid:
        pathlib.Path("/proc/self/setgroups").write_text("deny")
        pathlib.Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
        pathlib.Path("/proc/self/gid_map").write_text(f"0 {gid} 1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        flags_of, set_flags, up = 0x8913, 0x8914, 1
        request = struct.pack("16sH14x", b"lo", 0)
        flags = struct.unpack("16sH14x", fcntl.ioctl(control, flags_of, request))[1]
        fcntl.ioctl(control, set_flags, struct.pack("16sH14x", b"lo", flags | up))
    if outside := [name for _, name in socket.if_nameindex() if name != "lo"]:
        raise Closed(f"the namespace has a way out: {', '.join(outside)}")


class Home:
    """A home folder with every program's configuration for one base URL, and the environment that goes with it.

    It lies in the home or cache folder, not below the temporary directory: codex refuses to work there.
    """

    def __init__(self, url, codex_provider="", **more):
        base = programs.cache() / "homes"
        base.mkdir(parents=True, exist_ok=True)
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="home-", dir=base))
        self.work = self.path / "work"
        self.work.mkdir()
        for name, text in {".codex/config.toml": CODEX_CONFIG.format(url=url, provider=codex_provider), ".vibe/config.toml": VIBE_CONFIG.format(url=url)}.items():
            (self.path / name).parent.mkdir(exist_ok=True)
            (self.path / name).write_text(text)
        self.env = {
            "HOME": str(self.path), "LANG": "C.UTF-8", "TERM": "dumb", "USER": "tester", "SHELL": "/bin/bash",
            "PATH": f"{self.path}/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": KEY, "OPENAI_API_KEY": KEY, "SCRIPTED_API_KEY": KEY,
            "GENERIC_API_KEY": KEY, "GENERIC_BASE_URL": url + "/v1",       # fast-agent
            "DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1", "DISABLE_ERROR_REPORTING": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "PYTHONDONTWRITEBYTECODE": "1", **more}
        self.names = sorted(set(self.env) - {"HOME", "LANG", "TERM", "USER", "SHELL", "PATH"})   # what has to be passed on by name
        (self.path / "bin").mkdir()

    def spec(self, name, path):
        """The agent spec of a program."""
        if name in ("claude", "codex"):
            return name
        more = " --shell --model generic.scripted" if name == "fast-agent" else ""
        return f"acp:{path}{more}"

    def link(self, name, path):
        """Puts a program into the PATH of this home."""
        (self.path / "bin" / name).symlink_to(path)
        return self

    def run(self, command, timeout=120, **more):
        return subprocess.run([str(each) for each in command], env=self.env, cwd=more.pop("cwd", self.work), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=timeout, errors="replace", **more)

    def remove(self):
        shutil.rmtree(self.path, ignore_errors=True)

    __enter__ = lambda self: self

    def __exit__(self, *_):
        if not os.environ.get("HONE_AGENTS_KEEP"):
            self.remove()

