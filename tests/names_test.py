#!/usr/bin/env python3
"""One name, one class: two rooms that each define hone::X link without a word and run each other's destructors.

  names_test.py SOURCE_FOLDER
"""
import collections
import pathlib
import re
import sys

source = pathlib.Path(sys.argv[1])
found = collections.defaultdict(set)
for path in sorted([*source.glob("src/**/*.h"), *source.glob("src/**/*.cpp")]):
    spaces = []
    for line in path.read_text().splitlines():
        if opened := re.match(r"namespace(?:\s+([\w:]+))?\s*\{", line):
            spaces.append(opened[1] or "")
        elif re.match(r"\}\s*//\s*namespace", line) and spaces:
            spaces.pop()
        elif (named := re.match(r"(?:class|struct|union|enum(?: class)?) (\w+)(?: final)?(?: *:(?!:)[^;{]*)? *\{", line)) and "" not in spaces:
            found["::".join([*spaces, named[1]])].add(str(path.relative_to(source)))
assert len(found) > 200, f"only {len(found)} classes found: the layout that this test reads is gone"
twice = {name: sorted(files) for name, files in found.items() if len(files) > 1}
for name, files in twice.items():
    print(f"{name} is defined in {' and '.join(files)}")
sys.exit(1 if twice else 0)
