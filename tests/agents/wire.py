"""The three formats: what a request holds, and an answer as one JSON value or as a stream of events."""
import gzip
import json
import time
import zlib


class Request:
    """tools: name -> {"namespace", "schema"}; results: texts of the tool results so far; text: all else that was said."""

    def __init__(self, stream, tools, results, text, model):
        self.stream, self.tools, self.results, self.text, self.model = stream, tools, results, text, model
        self.script = self.run = ""


class ToolUse:
    def __init__(self, name, arguments, namespace=None):
        self.name, self.arguments, self.namespace = name, arguments, namespace


class Answer:
    def __init__(self, text=None, call=None, index=0):
        self.text, self.call, self.id = text, call, f"call_{index + 1}"


USED = (1200, 30)   # tokens in and out that every answer claims


def inflate(body, encoding):
    if encoding == "gzip":
        return gzip.decompress(body)
    if encoding == "deflate":
        return zlib.decompress(body)
    if encoding not in ("", "identity"):
        raise ValueError(f"encoding {encoding}")
    return body


def flat(content):
    """The text of a content value: a string, or blocks of which some hold text."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(flat(each.get("text", each.get("content", "")) if isinstance(each, dict) else each) for each in content)
    return json.dumps(content) if content else ""


def event(value, name=None):
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(value)}\n\n".encode()


class Messages:
    name, path = "messages", "/v1/messages"
    ping = event({"type": "ping"}, "ping")

    @staticmethod
    def read(body):
        results, text = [], [flat(body.get("system"))]
        for message in body.get("messages", []):     # roles: user, assistant and also system
            content = message.get("content")
            for block in [{"type": "text", "text": content}] if isinstance(content, str) else content or []:
                if block.get("type") == "tool_result":
                    results.append(flat(block.get("content")))
                elif block.get("type") == "text" and message.get("role") != "assistant":
                    text.append(block["text"])
        tools = {tool["name"]: {"namespace": None, "schema": tool.get("input_schema", {})} for tool in body.get("tools", [])}
        return Request(bool(body.get("stream")), tools, results, "\n".join(text), body.get("model"))

    @staticmethod
    def message(request, answer):
        block = {"type": "text", "text": answer.text}
        if answer.call:
            block = {"type": "tool_use", "id": "toolu_" + answer.id, "name": answer.call.name, "input": answer.call.arguments}
        return {"id": "msg_scripted", "type": "message", "role": "assistant", "model": request.model, "content": [block], "stop_sequence": None,
                "stop_reason": "tool_use" if answer.call else "end_turn", "usage": {"input_tokens": USED[0], "output_tokens": USED[1]}}

    whole = message

    @classmethod
    def events(cls, request, answer):
        message = cls.message(request, answer)
        block = message["content"][0]
        start = dict(block, input={}) if answer.call else dict(block, text="")
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])} if answer.call else {"type": "text_delta", "text": block["text"]}
        made = [
            {"type": "message_start", "message": dict(message, content=[], stop_reason=None)},
            {"type": "content_block_start", "index": 0, "content_block": start},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": message["stop_reason"], "stop_sequence": None}, "usage": {"output_tokens": USED[1]}},
            {"type": "message_stop"},
        ]
        return [event(each, each["type"]) for each in made]

    @staticmethod
    def error(fault):
        return {"type": "error", "error": {"type": fault.error, "message": fault.message}}


class Responses:
    name, path = "responses", "/responses"
    ping = b": ping\n\n"

    @staticmethod
    def read(body):
        results, text = [], [body.get("instructions") or ""]
        given = body.get("input") or []
        for item in [{"type": "message", "role": "user", "content": given}] if isinstance(given, str) else given:
            if str(item.get("type", "")).endswith("_call_output"):
                results.append(flat(item.get("output")))
            elif item.get("type", "message") == "message" and item.get("role") != "assistant":
                text.append(flat(item.get("content")))
        tools = {}
        for tool in body.get("tools", []):
            inner = tool.get("tools", []) if tool.get("type") == "namespace" else [tool]
            for each in inner:
                name = each.get("name") or each.get("type")
                tools[name] = {"namespace": tool["name"] if tool.get("type") == "namespace" else None, "schema": each.get("parameters") or {}}
        return Request(bool(body.get("stream")), tools, results, "\n".join(text), body.get("model"))

    @staticmethod
    def item(answer):
        if not answer.call:
            return {"type": "message", "id": "msg_" + answer.id, "role": "assistant", "status": "completed",
                    "content": [{"type": "output_text", "text": answer.text, "annotations": []}]}
        made = {"type": "function_call", "id": "fc_" + answer.id, "call_id": answer.id, "name": answer.call.name,
                "arguments": json.dumps(answer.call.arguments), "status": "completed"}
        if answer.call.namespace:
            made["namespace"] = answer.call.namespace
        return made

    @classmethod
    def whole(cls, request, answer):
        return {"id": "resp_scripted", "object": "response", "created_at": int(time.time()), "status": "completed", "model": request.model,
                "output": [cls.item(answer)],
                "usage": {"input_tokens": USED[0], "input_tokens_details": {"cached_tokens": 0}, "output_tokens": USED[1],
                          "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": sum(USED)}}

    @classmethod
    def events(cls, request, answer):
        item, whole = cls.item(answer), cls.whole(request, answer)
        made = [{"type": "response.created", "response": dict(whole, status="in_progress", output=[], usage=None)},
                {"type": "response.output_item.added", "output_index": 0, "item": dict(item, status="in_progress")}]
        if not answer.call:
            made.append({"type": "response.output_text.delta", "item_id": item["id"], "output_index": 0, "content_index": 0, "delta": answer.text})
        made += [{"type": "response.output_item.done", "output_index": 0, "item": item}, {"type": "response.completed", "response": whole}]
        return [event(each, each["type"]) for each in made]

    @staticmethod
    def error(fault):
        return {"error": {"message": fault.message, "type": fault.error, "code": fault.error, "param": None}}


class Chat:
    name, path = "chat", "/chat/completions"
    ping = b": ping\n\n"
    error = Responses.error

    @staticmethod
    def read(body):
        results, text = [], []
        for message in body.get("messages", []):
            if message.get("role") == "tool":
                results.append(flat(message.get("content")))
            elif message.get("role") != "assistant":
                text.append(flat(message.get("content")))
        tools = {tool["function"]["name"]: {"namespace": None, "schema": tool["function"].get("parameters") or {}}
                 for tool in body.get("tools") or [] if "function" in tool}
        return Request(bool(body.get("stream")), tools, results, "\n".join(text), body.get("model"))

    @staticmethod
    def parts(answer):
        if not answer.call:
            return {"role": "assistant", "content": answer.text}, "stop"
        call = {"id": answer.id, "type": "function", "function": {"name": answer.call.name, "arguments": json.dumps(answer.call.arguments)}}
        return {"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls"

    usage = {"prompt_tokens": USED[0], "completion_tokens": USED[1], "total_tokens": sum(USED)}

    @classmethod
    def frame(cls, request, kind, choices, **more):
        return {"id": "chatcmpl-scripted", "object": kind, "created": int(time.time()), "model": request.model, "choices": choices, **more}

    @classmethod
    def whole(cls, request, answer):
        message, why = cls.parts(answer)
        return cls.frame(request, "chat.completion", [{"index": 0, "message": message, "finish_reason": why}], usage=cls.usage)

    @classmethod
    def events(cls, request, answer):
        message, why = cls.parts(answer)
        if answer.call:
            message["tool_calls"][0]["index"] = 0
        chunk = "chat.completion.chunk"
        made = [cls.frame(request, chunk, [{"index": 0, "delta": message, "finish_reason": None}]),
                cls.frame(request, chunk, [{"index": 0, "delta": {}, "finish_reason": why}]),
                cls.frame(request, chunk, [], usage=cls.usage)]
        return [event(each) for each in made] + [b"data: [DONE]\n\n"]


APIS = (Messages, Responses, Chat)
