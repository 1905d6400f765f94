"""A model service that says what a script tells it: Anthropic Messages, OpenAI Responses, OpenAI Chat Completions.

One server serves any number of test cases: the base URL of each is `/SCRIPT/RUN/...`, so that the server keeps no
conversation. The next step is found by counting the tool results in the request; a request without tools is a side
request (a title, a classifier) and gets plain text. Steps name logical tools (`shell`, `write`, `mcp`); what the
program calls them is read from the request's own list of tools (see `toolnames.py`).
"""
import http.server
import json
import socket
import threading
import time

import toolnames
import wire


class Say:
    """Text that ends the turn."""

    def __init__(self, text):
        self.text = text


class Call:
    """A tool call: `shell` command, `write` path and text, or `mcp` tool and arguments."""

    def __init__(self, kind, **arguments):
        self.kind, self.arguments = kind, arguments


def shell(command):
    return Call("shell", command=command)


def write(path, text):
    return Call("write", path=path, text=text)


def mcp(tool, **arguments):
    return Call("mcp", tool=tool, arguments=arguments)


class Fault:
    """What happens to a request instead of an answer: a status with a body, or one of cut, broken, mute, silent, pings.

    times: so many requests of a run get it, then the script goes on; None: every one.
    """

    def __init__(self, kind, times=None, status=200, error="", message="", headers=None):
        self.kind, self.times, self.status, self.error, self.message, self.headers = kind, times, status, error, message, headers or {}


def status(code, error, message, times=None, **headers):
    return Fault("status", times, code, error, message, {name.replace("_", "-"): value for name, value in headers.items()})


FAULTS = {
    "401": status(401, "authentication_error", "invalid x-api-key"),
    "403": status(403, "permission_error", "this key may not use the model"),
    "400": status(400, "invalid_request_error", "prompt is too long: 250000 tokens > 200000 maximum"),
    "404": status(404, "not_found_error", "model: scripted"),
    "429": status(429, "rate_limit_error", "slow down", retry_after="3"),
    "429-once": status(429, "rate_limit_error", "slow down", times=1, retry_after="1"),
    "quota": status(429, "insufficient_quota", "You exceeded your current quota"),
    "500": status(500, "api_error", "internal"),
    "500-twice": status(500, "api_error", "internal", times=2),
    "503": status(503, "api_error", "unavailable"),
    "529": status(529, "overloaded_error", "Overloaded"),
    "cut": Fault("cut"), "cut-once": Fault("cut", times=1), "broken": Fault("broken"), "html": Fault("html"),
    "mute": Fault("mute"), "silent": Fault("silent"), "pings": Fault("pings"),
}


class Script:
    """steps: a list, or a function of the request (see wire.Request) that gives the next step."""

    def __init__(self, steps, fault=None):
        self.steps, self.fault = steps, FAULTS[fault] if isinstance(fault, str) else fault

    def step(self, request):
        if callable(self.steps):
            return self.steps(request)
        return self.steps[min(len(request.results), len(self.steps) - 1)]


class Server:
    """url(script, run) is a test case's base URL; `log` holds what was asked, oldest first, without keys."""

    def __init__(self, scripts=None):
        self.scripts, self.log, self.lock = dict(scripts or {}), [], threading.Lock()
        self.faulted, self.stopped = {}, threading.Event()
        server = self

        class Handler(_Handler):
            model = server

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.port = self.http.server_address[1]
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def url(self, script, run="1"):
        if script not in self.scripts:
            raise KeyError(script)
        return f"http://127.0.0.1:{self.port}/{script}/{run}"

    def stop(self):
        self.stopped.set()
        self.http.shutdown()
        self.http.server_close()

    def requests(self, run, api=None):
        """Model requests of a run: probes and token counts are left out."""
        with self.lock:
            return [each for each in self.log if each["run"] == run and each["api"] and (api is None or each["api"] == api)]

    def note(self, **facts):
        with self.lock:
            self.log.append(facts)

    def fault_of(self, script, run):
        if not script.fault:
            return None
        with self.lock:
            seen = self.faulted.get(run, 0)
            if script.fault.times is not None and seen >= script.fault.times:
                return None
            self.faulted[run] = seen + 1
        return script.fault


def closed_port():
    """A port of the loopback on which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model = None

    def log_message(self, *_):
        pass

    def parts(self):
        words = self.path.split("?")[0].strip("/").split("/")
        script = self.model.scripts.get(words[0]) if words else None
        return script, words[0], words[1] if len(words) > 1 else "", "/" + "/".join(words[2:])

    def send_json(self, code, value, headers=None):
        body = json.dumps(value).encode()
        self.send_response(code)
        for name, text in {"Content-Type": "application/json", "Content-Length": str(len(body)), "Connection": "close", **(headers or {})}.items():
            self.send_header(name, text)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        self.close_connection = True

    def answer_probe(self):
        script, name, run, path = self.parts()
        known = script is not None and (path == "/api/hello" or path.endswith("/models"))
        self.model.note(script=name, run=run, api=None, path=path, method=self.command)
        if known and path.endswith("/models"):
            self.send_json(200, {"object": "list", "data": [{"id": "scripted", "object": "model", "created": 0, "owned_by": "tests"}]})
        else:
            self.send_json(200 if known else 404, {} if known else {"error": {"message": "not here"}})

    do_GET = do_HEAD = answer_probe

    def body(self):
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            whole = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                whole += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return whole
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def do_POST(self):
        script, name, run, path = self.parts()
        try:
            body = json.loads(wire.inflate(self.body(), self.headers.get("Content-Encoding", "")) or b"{}")
        except ValueError:
            self.send_json(400, {"error": {"type": "invalid_request_error", "message": "not JSON"}})
            return
        if script is None:
            self.send_json(404, {"error": {"message": "no such script"}})
            return
        if path.endswith("/count_tokens"):
            self.model.note(script=name, run=run, api=None, path=path, method="POST")
            self.send_json(200, {"input_tokens": len(json.dumps(body)) // 4})
            return
        api = next((each for each in wire.APIS if path.endswith(each.path)), None)
        if api is None:
            self.model.note(script=name, run=run, api=None, path=path, method="POST")
            self.send_json(404, {"error": {"message": "not here"}})
            return
        request = api.read(body)
        request.script, request.run = name, run
        fault = self.model.fault_of(script, run)
        facts = dict(script=name, run=run, api=api.name, path=path, method="POST", stream=request.stream, side=not request.tools,
                     model=body.get("model"), tools=sorted(request.tools), results=list(request.results), text=request.text,
                     fault=fault.kind if fault else None, body=body, called=None)
        try:
            if fault:
                self.model.note(**facts)
                self.fail(fault, api, request)
                return
            answer = wire.Answer(text="Side answer")
            if request.tools:
                step = script.step(request)
                if isinstance(step, Say):
                    answer = wire.Answer(text=step.text)
                else:
                    answer = wire.Answer(call=toolnames.translate(step, request), index=len(request.results))
                    facts["called"] = answer.call.name
            self.model.note(**facts)
            self.send(api, request, answer)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def begin_stream(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True

    def send(self, api, request, answer, part=None):
        if not request.stream:
            self.send_json(200, api.whole(request, answer))
            return
        self.begin_stream()
        events = api.events(request, answer)
        for event in events[:part]:
            self.wfile.write(event)
        self.wfile.flush()

    def fail(self, fault, api, request):
        if fault.kind == "status":
            self.send_json(fault.status, api.error(fault), fault.headers)
        elif fault.kind == "cut" and request.stream:
            self.send(api, request, wire.Answer(text="This will be cut"), part=3)
        elif fault.kind in ("broken", "cut"):
            self.raw(b'{"id": "x", "content": [', "application/json" if not request.stream else "text/event-stream")
        elif fault.kind == "html":
            self.raw(b"<html><body>Please sign in</body></html>", "text/html")
        else:
            self.wait_for_the_other_end(fault, api)

    def raw(self, body, kind):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    def wait_for_the_other_end(self, fault, api):
        if fault.kind != "mute":
            self.begin_stream()
            self.wfile.flush()
        self.connection.settimeout(0.5)
        while not self.model.stopped.is_set():
            try:
                if not self.connection.recv(4096):
                    break
            except TimeoutError:
                pass
            if fault.kind == "pings":
                self.wfile.write(api.ping)
                self.wfile.flush()
        self.close_connection = True


if __name__ == "__main__":
    # By hand: python3 model_server.py prints the base URL of a script that runs `echo hello` and says so.
    server = Server({"hello": Script([shell("echo hello"), Say("I said hello.")])})
    print(server.url("hello"), flush=True)
    while True:
        time.sleep(60)
