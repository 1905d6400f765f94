#!/usr/bin/env python3
"""What each driver reports when the model service, or the program, fails: the rows of the failure table that end within a minute.

The programs are told to try once more instead of ten or thirty times (turns.py), so that a row takes seconds.
"""
import unittest

import model_server
from model_server import Say, Script, shell
import turns

# Claude refuses a plain sleep. The seconds are what a process is found by when it is left running.
SLEEP = "python3 -c 'import time; time.sleep({})'"
STEPS = [shell("echo step-one"), Say("All is well.")]


class Row:
    """end and reason: what is expected of claude, of codex; a tuple of ends means any of them. few: most requests there may be."""

    def __init__(self, name, claude, codex, script=None, few=12, **options):
        self.name, self.expected, self.script, self.few, self.options = name, {"claude": claude, "codex": codex}, script, few, options


def fault(name):
    return Script(STEPS, name)


def steps(*given):
    return Script(list(given))


FINE, SILENT = ("finished", "."), ("silent", r"no output|silen")
ROWS = [
    Row("refused-401", ("failed", "401"), ("failed", "401|invalid x-api-key"), fault("401")),
    Row("forbidden-403", ("failed", "403"), ("failed", "403|may not use"), fault("403")),
    Row("too-long-400", ("failed", "too long|400"), ("failed", "too long|400"), fault("400")),
    Row("no-model-404", ("failed", "404|model"), ("failed", "404|model"), fault("404")),
    Row("busy-429", ("failed", "429|slow down|[Rr]ate"), ("failed", "429|slow down|[Rr]ate|retry"), fault("429")),
    Row("busy-429-once", FINE, FINE, fault("429-once")),
    Row("quota", ("failed", "429|quota"), ("failed", "[Qq]uota"), fault("quota")),
    Row("broken-500", ("failed", "500|internal"), ("failed", "500|internal|demand"), fault("500")),
    Row("broken-500-twice", ("failed", "500|internal"), FINE, fault("500-twice")),   # claude is allowed one more try here
    Row("broken-503", ("failed", "503|unavailable"), ("failed", "503|unavailable|demand"), fault("503")),
    Row("overloaded-529", ("failed", "529|[Oo]verloaded"), ("failed", "529|[Oo]verloaded|demand"), fault("529")),
    Row("stream-cut", ("failed", "."), ("failed", "stream|closed"), fault("cut")),
    Row("stream-cut-once", FINE, FINE, fault("cut-once")),
    Row("broken-json", ("failed", "malformed|empty|JSON"), ("failed", "stream|closed"), fault("broken")),
    Row("html", ("failed", "malformed|empty|HTML|JSON"), ("failed", "stream|closed|."), fault("html")),
    Row("port-closed", ("failed", "[Cc]onnect"), SILENT, fault("500"), few=0, port="closed", silence=6, wall=45),
    Row("mute", SILENT, SILENT, fault("mute"), silence=5),
    Row("silent-after-headers", SILENT, SILENT, fault("silent"), silence=5),
    Row("pings", SILENT, SILENT, fault("pings"), silence=5),
    Row("overtime", ("overtime", "."), ("overtime", "."), steps(shell(SLEEP.format(4711)), Say("Slept.")), mark="sleep(4711)", wall=5),
    Row("cancel-model-silent", ("cancelled", "."), ("cancelled", "."), fault("mute"), cancel_after=3),
    Row("cancel-tool-running", ("cancelled", "."), ("cancelled", "."), steps(shell(SLEEP.format(4712)), Say("Slept.")), mark="sleep(4712)", cancel_on="tool_call",
        cancel_after=1),
    Row("killed-tool-running", ("failed", "signal 9"), ("failed", "signal 9"), steps(shell(SLEEP.format(4713)), Say("Not reached.")), mark="sleep(4713)", kill=9),
    Row("terminated-tool-running", ("failed", "143|signal 15"), ("failed", "signal 15"), steps(shell(SLEEP.format(4714)), Say("Not reached.")), mark="sleep(4714)",
        kill=15),
    Row("hung-up-tool-running", ("failed", "129|signal 1"), ("failed", "signal 1"), steps(shell(SLEEP.format(4715)), Say("Not reached.")), mark="sleep(4715)", kill=1),
    Row("flood", ("flooded", "."), ("flooded", "."), steps(shell("head -c 400000 /dev/zero | tr '\\0' x"), Say("Seen.")), output=20000),
    Row("server-cannot-start", FINE, ("failed", "MCP"), fault(None), servers={"hone": {"command": "/bin/false", "args": []}}),
    Row("tool-fails", FINE, FINE, steps(shell("exit 3"), Say("It failed."))),
]
REPORTS, LACK = {}, {}


def prepare(have, lack):
    LACK.update(lack)
    server = model_server.Server({row.name: row.script for row in ROWS})
    closed = model_server.closed_port()
    cases = {}
    for row in ROWS:
        options = dict(row.options)
        if options.get("port") == "closed":
            options["port"] = closed
        for name, path in have.items():
            cases[f"{name} {row.name}"] = lambda row=row, name=name, path=path, options=options: turns.drive(
                server, row.name, f"{name}-{row.name}", name, path, **options)
    REPORTS.update(turns.run_all(cases, workers=4))
    server.stop()


class Failures(unittest.TestCase):
    def check(self, row, program):
        if program in LACK:
            self.skipTest(f"{program}: {LACK[program]}")
        report = REPORTS[f"{program} {row.name}"]
        if isinstance(report, Exception):
            raise report
        end, reason = row.expected[program]
        self.assertEqual(report.end, end, report)
        self.assertTrue(report.reason, report)
        self.assertRegex(report.reason, reason, report)
        self.assertNotIn("\n", report.reason, "a reason is one line")
        self.assertLessEqual(len(report.requests), row.few, report)
        self.assertEqual(report.marks, [], "something was left running")
        if row.options.get("kill") == 9 and program == "claude":     # codex's sandbox ends its tools with it
            self.assertGreaterEqual(report.result["left_behind"], 1, report)
        if end == "finished":
            self.assertEqual(report.result["exit_code"], 0, report)


for each in ROWS:
    for program in ("claude", "codex"):
        setattr(Failures, f"test_{program}_{each.name.replace('-', '_')}", lambda self, row=each, program=program: self.check(row, program))


if __name__ == "__main__":
    turns.main(("claude", "codex"), __name__, prepare)
