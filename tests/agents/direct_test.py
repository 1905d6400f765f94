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
    return Script([shell("echo from-the-shell; command -v claude codex vibe fast-agent claude-code-acp"), write("made.txt", f"made by {name}\n"), Say(f"{name} is done.")])


SCRIPTS = {"work": work("work"), "say": Script([Say("Only words.")]),
           "tries": Script([shell("touch ../outside; echo made > made.txt"), Say("Tried.")]),
          "wide": Script([shell("head -c 3000000 /dev/zero | tr '\\0' x"), Say("Seen.")])}
REPORTS, LACK = {}, {}


def prepare(have, lack):
    server = model_server.Server(SCRIPTS)
    LACK.update(lack)
    cases = {}
    for name, path in have.items():
        def case(what, script, name=name, path=path, **more):
            cases[f"{name} {what}"] = lambda: turns.drive(server, script, f"{name}-{what}", name, path, **more)
        case("works", "work")
        if name in NATIVE:
            case("reads", "say", prompt=LONG)
            case("chooses", "say", spec=f"{name}/scripted-two:high")
            case("wide", "wide")
            case("confined", "tries", confined=True)
    REPORTS.update(turns.run_all(cases))
    server.stop()


@turns.spread
class Direct(unittest.TestCase):
    def report(self, program, what):
        if program in LACK:
            self.skipTest(f"{program}: {LACK[program]}")
        found = REPORTS[f"{program} {what}"]
        if isinstance(found, Exception):
            raise found
        self.assertEqual(found.end, "finished", found)
        return found

    @turns.per_program(*NATIVE, *ACP)
    def check_a_turn_is_done_and_reported(self, program):
        report = self.report(program, "works")
        self.assertEqual(report.files.get("made.txt"), "made by work\n", report)
        self.assertIn("work is done.", report.result["last_text"], report)
        self.assertEqual(report.kinds()[0], "started", report)
        self.assertGreaterEqual(len(report.of("tool_call")), 2, report)
        self.assertGreaterEqual(len(report.of("tool_result")), 1, report)     # fast-agent leaves its shell calls pending for ever
        self.assertIn("work is done.", "".join(each["text"] for each in report.of("text")), report)
        self.assertTrue(report.result["session"], report)
        asked = [each for each in report.requests if not each["side"]]
        self.assertIn("Do the task.", asked[0]["text"])
        self.assertIn("from-the-shell", "".join(asked[-1]["results"]), report)
        self.assertIn(f"/bin/{program}\n", asked[-1]["results"][0].replace('\\n', "\n") + "\n", "the tools see another PATH")
        self.assertEqual(report.result["left_behind"], 0, report)

    @turns.per_program(*NATIVE)
    def check_use_is_the_programs_claim(self, program):
        report = self.report(program, "works")
        self.assertEqual(report.result["usage"]["output_tokens"], 90, report)     # three answers of 30
        self.assertEqual(report.result["usage"]["input_tokens"], 3600, report)
        cost = report.result["usage"]["cost_usd"]
        self.assertTrue(cost is None if program == "codex" else cost > 0, report)    # codex knows no prices: unknown, not nought

    @turns.per_program(*NATIVE)
    def check_a_long_prompt_arrives_whole(self, program):
        self.assertIn(LONG, self.report(program, "reads").requests[0]["text"])

    @turns.per_program(*NATIVE)
    def check_model_and_effort_arrive(self, program):
        body = self.report(program, "chooses").requests[0]["body"]
        self.assertEqual(body["model"], "scripted-two")
        effort = body.get("reasoning", {}) if program == "codex" else body.get("output_config", {})
        self.assertEqual(effort.get("effort"), "high", sorted(body))

    @turns.per_program(*NATIVE)
    def check_megabytes_of_output_are_survived(self, program):
        report = self.report(program, "wide")
        self.assertIn("Seen.", report.result["last_text"])
        self.assertLess(max(len(each["text"]) for each in report.events), 1 << 20, "an event's text is bounded")

    @turns.per_program(*NATIVE)
    def check_confined_it_works_within_its_folder(self, program):
        report = self.report(program, "confined")
        self.assertIn("Read-only file system", "".join(report.requests[-1]["results"]), report)
        self.assertEqual(report.files.get("made.txt"), "made\n", report)


if __name__ == "__main__":
    turns.main(NATIVE + ACP, __name__, prepare)
