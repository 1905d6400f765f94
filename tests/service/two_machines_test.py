#!/usr/bin/env python3
"""Two machines: the service in one network namespace, its user in another, a cable (veth) between them.

As the README says it: token, serve, init --remote, bench baseline, run --agent tuner. Exit 77 where this machine gives
nobody network namespaces."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from harness import HONE, hone_processes, wait_for

SERVER, CLIENT = "10.77.0.1", "10.77.0.2"


def namespaces():
    return ["--net", "--mount"] if os.geteuid() == 0 else ["--user", "--map-root-user", "--net", "--mount"]


def inside():
    """Runs in the first namespace: `ip` sees the server's side; the client's side is a namespace of a child's."""
    folder = pathlib.Path(sys.argv[2])

    def sh(*words, **more):
        return subprocess.run(words, check=True, text=True, capture_output=True, **more).stdout

    sh("ip", "link", "set", "lo", "up")
    client = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
    try:
        wait_for(lambda: os.readlink(f"/proc/{client.pid}/ns/net") != os.readlink("/proc/self/ns/net"), 5, "the second network namespace")
        sh("ip", "link", "add", "cable0", "type", "veth", "peer", "name", "cable1", "netns", str(client.pid))
        sh("ip", "address", "add", f"{SERVER}/24", "dev", "cable0")
        sh("ip", "link", "set", "cable0", "up")
        there = ["nsenter", "--target", str(client.pid), "--net"]
        sh(*there, "ip", "address", "add", f"{CLIENT}/24", "dev", "cable1")
        sh(*there, "ip", "link", "set", "cable1", "up")
        sh(*there, "ip", "link", "set", "lo", "up")
    except (subprocess.CalledProcessError, OSError, AssertionError) as error:
        client.kill()
        print("skipped: this machine does not connect two network namespaces:", getattr(error, "stderr", None) or error)
        return 77

    tokens, data = folder / "tokens.json", folder / "data"
    on_server = dict(os.environ, HONE_HOME=str(folder / "server"))
    cache = os.environ.get("HONE_SERVICE_TEST_CACHE")
    if cache:
        for side in ("server", "client"):
            (folder / side).mkdir()
            pathlib.Path(cache).mkdir(parents=True, exist_ok=True)
            (folder / side / "cache").symlink_to(cache)
    token = sh(HONE, "token", "create", "agent", "--tokens", str(tokens), env=on_server).strip()
    service = subprocess.Popen([HONE, "serve", "--device", "cpu", "--host", SERVER, "--port", "8000", "--data", str(data), "--tokens", str(tokens), "--json"],
                               stdout=subprocess.PIPE, stderr=open(folder / "log", "wb"), text=True, env=on_server)
    try:
        line = service.stdout.readline()
        assert line, (folder / "log").read_text()[-3000:]
        url = f"http://{SERVER}:8000"
        assert json.loads(line)["url"] == url, line
        on_client = dict(os.environ, HONE_HOME=str(folder / "client"), HONE_TOKEN=token)

        def hone(*words, cwd=folder, code=0, env=on_client):
            done = subprocess.run([*there, HONE, *words], cwd=cwd, env=env, text=True, capture_output=True, timeout=400)
            assert done.returncode == code, (words, done.returncode, done.stdout[-2000:], done.stderr[-2000:])
            return done

        # Nothing of the client's is on the server's side of the cable but what goes through it.
        refused = hone("jobs", "list", "--remote", url, code=2, env=dict(on_client, HONE_TOKEN=""))
        assert "token" in refused.stderr, refused.stderr
        hone("init", "--task", "softmax_f32", "--remote", url, "--name", "r")
        run = next((folder / "client" / "data" / "runs").glob("*r*"))
        manifest = json.loads((run / "manifest.json").read_text())
        assert manifest["remote"] == url, manifest
        assert url in (run / "PROMPT.md").read_text()
        done = hone("bench", "baseline", cwd=run)
        assert "passed: 4/4" in done.stdout, done.stdout
        done = hone("run", "--agent", "tuner", "--budget", "evaluations=4", cwd=run, code=4)   # the budget ended
        assert "evaluations" in done.stdout, done.stdout
        rows = [json.loads(each) for each in (run / "ledger.jsonl").read_text().splitlines()]
        assert len(rows) > 4, rows
        jobs = json.loads(hone("jobs", "list", "--json", "--remote", url).stdout)["jobs"]
        assert len(jobs) >= 5 and all(each["state"] == "done" for each in jobs), jobs
        # The cable is pulled: the client waits, says so, and ends as designed; nothing is lost.
        sh("ip", "link", "set", "cable0", "down")
        waiting = subprocess.Popen([*there, HONE, "bench", "baseline", "--workload", "small"], cwd=run, env=on_client, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        told = ""
        while "waiting" not in told and (line := waiting.stderr.readline()):
            told += line
        sh("ip", "link", "set", "cable0", "up")
        out, rest = waiting.communicate(timeout=300)
        told += rest
        assert waiting.returncode == 0 and "passed: 1/1" in out, (out, told)
        assert "waiting" in told, told
    finally:
        service.terminate()
        code = service.wait(timeout=90)
        client.kill()
    assert code == 0, (folder / "log").read_text()[-3000:]
    print("two machines: ok")
    return 0


def main():
    if len(sys.argv) > 1:
        return inside()
    if not shutil.which("ip"):
        print("skipped: no `ip` (package iproute2)")
        return 77
    if subprocess.run(["unshare", *namespaces(), "true"], capture_output=True).returncode != 0:
        print("skipped: this machine gives nobody network namespaces")
        return 77
    with tempfile.TemporaryDirectory(prefix="hone-two-machines-") as folder:
        code = subprocess.run(["unshare", *namespaces(), sys.executable, __file__, "inside", folder]).returncode
    if code == 0:
        wait_for(lambda: not hone_processes(), 10, "nothing is left")
    return code


if __name__ == "__main__":
    sys.exit(main())
