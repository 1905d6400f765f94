#!/usr/bin/env python3
"""An agent made with the public SDK; what it does in a turn is named by the prompt."""
import asyncio
import os
import pathlib
import sys

import acp
from acp.schema import AgentCapabilities, PermissionOption, ToolCallLocation, ToolCallUpdate, Usage

OPTIONS = [PermissionOption(option_id=name, name=name, kind=kind)
           for name, kind in (("yes-for-ever", "allow_always"), ("no", "reject_once"), ("this-time", "allow_once"))]


class Peer(acp.Agent):
    def on_connect(self, conn):
        self.client = conn

    async def initialize(self, protocol_version, client_capabilities=None, client_info=None, **_):
        self.files = client_capabilities.fs
        return acp.InitializeResponse(protocol_version=acp.PROTOCOL_VERSION, agent_capabilities=AgentCapabilities(load_session=False))

    async def new_session(self, cwd, mcp_servers=None, **_):
        self.cwd, self.servers, self.stop = cwd, mcp_servers, asyncio.Event()
        return acp.NewSessionResponse(session_id="sdk-session")

    async def cancel(self, session_id, **_):
        self.stop.set()

    async def say(self, text):
        await self.client.session_update(session_id="sdk-session", update=acp.update_agent_message_text(text))

    async def prompt(self, session_id, prompt, **_):
        what = prompt[0].text.strip()
        usage = await getattr(self, what)()
        stopped = self.stop.is_set()
        return acp.PromptResponse(stop_reason="cancelled" if stopped else "end_turn", usage=usage)

    async def works(self):
        assert self.files.read_text_file and self.files.write_text_file, self.files
        assert [(each.name, each.command, each.args, {pair.name: pair.value for pair in each.env}) for each in self.servers] == \
            [("hone", "/bin/true", ["mcp"], {"A": "b c"})], self.servers
        await self.client.session_update(session_id="sdk-session", update=acp.update_agent_thought_text("thinking"))
        await self.client.session_update(session_id="sdk-session", update=acp.start_edit_tool_call("c1", "Edit made.txt", "made.txt", "new"))
        answer = await self.client.request_permission(session_id="sdk-session", options=OPTIONS, tool_call=ToolCallUpdate(tool_call_id="c1"))
        await self.client.write_text_file(session_id="sdk-session", path=self.cwd + "/made.txt", content="€\nsecond\n")
        await self.client.session_update(session_id="sdk-session", update=acp.update_tool_call("c1", status="completed"))
        read = await self.client.read_text_file(session_id="sdk-session", path=self.cwd + "/made.txt", line=2, limit=1)
        await self.say(f"{answer.outcome.option_id} {read.content!r}")
        return Usage(total_tokens=12, input_tokens=10, output_tokens=2)

    async def reaches_out(self):
        told = []
        for path in ("/etc/hostname", self.cwd + "/../secret"):
            try:
                told.append(repr((await self.client.read_text_file(session_id="sdk-session", path=path)).content))
            except acp.RequestError as error:
                told.append(str(error.code))
        answer = await self.client.request_permission(session_id="sdk-session", options=OPTIONS, tool_call=ToolCallUpdate(
            tool_call_id="c2", kind="delete", title="Delete", locations=[ToolCallLocation(path="/etc/passwd")]))
        await self.say(" ".join([*told, answer.outcome.option_id]))

    async def waits(self):
        await self.client.session_update(session_id="sdk-session", update=acp.start_tool_call("c3", "Wait"))
        await self.stop.wait()
        answer = await self.client.request_permission(session_id="sdk-session", options=OPTIONS, tool_call=ToolCallUpdate(tool_call_id="c3"))
        await self.say(answer.outcome.outcome)
        return Usage(total_tokens=0, input_tokens=0, output_tokens=0)

    async def fails(self):
        raise acp.RequestError(-32603, "Internal error", {"reason": "llm_error"})

    async def long_line(self):
        await self.say("€" * (2 << 20))

    async def endless_line(self):
        os.set_blocking(1, True)
        os.write(1, b"x" * (17 << 20))
        await asyncio.sleep(1000)


if __name__ == "__main__":
    assert pathlib.Path.cwd().is_dir() and len(sys.argv) == 1
    asyncio.run(acp.run_agent(Peer()))
