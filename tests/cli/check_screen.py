"""check_screen.py STEPSIM DATA FOLDER FILE...: an answer fits a screen, and says what it is an answer about.

Runs scenarios of the catalogue and files of other programs in a terminal of 100 columns: at most 40 lines, none wider, the answer in the second
line, and what was taken before any figure of a table. Exit code 1: one does not.
"""
import json
import os
import pathlib
import subprocess
import sys

stepsim, data, folder = sys.argv[1:4]
os.makedirs(folder, exist_ok=True)
LINES, COLUMNS = 40, 100
PARTS = ["method", "batch", "precision", "optimizer", "sharding", "checkpointing", "attention", "loss", "release", "unsaid"]
SCENARIOS = ["llama32-3b-sft-zero3", "llama32-3b-dpo-zero3", "mpt7b-zero2-oom", "mpt7b-zero3-offload", "phi4-14b-sft-zero3", "llama4-scout-qlora-1xh100",
             "grpo-7b-learner", "ring-mini-sft-zero3", "llama3.1-8b-2x2048-checkpoints-qlora-fp32", "grpo-7b-two-nodes", "colocated-8b"]
WRITTEN = {
    "images.yaml": "model_name_or_path: meta-llama/Llama-3.2-11B-Vision\nstage: sft\ndo_train: true\nfinetuning_type: lora\nlora_rank: 8\ndataset: x\n"
                   "template: mllama\ncutoff_len: 2048\nimage_max_pixels: 262144\nper_device_train_batch_size: 1\nbf16: true\n",
    "trl.yaml": "model_name_or_path: Qwen/Qwen2.5-7B\ndataset_name: x\nper_device_train_batch_size: 2\nmax_length: 2048\nlearning_rate: 1.0e-5\n",
}
wrong = []


def run(word, *options):
    return subprocess.run([stepsim, "--data", data, "run", word, *options], capture_output=True, text=True,
                          env={**os.environ, "COLUMNS": str(COLUMNS), "NO_COLOR": "1"})


def check(word, *options):
    done = run(word, *options)
    lines = done.stdout.rstrip("\n").split("\n")
    say = lambda what: wrong.append(f"{word}: {what}")
    if done.returncode not in (0, 1):
        return say(done.stderr)
    if len(lines) > LINES:
        say(f"{len(lines)} lines")
    for line in lines:
        if len(line) > COLUMNS and max(map(len, line.split())) < 60:  # paths stay whole
            say(f"{len(line)} columns: {line}")
    head = "\n".join(lines[:6])
    if " a step" not in head and "does not fit" not in head:
        say(f"no answer in the first lines: {head}")
    taken = next((at for at, line in enumerate(lines) if line.startswith("taken ")), None)
    table = next((at for at, line in enumerate(lines) if line.startswith("-----")), len(lines))
    if taken is None or taken > table:
        say("what was taken is not said before the tables")
    return done.stdout


for name, text in WRITTEN.items():
    pathlib.Path(folder, name).write_text(text)
names = SCENARIOS + sys.argv[4:] + [os.path.join(folder, name) for name in WRITTEN]
for name in names:
    check(name, "--faster", "0")
check(names[0])

# Images are left out: that stands above the figures, in the brief answer, and for machines.
images = os.path.join(folder, "images.yaml")
for text in (check(images, "--faster", "0"), run(images, "--brief").stdout):
    if "not modelled" not in text or "slower, 1.3 to 2 times" not in " ".join(text.split()):
        wrong.append(f"images.yaml: nothing of images: {text}")
said = json.loads(run(images, "--json", "--samples", "0").stdout)
if "image_max_pixels" not in [each["key"] for each in said["not_modelled"]]:
    wrong.append(f"images.yaml: not_modelled is {said['not_modelled']}")
if list(said["taken"]) != PARTS or "LoRA, rank 8 on 7 matrices*" not in said["taken"]["method"]:
    wrong.append(f"images.yaml: taken is {said['taken']}")

# A verdict that hangs on what no file says is said to.
trl = os.path.join(folder, "trl.yaml")
full = json.loads(run(trl, "--json", "--samples", "0", "--gpus", "8").stdout)
if full["verdict"] == "oom" and not full["verdict_hangs_on"]:
    wrong.append("trl.yaml: a verdict on an assumed sharding is said as if it were certain")

# A title does not speak of a machine that was left.
title = run(SCENARIOS[0], "--cluster", "h100-8", "--faster", "0", "--samples", "0").stdout.split("\n")[0]
if "MI300X" in title or "h100-8" not in title:
    wrong.append(f"the title contradicts the machine: {title}")

print("\n".join(wrong) or f"{len(names)} answers fit a screen of {LINES} lines")
sys.exit(bool(wrong))
