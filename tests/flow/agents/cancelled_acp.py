#!/usr/bin/env python3
"""An ACP agent that never ends a turn by itself; cancelled, it answers with a normal end and no use at all."""
import json
import sys

prompt = None


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if method == "initialize":
        send({"id": message["id"], "result": {"protocolVersion": 1, "agentCapabilities": {}}})
    elif method == "session/new":
        send({"id": message["id"], "result": {"sessionId": "a"}})
    elif method == "session/prompt":
        prompt = message["id"]
        text = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "working"}}
        send({"method": "session/update", "params": {"sessionId": "a", "update": text}})
    elif method == "session/cancel" and prompt is not None:
        send({"id": prompt, "result": {"stopReason": "end_turn", "usage": {"totalTokens": 0, "inputTokens": 0, "outputTokens": 0}}})
        prompt = None
