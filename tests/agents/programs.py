"""The agent programs, pinned, in a folder outside the repository: $HONE_AGENTS_CACHE or $XDG_CACHE_HOME/hone-tests/agents.

`find(name)` gives a program, installing it when it is missing; Missing says why it can't be had (no network, no
Python that is new enough), which a test reports as skipped. By hand: scripts/agents [NAME...].
"""
import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import venv

HERE = pathlib.Path(__file__).resolve().parent
UV = "uv==0.13.9"            # installs in seconds what takes pip a minute


class Missing(Exception):
    pass


class Program:
    """python: the oldest version that it runs on, None for a native program. entry: what is started, below its folder."""

    def __init__(self, name, lock, entry, python=None, needs=()):
        self.name, self.lock, self.entry, self.python, self.needs = name, HERE / "locks" / f"{lock}.txt", entry, python, needs


PROGRAMS = {each.name: each for each in (
    Program("claude", "claude", "claude_agent_sdk/_bundled/claude"),
    Program("codex", "codex", "codex_cli_bin/bin/codex"),
    Program("vibe", "vibe", "bin/vibe-acp", python=(3, 12)),
    Program("fast-agent", "fast-agent", "bin/fast-agent-acp", python=(3, 12)),
    Program("hmz", "hmz", "bin/hmz", python=(3, 12)),
    # Answers no cancel and leaves its children behind: the badly behaved one. It drives the same claude.
    Program("claude-code-acp", "claude-code-acp", "bin/claude-code-acp", python=(3, 11), needs=("claude",)),
)}


def cache():
    if given := os.environ.get("HONE_AGENTS_CACHE"):
        return pathlib.Path(given)
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(home) / "hone-tests" / "agents"


def pythons():
    """(version, path) of what stands in PATH or below a pyenv; oldest first, so that one version serves most programs."""
    names = ["python3", "python3.11", "python3.12", "python3.13", "python3.14"]
    paths = [shutil.which(name) for name in names] + [sys.executable]
    paths += [str(each) for each in pathlib.Path(os.path.expanduser("~/.pyenv/versions")).glob("3.*/bin/python3")]
    found = {}
    for path in filter(None, paths):
        asked = subprocess.run([path, "-c", "import sys, venv; print(*sys.version_info[:2], sys.executable)"], capture_output=True, text=True)
        if asked.returncode == 0:
            major, minor, real = asked.stdout.split(maxsplit=2)
            found.setdefault((int(major), int(minor)), real.strip())
    return sorted(found.items())


def quiet(command, **more):
    done = subprocess.run([str(each) for each in command], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, **more)
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["no message"]
        raise Missing(f"{pathlib.Path(command[0]).name}: {last[0][:200]}")


def uv(home):
    folder = home / UV.replace("==", "-")
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, with_pip=True)
        quiet([folder / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", UV])
        (folder / "complete").touch()
    return folder / "bin/uv"


def install(program, home, folder):
    python = sys.executable
    if program.python:
        python = next((path for version, path in pythons() if version >= program.python), None)
        if not python:
            raise Missing(f"needs Python {'.'.join(map(str, program.python))}")
    installer = uv(home)
    env = dict(os.environ, UV_CACHE_DIR=str(home / ".uv-cache"), UV_PYTHON_DOWNLOADS="never", UV_LINK_MODE="hardlink")
    shutil.rmtree(folder, ignore_errors=True)
    command = [installer, "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:", "-r", program.lock]
    try:
        if program.python:
            quiet([installer, "venv", "--quiet", "--python", python, folder], env=env)
            quiet([*command, "--compile-bytecode", "--python", folder / "bin/python"], env=env)
        else:
            quiet([*command, "--require-hashes", "--python", python, "--target", folder], env=env)
    finally:
        shutil.rmtree(home / ".uv-cache", ignore_errors=True)
    for name in program.needs:      # one copy of what two programs hold
        site = next(folder.glob("lib/python3*/site-packages"))
        (site / f"{name}.pth").write_text(f"{folder_of(PROGRAMS[name], home)}\n")
    if not os.access(folder / program.entry, os.X_OK):
        raise Missing(f"{program.name}: the package holds no {program.entry}")


def folder_of(program, home):
    return home / f"{program.name}-{hashlib.sha256(program.lock.read_bytes()).hexdigest()[:12]}"


def find(name):
    """The program's path; installs it and what it needs."""
    program, home = PROGRAMS[name], cache()
    for other in program.needs:
        find(other)
    folder = folder_of(program, home)
    if (folder / "complete").exists():
        return folder / program.entry
    try:
        home.mkdir(parents=True, exist_ok=True)
        with open(home / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (folder / "complete").exists():
                install(program, home, folder)
                (folder / "complete").touch()
    except (OSError, subprocess.SubprocessError) as error:
        raise Missing(f"{name} can't be installed: {error}") from error
    return folder / program.entry


if __name__ == "__main__":
    bad = 0
    for name in sys.argv[1:] or PROGRAMS:
        if name not in PROGRAMS:
            print(f"agents: unknown program '{name}'; known: {', '.join(PROGRAMS)}", file=sys.stderr)
            sys.exit(2)
        try:
            print(f"{name}: {find(name)}", flush=True)
        except Missing as why:
            bad = 3
            print(f"{name}: missing: {why}", flush=True)
    sys.exit(bad)
