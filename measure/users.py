#!/usr/bin/env python3
"""Asks the program for runs that fine-tuners have published, and prints its errors by family.

  python3 measure/users.py [--match WORD] [--rows] [--samples 16] [--program build/stepsim]

Each row of measure/users/*.csv holds what was measured, where that stands, and the scenario that asks for it. Times and memory
are signed errors: negative where the program is too fast, or has too little memory."""

import argparse
import csv
import json
import pathlib
import statistics
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def answer(program, row, samples):
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
        file.write(row["scenario"])
        file.flush()
        words = [program, "run", file.name, "--json", "--faster", "0", "--engine", "own", "--samples", str(samples)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.stdout.startswith("{") else {"error": done.stderr.strip()}


def memory(told, kind):
    """Returns the gigabytes that the row's kind of figure counts."""
    held = told["peak_memory_bytes"] - told["classes"].get("library", 0)
    if kind == "allocated":
        held -= told["classes"].get("allocator_slack", 0)
    if kind == "device":
        held = told["shown_by_device_bytes"]
    return held / 1e9


def errors(row, told):
    made = {}
    if row["outcome"] == "ran" and row["step_s"]:
        made["time"] = told["step_time_s"] / float(row["step_s"]) - 1
    if row["outcome"] == "ran" and row["mem_GB"]:
        made["memory"] = memory(told, row["mem_kind"]) / float(row["mem_GB"]) - 1
    return made


def share(values, of):
    values = sorted(values)
    place = of * (len(values) - 1)
    low = int(place)
    return values[low] + (values[min(low + 1, len(values) - 1)] - values[low]) * (place - low)


def line(name, rows):
    text = f"{name:44.44} {len(rows):4}"
    for kind in ("time", "memory"):
        values = [row["errors"][kind] for row in rows if kind in row["errors"]]
        if not values:
            text += " |" + 31 * " "
            continue
        sizes = [abs(value) for value in values]
        text += f" | {100 * share(sizes, 0.5):5.1f} / {100 * share(sizes, 0.9):5.1f} %, mean {100 * statistics.mean(values):+6.1f} %"
    died = [row for row in rows if row["outcome"] == "oom"]
    told = sum(row["told"].get("verdict") == "oom" for row in died)
    ran = [row for row in rows if row["outcome"] == "ran"]
    wrong = sum(row["told"].get("verdict") == "oom" for row in ran)
    text += f" | died, told so: {told} of {len(died)}; ran, called dead: {wrong} of {len(ran)}"
    timed = [row for row in ran if "time" in row["errors"] and row["told"].get("interval_s")]
    if timed:
        held = sum(row["told"]["interval_s"][0] <= float(row["step_s"]) <= row["told"]["interval_s"][1] for row in timed)
        text += f"; interval holds {held} of {len(timed)}"
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--match", default="", help="families, sources or ids with this word alone")
    parser.add_argument("--rows", action="store_true", help="each row, too")
    parser.add_argument("--samples", type=int, default=1, help="draws of the constants; 16 give an interval")
    parser.add_argument("--program", default=str(HERE.parent / "build" / "stepsim"))
    said = parser.parse_args()
    families, sources = {}, {}
    for file in sorted(HERE.glob("users/*.csv")):
        for row in csv.DictReader(open(file, encoding="utf-8")):
            if said.match not in f"{file.stem} {row['family']} {row['id']}":
                continue
            row["told"] = answer(said.program, row, said.samples)
            row["errors"] = {} if "error" in row["told"] else errors(row, row["told"])
            if "error" in row["told"]:
                print(row["id"], row["told"]["error"])
            if said.rows:
                print(row["id"], {kind: f"{100 * value:+.1f} %" for kind, value in row["errors"].items()})
            families.setdefault(f"{file.stem}: {row['family']}", []).append(row)
            sources.setdefault(file.stem, []).append(row)
    for name, rows in families.items():
        print(line(name, rows))
    for name, rows in sources.items():
        print(line(f"all of {name}", rows))
    every = [row for rows in sources.values() for row in rows]
    print(line("adapters as stated", [row for row in every if "lora" in row["method"] and not row["family"].startswith("~")]))
    print(line("adapters, something near taken", [row for row in every if "lora" in row["method"] and row["family"].startswith("~")]))
    print(line("all parameters", [row for row in every if "lora" not in row["method"]]))


if __name__ == "__main__":
    main()
