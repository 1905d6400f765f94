#!/usr/bin/env python3
"""The ACP driver with an agent made with the public Python SDK.

The SDK comes from PyPI into HONE_ACP_VENV once; where that fails the test is skipped (exit 77) and says why.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SDK = "agent-client-protocol==0.12.1"
HERE = pathlib.Path(__file__).resolve().parent
VENV = pathlib.Path(os.environ.get("HONE_ACP_VENV", "build/venv-acp")).absolute()
PYTHON = VENV / "bin/python"


def prepare():
    if PYTHON.exists() and subprocess.run([PYTHON, "-c", "import acp"], capture_output=True).returncode == 0:
        return
    for command in ([sys.executable, "-m", "venv", VENV], [VENV / "bin/pip", "install", "--quiet", SDK]):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            print(f"skipped: {SDK} cannot be installed: {(done.stderr or done.stdout).strip().splitlines()[-1:]}")
            sys.exit(77)


class Sdk(unittest.TestCase):
    def turn(self, what, *options, wall="60"):
        with tempfile.TemporaryDirectory(prefix="hone-acp-") as name:
            home = pathlib.Path(name)
            (home / "work").mkdir()
            (home / "secret").write_text("secret words")
            (home / "agents").mkdir()
            (home / "agents/mcp.json").write_text(json.dumps({"mcpServers": {"hone": {"command": "/bin/true", "args": ["mcp"], "env": {"A": "b c"}}}}))
            done = subprocess.run([os.environ["HONE_DRIVE"], f"acp:{PYTHON} {HERE / 'sdk_agent.py'}", "--cwd", home / "work", "--config", home / "agents",
                                   "--log", home / "log", "--wall", wall, "--silence", "30", "--stop", "2", *options], input=what, text=True, capture_output=True,
                                  timeout=120, env={"PATH": "/usr/bin:/bin", "HOME": name, "HONE_SHARE": os.environ["HONE_SHARE"]})
            report = json.loads(done.stdout)
            self.assertIsNone(report["error"])
            self.result, self.events = report["result"], report["events"]
            self.files = {each.name: each.read_text() for each in (home / "work").iterdir()}
            return self.result

    def told(self, kind):
        return [each["text"] for each in self.events if each["kind"] == kind]

    def test_a_turn_with_files_a_permission_and_a_server(self):
        result = self.turn("works")
        self.assertEqual(result["end"], "finished", result)
        self.assertEqual(result["last_text"], "this-time 'second\\n'", "once is preferred, by kind")
        self.assertEqual(self.files, {"made.txt": "€\nsecond\n"})
        self.assertEqual((result["usage"]["input_tokens"], result["usage"]["output_tokens"], result["usage"]["cost_usd"]), (10, 2, None))
        self.assertEqual((result["session"], result["exit_code"], result["left_behind"]), ("sdk-session", 0, 0))
        self.assertEqual(self.told("thought"), ["thinking"])
        self.assertEqual([each["tool"] for each in self.events if each["kind"] == "tool_call"], ["Edit made.txt"])

    def test_nothing_outside_of_the_folder(self):
        result = self.turn("reaches_out")
        self.assertEqual(result["last_text"], "-32602 -32602 no", result)
        self.assertNotIn("secret words", json.dumps(self.events))

    def test_a_cancel_is_the_launchers_and_use_unknown(self):
        result = self.turn("waits", "--cancel-on", "tool_call", "--cancel-after", "0.2")
        self.assertEqual(result["end"], "cancelled", result)
        self.assertIsNone(result["usage"]["input_tokens"])

    def test_limits_ask_first(self):
        result = self.turn("waits", wall="3")
        self.assertEqual((result["end"], result["exit_code"]), ("overtime", 0), result)

    def test_an_error_carries_its_reason(self):
        result = self.turn("fails")
        self.assertEqual((result["end"], result["reason"]), ("failed", "Internal error: llm_error"))

    def test_long_lines(self):
        result = self.turn("long_line")
        self.assertEqual(result["end"], "finished", result)
        self.assertTrue(self.told("text")[0].startswith("€€€"))
        result = self.turn("endless_line")
        self.assertEqual(result["end"], "failed", result)
        self.assertTrue(result["reason"].startswith("line_too_long"), result)


if __name__ == "__main__":
    prepare()
    unittest.main()
