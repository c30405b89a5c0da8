"""check_explain.py STEPSIM FOLDER: `explain` tells one story.

Of pairs of scenarios: the cause that the sentence names is the largest row; each row is what is exposed in A less what is in B, in numbers and as
printed; the columns add up to the steps, and rows and settings to the gap. Exit code 1: one does not.
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys

stepsim = str(pathlib.Path(sys.argv[1]).resolve())
folder = pathlib.Path(sys.argv[2])
shutil.rmtree(folder, ignore_errors=True)
folder.mkdir(parents=True)
here = pathlib.Path(__file__).parent

AXOLOTL = """base_model: meta-llama/Llama-3.1-8B
adapter: lora
lora_r: 16
lora_target_linear: true
sequence_len: 2048
sample_packing: true
micro_batch_size: 2
gradient_accumulation_steps: 4
optimizer: adamw_8bit
bf16: auto
gradient_checkpointing: true
flash_attention: true
datasets: [{path: mhenrichsen/alpaca_2k_test, type: alpaca}]
"""
LLAMA_FACTORY = """model_name_or_path: Qwen/Qwen2.5-7B
stage: sft
do_train: true
finetuning_type: full
deepspeed: FILE
cutoff_len: 2048
packing: true
per_device_train_batch_size: 1
gradient_accumulation_steps: 8
num_train_epochs: 3
bf16: true
flash_attn: fa2
"""
ZERO = {"stage": 2, "overlap_comm": True, "contiguous_gradients": True}
FILES = {
    "lora8b.yml": AXOLOTL,
    "z2.json": json.dumps({"zero_optimization": ZERO}),
    "z3.json": json.dumps({"zero_optimization": {**ZERO, "stage": 3}}),
    "paged.json": json.dumps({"zero_optimization": {**ZERO, "offload_optimizer": {"device": "cpu"}}}),
    "pinned.json": json.dumps({"zero_optimization": {**ZERO, "offload_optimizer": {"device": "cpu", "pin_memory": True}}}),
    **{f"{name}.yaml": LLAMA_FACTORY.replace("FILE", f"{name}.json") for name in ("z2", "z3", "paged", "pinned")},
    # The same job by hand, with other defaults, and no checkpoints to write.
    "own.yaml": "name: own\nmodel: qwen2.5-7b\ncluster: {node: l40s-8}\nstack: deepspeed-hf\n"
                "job: {sequence: 2048, micro_batch: 1, gradient_accumulation: 8}\n"
                "strategy: {zero: 2, checkpointing: full, offload: {optimizer: cpu}}\n",
    "stages.yaml": "name: stages\nmodel: llama-3.2-3b\ncluster: {node: h100-8}\nstack: megatron\njob: {sequence: 2048, gradient_accumulation: 8}\n"
                   "strategy: {pipeline_parallel: {size: 4}}\n",
    "tiny.yaml": (here / "tiny.yaml").read_text(),
    "grpo.yaml": (here / "grpo-small.yaml").read_text(),
}
PAIRS = {
    "compile": ["lora8b.yml", "--set", "strategy.compile=true"],
    "stages of ZeRO": ["z2.yaml", "z3.yaml", "--cluster", "h100-8"],
    "the other way round": ["z3.yaml", "z2.yaml", "--cluster", "h100-8"],
    "pinned": ["paged.yaml", "pinned.yaml", "--cluster", "l40s-8"],
    "pinned, and else": ["own.yaml", "pinned.yaml", "--cluster", "l40s-8"],
    "offload": ["tiny.yaml", "--set", "strategy.offload.optimizer=cpu"],
    "other batch": ["tiny.yaml", "--set", "job.micro_batch=4"],
    "slow GPU": ["tiny.yaml", "--set", "cluster.slow_gpus=[{rank: 3, speed: 0.5}]"],
    "schedule": ["stages.yaml", "--set", "strategy.pipeline_parallel.schedule=gpipe"],
    "the same": ["tiny.yaml", "tiny.yaml"],
    "GRPO": ["grpo.yaml", "--set", "engine.kernels.cache=0.3"],
}
UNITS = {"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60, "h": 3600}
problems = []


def explain(words, *options):
    done = subprocess.run([stepsim, "explain", *words, "--samples", "0", "--replays", "1", *options], cwd=folder, capture_output=True, text=True, check=True)
    return json.loads(done.stdout) if "--json" in options else done.stdout


def require(pair, truth, what):
    if not truth:
        problems.append(f"{pair}: {what}")


def check_numbers(pair, answer):
    longer, gap, rows = max(answer["a"]["step_time_s"], answer["b"]["step_time_s"]), answer["gap_s"], answer["rows"]

    def same(x, y, what):
        require(pair, abs(x - y) <= 1e-9 * longer, f"{what}: {x} and {y}")

    same(gap, answer["a"]["step_time_s"] - answer["b"]["step_time_s"], "the gap")
    for row in rows:
        same(row["seconds"], row["a_exposed_s"] - row["b_exposed_s"], f"row {row['cause']}")
    same(sum(row["seconds"] for row in rows), gap, "rows")
    for side in "ab":
        same(sum(row[f"{side}_exposed_s"] for row in rows), answer[side]["step_time_s"], f"column {side}")
    settings = answer["settings"]
    same(sum(row["seconds"] for row in settings["rows"]) + settings["rest_s"], gap, "settings")
    named = re.search(r"above all in (\w+) \(", answer["summary"])
    if abs(gap) <= 1e-9 * longer:
        require(pair, not named, "names a cause of no gap")
        return
    sign = 1 if gap > 0 else -1
    require(pair, named and named[1] == max(rows, key=lambda row: sign * row["seconds"])["cause"], f"{answer['summary']!r} does not name the largest row")
    if len(settings["rows"]) == 1 and settings["rows"][0]["cause"]:
        require(pair, settings["rows"][0]["cause"] == named[1], "the only setting is in another cause")


def number(text):
    value, unit = text.split()
    return float(value) * UNITS[unit]


def check_text(pair, text):
    """As a reader adds it up, to three figures."""
    figure = r"([+-]?[0-9.]+ (?:s|ms|us|ns|min|h))"
    rows = re.findall(rf"^(\w+|step, gap) +{figure} +{figure} +{figure} +(-|[-0-9.]+ %)", text[text.index("\ncause "):], re.MULTILINE)
    require(pair, len(rows) > 2 and rows[-1][0] == "step, gap", f"no table of causes: {rows}")
    for name, a, b, seconds, _ in rows:
        require(pair, abs(number(a) - number(b) - number(seconds)) <= 0.006 * max(number(a), number(b)), f"{name}: {a} - {b} is not {seconds}")
    named = re.search(r"above all\s+in\s+(\w+)", text)
    require(pair, not named or named[1] == rows[0][0], f"the sentence says {named and named[1]}, the first row is {rows[0][0]}")


def main():
    for name, content in FILES.items():
        (folder / name).write_text(content)
    for pair, words in PAIRS.items():
        check_numbers(pair, explain(words, "--json"))
        check_text(pair, explain(words))
    pinned = explain(PAIRS["pinned"], "--json")
    require("pinned", "strategy.offload.pin_memory (false in A, true in B) carries all of it" in pinned["summary"], pinned["summary"])
    # Checkpoints cannot be said without saying how often: that takes no other setting's effect away.
    other = explain(PAIRS["pinned, and else"], "--json")
    require("pinned, and else", other["settings"]["rows"][0]["key"] == "strategy.offload.pin_memory", other["summary"])
    require("pinned, and else", other["settings"]["rows"][0]["a_with_it_alone_s"] < 0.6 * other["a"]["step_time_s"], other["summary"])
    require("pinned, and else", "job.save.every" in [each["key"] for each in other["settings"]["without_effect"]], str(other["settings"]["without_effect"]))
    print("\n".join(problems) or f"{len(PAIRS)} pairs tell one story")
    return 1 if problems else 0


sys.exit(main())
