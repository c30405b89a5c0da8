"""check_memory_beside.py STEPSIM OUT: `memory --beside` of what `export --memory-viz` writes, and of a snapshot with frames as PyTorch
records them, in every protocol of Python's pickles."""

import json
import os
import pickle
import subprocess
import sys

stepsim, out = sys.argv[1:]
os.makedirs(out, exist_ok=True)
scenario = "llama32-3b-sft-zero3"
own, made = (os.path.join(out, name) for name in ("own.pickle", "made.pickle"))


def beside(file):
    done = subprocess.run([stepsim, "memory", scenario, "--beside", file, "--json"], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)["beside"]


# A predicted step is its own real run.
subprocess.run([stepsim, "export", scenario, "--memory-viz", own], stdout=subprocess.DEVNULL, check=True)
answer = beside(own)
assert abs(answer["error"]) < 1e-6 and answer["from_start"] and answer["moment"] == answer["predicted_moment"] == "backward", answer
assert all(abs(kind["error"]) < 1e-4 for kind in answer["kinds"]), answer["kinds"]
assert answer["reserved_bytes"] >= answer["reserved_at_peak_bytes"] >= answer["peak_bytes"]

# Recorded from the second half on: what lasts has no frames, and is the same together.
with open(own, "rb") as file:
    snapshot = pickle.load(file)
trace = snapshot["device_traces"][0]
first = next(i for i, entry in enumerate(trace) if entry["time_us"] > 0)
late = {**snapshot, "device_traces": [trace[first:]]}
for segment in late["segments"]:
    for block in segment["blocks"]:
        block["frames"] = []
with open(made, "wb") as file:
    pickle.dump(late, file)
answer = beside(made)
assert abs(answer["error"]) < 1e-6 and not answer["from_start"] and answer["before_bytes"] > 4e9, answer
assert all(abs(kind["error"]) < 1e-4 for kind in answer["kinds"]), answer["kinds"]


def frames(*lines):
    return [{"name": name, "filename": file, "line": line} for file, line, name in lines]


# As PyTorch records: a list of frames is the same object in every entry that has it.
main = ("/home/me/train.py", 40, "<module>")
module = ("/v/torch/nn/modules/module.py", 1775, "_call_impl")
load = frames(("/v/torch/nn/modules/module.py", 1340, "convert"), ("/v/torch/nn/modules/module.py", 1355, "to"), main)
forward = frames(("/v/torch/nn/modules/linear.py", 125, "forward"), module, ("/v/transformers/modeling_llama.py", 172, "forward"), main)
update = frames(("/v/torch/optim/adamw.py", 170, "_init_group"), ("/v/torch/optim/optimizer.py", 500, "wrapper"), main)
entries, blocks, address = [], [], 0x7F0000000000
GB = 10**9


def entry(action, place, size, stack):
    entries.append({"action": action, "addr": place, "size": size, "stream": 0, "time_us": 1_700_000_000_000_000 + len(entries),
                    "compile_context": "N/A", "user_metadata": "", "frames": stack})  # fmt: skip


entry("segment_alloc", address, 40 * GB, load)
entry("alloc", address, 2 * GB, load)
for i in range(4):
    entry("alloc", address + (2 + 5 * i) * GB, 5 * GB, forward)
entry("alloc", address + 22 * GB, 3 * GB, [])
for i in range(4):
    for action in ("free_requested", "free_completed"):
        entry(action, address + (2 + 5 * i) * GB, 5 * GB, forward)
entry("alloc", address + 2 * GB, 4 * GB, update)
sizes = [(2, load), (4, update), (16, None), (3, []), (15, None)]
for size, stack in sizes:
    block = {"address": address, "size": size * GB, "requested_size": size * GB if stack is not None else 0,
             "state": "inactive" if stack is None else "active_allocated", "frames": stack or []}  # fmt: skip
    blocks.append(block)
    address += size * GB
segment = {"device": 0, "address": address - 40 * GB, "total_size": 40 * GB, "allocated_size": 9 * GB, "active_size": 9 * GB,
           "requested_size": 9 * GB, "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0), "is_expandable": False,
           "frames": load, "blocks": blocks}  # fmt: skip
snapshot = {"segments": [segment], "device_traces": [entries, []],
            "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "garbage_collection_threshold": 0.0,
                                   "roundup_power2_divisions": {"1": 0}},
            "external_annotations": []}  # fmt: skip
said = set()
for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
    with open(made, "wb") as file:
        pickle.dump(snapshot, file, protocol)
    answer = beside(made)
    said.add(json.dumps(answer))
assert len(said) == 1
assert answer["peak_bytes"] == 25 * GB and answer["reserved_bytes"] == 40 * GB and answer["entries"] == 12
assert answer["moment"] == "backward" and answer["from_start"] and answer["before_bytes"] == 0
real = {kind["kind"]: kind["real_bytes"] for kind in answer["kinds"]}
assert real["activations"] == 20 * GB and real["parameters"] == 2 * GB and real["gradients and the backward pass"] == 3 * GB
assert real["optimizer"] == 0
assert answer["frames"][0] == {"frame": "modeling_llama.py:172 forward", "kind": "activations", "bytes": 20 * GB, "requests": 4}
assert [frame["frame"] for frame in answer["frames"][1:]] == ["without frames", "train.py:40 <module>"]

text = subprocess.run([stepsim, "memory", scenario, "--beside", made, "--brief"], stdout=subprocess.PIPE, text=True, check=True).stdout
print(text)
assert text.startswith(
    "the real run holds 25.0 GB at its peak, in backward; predicted are 42.3 GB, in backward, 69 % too much\n"
    "most of that in activations: 14.4 GB too much\n"
    "it then reserves 40.0 GB, 15.0 GB more than it holds; predicted are 45.9 GB, 3.59 GB more\n"), text  # fmt: skip
