"""From a script's logical tools to the names and arguments that a program knows, read from its own list of tools."""
import base64
import json
import shlex

from wire import ToolUse

# Names under which programs offer a shell, and a way to write a file. The first one in the request is taken.
SHELLS = ("Bash", "exec_command", "shell", "shell_command", "bash", "execute", "run_shell_command", "mcp__acp__Bash", "terminal", "run_command")
WRITERS = ("Write", "write_file", "write_text_file", "write", "mcp__acp__Write")
FILLERS = {"string": "test", "integer": 1, "number": 1, "boolean": False, "array": [], "object": {}}


def pick(names, tools):
    return next((name for name in names if name in tools), None)


def fill(schema, values):
    """values by any of several property names; what else is required gets a harmless value of its type."""
    known, made = schema.get("properties", {}), {}
    for names, value in values:
        name = next((each for each in names if each in known), names[0])
        if known.get(name, {}).get("type") == "array" and isinstance(value, str):
            value = ["bash", "-lc", value]
        made[name] = value
    for name in schema.get("required", []):
        if name not in made:
            kind = known.get(name, {}).get("type")
            made[name] = known.get(name, {}).get("enum", [FILLERS.get(kind, "test")])[0]
    return made


def use(name, request, values):
    tool = request.tools[name]
    return ToolUse(name, fill(tool["schema"], values), tool["namespace"])


def run(command, request):
    name = pick(SHELLS, request.tools)
    if not name:
        raise KeyError(f"no shell among {sorted(request.tools)}")
    return use(name, request, [(("command", "cmd"), command)])


def translate(step, request):
    what = step.arguments
    if step.kind == "shell":
        return run(what["command"], request)
    if step.kind == "write":
        name = pick(WRITERS, request.tools)
        if name:
            return use(name, request, [(("file_path", "path", "filename"), what["path"]), (("content", "text", "contents"), what["text"])])
        text = base64.b64encode(what["text"].encode()).decode()
        path = shlex.quote(what["path"])
        return run(f'mkdir -p "$(dirname {path})" && echo {text} | base64 -d > {path}', request)
    return mcp_call(what["tool"], what["arguments"], request)


def mcp_call(tool, arguments, request):
    names = (f"mcp__hone__{tool}", f"hone__{tool}", f"mcp_hone_{tool}", f"hone_{tool}", tool)
    if name := pick(names, request.tools):
        return ToolUse(name, arguments, request.tools[name]["namespace"])
    if "ToolSearch" in request.tools:                # claude defers MCP tools: the name alone may be called
        return ToolUse(f"mcp__hone__{tool}", arguments)
    if "run_typescript" in request.tools:            # vibe: MCP tools are functions of a script
        code = f"async function main() {{ return await tools.mcp_hone.{tool}({json.dumps(arguments)}); }}"
        return use("run_typescript", request, [(("code", "script", "source"), code)])
    raise KeyError(f"no MCP tool {tool} among {sorted(request.tools)}")
