"""documented.py STEPSIM PAGE... [--write]: what pages show as output is what the program prints today.

A block that begins with ```console holds lines "$ command" with what each prints; a line of three dots stands for lines left out.
--write puts what is printed now in the place of what the page says: as many lines before and after the dots as there were.
"""
import os
import re
import shlex
import subprocess
import sys

pages = [word for word in sys.argv[2:] if word != "--write"]
stepsim, write = os.path.abspath(sys.argv[1]), "--write" in sys.argv
rows = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../measure/rows.py")


def printed(command):
    words = shlex.split(re.sub(r"\s+#.*", "", command))
    words[:1] = [rows] if words[0] == "stepsim-rows" else [stepsim]
    # Tables of pages are as wide as a terminal.
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "COLUMNS": "120", "STEPSIM": stepsim})
    if done.returncode not in (0, 1):
        sys.exit(f"{command}: exit {done.returncode}: {done.stderr}")
    return done.stdout.rstrip("\n").split("\n")


def shortened(lines, shown):
    """Of what is printed, as much as the page shows."""
    if "..." not in shown:
        return lines
    dots = shown.index("...")
    after = len(shown) - dots - 1
    return lines[:dots] + ["..."] + lines[len(lines) - after :]


def checked(block, where):
    """The block as it should be, and how many of its lines differ."""
    said, now, command = {}, [], ""
    for line in block:
        if line.startswith("$ "):
            command = line
            said[command] = []
        elif command:
            said[command].append(line)
    for command, shown in said.items():
        while shown and not shown[-1]:  # before the next command
            shown.pop()
        lines = shortened(printed(command[2:]), shown)
        now += [command] + lines + [""]
        for old, new in zip(shown + [""] * len(lines), lines + [""] * len(shown)):
            if old != new and not write:
                print(f"{where}: {command}\n  the page: {old}\n  printed:  {new}")
                return None
    return now[:-1]


wrong = 0
for page in pages:
    lines = open(page).read().split("\n")
    result, at = [], 0
    while at < len(lines):
        result.append(lines[at])
        if lines[at] == "```console":
            end = lines.index("```", at)
            block = checked(lines[at + 1 : end], f"{os.path.relpath(page)}:{at + 1}")
            wrong += block is None
            result += block or lines[at + 1 : end]
            at = end - 1
        at += 1
    if write:
        open(page, "w").write("\n".join(result))
print(f"{wrong} blocks differ" if wrong else "every block is what the program prints")
sys.exit(wrong > 0)
