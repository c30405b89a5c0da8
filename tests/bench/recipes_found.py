#!/usr/bin/env python3
"""Does `stepsim plan` find the splits that vendors tuned?

  python3 -B tests/bench/recipes_found.py build/stepsim [--within SECONDS] [ROW...]

The splits of the rows in recipes.csv are recipes that vendors published. Each is planned with its model, GPUs, batch, sequence and precision
as they are. It is found where it is among the first five, or within 5 % of the first; else `explain` says on what it loses most, and the row
says why its authors may have chosen it. Prints one line a row; exit code 1 if fewer than SHOWN are found or explained, or fewer than NEEDED
are found. All take 15 minutes on two cores."""

import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

NEEDED, SHOWN, FIRST, NEAR = 11, 18, 5, 0.05
LONGEST = 900  # seconds for a plan


def answer(stepsim, *words):
    done = subprocess.run([stepsim, *words, "--json"], capture_output=True, text=True, timeout=LONGEST)
    if done.returncode == 2:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def loses_on(stepsim, scenario, best):
    """The causes that `explain` gives most of the gap to, with their seconds."""
    rows = answer(stepsim, "explain", best, scenario, "--samples", "0")["rows"]
    more = sorted(((each["b_exposed_s"] - each["a_exposed_s"], each["cause"]) for each in rows), reverse=True)
    return ", ".join(f"{cause} {seconds:+.2f} s" for seconds, cause in more[:2] if seconds > 0)


def how_sure(stepsim, scenario, best):
    """In how many draws of the constants the best is out of reach."""
    claim = answer(stepsim, "check", f"A is at least {1 + NEAR}x faster than B", best, scenario)["claims"][0]
    return claim["sentence"].split(";")[-1].split(",")[0].strip()


def main():
    words = sys.argv[1:] or sys.exit(__doc__)
    within = "60"
    if "--within" in words:
        at = words.index("--within")
        within = words[at + 1]
        del words[at:at + 2]
    stepsim, *only = words
    steps = pathlib.Path(__file__).resolve().parents[2] / "scenarios/measured/steps"
    with open(pathlib.Path(__file__).with_name("recipes.csv"), encoding="utf-8") as table:
        wanted = [line for line in csv.DictReader(table) if not only or line["row"] in only]
    found = explained = 0
    with tempfile.TemporaryDirectory() as folder:
        for table in sorted({line["table"] for line in wanted}):
            subprocess.run([sys.executable, "-B", steps.parents[2] / "measure/rows.py", steps / f"{table}.csv", "--export", folder + "/" + table],
                           env={**os.environ, "STEPSIM": stepsim}, capture_output=True, check=False)
        for table, row, why in (line.values() for line in wanted):
            scenario = f"{folder}/{table}/{row}.yaml"
            if not pathlib.Path(scenario).exists():
                sys.exit(f"{row}: {table}.csv has no such row that is predicted")
            begin = time.monotonic()
            try:
                plans = answer(stepsim, "plan", scenario, "--samples", "0", "--top", str(FIRST), "--within", within,
                               "-o", f"{folder}/plans-{row}")
            except subprocess.TimeoutExpired:
                print(f"{row}: not within {LONGEST} s", flush=True)
                continue
            recipe, first = plans["own"], (plans["best"] or [None])[0]
            if not recipe or not first:
                print(f"MISSED {row}: {'no plan fits' if recipe else 'no plan splits as it does, or it cannot fit'}; {why}", flush=True)
                continue
            place, runs = recipe["place"], not recipe["reason"]
            good = runs and (place is not None or recipe["more"] <= NEAR)
            best = f"{folder}/plans-{row}/1.yaml"
            reason = "" if good or not runs else loses_on(stepsim, scenario, best)
            if reason:
                reason += f" ({how_sure(stepsim, scenario, best)})"
            found += good
            explained += bool(not good and runs and reason and why)
            print(f"{'found ' if good else 'beaten' if runs and reason and why else 'MISSED'} {row}: {recipe['step_time_s']:.2f} s,"
                  f" {recipe['peak_memory_bytes'] / 1e9:.1f} GB,"
                  f" {'place ' + str(place) if place else 'not among the first ' + str(FIRST)}, {recipe['more']:+.1%} behind the first"
                  f"{'' if runs else ', DOES NOT FIT'}; first: {first['plan']}, {first['step_time_s']:.2f} s,"
                  f" {first['peak_memory_bytes'] / 1e9:.1f} GB, {first['binds']}; {plans['plans']} plans, {plans['replayed']} replays,"
                  f" {(plans['open'] or {}).get('plans', 0)} open, {time.monotonic() - begin:.0f} s"
                  f"{'' if good else '; loses on ' + (reason or 'NOTHING') + '; ' + (why or 'WHY?')}", flush=True)
    print(f"{found} of {len(wanted)} recipes found, {explained} beaten for a reason")
    return found < min(NEEDED, len(wanted)) or found + explained < min(SHOWN, len(wanted))


if __name__ == "__main__":
    sys.exit(main())
