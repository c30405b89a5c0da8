"""check_fit.py STEPSIM SOURCE FOLDER: measure/fit.py finds constants that were planted, keeps bounds, and writes what is read again."""
import csv
import json
import os
import pathlib
import shutil
import subprocess
import sys

stepsim, source, folder = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
sys.path.insert(0, str(source / "measure"))
import fit

os.environ["STEPSIM"] = stepsim
shutil.rmtree(folder, ignore_errors=True)
folder.mkdir(parents=True)
os.chdir(folder)


def expect(what, told=""):
    if not what:
        sys.exit(f"line {sys._getframe(1).f_lineno}: not so: {told}")


def near(value, wanted, by):
    return abs(value - wanted) <= by


def run(*words, code=0):
    done = subprocess.run([sys.executable, "-B", str(source / "measure/fit.py"), *words], capture_output=True, text=True)
    expect((done.returncode == 0) == (code == 0), done.stdout + done.stderr)
    return done.stdout if code == 0 else done.stderr


# Small errors are balanced like squares; one row far off hardly moves the others; bounds hold; what no row tells stays.
def line(*residuals, bounds=(-1, 1), slope=1, prior=1e6):
    return fit.Fit([(each, 1, [slope]) for each in residuals], [bounds], 0.1, prior).solve()[0]


expect(near(line(-0.05, -0.03, -0.01), 0.03, 1e-4))
expect(near(line(-0.02, -0.02, -0.02, -0.02), 0.02, 1e-4))
expect(line(-0.02, -0.02, -0.02, -0.02, -5) < 0.05)
expect(near(line(-0.5, -0.5, bounds=(-1, 0.2)), 0.2, 1e-4))
expect(near(line(0.3, slope=0, prior=1), 0, 1e-4))
two = fit.Fit([(-0.02, 1, [1, 0]), (-0.05, 1, [0, 1]), (-0.07, 1, [1, 1])], [(-1, 1), (-1, 1)], 0.1, 1e6).solve()
expect(near(two[0], 0.02, 1e-3) and near(two[1], 0.05, 1e-3), two)


# Intervals hold eight of ten rows, no more; what other constants hold is not counted twice.
def rows_of(below, above, low, high):
    errors = [0.004 * i * (below if i < 0 else above) for i in range(-50, 51)]
    places = [(7 * i + 3) % 16 / 16 + 1 / 32 for i in range(16)]
    return errors, [[((1 + e) * (low + (high - low) * i / 15) - 1, places[i]) for i in range(16)] for e in errors]


def stretch_of(*how):
    errors, draws = rows_of(*how)
    stretch = fit.fit_stretch(errors, draws, [1] * len(errors))
    held = sum(low <= 0 <= high for low, high in (fit.stretched(e, d, stretch) for e, d in zip(errors, draws)))
    return *stretch, held / len(errors)


low, high, held = stretch_of(1, 1, 1, 1)
expect(near(held, 0.8, 0.03) and 1 / 1.35 < low < 1 / 1.16 and 1 / 0.84 < high < 1 / 0.7, (low, high, held))
expect(stretch_of(1, 0, 1, 1)[0] == 1 and stretch_of(1, 0, 1, 1)[1] > 1.05)
expect(stretch_of(1, 1, 0.7, 1.4)[:2] == (1, 1))

# A value takes its place in a file, and every other line stays.
lines = ["a: 1", "b:  # why", "  c: {value: 1,", "    low: 1}", "  d: 2"]
fit.put(lines, "b.c", "3")
fit.put(lines, "b.e", "4")
fit.put(lines, "f.g", "5")
expect(lines == ["a: 1", "b:  # why", "  c: 3", "  d: 2", "  e: 4", "f:", "  g: 5"], lines)

# Products out of a GPU's own file but for a rate that is a tenth lower give that rate.
made = json.loads(subprocess.run([stepsim, "kernels", "--rows", "--json"], capture_output=True, text=True, check=True).stdout)["rows"]
with open("made.csv", "w", newline="") as file:
    table = csv.writer(file)
    table.writerow("id source hardware op dtype batch M N K layout time_ms".split())
    for i, row in enumerate(made):
        if row["gpu"] == "h100-sxm" and row["kernel"] == "gemm" and 2 * row["m"] * row["n"] * row["k"] > 1e12:
            table.writerow([row["id"], ("one", "two")[i % 2], "H100-80GB SXM", "gemm", "bf16", "", row["m"], row["n"], row["k"], "",
                            row["predicted_s"] * 1e3 / 0.9])
run("kernels", "h100-sxm", "made.csv", "-o", "own-h100.yaml")
pathlib.Path("mine/topology/gpus").mkdir(parents=True)
shutil.move("own-h100.yaml", "mine/topology/gpus")
constants = {name: {each["name"]: each["value"] for each in json.loads(subprocess.run(
    [stepsim, "--data", "mine", "show", name, "--json"], capture_output=True, text=True, check=True).stdout)["constants"]}
    for name in ("own-h100", "h100-sxm")}
rate, stated = (constants[name]["gemm.rate"] for name in ("own-h100", "h100-sxm"))
expect(near(rate / stated, 0.9, 0.04), (rate, stated))
expect("did you mean h100-sxm" in run("kernels", "h100-smx", code=1))
expect("no curve may exceed it" in (told := run("kernels", "mi300x")) and "gemm.grouped.operands" in told, told)

# What nobody measured is refused; what crosses no node fits a node.
expect("no row is about" in run("network", "gh200-1", code=1))
expect("AMD-AGI/Primus" in (told := run("network", "mi300x-8")) and "node.collectives.launch" in told, told)

# The same input gives the same bytes; the stack's own file takes the result, within the plan's bounds.
expect("fms-fsdp h100-sxm" in (told := run("stack", "fms-fsdp", "--samples", "0")) and told == run("stack", "fms-fsdp", "--samples", "0"), told)
expect('did you mean llm-foundry' in run("stack", "llm-foundri", code=1))
for place in ("workloads/stacks/fms-fsdp.yaml", "workloads/calibration/fms-fsdp.yaml"):
    pathlib.Path("copy", place).parent.mkdir(parents=True)
    shutil.copy(source / place, pathlib.Path("copy", place))
plan = pathlib.Path("copy/workloads/calibration/fms-fsdp.yaml")
plan.write_text(plan.read_text().replace("high: 1.0", "high: 0.99", 1))
run("--data", "copy", "stack", "fms-fsdp", "--samples", "1", "--write")
text = pathlib.Path("copy/workloads/stacks/fms-fsdp.yaml").read_text()
expect("gemm: {value: 0.99, low: 0.9" in text and "intervals of 1 draws" in text, text)
