"""check_advice.py STEPSIM DATA FOLDER: advice for a file of another program is written into that file, read again, and gives the figures that it promised.

Each change that `run --faster` or `run` of a step that does not fit names by the program's own keys is put into a copy of the file. Exit code 1:
one gives other figures, or too few were tried.
"""
import json
import math
import os
import pathlib
import subprocess
import sys

stepsim, data, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
folder.mkdir(parents=True, exist_ok=True)
AXOLOTL = ("base_model: {model}\ndatasets: [{{path: x, type: alpaca}}]\nsequence_len: 2048\nmicro_batch_size: 2\ngradient_accumulation_steps: 2\n"
           "sample_packing: true\noptimizer: adamw_torch_fused\nbf16: auto\ngradient_checkpointing: {checkpoints}\nflash_attention: true\n{rest}")
FILES = {
    "lora.yml": AXOLOTL.format(model="meta-llama/Llama-3.2-1B", checkpoints="true", rest="adapter: lora\nlora_r: 16\nlora_target_linear: true\n"),
    "long.yml": AXOLOTL.format(model="meta-llama/Llama-3.1-8B", checkpoints="true", rest="adapter: qlora\nload_in_4bit: true\nlora_r: 16\nlora_target_linear: true\n")
                       .replace("sequence_len: 2048", "sequence_len: 65536"),
    "factory.yaml": "model_name_or_path: Qwen/Qwen2.5-1.5B\nstage: sft\ndo_train: true\nfinetuning_type: lora\nlora_rank: 8\ndataset: x\ntemplate: qwen\n"
                    "cutoff_len: 1024\nper_device_train_batch_size: 2\ngradient_accumulation_steps: 2\nbf16: true\n",
    "trl.yaml": "model_name_or_path: Qwen/Qwen2.5-1.5B\ndataset_name: x\nuse_peft: true\nlora_r: 16\nper_device_train_batch_size: 2\nmax_length: 1024\n"
                "bf16: true\n",
}
OURS = ("strategy.", "job.", "cluster", "stack", "model")
wrong, tried, seen = [], 0, set()


def run(path, *options):
    done = subprocess.run([stepsim, "--data", data, "run", str(path), "--json", "--samples", "0", *options], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"{path}: {done.stderr}")
    return json.loads(done.stdout)


def written(text, change):
    """The file with the keys of the change, each instead of the line that says it."""
    for each in change["set"]:
        key, value = each.split("=", 1)
        text = "".join(line for line in text.splitlines(True) if not line.startswith(f"{key}:")) + f"{key}: {value}\n"
    return text


for name, text in FILES.items():
    path = folder / name
    path.write_text(text)
    options = ["--faster", "100", "--cluster", "a100-8"]
    answer = run(path, *options)
    changes = (answer["faster"] or {}).get("changes", [])
    for kind in ("remedies", "pairs"):
        changes += (answer["to_make_it_fit"] or {}).get(kind, [])
    for change in changes:
        keys = [each.split("=", 1)[0] for each in change["set"]]
        if any(key.startswith(OURS) for key in keys):
            continue
        for each in change["set"]:
            key, value = each.split("=", 1)
            if f"{key}: {value}" not in change["change"]:
                wrong.append(f"{name}: {change['change']} does not say {each}")
        path.write_text(written(text, change))
        got = run(path, "--cluster", "a100-8")
        tried += 1
        seen.update(keys)
        # Sums of the same times come in another order.
        if not math.isclose(got["step_time_s"], change["step_time_s"], rel_tol=1e-12):
            wrong.append(f"{name}: {change['change']}: {change['step_time_s']} s promised, {got['step_time_s']} s in the file")
    path.write_text(text)
for key in ("gradient_checkpointing", "torch_compile", "micro_batch_size"):
    if key not in seen:
        wrong.append(f"no advice by {key}: {sorted(seen)}")
print("\n".join(wrong) or f"{tried} pieces of advice give what they promise: {', '.join(sorted(seen))}")
sys.exit(bool(wrong) or tried < 6)
