#!/usr/bin/env python3
"""One good turn of each real program through its driver: what arrives at the model, what is done, what is reported."""
import unittest

import model_server
from model_server import Say, Script, shell, write
import turns

NATIVE, ACP = ("claude", "codex"), ("vibe", "fast-agent", "claude-code-acp")
LONG = "word " * 60000 + "END-OF-PROMPT"


def work(name):
    """A shell command, a file, and a last word."""
    return Script([shell("echo from-the-shell"), write("made.txt", f"made by {name}\n"), Say(f"{name} is done.")])


SCRIPTS = {"work": work("work"), "say": Script([Say("Only words.")]),
           "wide": Script([shell("head -c 3000000 /dev/zero | tr '\\0' x"), Say("Seen.")])}
REPORTS, LACK = {}, {}


def prepare(have, lack):
    server = model_server.Server(SCRIPTS)
    LACK.update(lack)
    cases = {}
    for name, path in have.items():
        spec = name if name in NATIVE else f"acp:{path}" + (" --shell --model generic.scripted" if name == "fast-agent" else "")
        def case(what, script, name=name, path=path, spec=spec, **more):
            cases[f"{name} {what}"] = lambda: turns.drive(server, script, f"{name}-{what}", name, path, spec=more.pop("spec", spec), **more)
        case("works", "work")
        if name in NATIVE:
            case("reads", "say", prompt=LONG)
            case("chooses", "say", spec=f"{name}/scripted-two:high")
            case("wide", "wide")
    REPORTS.update(turns.run_all(cases))
    server.stop()


class Direct(unittest.TestCase):
    def report(self, program, what):
        if program in LACK:
            self.skipTest(f"{program}: {LACK[program]}")
        found = REPORTS[f"{program} {what}"]
        if isinstance(found, Exception):
            raise found
        return found

    def each(self, names, what):
        for name in names:
            with self.subTest(program=name):
                yield name, self.report(name, what)

    def test_a_turn_is_done_and_reported(self):
        for name, report in self.each(NATIVE + ACP, "works"):
            self.assertEqual(report.end, "finished", report)
            self.assertEqual(report.files.get("made.txt"), "made by work\n", report)
            self.assertIn("work is done.", report.result["last_text"], report)
            self.assertEqual(report.kinds()[0], "started", report)
            self.assertGreaterEqual(len(report.of("tool_call")), 2, report)
            if name not in ("fast-agent",):       # leaves its calls pending for ever
                self.assertGreaterEqual(len(report.of("tool_result")), 1, report)
            self.assertIn("work is done.", "".join(each["text"] for each in report.of("text")), report)
            self.assertTrue(report.result["session"], report)
            self.assertIn("Do the task.", report.requests[0]["text"])
            self.assertIn("from-the-shell", "".join(report.requests[-1]["results"] + report.requests[2]["results"]))

    def test_use_is_the_programs_claim(self):
        for name, report in self.each(NATIVE, "works"):
            self.assertEqual(report.result["usage"]["output_tokens"], 90, report)     # three answers of 30
            self.assertGreaterEqual(report.result["usage"]["input_tokens"], 3600, report)
            cost = report.result["usage"]["cost_usd"]
            self.assertTrue(cost is None if name == "codex" else cost > 0, report)    # codex knows no prices: unknown, not nought

    def test_a_long_prompt_arrives_whole(self):
        for _, report in self.each(NATIVE, "reads"):
            self.assertEqual(report.end, "finished", report)
            self.assertIn(LONG, report.requests[0]["text"])

    def test_model_and_effort_arrive(self):
        for name, report in self.each(NATIVE, "chooses"):
            self.assertEqual(report.end, "finished", report)
            body = report.requests[0]["body"]
            self.assertEqual(body["model"], "scripted-two")
            effort = body.get("reasoning", {}).get("effort") if name == "codex" else body.get("output_config", {}).get("effort")
            self.assertEqual(effort, "high", sorted(body))

    def test_megabytes_of_output_are_survived(self):
        for _, report in self.each(NATIVE, "wide"):
            self.assertEqual(report.end, "finished", report)
            self.assertIn("Seen.", report.result["last_text"])
            self.assertLess(max(len(each["text"]) for each in report.events), 1 << 20, "an event's text is bounded")


if __name__ == "__main__":
    turns.main(NATIVE + ACP, __name__, prepare)
