#!/usr/bin/env python3
"""Predicts published runs row by row, and says by family how far off that is.

  rows.py TABLE.csv|FOLDER... [--samples 16] [--json] [--recorded TABLE] [--record TABLE] [--export DIR] [--anchored]

A row is what somebody measured, and a scenario: YAML in one line in the column `scenario`, or columns that are named by keys, such as
cluster.node, which come on top. docs/scenarios.md names the other columns. Each row is asked of the program `stepsim` (or $STEPSIM) as
`stepsim run`. Exit code 1: nothing could be predicted, or something got worse; 3: a run died."""

import argparse
import collections
import concurrent.futures
import csv
import difflib
import json
import math
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

STEP = ("tok_s_gpu", "tok_s_total", "step_s", "tflops_gpu", "mfu_pct", "hfu_pct", "mem_GB", "gen_s", "train_s", "sync_s")
STEP_TEXTS = ("id", "family", "scenario", "lighter", "taken", "not_expressed", "flops_per_token", "mem_counted", "mem_kind", "mem_bound",
              "outcome", "sync_of", "load", "framework_version", "precision")
ENGINE = ("num_prompts", "total_tok_s", "output_tok_s", "request_s", "duration_s", "mean_ttft_ms", "mean_tpot_ms", "latency_s")
WORDS = {"sync_of": ("", "engines", "learners", "learners without saving"), "outcome": ("", "ran", "oom"),
         "mem_kind": ("", "allocated", "reserved", "device", "unsaid"), "mem_counted": ("", "GB", "GiB", "log")}


def fail(message):
    print(f"stepsim-rows: {shown(message)}", file=sys.stderr)
    sys.exit(2)


def meant(word, known):
    near = difflib.get_close_matches(word, known, 1)
    return f' (did you mean "{near[0]}"?)' if near else ""


def quantile(values, share):
    values = sorted(values)
    if not values:
        return 0.0
    place = share * (len(values) - 1)
    low = int(place)
    return values[low] + (place - low) * (values[min(low + 1, len(values) - 1)] - values[low])


def mean(values):
    return sum(values) / len(values) if values else 0.0


# ---- scenarios: YAML in one line, as a tree whose leaves keep the words of the table


class Flow:
    def __init__(self, text):
        self.text, self.at = text, 0

    def fail(self, what):
        raise ValueError(f'{what} at "{self.text[self.at:self.at + 20]}"')

    def next(self):
        while self.text[self.at:self.at + 1].isspace():
            self.at += 1
        return self.text[self.at:self.at + 1]

    def scalar(self, ends):
        quote = self.next()
        begin = self.at
        if quote in ('"', "'") and quote:
            found = re.compile(r'"(\\.|[^"\\])*"' if quote == '"' else r"'(''|[^'])*'", re.S).match(self.text, begin)
            self.at = found.end() if found else self.fail("a quote is never closed")
        else:
            self.at = re.compile(ends).search(self.text, begin).start()
        return self.text[begin:self.at].strip()

    def value(self, ends=r"[,\]}]|$"):
        if self.next() == "{":
            made, close = {}, "}"
        elif self.next() == "[":
            made, close = [], "]"
        else:
            return self.scalar(ends)
        self.at += 1
        while self.next() != close:
            if isinstance(made, dict):
                key = unquoted(self.scalar(r":(?=\s)|[,{}\[\]]|$"))
                if self.next() != ":":
                    self.fail("expected a colon")
                self.at += 1
                made[key] = self.value()
            else:
                made.append(self.value())
            if self.next() == ",":
                self.at += 1
            elif self.next() != close:
                self.fail(f"expected , or {close}")
        self.at += 1
        return made


def parsed(text):
    flow = Flow(text)
    made = flow.value(r"$")
    if flow.next():
        flow.fail("expected the end")
    return made


def unquoted(text):
    return json.loads(text) if text[:1] == '"' else text[1:-1].replace("''", "'") if text[:1] == "'" else text


def quoted(text):
    return '"' + "".join("\\" + c if c in '"\\' else c for c in text if c >= " ") + '"'


def one_line(tree):
    if isinstance(tree, dict):
        return "{" + ", ".join(f"{key}: {one_line(each)}" for key, each in tree.items()) + "}"
    return "[" + ", ".join(map(one_line, tree)) + "]" if isinstance(tree, list) else tree


def yaml(tree):
    """Writes the blocks of a scenario one below the other, and what is in them one to a line."""
    text = ""
    for key, each in tree.items():
        block = isinstance(each, dict) and each
        text += f"{key}:\n" + "".join(f"  {name}: {one_line(value)}\n" for name, value in each.items()) if block else f"{key}: {one_line(each)}\n"
    return text


def put(tree, path, value):
    *blocks, last = path.split(".")
    for name in blocks:
        tree = tree.setdefault(name, {})
        if not isinstance(tree, dict):
            raise ValueError(f"{path}: {name} is no block")
    tree[last] = value


def copied(tree, settings):
    made = parsed(one_line(tree))
    for path, value in settings.items():
        put(made, path, value)
    return made


# ---- tables


class Row:
    def __init__(self, file, columns, cells, line):
        self.cells = {column: cell.strip(" \t") for column, cell in zip(columns, cells) if cell.strip(" \t")}
        self.line = line
        self.id = self.said("id") or f"line {line}"
        self.assumed, self.missing, self.crashes = self.listed("taken"), self.listed("not_expressed"), []
        self.engine, self.numbers, self.ways = "load" in columns, {}, []
        for column in ENGINE if self.engine else STEP:
            self.numbers[column] = self.number(column, self.missing)
        self.figures, self.errors, self.interval = [], [], None
        self.error = self.memory_error = self.chance = None
        self.timed, self.judged, self.bound = False, True, self.said("mem_bound") == "yes"
        self.needed = self.capacity = self.made = self.measured = 0
        self.verdict = "oom" if self.engine else ""
        self.grpo = self.said("family").startswith("grpo ")
        if not self.engine:
            self.read_words()
        self.family = self.said("family") or f"rows of {file}"
        try:
            if not self.missing:
                self.read_load() if self.engine else self.read_scenario(columns)
        except ValueError as error:
            self.missing.append(f"the scenario: {error}")

    def said(self, column):
        return self.cells.get(column, "")

    def listed(self, column):
        return [each for each in self.said(column).split(" | ") if each]

    def number(self, column, unreadable):
        cell = self.said(column)
        if re.fullmatch(r"[0-9]*\.?[0-9]*([eE][+-]?[0-9]+)?", cell) and re.search("[0-9]", cell) and float(cell) < 1e15:
            return float(cell)
        if cell:
            unreadable.append(f'{column}: expected a number, found "{cell}"')
        return None

    def word(self, column):
        said = self.said(column)
        if said not in WORDS[column]:
            known = [each for each in WORDS[column] if each]
            self.missing.append(f'{column}: expected {", ".join(known[:-1])} or {known[-1]}, found "{said}"{meant(said, known)}')
        return said

    def read_words(self):
        self.sync_of, self.outcome = self.word("sync_of"), self.word("outcome")
        self.ran = self.outcome != "oom"
        if self.said("mem_kind").startswith("not compared"):
            self.numbers["mem_GB"] = None
        if self.numbers["mem_GB"] is not None:
            self.kind, self.unit = self.word("mem_kind"), self.word("mem_counted")
        self.model_flops = self.said("flops_per_token") == "model"
        self.flops = 0 if self.model_flops else self.number("flops_per_token", self.missing) or 0

    def read_load(self):
        self.sync_of, self.ran, self.scenario = "", True, ""
        load = parsed(self.said("load"))
        if not load:
            raise ValueError("what was served (load)")
        self.load = load
        self.family = self.said("family") or f"engine {load.get('node', '')}"

    def read_scenario(self, columns):
        run = parsed(self.said("scenario") or "{}")
        for column, cell in sorted(self.cells.items()):
            if "." in column or ("scenario" not in columns and column in ("model", "stack", "recipe", "engine")):
                put(run, column, parsed(cell))
        if not run:
            self.missing.append('a scenario: in a column "scenario", or in columns named by its keys, as cluster.node')
            return
        run.setdefault("strategy", {})
        self.grpo = self.grpo or unquoted(run.get("job", {}).get("method", "")) == "grpo"
        self.stack = unquoted(run.get("stack", ""))
        head = {"name": quoted(self.id), "family": quoted(self.family)}
        lighter = parsed(self.said("lighter") or "{}")
        self.ways = [("", {**head, **run})] + [(way, {**head, **copied(run, settings)}) for way, settings in lighter.items()]
        self.run, self.scenario = run, yaml(self.ways[0][1])

    def has_figure(self):
        return bool(self.engine or self.said("outcome")) or any(each is not None for each in self.numbers.values())


def tables_in(places):
    for place in places:
        inside = sorted(pathlib.Path(place).glob("*.csv")) if os.path.isdir(place) else [place]
        if not inside:
            fail(f"{place}: holds no table (*.csv)")
        yield from map(str, inside)


def read_table(file):
    """Returns the columns and, with their lines, the rows."""
    csv.field_size_limit(1 << 25)
    try:
        with open(file, newline="", encoding="utf-8-sig", errors="replace") as text:
            reader, lines, begin = csv.reader(text), [], 1
            for cells in reader:
                if any(cells):
                    lines.append((begin, cells))
                begin = reader.line_num + 1
    except OSError as error:
        fail(f"{file}: cannot be read: {error.strerror}")
    except csv.Error as error:
        fail(f"{file}: {error}")
    if not lines:
        fail(f"{file}: is empty: expected a line with the names of columns")
    (_, columns), rows = lines[0], lines[1:]
    for line, cells in rows:
        if len(cells) != len(columns):
            fail(f"{file}:{line}: expected {len(columns)} cells, found {len(cells)}")
    return columns, rows


def read_rows(files):
    rows, places = [], {}
    for file in files:
        columns, lines = read_table(file)
        if "id" not in columns:
            fail(f'{file}:1: id: the column is missing{meant("id", columns)}')
        known = ("id", "family", "load", "taken", "not_expressed", *ENGINE) if "load" in columns else STEP_TEXTS + STEP
        for name in known:
            for column in columns:
                if len(name) >= 4 and column.startswith(name) and name not in columns:
                    note(f'{file}:1: {column}: is not read (did you mean "{name}"?)')
        own = [Row(file, columns, cells, line) for line, cells in lines]
        for row in own:
            if row.said("id") and places.setdefault(row.id, f"{file}:{row.line}") != f"{file}:{row.line}":
                fail(f'{file}:{row.line}: id: "{row.id}" is at {places[row.id]} already')
        without = [row for row in own if not row.has_figure()]
        if without:
            note(f'{file}:{without[0].line}: "{without[0].id}" has no measured figure; {len(without)} of {len(own)} rows have none')
        rows += own
    return sorted(rows, key=lambda row: 2 if row.engine else row.grpo)  # steps, GRPO's, engines


# ---- what the program says


def stated_releases(text, programs):
    """Returns the releases that a source states in words: "trl 0.13, peft 0.13.2 (beside the table)"."""
    words = [word.lower() for word in re.split("[ ,;()@]+", text) if word]
    pairs = [(name, word) for name, word in zip(words, words[1:]) if name in programs and re.fullmatch(r"\d+(\.\w+)+", word)]
    return dict(reversed(pairs))


def lay_columns(program, rows):
    """Lays what other columns say under the scenarios: releases of programs, and adapters that peft keeps in 32 bits and nobody casts."""
    told = [row for row in rows if row.ways and row.said("framework_version")]
    programs = {each["name"] for each in program.told([program.path, *program.data, "list", "releases", "--json"])["releases"]} if told else ()
    for row in told:
        releases = stated_releases(row.said("framework_version"), programs)
        peft = [int(each) for each in releases.get("peft", "0").split(".")[:2] if each.isdigit()]
        for _, tree in row.ways:
            for name, release in releases.items():
                tree.setdefault("releases", {}).setdefault(name, quoted(release))
            lora = tree["strategy"].get("lora")
            if isinstance(lora, dict) and "rank" in lora and peft >= [0, 12] and "no autocast" in row.said("precision"):
                lora.setdefault("adapters", "fp32")
        row.scenario = yaml(row.ways[0][1])


class Refused(Exception):
    pass


class Died(Exception):
    pass


class Program:
    def __init__(self, arguments, folder):
        self.path = os.environ.get("STEPSIM") or shutil.which("stepsim") or fail("no program stepsim in the PATH, and no $STEPSIM")
        self.parts = os.environ.get("STEPSIM_PARTS") or pathlib.Path(self.path).resolve().with_name("row_parts")
        self.data = [word for place in arguments.data for word in ("--data", place)]
        self.samples, self.folder = arguments.samples, folder
        self.anchor = ["--anchor", flat_anchor(folder, self.samples)] if arguments.anchored else ["--no-anchor"]

    def told(self, words, place="", row=None):
        done = subprocess.run(list(map(str, words)), capture_output=True, text=True, errors="replace", check=False)
        if done.returncode < 0 or done.returncode == 3:
            by = f" (signal {-done.returncode}: {signal.strsignal(-done.returncode)})" if done.returncode < 0 else ""
            raise Died(f"it ended without an answer{by}" if by else done.stderr.strip().removeprefix("stepsim: "))
        if not done.stdout.startswith(("{", "[")):
            raise Refused(done.stderr.strip().removeprefix("stepsim: ").replace(place or "\0", row.id if row else ""))
        return json.loads(done.stdout)

    def ask(self, row, text, number, kind="run"):
        place = f"{self.folder}/{number}.yaml"
        pathlib.Path(place).write_text(text, encoding="utf-8")
        if kind != "run":
            if not os.path.exists(self.parts):
                raise Refused(f"{self.parts}, which the tests bring: engines and syncs by themselves are theirs")
            return self.told([self.parts, *self.data, kind, place, self.samples], place, row)
        words = [self.path, *self.data, "run", place, "--json", "--engine", "own", "--samples", self.samples, "--movers", 0]
        return self.told(words + self.anchor, place, row)

    def answer(self, row, number):
        """Asks for the first of the row's ways that fits; where none does, or it failed as it was, for the run as it stands."""
        if row.engine:
            return 0, self.ask(row, yaml(row.load), number, "engine")
        if row.sync_of:
            return 0, self.ask(row, row.scenario, number, "sync")
        asked = []
        for _, tree in row.ways if row.ran else row.ways[:1]:
            asked.append(self.ask(row, yaml(tree), number))
            if asked[-1]["verdict"] != "oom":
                break
        way = len(asked) - 1 if asked[-1]["verdict"] != "oom" else 0
        told = asked[way]
        if row.grpo and "phase_wait_s" not in told:
            raise Refused("job.method: expected grpo")
        if row.grpo and row.numbers["mfu_pct"]:
            told["utilisation"] = self.ask(row, row.scenario, number, "update")
        return way, told


def flat_anchor(folder, samples):
    """Writes an anchor whose draws all count alike: as before anything was measured, but for a site's constants, which vary widely."""
    place = f"{folder}/flat.anchor.yaml"
    each = "".join(f"    - {{draw: {i}, weight: {1 / samples:.12f}, time: 1}}\n" for i in range(samples))
    pathlib.Path(place).write_text(
        f"anchor: none\nsaid: nothing\nfrom: []\nspeaks_of: {{}}\nmoved: []\ndraws:\n  seed: 1\n  of: {samples}\n  effective: {samples}\n"
        f"  runs: 0\n  shared: 0\n  centre: 0\n  time: 1\n  another_run: 0\n  each:\n{each}")
    return place


def compare_step(row, told):
    rate, gpus, step = told["tokens_per_second_per_gpu"], told["gpus"], told["step_time_s"]
    of_model = told["model_flops_matrices"] + told["model_flops_attention"]  # of a GPU and step
    flops = of_model / (rate * step) if row.model_flops else row.flops
    share_of_peak = told["model_flops_utilisation"] / of_model if of_model else 0.0  # that a FLOP in a step is
    seen = row.numbers
    ways = {"step_s": step, "tok_s_gpu": rate, "tok_s_total": rate * gpus, "tflops_gpu": flops * rate / 1e12,
            "mfu_pct": 100 * flops * rate * step * share_of_peak}
    add_figures(row, ways)
    log = told["memory_log"]
    if seen["mem_GB"]:
        row.counts = row.kind or log["counts"]
        held = {"allocated": log["allocated_bytes"], "reserved": told["reserved_bytes"],
                "device": told["shown_by_device_bytes"], "unsaid": told["peak_memory_bytes"]}[row.counts]
        unit = 2**30 if row.unit == "GiB" or (row.unit == "log" and log["binary"]) else 1e9
        row.figures.append(("mem_GB", seen["mem_GB"], held / unit))
        row.memory_error = held / unit / seen["mem_GB"] - 1
        if row.bound:
            row.memory_error = max(0.0, row.memory_error)
    row.needed, row.capacity = told["peak_memory_bytes"], told["capacity_bytes"]
    row.chance = told["chance"] if row.capacity > 0 else None
    # Time of a step by whatever the source prints.
    for column in ("step_s", "tok_s_gpu", "tok_s_total", "tflops_gpu", "mfu_pct"):
        if seen[column] is not None and (column in ("step_s", "tok_s_gpu", "tok_s_total") or ways[column] > 0):
            measured = seen[column] if column == "step_s" else ways[column] * step / seen[column] if seen[column] else 0
            break
    else:
        return
    if measured <= 0:
        return
    row.timed, row.error = True, step / measured - 1
    row.made, row.measured = rate, rate * step / measured
    row.errors = [each / measured - 1 for each in told["drawn_s"]]


def compare_grpo(row, told):
    if row.sync_of:
        part = "send" if row.sync_of == "engines" else "gather"
        syncs = [each[part] - (each["written"] if row.sync_of == "learners without saving" else 0) for each in told]
        add_figures(row, {"sync_s": syncs[0]})
        row.judged, row.timed, row.verdict = False, True, "fits"  # of memory nothing is asked
        row.error, *row.errors = [each / row.numbers["sync_s"] - 1 for each in syncs]
        return
    if told["step_time_s"] is None:
        raise Refused(told["reason"] or "nothing could be predicted")
    rate = told["trained_tokens_per_second"] / told["gpus"]
    utilisation = told.get("utilisation", [0])
    add_figures(row, {"step_s": told["step_time_s"], "tok_s_gpu": rate, "gen_s": told["phase_wait_s"], "train_s": told["training_time_s"],
                      "mfu_pct": 100 * utilisation[0], "sync_s": told["sync_time_s"]})
    row.needed, row.capacity = told["learner_peak_bytes"], told["memory"]["learner"]["capacity_bytes"]
    if seen := row.numbers["mem_GB"]:
        row.figures.append(("mem_GB", seen, row.needed / 1e9))
        row.memory_error, row.counts = row.needed / 1e9 / seen - 1, "unsaid"
    ways = (("step_s", [told["step_time_s"], *told["drawn_s"]]), ("tok_s_gpu", [rate, *told["drawn_tokens_per_second_per_gpu"]]),
            ("mfu_pct", [100 * each for each in utilisation]))
    for column, each_now in ways:
        if seen := row.numbers[column]:
            row.timed = True
            row.error, *row.errors = [(now / seen if column == "step_s" else seen / now) - 1 for now in each_now]
            return
    if seen := row.numbers["gen_s"]:  # alone: whatever the learner beside it needs
        row.timed, row.judged, row.error = True, False, told["phase_wait_s"] / seen - 1


def compare_engine(row, told):
    def figures(s):
        return {"output_tok_s": s["generated"] / s["seconds"], "total_tok_s": (s["prompted"] + s["generated"]) / s["seconds"],
                "request_s": s["requests"] / s["seconds"], "duration_s": s["seconds"] if row.numbers["num_prompts"] else 0,
                "mean_ttft_ms": 1e3 * s["first_token"], "mean_tpot_ms": 1e3 * s["per_token"], "latency_s": s["latency"]}
    add_figures(row, figures(told[0]))
    row.verdict = "fits"
    if not row.figures:
        return
    # The first figure that a row prints says how long it took: rates come before times of single requests.
    metric, seen, _ = row.figures[0]
    rate = metric.endswith("_tok_s") or metric == "request_s"
    row.timed = True
    row.error, *row.errors = [(seen / figures(each)[metric] if rate else figures(each)[metric] / seen) - 1 for each in told]


def add_figures(row, predicted):
    row.figures += [(metric, row.numbers[metric], now) for metric, now in predicted.items() if row.numbers[metric] and now > 0]


def predict(program, row, number):
    if row.missing:
        return
    try:
        way, told = program.answer(row, number)
        row.verdict = told["verdict"] if isinstance(told, dict) else ""
        (compare_engine if row.engine else compare_grpo if row.grpo else compare_step)(row, told)
    except Refused as error:
        row.missing.append(str(error))
        return
    except Died as error:
        row.missing.append(str(error))
        row.crashes.append(str(error))
        return
    if way > 0:
        row.judged, row.scenario = False, yaml(row.ways[way][1])
        row.assumed.append(f'checkpointing "{row.ways[way][0]}": the least that fits')
    if program.samples and row.timed:
        errors = [row.error, *row.errors]
        row.interval = [quantile(errors, 0.1), quantile(errors, 0.9)]


def predict_all(program, rows):
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for done in [pool.submit(predict, program, row, number) for number, row in enumerate(rows)]:
            done.result()


# ---- errors by family, by what memory counts, by chance, along series, and of orders


def spread(errors):
    """Returns how many there are, median and 90 % of their sizes, and their mean."""
    sizes = [abs(each) for each in errors]
    return {"rows": len(errors), "median_abs_error": quantile(sizes, 0.5), "p90_abs_error": quantile(sizes, 0.9), "signed_mean": mean(errors)}


def worst_of(rows, error):
    worst = max(reversed(rows), key=lambda row: abs(error(row)), default=None)
    return {"worst": worst.id if worst else "", "worst_error": error(worst) if worst else 0.0}


def right(row):
    return row.ran == (row.verdict != "oom")


def family_of(name, rows):
    timed = [row for row in rows if row.timed]
    sized = [row for row in rows if row.memory_error is not None and not row.bound]
    drawn = [row for row in timed if row.interval]
    return {"name": name, **spread([row.error for row in timed]), **worst_of(timed, lambda row: row.error),
            "memory_rows": len(sized), "memory_median_abs_error": quantile([abs(row.memory_error) for row in sized], 0.5),
            "verdicts": sum(row.judged for row in rows), "verdicts_right": sum(row.judged and right(row) for row in rows),
            "intervals": len(drawn), "inside_interval": sum(row.interval[0] <= 0 <= row.interval[1] for row in drawn),
            "interval_width": quantile([(row.interval[1] - row.interval[0]) / (1 + row.error) for row in drawn], 0.5)}


def grouped(rows, key):
    groups = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return dict(sorted(groups.items()))


def families_of(rows):
    families = grouped([row for row in rows if not row.missing], lambda row: row.family)
    return [family_of(name, members) for name, members in [*families.items(), ("all", [row for row in rows if not row.missing])]]


def memory_errors(rows):
    sized = [row for row in rows if not row.missing and row.memory_error is not None]
    kinds = grouped(sized, lambda row: "at most" if row.bound else row.counts)
    return [{"counts": kind, **spread([row.memory_error for row in kinds[kind]]), **worst_of(kinds[kind], lambda row: row.memory_error)}
            for kind in ("allocated", "reserved", "device", "unsaid", "at most") if kind in kinds]


def chances_of(rows):
    judged = [row for row in rows if not row.missing and row.judged and row.chance is not None]
    tenths = grouped(judged, lambda row: min(9, int(10 * row.chance)))
    return [{"from": tenth / 10, "rows": len(own), "chance": mean([row.chance for row in own]), "fitted": sum(row.ran for row in own),
             "share": sum(row.ran for row in own) / len(own)} for tenth, own in tenths.items()]


def plain_number(row, column):
    return row.number(column, []) or 0.0


AXES = {"GPUs": "gpus", "sequence": "seq_len", "model": "params_total_B", "micro-batch": "micro_batch", "checkpointing": "act_ckpt"}


def series_of(rows):
    """Compares rows that differ along one axis alone (and, but for the micro-batch itself, in how the batch is cut) with their neighbours."""
    found = []
    for axis, column in AXES.items():
        fixed = ["source", "hardware", "framework", "precision", "compile", "task", "offload"]
        fixed += [] if axis == "GPUs" else ["gpus"]
        fixed += [] if axis == "sequence" else ["seq_len"]
        fixed += [] if axis == "model" else ["model", "layers"]
        fixed.append("micro_batch" if axis == "checkpointing" else "act_ckpt")
        value = lambda row: (1 if row.said(column) == "none" else 2) if axis == "checkpointing" else plain_number(row, column)
        errors = []
        for own in grouped([row for row in rows if value(row) > 0], lambda row: (max(1.0, plain_number(row, "tp")), *map(row.said, fixed))).values():
            firsts = {}
            for row in own:
                firsts.setdefault(value(row), row)
            line = [firsts[each] for each in sorted(firsts)]
            errors += [abs(b.made / a.made / (b.measured / a.measured) - 1) for a, b in zip(line, line[1:])]
        found.append({"along": axis, "steps": len(errors), "median_abs_error": quantile(errors, 0.5), "p90_abs_error": quantile(errors, 0.9)})
    return found


TELLABLE = 0.05  # measured times closer than that count as equal


def group_key(row):
    state = re.search("this row is [^;]*", row.said("notes"))
    columns = "source hardware framework model layers hidden heads seq_len gpus global_batch_seqs precision task".split()
    return (state[0] if state else "", *map(row.said, columns))


def order_of(rows):
    """Says whether layouts of one model, batch and machine are in the order in which they were measured; one that was measured more than
    once has the mean of its rows."""
    groups = []
    for own in grouped([row for row in rows if plain_number(row, "global_batch_seqs") > 0], group_key).values():
        alike = {}
        for row in own:
            alike.setdefault(row.scenario[row.scenario.find("\nmodel:"):], []).append(row)
        layouts = [(same[0].id, same[0].made, mean([row.measured for row in same])) for same in alike.values()]
        if len(layouts) < 2:
            continue
        pairs = [(a, b) for i, a in enumerate(layouts) for b in layouts[i + 1:] if max(a[2], b[2]) > min(a[2], b[2]) * (1 + TELLABLE)]
        best, picked = max(layouts, key=lambda each: each[2]), max(layouts, key=lambda each: each[1])
        groups.append({"model": own[0].said("model"), "gpus": plain_number(own[0], "gpus"), "batch": plain_number(own[0], "global_batch_seqs"),
                       "rows": len(own), "pairs": len(pairs), "pairs_right": sum((a[2] > b[2]) == (a[1] > b[1]) for a, b in pairs),
                       "picked": picked[0], "best": best[0], "lost": best[2] / picked[2] - 1})
    return {"pairs": sum(group["pairs"] for group in groups), "pairs_right": sum(group["pairs_right"] for group in groups),
            "worst_lost": max((group["lost"] for group in groups), default=0.0), "groups": groups}


# ---- rows anchored on one another: how far off is a source once one of its runs was measured?

SHARED, SINGLE = 0.06, 0.06  # of the logarithm: errors that runs of a site share, and each run's own (analysis/studies/anchor/posterior.hpp)
MEASURED = 0.01


def weighted_quantile(pairs, share):
    for value, weight in sorted(pairs):
        share -= weight
        if share < 0:
            return value
    return max(pairs)[0]


def anchored_ratio(on, row):
    """Returns the middle and the likely range of the logarithm of the row's error, once `on` was measured."""
    def centred(each):
        logs = [math.log1p(error) for error in each.errors]
        return [log + math.log1p(each.error) - mean(logs) for log in logs]
    own = SINGLE**2 + MEASURED**2
    carried = SHARED**2 / (SHARED**2 + own)
    another, before = math.sqrt(SHARED**2 * (1 - carried) + SINGLE**2), math.sqrt(SHARED**2 + own)
    seen, asked = centred(on), centred(row)
    weights = [(1 + (each / before) ** 2 / 3) ** -2 for each in seen]
    pairs = [(a - carried * s + away * another, weight / sum(weights) / 6) for a, s, weight in zip(asked, seen, weights)
             for away in (-1.28, -0.67, -0.25, 0.25, 0.67, 1.28)]
    return [weighted_quantile(pairs, share) for share in (0.5, 0.1, 0.9)]


def anchored_families(rows, samples):
    key = lambda row: f"{row.family} | {row.said('source')} | {row.said('hardware') or row.said('gpu')} | {row.said('framework')}"
    whole = [row for row in rows if not row.missing and not row.engine and not row.grpo and row.timed and len(row.errors) == samples]
    families, everything = [], collections.defaultdict(list)
    for name, own in grouped(whole, key).items():
        if len(own) < 4:
            continue
        found = collections.defaultdict(list)
        for row in own:
            low, high = map(math.log1p, row.interval)
            found["before"].append(abs(row.error))
            found["held"].append(low <= 0 <= high)
            for on in own:
                if on is row:
                    continue
                middle, least, most = anchored_ratio(on, row)
                found["after"].append(abs(math.expm1(middle)))
                found["anchored_held"].append(least <= 0 <= most)
                found["widths"].append((most - least) / max(high - low, 1e-9))
        families.append((name, found))
        for part, values in found.items():
            everything[part] += values
    return [{"name": name, "rows": len(f["before"]), "median_abs_error": quantile(f["before"], 0.5),
             "anchored_median_abs_error": quantile(f["after"], 0.5), "p90_abs_error": quantile(f["before"], 0.9),
             "anchored_p90_abs_error": quantile(f["after"], 0.9), "held": mean(f["held"]), "anchored_held": mean(f["anchored_held"]),
             "width": quantile(f["widths"], 0.5)} for name, f in [*families, ("all", everything)]]


# ---- errors that were recorded

NOTICED = 0.1  # percent points: below it compilers differ
RECORDED = (("rows", "rows with a time", "rows", False, True), ("median", "the median error of the step time", "median_abs_error", True, False),
            ("ninth_of_ten", "the error of nine rows in ten", "p90_abs_error", True, False),
            ("memory_rows", "rows with a memory", "memory_rows", False, True),
            ("memory_median", "the median error of the memory", "memory_median_abs_error", True, False),
            ("outcomes", "rows whose outcome is known", "verdicts", False, True),
            ("outcomes_right", "outcomes that are right", "verdicts_right", False, True))


def recorded_value(family, key, share):
    return 100 * family[key] if share else family[key]


def record(families):
    lines = [",".join(["family", *(each[0] for each in RECORDED)])]
    for family in families[:-1]:
        lines.append(",".join([family["name"], *(f"{recorded_value(family, key, share):.{2 if share else 0}f}" for _, _, key, share, _ in RECORDED)]))
    return "\n".join(lines) + "\n"


def read_recorded(file):
    columns, rows = read_table(file)
    for name in ("family", *(each[0] for each in RECORDED)):
        if name not in columns:
            fail(f"{file}:1: {name}: the column is missing{meant(name, columns)}")
    recorded = {}
    for line, cells in rows:
        row = dict(zip(columns, cells))
        for name, *_ in RECORDED:
            try:
                row[name] = float(row[name] or 0)
            except ValueError:
                fail(f'{file}:{line}: {name}: expected a number, found "{row[name]}"')
        recorded[row["family"]] = row
    return recorded


def changes_since(recorded, families):
    """Returns family, what, before, now, and whether that is worse."""
    changes = []
    for family in families[:-1]:
        before = recorded.get(family["name"])
        if before is None:
            changes.append((family["name"], "the family", "not there", f"{max(family['rows'], family['verdicts'])} rows", False))
            continue
        for column, what, key, share, less_is_worse in RECORDED:
            was, now = before[column], recorded_value(family, key, share)
            if abs(now - was) > NOTICED:
                text = (lambda each: f"{each:.1f} %") if share else (lambda each: f"{each:.0f}")
                changes.append((family["name"], what, text(was), text(now), (now < was) == less_is_worse))
    gone = sorted(recorded.keys() - {family["name"] for family in families[:-1]})
    return changes + [(name, "the family", "there", "gone", True) for name in gone]


# ---- what is printed


def shown(text):
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)


def note(text):
    print(f"note: {shown(text)}"[:1000], file=sys.stderr)


def percent(share):
    return f"{100 * share if abs(share) >= 0.0005 else 0:.1f} %"


def signed(share):
    return ("+" if share >= 0.0005 else "") + percent(share)


def table(heads, rows):
    """Writes nothing for no rows. Columns whose heads begin with a blank stand to the right."""
    if not rows:
        return ""
    cells = [[head.removeprefix(" ") for head in heads], *[[shown(str(cell)).replace("\n", " ") for cell in row] for row in rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(heads))]
    cells.insert(1, ["-" * width for width in widths])
    return "\n".join("  ".join(c.rjust(w) if h[:1] == " " else c.ljust(w) for c, w, h in zip(row, widths, heads)).rstrip() for row in cells) + "\n"


def listing(items, *columns):
    """A table of what has these keys: (head, key, how it is written)."""
    return table([head for head, _, _ in columns], [[write(item[key]) for _, key, write in columns] for item in items])


SPREAD = ((" rows", "rows", str), (" median |error|", "median_abs_error", percent), (" 90 %", "p90_abs_error", percent))
SIGNED = ((" signed mean", "signed_mean", signed), (" worst", "worst_error", signed), ("", "worst", str))


def family_table(families, intervals):
    heads = ["family", *(head for head, _, _ in SPREAD + SIGNED), " memory rows", " median |error|", " fits right"]
    lines = []
    for f in families:
        cells = [write(f[key]) if f["rows"] or key in ("rows", "worst") else "-" for _, key, write in SPREAD + SIGNED]
        sized = [str(f["memory_rows"]), percent(f["memory_median_abs_error"])] if f["memory_rows"] else ["-", "-"]
        lines.append([f["name"], *cells, *sized, f"{f['verdicts_right']} of {f['verdicts']}"])
        if intervals:
            lines[-1] += [f"{f['inside_interval']} of {f['intervals']}", percent(f["interval_width"])]
    return table(heads + ([" inside 80 %", " median width"] if intervals else []), lines)


def chance_text(share):
    if share < 0.1 or share > 0.9:
        return f"{100 * min(max(share, 0.01), 0.99):.0f} of 100"
    return f"{10 * min(max(share, 0.1), 0.9):.0f} of 10"


def questions(rows):
    asked = sorted((row for row in rows if not row.missing and row.said("asked")), key=right)
    lines = [(row.said("asked"), row.said("known"), row.verdict, "-" if row.chance is None else chance_text(row.chance),
              "right" if right(row) else "wrong") for row in asked]
    return [table(("asked", "known", "answered", " fits in", ""), lines),
            f"{sum(map(right, asked))} of {len(asked)} questions are answered right\n"] if asked else []


def order_text(order):
    groups = [group for group in order["groups"] if group["pairs"]]
    short = "{:g}".format
    told = listing(groups, ("layouts of one model and batch", "model", str), (" GPUs", "gpus", short), (" sequences", "batch", short),
                   (" rows", "rows", str), (" pairs 5 % apart", "pairs", str), (" in the right order", "pairs_right", str),
                   ("fastest as predicted", "picked", str), ("as measured", "best", str), (" slower than that", "lost", percent))
    return [told, f"{order['pairs_right']} of {order['pairs']} pairs are in the right order; the layout picked is at most "
                  f"{percent(order['worst_lost'])} slower than the best of its group\n"] if groups else []


def text_of(rows, found, samples):
    predicted = [row for row in rows if not row.missing]
    figures = [(row.family, row.id, metric, f"{seen:.4g}", f"{now:.4g}", signed(now / seen - 1))
               for row in predicted for metric, seen, now in row.figures]
    taken = collections.Counter(each for row in predicted for each in row.assumed)
    first = {each: row.id for row in reversed(predicted) for each in row.assumed}
    parts = [
        table(("family", "row", "metric", " measured", " predicted", " error"), figures),
        table(("not predicted", "what is missing"), [(row.id, "; ".join(row.missing)) for row in rows if row.missing and not row.crashes]),
        table(("no answer", "why"), [(row.id, row.crashes[0]) for row in rows if row.crashes]),
        table(("assumed", " rows", "first row"), [(what, count, first[what]) for what, count in taken.most_common()]),
        family_table(found["families"], samples),
        listing(found["memory"], ("memory that counts", "counts", str), *SPREAD, *SIGNED),
        listing([each for each in found["series"] if each["steps"]], ("from one row to the next along", "along", str),
                (" steps", "steps", str), *SPREAD[1:]),
        *order_text(found["order"]),
        listing(found["chances"], (" chance from", "from", percent), (" rows", "rows", str), (" mean chance", "chance", percent),
                (" ran", "fitted", str), (" share", "share", percent)),
        *questions(rows)]
    if predicted:
        parts.append(f"{len(predicted)} of {len(rows)} rows are predicted; errors are those of the time of a step or of a served load, "
                     "negative when it is predicted too short\n")
    else:
        parts.append(f"0 of {len(rows)} rows are predicted: nothing was compared\n")
    return "\n".join(part for part in parts if part)


def json_of(rows, found):
    predicted = [row for row in rows if not row.missing]
    lines = []
    for row in predicted:
        for metric, seen, now in row.figures:
            interval = [seen * (1 + end) for end in row.interval] if row.interval and metric == "step_s" else None
            lines.append({"id": row.id, "family": row.family, "metric": metric, "predicted": now, "measured": seen, "error": now / seen - 1,
                          "interval": interval})
        lines.append({"id": row.id, "family": row.family, "metric": "verdict", "predicted": "oom" if row.verdict == "oom" else "fits",
                      "measured": "fits" if row.ran else "oom", "judged": row.judged, "chance": row.chance, "needed_bytes": row.needed,
                      "capacity_bytes": row.capacity, "error": None})
    why = lambda row, key: {"id": row.id, "family": row.family, key: getattr(row, key)}
    return {"rows": lines, "not_predicted": [why(row, "missing") for row in rows if row.missing and not row.crashes],
            "no_answer": [why(row, "crashes") for row in rows if row.crashes],
            "assumed": [{"id": row.id, "assumed": row.assumed} for row in predicted if row.assumed],
            "scenarios": [{"id": row.id, "resolved": row.scenario} for row in predicted if row.scenario],
            "draws": [{"id": row.id, "errors": row.errors} for row in predicted if row.errors], **found}


def export(folder, rows):
    """Writes each row that was predicted as a scenario, under its id as a file may be called everywhere."""
    os.makedirs(folder, exist_ok=True)
    taken = set()
    for row in rows:
        if row.missing or not row.scenario:
            continue
        name = re.sub(r"[^A-Za-z0-9._-]", "-", row.id)
        name = free = "-" + name if name.startswith(".") else name
        number = 2
        while free in taken:
            free, number = f"{name}-{number}", number + 1
        taken.add(free)
        comments = "".join(f"# assumed: {' '.join(each.split())}\n" for each in row.assumed)
        pathlib.Path(folder, free + ".yaml").write_text(comments + row.scenario, encoding="utf-8")
    note(f"{len(taken)} scenarios are in {folder}")


def compare_with(file, recorded, rows, families):
    """Prints what changed, of the kinds of rows that were given. The answer is no where a family got worse."""
    given = {"engine" if row.engine else "grpo" if row.grpo else "step" for row in rows}
    kind = lambda family: next((word for word in ("grpo", "engine") if family.startswith(word + " ")), "step")
    own = {name: row for name, row in recorded.items() if kind(name) in given}
    changes = changes_since(own, families)
    print()
    print(table((f"since {file}", "", " was", " is", ""), [(*each[:4], "worse" if each[4] else "better") for each in changes])
          or f"nothing changed since {file}\n", end="")
    if changes:
        print(f"\nif that is meant: stepsim-rows ... --record {file}")
    if len(own) < len(recorded):
        print(f"families of tables that were not given, not compared: {len(recorded) - len(own)}")
    return 1 if any(each[4] for each in changes) else 0


def print_anchored(rows, arguments):
    families = anchored_families(rows, arguments.samples)
    if arguments.json:
        print(json.dumps({"families": families}))
    else:
        head, median, ninth = SPREAD
        print(listing(families, ("anchored on one row in turn", "name", str), head, median, (" anchored", "anchored_median_abs_error", percent),
                      ninth, (" anchored", "anchored_p90_abs_error", percent), (" in the interval", "held", percent),
                      (" anchored", "anchored_held", percent), (" width of it", "width", "{:.4g}".format)), end="")
    return 0 if families[-1]["rows"] else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="+", metavar="TABLE.csv|FOLDER")
    parser.add_argument("--data", action="append", default=[], help="a catalogue over the installed one; repeats")
    parser.add_argument("--samples", type=int, help="draws of the constants behind intervals (default: none; with --anchored 64)")
    parser.add_argument("--recorded", metavar="TABLE", help="what got worse since this was recorded; the answer is no if anything did")
    parser.add_argument("--record", metavar="TABLE", help="write the errors of the families there")
    parser.add_argument("--export", metavar="DIR", help="write each predicted row there as a scenario")
    parser.add_argument("--anchored", action="store_true", help="each row anchored on each other one of its source, machine and framework, "
                        "as `stepsim anchor` does; errors before and after")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    if arguments.samples is None:
        arguments.samples = 64 if arguments.anchored else 0
    if arguments.json and arguments.recorded:
        fail("--recorded: prints a table; leave out --json")
    recorded = read_recorded(arguments.recorded) if arguments.recorded else None  # first: nothing is predicted in vain
    files = list(tables_in(arguments.tables))
    if arguments.record and any(os.path.exists(arguments.record) and os.path.samefile(arguments.record, file) for file in files):
        fail(f"--record: {arguments.record} is a table that is read")
    rows = read_rows(files)
    if arguments.anchored:
        rows = [row for row in rows if not row.engine and not row.grpo]
    with tempfile.TemporaryDirectory() as folder:
        program = Program(arguments, folder)
        lay_columns(program, rows)
        predict_all(program, rows)
    if arguments.anchored:
        return print_anchored(rows, arguments)
    timed = [row for row in rows if not row.missing and row.made > 0]  # steps: others have no tokens
    found = {"families": families_of(rows), "memory": memory_errors(rows), "chances": chances_of(rows), "series": series_of(timed),
             "order": order_of(timed)}
    print(json.dumps(json_of(rows, found)) if arguments.json else text_of(rows, found, arguments.samples), end="\n" if arguments.json else "")
    if arguments.export:
        export(arguments.export, rows)
    if any(row.crashes for row in rows):  # errors without these rows are none that anybody should keep or compare with
        return 3
    if arguments.record:
        pathlib.Path(arguments.record).write_text(record(found["families"]))
    if all(row.missing for row in rows):
        return 1
    return compare_with(arguments.recorded, recorded, rows, found["families"]) if recorded is not None else 0


if __name__ == "__main__":
    sys.exit(main())
