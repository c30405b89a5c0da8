"""instruction_counts.py STEPSIM COMPILER [--write]: no command executes a tenth more instructions than is recorded, or a tenth fewer.

Times of a busy machine differ by more than a loss of speed that is worth finding; counts of instructions differ by a thousandth. They are
cachegrind's, of the process itself, and those of one compiler: with another than the recorded one nothing is compared (exit code 77). A command
that has become faster is recorded anew by --write, in instruction_counts.csv beside this file.
"""
import csv
import pathlib
import re
import shutil
import subprocess
import sys

RECORDED = pathlib.Path(__file__).with_suffix(".csv")
ROOT = RECORDED.parents[2]
SMALL = "--samples 0 --faster 0 --engine own"
COMMANDS = [
    "--version",
    "list models",
    "show tests/cli/tiny.yaml",
    f"run tests/cli/tiny.yaml {SMALL}",
    f"run llama32-3b-sft-zero3 {SMALL}",
    f"run grpo-32b-production {SMALL}",
    "memory tests/cli/tiny.yaml",
    "collective all_reduce --cluster h100-8 --nodes 2048 --sizes 1GiB --engine own",
    "collective all_to_all --cluster alps --nodes 2 --sizes 1MiB:1GiB --engine own",
    f"run tests/cli/axolotl/small-sft.8xMI300.yaml {SMALL}",
]
SHARE = 0.1
SKIPPED = 77


def count(stepsim: str, command: str) -> int:
    run = subprocess.run(
        ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", stepsim, *command.split()],
        capture_output=True, cwd=ROOT, text=True, check=False)
    found = re.search(r"I\s+refs:\s+([\d,]+)", run.stderr)
    if run.returncode not in (0, 1) or not found:
        sys.exit(f"stepsim {command}: exit code {run.returncode}\n{run.stderr}")
    return int(found[1].replace(",", ""))


def main() -> None:
    stepsim, compiler = sys.argv[1:3]
    if not shutil.which("valgrind"):
        print("valgrind is not installed: nothing is counted")
        sys.exit(SKIPPED)
    if "--write" in sys.argv:
        rows = [(command, compiler, count(stepsim, command)) for command in COMMANDS]
        with RECORDED.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([("command", "compiler", "instructions"), *rows])
        return
    with RECORDED.open(newline="") as file:
        recorded = {row["command"]: row for row in csv.DictReader(file)}
    if set(recorded) != set(COMMANDS):
        sys.exit(f"{RECORDED.name} does not hold the commands of this script: run it with --write")
    if any(row["compiler"] != compiler for row in recorded.values()):
        print(f"counts of {compiler} are not recorded: nothing is compared")
        sys.exit(SKIPPED)
    wrong = 0
    for command in COMMANDS:
        before, now = int(recorded[command]["instructions"]), count(stepsim, command)
        changed = now / before - 1
        wrong += abs(changed) > SHARE
        print(f"{now:>14,} {100 * changed:+6.1f} % {'!' if abs(changed) > SHARE else ' '} stepsim {command}", flush=True)
    if wrong:
        sys.exit(f"{wrong} of {len(COMMANDS)} commands moved by more than {100 * SHARE:.0f} %: find out why, then record what is meant with --write")


if __name__ == "__main__":
    main()
