"""check_rows.py SOURCE FOLDER: rows of tables become the scenarios that they hold, and errors are summed up as they should be."""
import contextlib
import io
import pathlib
import sys

source, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
sys.path.insert(0, str(source / "measure"))
import rows

folder.mkdir(parents=True, exist_ok=True)
WHOLE = '"{model: llama-3.1-8b, cluster: {node: h100-8}, stack: fsdp2-eager, job: {sequence: 8192, micro_batch: 2}, strategy: {zero: fsdp}}"'


def expect(what, told=""):
    if not what:
        sys.exit(f"line {sys._getframe(1).f_lineno}: not so: {told}")


def near(value, wanted):
    return abs(value - wanted) < 1e-9


def read(text):
    """Returns the rows of a table, and what is noted of it."""
    (folder / "r.csv").write_text(text)
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        try:
            return rows.read_rows([str(folder / "r.csv")]), said.getvalue()
        except SystemExit:
            return None, said.getvalue()


def row_of(columns, cells):
    return read(f"id,{columns}\nr,{cells}\n")[0][0]


def refused(text):
    made, said = read(text)
    return "taken" if made else said


# A row is the scenario that it holds, under its own name and family, with the words of the table.
row = row_of("family,scenario,step_s", f"some,{WHOLE},2.84")
expect(row.scenario == 'name: "r"\nfamily: "some"\nmodel: llama-3.1-8b\ncluster:\n  node: h100-8\nstack: fsdp2-eager\njob:\n  sequence: 8192\n'
       "  micro_batch: 2\nstrategy:\n  zero: fsdp\n", row.scenario)
expect(not row.missing and row.stack == "fsdp2-eager" and row.numbers["step_s"] == 2.84)
for text in ('{a: "x, {y}", "b": [1, [2, c d]], c: {}}', "{a: 'it''s: so', b: {c: http://x/y}}"):
    expect(rows.parsed(rows.one_line(rows.parsed(text))) == rows.parsed(text), rows.one_line(rows.parsed(text)))
expect(rows.parsed('{a: "x, {y}", "b":[1, {c: d}]}') == {"a": '"x, {y}"', "b": ["1", {"c": "d"}]})

# Columns that are named by keys are a scenario, or come on top of one.
keys = row_of("model,stack,cluster.node,strategy.lora.rank,hardware", "llama-3.1-8b,trl,h100-8,8,an H100")
expect(keys.scenario.endswith("cluster:\n  node: h100-8\nmodel: llama-3.1-8b\nstack: trl\nstrategy:\n  lora: {rank: 8}\n"), keys.scenario)
over = row_of("model,scenario,job.sequence", f"as printed,{WHOLE},1024")
expect("sequence: 1024" in over.scenario and "as printed" not in over.scenario, over.scenario)

# A row without a scenario says what it lacks.
expect(row_of("hardware,gpus", "H100,8").missing[0].startswith("a scenario: in a column"))
expect(row_of("not_expressed,step_s", "no such card | no such stack,1").missing == ["no such card", "no such stack"])
expect(row_of("scenario", "{model: [}").missing[0].startswith("the scenario: expected"))
expect(row_of("scenario", '"{model: ""x}"').missing[0].startswith("the scenario: a quote is never closed"))
expect(row_of("scenario,step_s", f"{WHOLE},long").missing == ['step_s: expected a number, found "long"'])
expect("r.csv:1: id: the column is missing" in refused("name\nx\n"))
expect('outcome: expected ran or oom, found "failed"' in row_of("scenario,outcome", f"{WHOLE},failed").missing)
expect(row_of("scenario,mem_GB,mem_kind", f"{WHOLE},70,reservd").missing ==
       ['mem_kind: expected allocated, reserved, device or unsaid, found "reservd" (did you mean "reserved"?)'])
expect(row_of("scenario,mem_GB,mem_kind", f"{WHOLE},70,not compared: of the longest batch").numbers["mem_GB"] is None)
expect(row_of("load,output_tok_s", '"{model: m, node: h100-8}",357').family == "engine h100-8")

# A run that does not say what was computed again offers more of it.
lighter = row_of("scenario,lighter", f'{WHOLE},"{{""some: mlp"": {{strategy.checkpointing: selective, strategy.recompute_modules: [mlp]}}, none: {{}}}}"')
expect([way for way, _ in lighter.ways] == ["", "some: mlp", "none"], lighter.ways)
expect(lighter.ways[1][1]["strategy"] == {"zero": "fsdp", "checkpointing": "selective", "recompute_modules": ["mlp"]}, lighter.ways)
expect(lighter.ways[2][1]["strategy"] == {"zero": "fsdp"})
expect(row_of("scenario", '"{model: m, job: {method: grpo}}"').grpo and row_of("family,not_expressed", "grpo in turn,no batch").grpo)

# Releases and types that other columns state are the scenario's.
class Told:
    path, data = "stepsim", []

    def told(self, words):
        return {"releases": [{"name": name} for name in ("trl", "peft", "transformers")]}


def laid(version, precision):
    made = row_of("scenario,framework_version,precision", f'"{{model: m, strategy: {{lora: {{rank: 8}}}}}}","{version}","{precision}"')
    rows.lay_columns(Told(), [made])
    return made.ways[0][1]


expect(laid("transformers 4.48.1, peft 0.13.2 (beside the table), torch 2.8", "bf16, no autocast") ==
       {"name": '"r"', "family": f'"rows of {folder}/r.csv"', "model": "m", "strategy": {"lora": {"rank": "8", "adapters": "fp32"}},
        "releases": {"transformers": '"4.48.1"', "peft": '"0.13.2"'}})
expect("adapters" not in laid("peft 0.11.1", "no autocast")["strategy"]["lora"] and "releases" not in laid("LitGPT 8641822, torch 2.8", "bf16"))

# Tables are refused with their lines, and what is not read of them is noted.
expect("r.csv:4: id: \"a\" is at" in refused("id,step_s\na,1\nb,1\na,2\n"))
expect("is empty: expected a line" in refused(""))
expect("r.csv:3: expected 2 cells, found 1" in refused("id,step_s\na,1\nb\n"))
_, said = read(f"id,scenario,step_sec\na,{WHOLE},1\n")
expect('step_sec: is not read (did you mean "step_s"?)' in said and '"a" has no measured figure; 1 of 1 rows have none' in said, said)
read("id,step_s," + "x" * 4_000_000 + "\na,1,\n")

# Every row of the catalogue's tables is a scenario or says why not.
tables = [*source.glob("scenarios/measured/steps/*.csv"), source / "scenarios/measured/grpo/grpo.csv"]
with contextlib.redirect_stderr(io.StringIO()):
    all_rows = rows.read_rows(list(map(str, tables)))
expect(all(bool(row.missing) != bool(row.ways) for row in all_rows if not row.said("not_expressed")))
expect(sum(bool(row.ways) for row in all_rows) >= 390)
expect(not any(each.startswith("the scenario") for row in all_rows for each in row.missing))


# Errors are summed up by family, and those of memory by what the figures count, bounds apart.
def plain(**more):
    made = row_of("scenario", WHOLE)
    made.verdict = "fits"
    for key, value in more.items():
        setattr(made, key, value)
    return made


timed = [plain(family=family, error=error, timed=True, id=f"{family}{error}") for family, error in (("a", 0.1), ("b", -0.4), ("a", -0.3), ("a", 0.2))]
timed[1].ran, timed[0].interval, timed[3].interval = False, [0.05, 0.2], [-0.1, 0.3]
a, b, everything = rows.families_of([*timed, plain(family="a", error=9, timed=True, missing=["the hardware"])])
expect(a["name"] == "a" and a["rows"] == 3 and near(a["median_abs_error"], 0.2) and near(a["p90_abs_error"], 0.28) and near(a["signed_mean"], 0), a)
expect(near(a["worst_error"], -0.3) and a["intervals"] == 2 and a["inside_interval"] == 1 and b["verdicts_right"] == 0 and everything["rows"] == 4, a)
sized = [plain(memory_error=error, counts=counts, bound=bound, id=counts) for counts, error, bound in
         (("device", -0.5, False), ("allocated", 0.01, False), ("allocated", -0.03, False), ("allocated", 0.0, True))]
allocated, device, most = rows.memory_errors([*sized, timed[0]])
expect(allocated["rows"] == 2 and near(allocated["median_abs_error"], 0.02) and near(allocated["signed_mean"], -0.01) and near(allocated["worst_error"], -0.03))
expect(device["counts"] == "device" and most["counts"] == "at most" and most["median_abs_error"] == 0)


# Layouts of one model, batch and machine: pairs that differ tellably count, those that were measured twice have the mean.
def layout(name, measured, made, run=None, **cells):
    return plain(id=name, measured=measured, made=made, scenario=f"name: {name}\nmodel: of {run or name}\n",
                 cells={"model": "a model", "gpus": "8", "global_batch_seqs": "64", **cells})


order = rows.order_of([layout("slow", 100, 90), layout("alike", 103, 80), layout("fast", 120, 110)])
expect((order["pairs"], order["pairs_right"], order["groups"][0]["picked"], order["worst_lost"]) == (2, 2, "fast", 0), order)
order = rows.order_of([layout("best", 120, 80), layout("picked", 100, 90)])
expect(order["pairs"] == 1 and order["pairs_right"] == 0 and near(order["worst_lost"], 0.2), order)
twice = [layout("first", 100, 90), layout("again", 120, 90, "first")]
expect(rows.order_of(twice)["groups"] == [])
group = rows.order_of([*twice, layout("other", 108, 80)])["groups"][0]
expect(group["rows"] == 3 and group["pairs"] == 0 and group["picked"] == "first" and group["lost"] == 0, group)
others = [layout("one", 100, 100), layout("batch", 120, 100, global_batch_seqs="128"), layout("gpus", 120, 100, gpus="16"),
          layout("state", 120, 100, notes="tuned later; this row is before that"), layout("none", 120, 100, global_batch_seqs="")]
expect(rows.order_of(others)["groups"] == [] and len(rows.order_of([*others, layout("the same", 120, 100)])["groups"]) == 1)


# Errors that grow are noticed, and so are rows that are no longer predicted.
def family(name, median, right):
    return {"name": name, "rows": 20, "median_abs_error": median, "p90_abs_error": 3 * median, "memory_rows": 0, "memory_median_abs_error": 0,
            "verdicts": 20, "verdicts_right": right}


def changes(then, now):
    (folder / "recorded.csv").write_text(rows.record([*then, family("all", 0, 0)]))
    return rows.changes_since(rows.read_recorded(folder / "recorded.csv"), [*now, family("all", 0.9, 1)])


expect(changes([family("a", 0.05, 18)], [family("a", 0.0503, 18)]) == [])
expect(changes([family("a", 0.05, 18)], [family("a", 0.06, 19)]) ==
       [("a", "the median error of the step time", "5.0 %", "6.0 %", True), ("a", "the error of nine rows in ten", "15.0 %", "18.0 %", True),
        ("a", "outcomes that are right", "18", "19", False)])
expect([(each[0], each[3], each[4]) for each in changes([family("a", 0.05, 18)], [family("b", 0.05, 18)])] == [("b", "20 rows", False), ("a", "gone", True)])
print("rows are what they say")
