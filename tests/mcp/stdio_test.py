#!/usr/bin/env python3
"""`hone mcp` and `hone guard` as processes: what leaves on standard output, ends, giant lines, broken surroundings."""
import json
import os
import pathlib
import signal
import socket
import subprocess
import unittest

from peer import HONE, SCALE, Home, Peer, children, wait_for

BASELINE = str(SCALE / "baseline")


def initialize(version):
    return {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}}


class Stdio(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.home = Home()
        cls.run_dir = cls.home.init(SCALE)

    @classmethod
    def tearDownClass(cls):
        cls.home.close()

    def test_versions_in_every_setting(self):
        """C33: each setting answers the same handshake, and only messages leave on standard output."""
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            dead = f"http://127.0.0.1:{closed.getsockname()[1]}"
        broken = self.home.path / "broken"
        (broken / "config").mkdir(parents=True)
        (broken / "config/config.yaml").write_text("{[:")
        settings = [((), {}), (("--log-level", "debug"), {}), ((), {"HONE_URL": dead, "HONE_PATIENCE": "1"}), ((), {"HONE_HOME": str(broken)}), (("--run", self.run_dir), {})]
        for arguments, env in settings:
            with self.subTest(arguments=arguments, env=env), Peer(self.home, *arguments, **env) as peer:
                for asked, given in (("2024-11-05", "2024-11-05"), ("2025-06-18", "2025-06-18"), ("2099-01-01", "2025-11-25")):
                    peer.send(initialize(asked))
                    self.assertEqual(peer.answer(1)["result"]["protocolVersion"], given)
                told = peer.call(2, "compile", candidate=BASELINE, **({} if "--run" in arguments else {"task": str(SCALE)}))
                if "HONE_URL" in env:
                    self.assertTrue(told["isError"])
                    self.assertEqual(told["structuredContent"]["error"]["kind"], "unavailable")
                    self.assertTrue(told["structuredContent"]["error"]["hint"] or told["structuredContent"]["error"]["message"])
                else:
                    self.assertFalse(told["isError"], told)
                    self.assertEqual(told["structuredContent"]["failed"], 0)
                self.assertEqual(peer.end(), 0)

    def test_the_vendors_tools_are_tools(self):
        with Peer(self.home) as peer:
            peer.send(initialize("2025-11-25"))
            peer.answer(1)
            tools = {each["name"]: each for each in peer.ask(2, "tools/list")["result"]["tools"]}
            for number, name in enumerate(("profile", "sanitize"), 3):
                self.assertEqual(tools[name]["inputSchema"]["required"], ["candidate"])
                told = peer.call(number, name, candidate=BASELINE, task=str(SCALE))
                self.assertTrue(told["isError"])
                self.assertEqual(told["structuredContent"]["error"]["kind"], "contract", "a task for the CPU")

    def test_lines_that_are_no_messages(self):
        """C32: a long legal line is taken, a longer one refused, and the server lives."""
        with Peer(self.home) as peer:
            peer.raw("nonsense")
            self.assertEqual(peer.next()["error"]["code"], -32700)
            peer.raw(b"\xff\xfe")
            self.assertEqual(peer.next()["error"]["code"], -32700)
            long = peer.ask("long", "ping", {"text": "\u20ac" * 1_700_000})
            self.assertEqual(long["result"], {})
            peer.raw(b'{"jsonrpc":"2.0","id":5,"method":"ping","params":{"a":"' + b"x" * (17 << 20) + b'"}}')
            self.assertEqual(peer.next()["error"]["code"], -32700)
            self.assertEqual(peer.ask(6, "ping")["result"], {})
            self.assertEqual(peer.ask(7, "no/such")["error"]["code"], -32601)
            self.assertEqual(peer.end(), 0)

    def test_endless_line(self):
        with Peer(self.home) as peer:
            block = b"x" * (1 << 20)
            for _ in range(256):
                peer.process.stdin.write(block)
            peer.raw(b"")
            self.assertEqual(peer.next()["error"]["code"], -32700)
            status = pathlib.Path(f"/proc/{peer.process.pid}/status").read_text()
            peak = int(status.split("VmHWM:")[1].split()[0])
            if "ASAN_OPTIONS" not in os.environ:
                self.assertLess(peak, 150 << 10)       # kB
            self.assertEqual(peer.ask(6, "ping")["result"], {})

    def test_ends_with_its_client_and_takes_its_work_along(self):
        for ending in ("eof", signal.SIGINT, signal.SIGTERM):
            with self.subTest(ending=ending), Peer(self.home, "--run", self.run_dir) as peer:
                peer.send(initialize("2025-11-25"))
                peer.answer(1)
                # Far more samples than there is time for.
                peer.send({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "bench", "arguments": {"candidate": "baseline", "samples": 1000000}}})
                self.assertEqual(peer.call(3, "bench_submit", candidate="baseline", samples=1000000)["structuredContent"]["state"], "queued")
                child = wait_for(lambda: children(peer.process.pid), 20, "a process that measures")[0]
                if ending == "eof":
                    self.assertEqual(peer.end(), 0)
                else:
                    peer.process.send_signal(ending)
                    self.assertEqual(peer.process.wait(timeout=30), 0)
                wait_for(lambda: not os.path.exists(f"/proc/{child}"), 10, "the measurement's end")
                self.assertFalse([each for each in peer.all if each.get("id") == 2], "a cancelled call is not answered")

    def test_cancel_while_measuring(self):
        with Peer(self.home, "--run", self.run_dir) as peer:
            peer.send({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "bench", "arguments": {"candidate": "baseline", "samples": 1000000}, "_meta": {"progressToken": "t"}}})
            while peer.next().get("params", {}).get("progressToken") != "t":
                pass
            self.assertEqual(peer.ask(3, "ping")["result"], {})
            peer.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}})
            wait_for(lambda: not children(peer.process.pid), 20, "the measurement's end")
            # The next one is not held up.
            told = peer.call(4, "bench", candidate="baseline", samples=3, workloads=["two"])
            self.assertEqual(told["structuredContent"].get("passed"), 1, told)
            self.assertFalse([each for each in peer.all if each.get("id") == 2])
            self.assertEqual(peer.end(), 0)

    def test_submit_and_poll(self):
        with Peer(self.home, "--run", self.run_dir) as peer:
            job = peer.call(1, "bench_submit", candidate="baseline", samples=3)["structuredContent"]["job"]
            for identity in range(2, 100):
                told = peer.call(identity, "bench_poll", job=job, wait_s=5)["structuredContent"]
                if told["state"] == "done":
                    break
            self.assertEqual((told["passed"], told["total"]), (2, 2))
            unknown = peer.call(200, "bench_poll", job="bench-77")
            self.assertTrue(unknown["isError"])
            self.assertEqual(unknown["structuredContent"]["error"]["kind"], "not_found")
            long = peer.call(201, "bench_submit", candidate="baseline", samples=1000000)["structuredContent"]["job"]
            told = peer.call(202, "bench_poll", job=long, cancel=True, wait_s=20)
            self.assertEqual(told["structuredContent"]["error"]["kind"], "cancelled", told)

    def test_a_client_that_never_reads(self):
        with Peer(self.home) as peer:
            peer.ask(0, "ping")                        # it is up
            os.set_blocking(peer.process.stdin.fileno(), False)
            line = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n'
            try:
                for _ in range(100000):
                    if not os.write(peer.process.stdin.fileno(), line):
                        break
            except BlockingIOError:
                pass
            peer.process.terminate()
            self.assertEqual(peer.process.wait(timeout=30), 0)


class Guard(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.home = Home()
        cls.run_dir = cls.home.init(SCALE)

    @classmethod
    def tearDownClass(cls):
        cls.home.close()

    def hook(self, text, run=None):
        """As claude runs it: the command of settings.json in a shell."""
        settings = json.loads((self.run_dir / "agents/settings.json").read_text())
        command = settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"]
        if run is not None:
            command = command.replace(str(self.run_dir), str(run))
        return subprocess.run(["sh", "-c", command], input=text, env=self.home.env, capture_output=True, text=True, timeout=60)

    def asked(self, tool, **arguments):
        return json.dumps({"session_id": "s", "transcript_path": "/t", "cwd": str(self.run_dir / "worktree"), "permission_mode": "acceptEdits",
                           "hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": arguments, "tool_use_id": "u"})

    def test_decides_as_claude_asks(self):
        for tool, arguments, allowed in (("Write", {"file_path": str(self.run_dir / "worktree/candidates/x"), "content": ""}, True),
                                         ("Write", {"file_path": str(self.run_dir / "ledger.jsonl"), "content": ""}, False),
                                         ("Edit", {"file_path": "../agents/settings.json"}, False),
                                         ("Bash", {"command": "cat ../PROMPT.md"}, True),
                                         ("Bash", {"command": "echo {} >> ../ledger.jsonl"}, False)):
            done = self.hook(self.asked(tool, **arguments))
            self.assertEqual(done.returncode, 0 if allowed else 2, (tool, arguments, done))
            self.assertEqual(done.stdout, "")
            self.assertEqual(bool(done.stderr), not allowed)

    def test_fails_closed(self):
        for text in ("", "{", "[]", "null", '{"tool_name":"Write"}', "x" * (17 << 20)):
            self.assertEqual(self.hook(text).returncode, 2, text[:20])
        good = self.asked("Write", file_path="a")
        self.assertEqual(self.hook(good).returncode, 0)
        self.assertEqual(self.hook(good, run="/nowhere").returncode, 2)
        command = json.loads((self.run_dir / "agents/settings.json").read_text())["hooks"]["PreToolUse"][0]["hooks"][0]["command"]
        gone = subprocess.run(["sh", "-c", command.replace(HONE, "/no/such/hone")], input=good, capture_output=True, text=True, timeout=60)
        self.assertEqual(gone.returncode, 2, "a hook that is gone must not allow")


if __name__ == "__main__":
    unittest.main()
