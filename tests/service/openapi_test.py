#!/usr/bin/env python3
"""Holds the running service to its own OpenAPI document: schemathesis with every check, without and with tokens.

schemathesis comes from PyPI into HONE_VENV once; where that fails the test is skipped (exit 77) and says why.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

from harness import HONE, Server

SCHEMATHESIS = "schemathesis==4.32.5"


def tool():
    venv = pathlib.Path(os.environ.get("HONE_VENV", "build/venv"))
    program = venv / "bin/schemathesis"
    if not program.exists():
        for command in ([sys.executable, "-m", "venv", str(venv)], [str(venv / "bin/pip"), "install", "--quiet", SCHEMATHESIS]):
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                print(f"skipped: {SCHEMATHESIS} cannot be installed: {(done.stderr or done.stdout).strip().splitlines()[-1:]}")
                sys.exit(77)
    return str(program)


def hold(program, server, *more):
    done = subprocess.run([program, "run", server.url + "/openapi.json", "--checks", "all", "--max-examples", "30", "--request-timeout", "70", "--no-color", *more],
                          capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        sys.exit(done.stdout[-8000:] + done.stderr[-2000:])
    print([line.strip() for line in done.stdout.splitlines() if "generated" in line])


def main():
    program = tool()
    with Server() as server:
        hold(program, server)
    with tempfile.TemporaryDirectory() as folder:
        file = folder + "/tokens.json"
        secret = subprocess.run([HONE, "token", "create", "all", "--scope", "submit,read", "--tokens", file], check=True, capture_output=True, text=True).stdout.strip()
        with Server("--tokens", file) as server:
            hold(program, server, "--header", "Authorization: Bearer " + secret)


if __name__ == "__main__":
    main()
