#!/usr/bin/env python3
"""Fits constants to what was measured, by robust least squares within their bounds.

  fit.py stack PLAN [--samples 16] [--write]         workloads/calibration/PLAN.yaml: what is free, and the tables
  fit.py kernels GPU [TABLE.csv...] [-o ENTRY.yaml]  the curves of a GPU, to tables as `stepsim kernels` reads them
  fit.py network [MACHINE] [FILE...] [-o ENTRY.yaml] what the collective library costs, to files as `stepsim collective --compare`
                                                     reads them; without MACHINE the files say which GPUs they are of

It says how far off each source is as stated, fitted, and fitted without it. Each trial is a catalogue over the installed one, which the
program `stepsim` (or $STEPSIM) reads. With --samples of a stack, the range of `unexplained` is found as well: the narrowest with which
intervals of 80 % hold eight of ten rows. --data DIR names further catalogues, as the program does. Equal input gives equal bytes."""

import argparse
import csv
import difflib
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile


def fail(message):
    sys.exit(f"fit.py: {message}")


# ---- the program, and catalogues over its own


class Program:
    def __init__(self, folders):
        self.path = os.environ.get("STEPSIM") or shutil.which("stepsim") or fail("no program stepsim in the PATH, and no $STEPSIM")
        self.folders = folders
        told = subprocess.run([self.path, "--help"], capture_output=True, text=True, check=True).stdout
        self.installed = re.search("^the installed catalogue: (.*)$", told, re.M)[1]

    def ask(self, *words, over=None):
        """Asks the program; `rows` is asked of the one beside this."""
        front = [word for folder in self.folders + ([over] if over else []) for word in ("--data", folder)]
        whole, here = [self.path, *front, *words], pathlib.Path(__file__).resolve()
        if words[0] == "rows":
            beside = here.with_name("rows.py" if here.suffix else "stepsim-rows")
            whole = [sys.executable, "-B", beside, *front, *words[1:]]
        done = subprocess.run([*whole, "--json"], capture_output=True, text=True, env={**os.environ, "STEPSIM": self.path}, check=False)
        if not done.stdout.startswith("{") or done.returncode == 3:
            sys.exit(done.stderr or f"fit.py: {' '.join(words)} ended with {done.returncode}")
        return json.loads(done.stdout)

    def file(self, place):
        """Returns the uppermost file at this place of the catalogues."""
        for folder in [*reversed(self.folders), self.installed]:
            if (path := pathlib.Path(folder) / place).exists():
                return path
        return None

    def constants(self, name):
        return {each["name"]: each for each in self.ask("show", name)["constants"]}


def entry_lines(values, texts, head=()):
    """Writes constants such as a.b.c as an entry does; protocols are a list of entries with names, all else is mappings."""
    lines, open_keys = [], []
    for name, text in zip(values, texts):
        *path, last = name.split(".")
        same = 0
        while same < min(len(open_keys), len(path)) and open_keys[same] == path[same]:
            same += 1
        for depth in range(same, len(path)):
            listed = depth > 0 and path[depth - 1] == "protocols"
            lines.append(" " * 2 * depth + (f"- name: {path[depth]}" if listed else f"{path[depth]}:"))
        open_keys = path
        lines.append(" " * 2 * len(path) + f"{last}: {text}")
    return "\n".join([*head, *lines]) + "\n"


def figure(value, unit, digits=3):
    return f"{value:.{digits}g} {unit}".strip()


def ranged(value, low, high, unit, source, digits=3):
    low, value, high = (figure(each, unit, digits) for each in (low, value, high))
    return f'{{value: {value}, low: {low}, high: {high}, grade: fitted, source: "{source}"}}'


class Trial:
    """A catalogue in which some constants of entries are others. `shelves`: prefixes of names, and the file of each."""

    def __init__(self, program, shelves):
        self.program, self.shelves = program, shelves
        self.folder = tempfile.TemporaryDirectory()

    def ask(self, values, units, *words):
        for prefix, place in self.shelves:
            own = {name[len(prefix):]: value for name, value in values.items() if name.startswith(prefix)}
            texts = [ranged(value, value, value, units[prefix + name], "a trial", 12) for name, value in own.items()]
            path = pathlib.Path(self.folder.name) / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(entry_lines(own, texts, (f"name: {path.stem}", "title: a trial", f"like: {path.stem}")))
        return self.program.ask(*words, over=self.folder.name)


# ---- robust least squares


class Fit:
    """The least sum over rows of weight x loss(residual + slopes * x), plus (x / prior)^2 for each unknown; the loss is half a square up to
    `turn` and grows in proportion beyond. x stays within its bounds."""

    def __init__(self, rows, bounds, turn=0.1, prior=1.0):
        self.rows, self.bounds, self.turn, self.prior = rows, bounds, turn, prior  # rows: residual, weight, slopes

    def without(self, left_out):
        rows = [(r, 0 if left_out(i) else w, s) for i, (r, w, s) in enumerate(self.rows)]
        return Fit(rows, self.bounds, self.turn, self.prior)

    def solve(self):
        """Weighs rows anew by how far off they are, and solves the squares that this leaves, one unknown after the other."""
        n = range(len(self.bounds))
        x = [min(max(0.0, low), high) for low, high in self.bounds]
        for _ in range(200):
            matrix = [[(self.turn / self.prior) ** 2 * (i == j) for j in n] for i in n]
            side = [0.0 for _ in n]
            for residual, weight, slopes in self.rows:
                size = abs(residual + sum(s * each for s, each in zip(slopes, x)))
                weight *= 1 if size <= self.turn else self.turn / size
                for i in n:
                    side[i] -= weight * slopes[i] * residual
                    for j in n:
                        matrix[i][j] += weight * slopes[i] * slopes[j]
            before = list(x)
            for _ in range(500):
                moved = 0.0
                for i in n:
                    best = (side[i] - sum(matrix[i][j] * x[j] for j in n if j != i)) / matrix[i][i]
                    best = min(max(best, self.bounds[i][0]), self.bounds[i][1])
                    moved, x[i] = max(moved, abs(best - x[i])), best
                if moved < 1e-10:
                    break
            if max((abs(a - b) for a, b in zip(x, before)), default=0) < 1e-8:
                break
        return x


def quantile(values, of):
    values = sorted(values)
    if not values:
        return 0.0
    place = of * (len(values) - 1)
    low = int(place)
    return values[low] + (values[min(low + 1, len(values) - 1)] - values[low]) * (place - low)


def median_size(errors):
    return quantile([abs(each) for each in errors], 0.5)


def linearised(values, limits, nudge, errors_at, weights, turn, prior, cap=None):
    """Returns the fit around `values`, whose unknowns are the logarithms of what they are multiplied by."""
    here = errors_at(values)
    slopes, bounds = [], []
    for name, value in values.items():
        low, high = limits[name]
        high = min(high, (cap or {}).get(name, high))
        step = -nudge if value * math.exp(nudge) > high else nudge
        there = errors_at({**values, name: value * math.exp(step)})
        slopes.append([(math.log1p(b) - math.log1p(a)) / step for a, b in zip(here, there)])
        bounds.append((math.log(low / value), math.log(high / value)))
    rows = [(math.log1p(error), weight, list(each)) for error, weight, *each in zip(here, weights, *slopes)]
    return Fit(rows, bounds, turn, prior), here


def moved(values, steps):
    return {name: value * math.exp(step) for (name, value), step in zip(values.items(), steps)}


# ---- what is printed


def percent(share):
    return f"{100 * share:.1f} %"


def shown(value, unit):
    """Writes 1.2e-05 s as 12.0 us."""
    if value == 0 or unit not in ("s", "B/s", "FLOP/s"):
        return figure(value, unit)
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1, ""), (1e-3, "m"), (1e-6, "u"), (1e-9, "n")):
        if abs(value) >= factor:
            return f"{value / factor:.{max(0, 2 - int(math.log10(abs(value) / factor)))}f} {prefix}{unit}"
    return figure(value, unit)


def table(heads, rows):
    """Columns whose heads begin with a blank stand to the right."""
    cells = [[head.strip() for head in heads], *rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(heads))]
    cells.insert(1, ["-" * width for width in widths])
    for row in cells:
        print("  ".join(c.rjust(w) if h[0:1] == " " else c.ljust(w) for c, w, h in zip(row, widths, heads)).rstrip())


def source_table(sources):
    table(("source", " rows", " median as stated", " fitted", " fitted without it"),
          [(s["name"], str(s["rows"]), percent(s["stated"]), percent(s["fitted"]), percent(s["held"]) if s["held"] else "-") for s in sources])


def write_entry(path, subject, like, place, sources, constants):
    """Writes an entry of the catalogue that says only what was found. `constants`: name, value, low, high, unit."""
    name = pathlib.Path(path).stem
    head = [f"# Written by `measure/fit.py {subject}`."]
    head += [f"# {s['name']}: {s['rows']} rows, median error {percent(s['stated'])} as {like} has it, {percent(s['fitted'])} fitted." for s in sources]
    head += [f"name: {name}", f"title: {like} as it was measured", f"like: {like}"]
    source = ", ".join(dict.fromkeys(s["name"] for s in sources))
    texts = [ranged(value, low, high, unit, source, 4) for _, value, low, high, unit in constants]
    pathlib.Path(path).write_text(entry_lines([each[0] for each in constants], texts, head))
    print(f"{path} is like {like}: use it as DIR/{place}/{name}.yaml with `--data DIR`, or in ~/.config/stepsim", file=sys.stderr)


# ---- the curves of a GPU

PRODUCTS = {"gemm.rate": (0.7, 1.4), "gemm.fill": (0.15, 2), "gemm.small_tile": (0.75, 1.04)}
GROUPED = {"gemm.grouped.operands": (0.3, 3)}
KERNEL = {"forward": (0.5, 2), "backward": (0.5, 2), "forward_overhead": (0.2, 5), "backward_overhead": (0.2, 5), "wide": (0.5, 2)}
SHARED = {"attention.head_overhead": (0.2, 5), "attention.tail": (0.2, 5)}
CURVES = {
    "matrix products": (PRODUCTS, lambda row: row["kernel"] == "gemm"),
    "grouped products": (GROUPED, lambda row: row["kernel"] == "grouped_gemm"),
    **{name: ({**{f"{name}.{key}": ends for key, ends in KERNEL.items()}, **SHARED}, lambda row: row["kernel"].startswith("attention "))
       for name in ("attention", "attention.later")},
}
ROUNDS = 6


class Curve:
    def __init__(self, trial, stated, tables, free, rows, cap):
        self.trial, self.tables, self.rows = trial, tables, rows
        self.units = {name: each["unit"] for name, each in stated.items()}
        self.start = {name: stated[name]["value"] for name in free}
        self.limits = {name: (low * self.start[name], high * self.start[name]) for name, (low, high) in free.items()}
        self.cap = cap
        self.known = {}

    def errors_at(self, values):
        key = tuple(values.values())
        if key not in self.known:
            told = {row["id"]: row for row in self.trial.ask(values, self.units, "kernels", *self.tables, "--rows")["rows"]}
            self.known[key] = [told[row["id"]]["error"] for row in self.rows]
        return self.known[key]

    def fitted(self, left_out=lambda row: False):
        values = dict(self.start)
        weights = [0 if left_out(i) else 1 for i in range(len(self.rows))]
        for _ in range(ROUNDS):
            fit, _ = linearised(values, self.limits, 0.02, self.errors_at, weights, 0.1, 1, self.cap)
            values = moved(values, fit.solve())
        return values


def sources_of_curve(curve, best):
    names = sorted({row["source"] for row in curve.rows})
    sources, parts = [], []
    for name in names:
        mine = [i for i, row in enumerate(curve.rows) if row["source"] == name]
        error_of = lambda values: median_size([curve.errors_at(values)[i] for i in mine])
        held = 0
        if len(names) > 1:
            parts.append(curve.fitted(lambda i: i in mine))
            held = error_of(parts[-1])
        sources.append({"name": name, "rows": len(mine), "stated": error_of(curve.start), "fitted": error_of(best), "held": held})
    if len(names) == 1:
        parts = [curve.fitted(lambda i, half=half: i % 2 == half) for half in (0, 1)]
    return sources, parts


def tables_or_measured(program, tables):
    return tables or [str(program.file(f"scenarios/measured/{name}.csv")) for name in ("gemm", "attention")]


def rows_with_sources(program, tables):
    sources = {}
    for path in tables:
        with open(path, newline="") as file:
            sources.update({row["id"]: row["source"] for row in csv.DictReader(line for line in file if not line.startswith("#"))})
    return [{**row, "source": sources[row["id"]]} for row in program.ask("kernels", *tables, "--rows")["rows"]]


def fit_kernels(program, arguments):
    gpu, tables = arguments.gpu, tables_or_measured(program, arguments.tables)
    rows = rows_with_sources(program, tables)
    known = sorted({row["gpu"] for row in rows})
    if gpu not in known:
        near = difflib.get_close_matches(gpu, known, 1, 0.3)
        fail(f'no kernel was measured on a GPU "{gpu}"{f" (did you mean {near[0]}?)" if near else ""}; there are those of {", ".join(known)}')
    stated = program.constants(gpu)
    trial = Trial(program, [("", f"topology/gpus/{gpu}.yaml")])
    found, all_sources = {}, []
    for name, (free, holds) in CURVES.items():
        free = {key: ends for key, ends in free.items() if key in stated}
        mine = [row for row in rows if row["gpu"] == gpu and holds(row)]
        if not mine or not free:
            continue
        best_rate = max(row["measured_flops"] for row in mine)
        curve = Curve(trial, stated, tables, free, mine, {"gemm.rate": best_rate} if free is not GROUPED else {})
        if name.startswith("attention"):  # those that this kernel's rates say anything about
            there = curve.errors_at({**curve.start, **{key: 1.1 * curve.start[key] for key in (f"{name}.forward", f"{name}.backward")}})
            mine = [row for row, a, b in zip(mine, curve.errors_at(curve.start), there) if a != b]
            if not mine:
                continue
            best_rate = max(row["measured_flops"] for row in mine)
            curve = Curve(trial, stated, tables, free, mine, {})
        best = curve.fitted()
        sources, parts = sources_of_curve(curve, best)
        ends = {key: (min(value, *(p[key] for p in parts)), max(value, *(p[key] for p in parts))) for key, value in best.items()}
        note = ", no curve may exceed it" if name == "matrix products" else ""
        print(f"{gpu}, {name}: the fastest reaches {best_rate / 1e12:.1f} TFLOP/s{note}\n")
        unit = curve.units
        table(("constant", " stated", " fitted", " between"),
              [(key, shown(curve.start[key], unit[key]), shown(value, unit[key]),
                f"{shown(ends[key][0], unit[key])} and {shown(ends[key][1], unit[key])}") for key, value in best.items()])
        print()
        source_table(sources)
        print()
        all_sources += sources
        for key, value in best.items():
            found.setdefault(key, (key, value, *ends[key], unit[key]))  # kernels of attention share some: those of the first stand
    if arguments.output:
        write_entry(arguments.output, "kernels", gpu, "topology/gpus", all_sources, list(found.values()))


# ---- what the collective library costs


def fact(entry, name):
    return next((each.split(": ", 1)[1] for each in entry["facts"] if each.startswith(name + ": ")), "")


def compared(told):
    return [row for row in told["rows"] if row["compared"]]


def machine_of_files(program, files):
    machines = {row["machine"].split(" x")[0].split(",")[0] for file in files for row in compared(program.ask("collective", "--compare", file))}
    if not machines:
        fail(f"{files[0]}: names no GPU of a machine of the catalogue: say which, `fit.py network MACHINE {files[0]}`")
    if len(machines) > 1:
        fail(f"rows are of {', '.join(sorted(machines))}: fit one machine at a time")
    return machines.pop()


def fit_network(program, arguments):
    files = list(arguments.files)
    wanted = files.pop(0) if not pathlib.Path(files[0]).is_file() else None
    files = files or [str(program.file("scenarios/measured/collectives.csv"))]
    wanted = wanted or machine_of_files(program, files)
    entry = program.ask("show", wanted)
    node = fact(entry, "node") if entry["kind"] == "cluster" else wanted
    network = fact(entry, "network") or fact(entry, "usual network")
    asked = [program.ask("collective", "--compare", file, "--cluster", node) for file in files]
    mine = [row for told in asked for row in compared(told)]
    across = any(" x" in row["machine"] for row in mine) and bool(network)
    ids = {row["id"] for row in mine if " x" not in row["machine"] or (across and row["machine"].endswith(", " + network))}
    if not ids:
        fail(f"no row is about {node}{' over ' + network if network else ''}")
    shelves = [("node.", f"topology/nodes/{node}.yaml")] + ([("network.", f"topology/networks/{network}.yaml")] if across else [])
    stated = {prefix + name: each for prefix, place in shelves for name, each in program.constants(pathlib.Path(place).stem).items()
              if name.startswith("collectives.") and 0 < each["low"] < each["high"]}
    units = {name: each["unit"] for name, each in stated.items()}
    limits = {name: (each["low"], each["high"]) for name, each in stated.items()}
    trial = Trial(program, shelves)
    rows = [row for row in mine if row["id"] in ids]

    def errors_at(values):
        return [row["error"] for file in files for row in compared(trial.ask(values, units, "collective", "--compare", file, "--cluster", node))
                if row["id"] in ids]

    start = {name: each["value"] for name, each in stated.items()}
    values, weights = start, [1] * len(rows)
    fit, before = linearised(values, limits, 0.05, errors_at, weights, 0.1, 1)
    for _ in range(3):
        values = moved(values, fit.solve())
        fit, now = linearised(values, limits, 0.05, errors_at, weights, 0.1, 1)
    sources = []
    for name in dict.fromkeys(row["source"] for row in rows):
        of_it = [i for i, row in enumerate(rows) if row["source"] == name]
        sources.append({"name": name, "rows": len(of_it), "stated": median_size([before[i] for i in of_it]),
                        "fitted": median_size([now[i] for i in of_it]), "held": 0})
    for source in sources if len(sources) > 1 else []:
        of_it = [i for i, row in enumerate(rows) if row["source"] == source["name"]]
        others = errors_at(moved(values, fit.without(lambda i: i in of_it).solve()))
        source["held"] = median_size([others[i] for i in of_it])
    found, lines = [], []
    stray = 1.28 * 1.4826 * quantile([abs(residual) for residual, _, _ in fit.rows], 0.5)  # eight of ten, of a median
    for i, (name, value) in enumerate(values.items()):
        slopes = [row[2][i] for row in fit.rows]
        seen = any(abs(slope) > 0.01 for slope in slopes)
        factor = math.exp(stray / math.sqrt(sum(slope * slope for slope in slopes))) if any(slopes) else 1
        low, high = limits[name]
        at_end = seen and (value <= 1.001 * low or value >= 0.999 * high)
        text = lambda each: shown(each, units[name])
        lines.append((name, text(start[name]), text(low), text(high), text(value) + (" *" if at_end else "") if seen else "no row tells",
                      text(value / factor) if seen else "", text(value * factor) if seen else ""))
        if seen and name.startswith("network." if across else "node."):
            found.append((name.split(".", 1)[1], value, value / factor, value * factor, units[name]))
    print(f"{node}{', over ' + network if across else ''}\n")
    table(("constant", " stated", " from", " to", " fitted", " from", " to"), lines)
    if any(line[4].endswith("*") for line in lines):
        print("* at the end of its stated range: the rows ask for more than this machine's file allows")
    print()
    source_table(sources)
    if arguments.output:
        like, place = (network, "topology/networks") if across else (node, "topology/nodes")
        write_entry(arguments.output, "network", like, place, sources, found)


# ---- what a framework costs


def read_plan(program, name):
    """Reads workloads/calibration/NAME.yaml: flat keys, a list of tables, and what is free in braces."""
    path = program.file(f"workloads/calibration/{name}.yaml")
    known = sorted({each.stem for folder in [*program.folders, program.installed]
                    for each in pathlib.Path(folder, "workloads/calibration").glob("*.yaml")})
    if not path:
        near = difflib.get_close_matches(name, known, 1)
        fail(f'no plan "{name}"{f" (did you mean {near[0]}?)" if near else ""}; there are {", ".join(known)}')
    text = re.sub(r"^\s*#.*\n", "", path.read_text(), flags=re.M)
    words = lambda key: [word.strip() for word in re.sub(r"\n\s+- ", ", ", section(key)).strip("[], \n").split(",") if word.strip()]

    def section(key):
        found = re.search(rf"^{key}:((?:.*\n(?:[ -].*\n)*))", text + "\n", re.M)
        return found[1].strip("\n") if found else ""

    free = {}
    for body in re.findall(r"\{(.*?)\}", section("free")):
        bounds = dict(part.strip().split(": ", 1) for part in body.split(","))
        low, high = (float(bounds[end].split()[0]) for end in ("low", "high"))
        if not 0 < low < high:
            fail(f"{path}: {bounds['name']}: low: expected bounds above zero, the lower one first")
        free[bounds["name"]] = (low * scale_of(bounds["low"]), high * scale_of(bounds["high"]))
    plan = {"stacks": words("stacks") or [name], "source": section("source").strip(' "'), "tables": words("tables"), "free": free,
            "turn": float(section("turn") or 0.1), "prior": float(section("prior") or 0.5)}
    if len(plan["stacks"]) > 1 and free:
        fail(f"{path}: free: is fitted to one stack: expected nothing beside several stacks")
    return plan


def scale_of(quantity):
    """Returns what the prefix of a unit stands for: 1e-6 of "3 us"."""
    unit = (quantity.split() + [""])[1]
    return {"n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}.get(unit[0], 1.0) if len(unit) > 1 and unit != "B/s" else 1.0


class StackRows:
    """The rows of a plan's stacks that have a time."""

    ORDER = ("step_s", "tok_s_gpu", "tok_s_total", "tflops_gpu", "mfu_pct")

    def __init__(self, program, plan, folder):
        self.stacks, self.rows, self.files = plan["stacks"], {}, []
        for number, place in enumerate(plan["tables"]):
            path = str(program.file(place) or fail(f"{place}: is in no catalogue"))
            self.take(program.ask("rows", path))
            lines = [line for line in open(path, newline="") if not line.startswith("#")]
            keep = [row for row in csv.DictReader(lines) if row["id"] in self.rows]
            if keep:
                self.files.append(f"{folder}/{number}.csv")
                with open(self.files[-1], "w", newline="") as file:
                    writer = csv.DictWriter(file, keep[0].keys())
                    writer.writeheader()
                    writer.writerows(keep)
        if not self.rows:
            fail(f"no row is predicted with {', '.join(self.stacks)}")
        runs = {}
        for row in self.rows.values():
            runs[row["run"]] = runs.get(row["run"], 0) + 1
        self.runs = len(runs)
        self.weights = [1 / runs[row["run"]] for row in self.rows.values()]

    def take(self, told):
        """Keeps each row's family, run and error of the time of a step, by whatever its source prints."""
        texts = {each["id"]: each["resolved"] for each in told["scenarios"]}
        for figure_ in told["rows"]:
            text = texts.get(figure_["id"], "")
            stack = re.search(r"^stack: (\S+)", text, re.M)
            if figure_["metric"] not in self.ORDER or not stack or stack[1] not in self.stacks or figure_["id"] in self.rows:
                continue
            error = figure_["error"] if figure_["metric"] == "step_s" else figure_["measured"] / figure_["predicted"] - 1
            run = re.sub(r"^name: .*\n", "", text, flags=re.M)
            self.rows[figure_["id"]] = {"family": figure_["family"], "run": run, "error": error}

    def predict(self, trial, values, units, samples=0):
        told = trial.ask(values, units, "rows", *self.files, "--samples", str(samples))
        if told["no_answer"]:
            fail(f"{told['no_answer'][0]['id']}: {told['no_answer'][0]['crashes'][0]}")
        known, self.rows = self.rows, {}
        self.take(told)
        self.rows, now = known, self.rows
        draws = {each["id"]: [(error, place_of("stack.unexplained", i, samples)) for i, error in enumerate(each["errors"])] for each in told["draws"]}
        return [now[name]["error"] for name in self.rows], [draws.get(name, []) for name in self.rows]

    def by_family(self):
        families = {}
        for i, row in enumerate(self.rows.values()):
            families.setdefault(row["family"], []).append(i)
        return dict(sorted(families.items()))


def scrambled(x):
    x = (x + 0x9E3779B97F4A7C15) % 2**64
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ x >> 27) * 0x94D049BB133111EB % 2**64
    return x ^ x >> 31


def place_of(name, sample, samples):
    """Returns where in its range the program draws a constant (sim/base/draw.cpp)."""
    own = scrambled(1)
    for letter in name.encode():
        own = scrambled(own ^ letter)
    mine = scrambled(own ^ sample)
    return (sum(scrambled(own ^ other) < mine for other in range(samples)) + (scrambled(mine) >> 11) * 2**-53) / samples


def stretched(error, draws, stretch):
    """Returns the interval of a row's error when `unexplained` is drawn from that range, too; its median is one."""
    low, high = stretch
    at = lambda place: low + (1 - low) * 2 * place if place < 0.5 else 1 + (high - 1) * (2 * place - 1)
    errors = [error] + [(1 + each) * at(place) - 1 for each, place in draws]
    return quantile(errors, 0.1), quantile(errors, 0.9)


def fit_stretch(errors, draws, weights):
    """Returns the narrowest range about one with which a tenth of the rows and of one more to come lies below its interval, and a tenth
    above: a row to come is as likely as any to be the one that is off (conformal prediction)."""
    stretch = [1.0, 1.0]

    def misses_many(longer):
        outside = 0
        for error, drawn, weight in zip(errors, draws, weights):
            low, high = stretched(error, drawn, stretch)
            outside += weight * (high < 0 if longer else low > 0)
        return outside > 0.1 * (sum(weights) + 1)

    for _ in range(4):  # each end moves the other a little
        for place, direction in ((1, 1), (0, -1)):
            for notch in range(201):
                end = 1 + direction * 0.01 * notch
                if end < 0.02:
                    break
                stretch[place] = end
                if not misses_many(direction > 0):
                    break
    return stretch


def put(lines, name, value):
    """Puts one value, on a line, where the file has that key, or behind its last neighbour; all other lines stay as they are."""
    begin, end, indent = 0, len(lines), 0
    indent_of = lambda line: len(line) - len(line.lstrip(" "))

    def end_of_block(at):
        stop = at + 1
        while stop < len(lines) and lines[stop] and indent_of(lines[stop]) > indent_of(lines[at]):
            stop += 1
        return stop

    keys = name.split(".")
    for key in keys:
        at = begin
        while at < end and not (indent_of(lines[at]) == indent and lines[at].lstrip(" ").startswith(key + ":")):
            at += 1
        if at == end:
            lines.insert(end, " " * indent + key + ":")
        if key is keys[-1]:
            lines[at:end_of_block(at)] = [" " * indent + f"{key}: {value}"]
            return
        begin, end = at + 1, end_of_block(at)
        indent = indent_of(lines[begin]) if begin < end else indent + 2


def write_stacks(program, plan, found, units, rows, held, stretch, samples):
    cross = ""
    if held:
        cross = f"; worst family {percent(max(a for a, _ in held.values()))}, left out of the fit {percent(max(b for _, b in held.values()))}"
    note = (f"fitted with the others to {len(rows.rows)} rows, {rows.runs} different runs, of {plan['source']}{cross}. "
            "The range is where single runs would put it, eight of ten")
    for stack in plan["stacks"]:
        path = program.file(f"workloads/stacks/{stack}.yaml")
        lines = path.read_text().splitlines()
        for name, (value, low, high) in found.items():
            put(lines, name, ranged(value, low, high, units[name], note))
        if samples:
            put(lines, "unexplained",
                ranged(1, *stretch, "", f"the narrowest range with which intervals of {samples} draws miss at most one in ten of "
                                        f"{len(rows.rows)} rows, {rows.runs} different runs, on either side: {plan['source']}"))
        path.write_text("\n".join(lines) + "\n")


def fit_stack(program, arguments):
    plan = read_plan(program, arguments.plan)
    scratch = tempfile.TemporaryDirectory()
    rows = StackRows(program, plan, scratch.name)
    stated = program.constants(plan["stacks"][0])
    stated.update({"operators." + name: each for name, each in program.constants("operators").items()})
    for name in plan["free"]:
        if name not in stated:
            fail(f'{plan["stacks"][0]} has no constant "{name}"')
    units = {name: stated[name]["unit"] for name in plan["free"]} | {"unexplained": ""}
    start = {name: min(max(stated[name]["value"], low), high) for name, (low, high) in plan["free"].items()}
    trial = Trial(program, [("", f"workloads/stacks/{stack}.yaml") for stack in plan["stacks"]])
    errors_at = lambda values: rows.predict(trial, values, units)[0]
    values, before, held, fit = start, errors_at(start), {}, None
    for round_ in range(4 if values else 0):
        fit, now = linearised(values, plan["free"], 0.05, errors_at, rows.weights, plan["turn"], plan["prior"])
        if round_ < 3:
            values = moved(values, fit.solve())
    families = rows.by_family()
    if values and len(families) > 1:
        for name, members in families.items():
            without = errors_at(moved(values, fit.without(lambda i: i in members).solve()))
            held[name] = (median_size([now[i] for i in members]), median_size([without[i] for i in members]))
    stretch, draws = [1, 1], [[] for _ in rows.rows]
    if arguments.samples:
        now, draws = rows.predict(trial, {**values, "unexplained": 1.0}, units, arguments.samples)
        stretch = fit_stretch(now, draws, rows.weights)
    elif not values:
        now = before
    found = {}
    for i, (name, value) in enumerate(values.items()):
        low, high = plan["free"][name]
        wanted = [value] + [min(max(value * math.exp(-residual / slopes[i]), low), high)
                            for residual, _, slopes in fit.rows if abs(slopes[i]) > 0.1]
        found[name] = (value, min(value, quantile(wanted, 0.1)), max(value, quantile(wanted, 0.9)))
    if arguments.write:
        write_stacks(program, plan, found, units, rows, held, stretch, arguments.samples)
    table(("constant", " before", " fitted", " low", " high"),
          [(name, shown(stated[name]["value"], units[name]), *(shown(each, units[name]) for each in found[name])) for name in found]
          + ([("unexplained", "", "1", f"{stretch[0]:.2f}", f"{stretch[1]:.2f}")] if arguments.samples else []))
    print()
    lines = []
    for name, members in [*families.items(), ("all", range(len(rows.rows)))]:
        sizes = [abs(now[i]) for i in members]
        intervals = [stretched(now[i], draws[i], stretch) for i in members if draws[i]]
        lines.append((name, str(len(members)), percent(median_size([before[i] for i in members])), percent(quantile(sizes, 0.5)),
                      percent(quantile(sizes, 0.9)), f"{100 * sum(now[i] for i in members) / len(members):+.1f} %",
                      percent(held[name][1]) if name in held else "-", f"{sum(a <= 0 <= b for a, b in intervals)} of {len(intervals)}"))
    table(("family", " rows", " median before", " median", " 90 %", " signed mean", " left out", " inside 80 %"), lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", action="append", default=[], help="a catalogue over the installed one; repeats")
    subjects = parser.add_subparsers(required=True, metavar="stack|kernels|network")
    stack = subjects.add_parser("stack", help="a framework's constants, to rows of steps")
    stack.add_argument("plan")
    stack.add_argument("--samples", type=int, default=16, help="draws for the range of `unexplained`; 0: leave it")
    stack.add_argument("--write", action="store_true", help="put the result into the stack's data file")
    stack.set_defaults(fit=fit_stack)
    kernels = subjects.add_parser("kernels", help="the curves of a GPU, to single kernels")
    kernels.add_argument("gpu")
    kernels.add_argument("tables", nargs="*")
    kernels.set_defaults(fit=fit_kernels)
    network = subjects.add_parser("network", help="costs of the collective library, to measured collectives")
    network.add_argument("files", nargs="+", metavar="MACHINE|FILE")
    network.set_defaults(fit=fit_network)
    for each in (kernels, network):
        each.add_argument("-o", "--output", help="write an entry of the catalogue there")
    arguments = parser.parse_args()
    arguments.fit(Program(arguments.data), arguments)


if __name__ == "__main__":
    main()
