#!/usr/bin/env python3
"""`hone mcp` with the public MCP Python SDK as client, in both protocols.

The SDK comes from PyPI into HONE_MCP_VENV once; where that fails the test is skipped (exit 77) and says why.
"""
import os
import pathlib
import subprocess
import sys

SDK = "mcp==2.3.0"


def enter_venv():
    venv = pathlib.Path(os.environ.get("HONE_MCP_VENV", "build/venv-mcp")).absolute()
    python = venv / "bin/python"
    if subprocess.run([str(python), "-c", "import mcp"], capture_output=True).returncode != 0 if python.exists() else True:
        for command in ([sys.executable, "-m", "venv", str(venv)], [str(venv / "bin/pip"), "install", "--quiet", SDK]):
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                print(f"skipped: {SDK} cannot be installed: {(done.stderr or done.stdout).strip().splitlines()[-1:]}")
                sys.exit(77)
    os.execv(python, [str(python), *sys.argv])


try:
    import mcp
except ImportError:
    enter_venv()

import asyncio
import json
import shutil
import unittest

from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError

from peer import HONE, SOURCE, Home, children, wait_for

HONEST = SOURCE / "kernels/softmax_f32/pipelined"
MODES = (("legacy", "2025-11-25"), ("auto", "2026-07-28"))


class Sdk(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.home = Home()
        cls.run_dir = cls.home.init("softmax_f32")
        server = json.loads((cls.run_dir / "agents/mcp.json").read_text())["mcpServers"]["hone"]
        # Nothing is inherited but what the configuration says.
        cls.server = StdioServerParameters(command=server["command"], args=server["args"], env=server["env"])

    @classmethod
    def tearDownClass(cls):
        cls.home.close()

    def talk(self, conversation):
        for mode, version in MODES:
            with self.subTest(mode=mode):
                async def go():
                    async with Client(self.server, mode=mode) as client:
                        self.assertEqual(client.session.protocol_version, version)
                        await conversation(client)
                asyncio.run(go())

    def test_tools_have_schemas_that_their_answers_obey(self):
        async def conversation(client):
            tools = {each.name: each for each in (await client.list_tools()).tools}
            self.assertLessEqual({"bench", "bench_submit", "bench_poll", "compile", "inspect", "task", "status", "frontier", "ledger", "note"}, set(tools))
            for tool in tools.values():
                self.assertTrue(tool.description and tool.input_schema and tool.output_schema, tool.name)
            # The SDK holds each result to the tool's output schema.
            for name, arguments in (("task", {}), ("status", {}), ("frontier", {}), ("ledger", {"last": 3}), ("compile", {"candidate": "pipelined"}),
                                    ("inspect", {"candidate": "pipelined", "workloads": ["small"]})):
                result = await client.call_tool(name, arguments)
                self.assertFalse(result.is_error, (name, result))
                self.assertTrue(result.content[0].text, name)
                self.assertLess(len(json.dumps(result.model_dump(mode="json", by_alias=True))), 10_000, name)
        self.talk(conversation)

    def test_bench_is_recorded(self):
        async def conversation(client):
            lines = []

            async def progress(done, total, message):
                lines.append((done, message))
            before = (await client.call_tool("ledger", {})).structured_content["total"]
            result = await client.call_tool("bench", {"candidate": "pipelined", "workloads": ["small"], "samples": 5}, progress_callback=progress)
            self.assertFalse(result.is_error, result)
            facts = result.structured_content
            self.assertEqual((facts["passed"], facts["total"], facts["geomean"]), (1, 1, None))
            self.assertEqual(facts["workloads"][0]["verdict"], "PASS")
            self.assertIn("PASS", result.content[0].text)
            self.assertTrue(lines and [at for at, _ in lines] == sorted({at for at, _ in lines}), lines)
            whole = json.loads(pathlib.Path(facts["full"]).read_text())
            self.assertEqual(whole["schema"], "hone.bench/1")
            self.assertTrue(pathlib.Path(facts["full"]).is_relative_to(self.run_dir / "worktree"), "where the agent may read it")
            self.assertEqual((await client.call_tool("ledger", {})).structured_content["total"], before + 1)
        self.talk(conversation)
        clean = subprocess.run(["git", "status", "--porcelain"], cwd=self.run_dir / "worktree", capture_output=True, text=True)
        self.assertEqual(clean.stdout, "", "what the server keeps is none of git's business")

    def test_faults_are_results_with_a_hint(self):
        async def conversation(client):
            missing = await client.call_tool("bench", {"candidate": "no-such"})
            self.assertTrue(missing.is_error)
            self.assertIn("no-such", missing.structured_content["error"]["message"])
            wrong = await client.call_tool("bench", {"candidat": "pipelined"})
            self.assertTrue(wrong.is_error)
            self.assertEqual(wrong.structured_content["error"]["kind"], "usage")
            with self.assertRaises(MCPError):
                await client.call_tool("benhc", {})
            broken = self.run_dir / "worktree/candidates/softmax_f32/scratch/broken"
            shutil.copytree(HONEST, broken, dirs_exist_ok=True)
            (broken / "kernel.cpp").write_text("int x = ;\n")
            compiled = await client.call_tool("compile", {"candidate": "broken"})
            self.assertFalse(compiled.is_error, "that it does not compile is what the tool found")
            self.assertEqual(compiled.structured_content["errors"][0]["place"]["line"], 1)
        self.talk(conversation)

    def test_an_abandoned_call_ends_its_work(self):
        async def conversation(client):
            with self.assertRaises(MCPError):
                await client.call_tool("bench", {"candidate": "pipelined", "samples": 1_000_000}, read_timeout_seconds=3)
            self.assertFalse((await client.call_tool("status", {})).is_error)
            working = lambda: [each for each in self.processes() if "bench" in each]
            wait_for(lambda: not working(), 20, "the measurement's end")
        self.talk(conversation)

    def processes(self):
        """Command lines below this test."""
        todo, out = [os.getpid()], []
        while todo:
            for child in children(todo.pop()):
                todo.append(child)
                try:
                    out.append(pathlib.Path(f"/proc/{child}/cmdline").read_bytes().decode(errors="replace").split("\0"))
                except OSError:
                    pass
        return out

    def test_notes_are_claims_in_the_record(self):
        async def conversation(client):
            row = (await client.call_tool("note", {"text": "wide loads did not help"})).structured_content["row"]
            last = json.loads((self.run_dir / "ledger.jsonl").read_text().splitlines()[-1])
            self.assertEqual((last["seq"], last["kind"], last["data"]["text"]), (row, "finding", "wide loads did not help"))
            self.assertIn("wide loads", (await client.call_tool("ledger", {"kind": "finding"})).content[0].text)
            self.assertTrue((await client.call_tool("note", {"text": ""})).is_error)
            self.assertTrue((await client.call_tool("note", {"text": "x" * 5000})).is_error)
        self.talk(conversation)

    def test_resources(self):
        async def conversation(client):
            uris = [str(each.uri) for each in (await client.list_resources()).resources]
            for uri in ("hone://run/prompt", "hone://run/brief", "hone://run/report", "hone://docs/candidate"):
                self.assertIn(uri, uris)
            for uri in uris:
                self.assertTrue((await client.read_resource(uri)).contents[0].text, uri)
            self.assertIn("softmax_f32", (await client.read_resource("hone://run/prompt")).contents[0].text)
            with self.assertRaises(MCPError):
                await client.read_resource("hone://run/secrets")
        self.talk(conversation)


if __name__ == "__main__":
    unittest.main()
