"""check_chakra.py STEPSIM CHAKRA FOLDER: traces for Chakra's feeder hold what the schema says, and last as long as the step they are of.

The field numbers are those of the schema that its project publishes (et_def.proto). Exits with 77 (skipped) without h5py."""

import collections
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys

try:
    import h5py
except ImportError:
    sys.exit(77)

stepsim, chakra, folder = map(os.path.abspath, sys.argv[1:4])
shutil.rmtree(folder, ignore_errors=True)
os.makedirs(folder)
os.chdir(folder)
LOAD, STORE, COMPUTE, SEND, RECEIVE, COLLECTIVE = 2, 3, 4, 5, 6, 7
Node = collections.namedtuple("Node", "kind name before duration_us told")


def whole(text, place):
    value = shift = 0
    while True:
        byte = text[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place


def fields(text):
    """The fields of a message in order: number and value, of which texts are left as bytes."""
    place, found = 0, []
    while place < len(text):
        key, place = whole(text, place)
        if key & 7 == 0:
            value, place = whole(text, place)
        elif key & 7 == 1:
            value, place = struct.unpack_from("<d", text, place)[0], place + 8
        else:
            assert key & 7 == 2, f"wire type {key & 7}"
            size, place = whole(text, place)
            value, place = text[place:place + size], place + size
        found.append((key >> 3, value))
    return found


def node_of(text):
    said = collections.defaultdict(list)
    for number, value in fields(text):
        said[number].append(value)
    assert set(said) <= {1, 2, 3, 5, 6, 7, 10}, sorted(said)
    before, place = [], 0
    packed = said[5][0] if said[5] else b""
    while place < len(packed):
        each, place = whole(packed, place)
        before.append(each)
    members = {"is_cpu_op": 27, "num_ops": 9, "comm_type": 9, "comm_size": 9, "tensor_size": 13, "comm_src": 7, "comm_dst": 7, "comm_tag": 7,
               "pg_name": 29, "start_s": 3, "finish_s": 3, "stream": 29, "cause": 29, "phase": 29, "layer": 9, "micro_batch": 9}
    told = {}
    for each in said[10]:
        (first, name), (member, value) = fields(each)
        assert first == 1 and member == members[name.decode()], f"{name}: member {member}"
        told[name.decode()] = value.decode() if isinstance(value, bytes) else value
    return said[1][0], Node(said[3][0], said[2][0].decode(), before, said[7][0], told)


def nodes_in(path):
    text, place, found = path.read_bytes(), 0, []
    while place < len(text):
        size, place = whole(text, place)
        found.append(text[place:place + size])
        place += size
    assert fields(found[0]) == [(1, b"0.0.4")], "the metadata come first"
    nodes = [node_of(each) for each in found[1:]]
    assert len(dict(nodes)) == len(nodes), "a number stands for one node"
    return dict(nodes)


def traces_of(scenario, ranks):
    pathlib.Path("s.yaml").write_text(f"name: s\n{scenario}")
    subprocess.run([stepsim, "run", "s.yaml", "--fold", "off", "--samples", "0", "--faster", "0", "-o", "s.h5", "--engine", "own"], check=True, capture_output=True)
    subprocess.run([sys.executable, "-B", chakra, "s.h5", "-o", "et"], check=True, capture_output=True)
    traces = [nodes_in(pathlib.Path(f"et/s.{rank}.et")) for rank in range(ranks)]
    groups = json.loads(pathlib.Path("et/s.json").read_text())
    # A replay that knows nothing but the files: each node lasts as long as it did, and waits for what it names.
    finish, last = {}, 0
    for number in sorted(set().union(*traces)):
        mine = [trace[number] for trace in traces if number in trace]
        start = max([finish[each] for node in mine for each in node.before], default=0)
        finish[number] = start + mine[0].told["finish_s"] - mine[0].told["start_s"]
        last = max(last, finish[number])
        for node in mine:
            assert abs(node.duration_us - 1e6 * (finish[number] - start)) <= 0.51, "durations are rounded to microseconds"
        if mine[0].kind == COLLECTIVE:
            assert groups[mine[0].told["pg_name"]] == [rank for rank in range(ranks) if number in traces[rank]]
    makespan = h5py.File("s.h5").attrs["makespan"]
    assert abs(last - makespan) <= 1e-6 * makespan, f"{last} s, and the step takes {makespan}"
    return traces


def kinds_in(trace):
    return {node.kind for node in trace.values()}


machine = "model: qwen3-0.6b\ncluster: {node: h100-8, gpus_per_node: 4}\n"
sharded = traces_of(machine + "stack: fsdp2-eager\njob: {sequence: 256, micro_batch: 1}\nstrategy: {zero: fsdp, checkpointing: none}\n", 4)
# All ranks gather and reduce all parameters, in 16 bits: each brings its quarter.
for kind, times in ((2, 2), (7, 1)):
    sent = sum(node.told["comm_size"] for node in sharded[0].values() if node.kind == COLLECTIVE and node.told["comm_type"] == kind)
    held = sum(node.told["comm_size"] * 4 for node in sharded[3].values() if node.kind == COLLECTIVE and node.told["comm_type"] == kind)
    assert held == 4 * sent > 0, kind
stages = traces_of(machine + "stack: megatron\njob: {sequence: 256, gradient_accumulation: 2}\nstrategy:\n  {pipeline_parallel: {schedule: 1f1b, size: 2}, "
                   "tensor_parallel: {size: 2}, zero: 1, checkpointing: none}\n", 4)
for rank, other in ((0, 2), (2, 0)):
    sends = {number: node for number, node in stages[rank].items() if node.kind == SEND}
    assert sends, f"rank {rank} sends nothing"
    for number, node in sends.items():
        assert stages[other][number].kind == RECEIVE and (node.told["comm_src"], node.told["comm_dst"]) == (rank, other)
offloaded = traces_of(machine.replace("4}", "2}") + "stack: deepspeed-hf\njob: {sequence: 256, micro_batch: 1}\nstrategy:\n  {zero: 2, checkpointing: full, "
                      "offload: {optimizer: cpu}}\n", 2)
assert {LOAD, STORE, COMPUTE, COLLECTIVE} <= kinds_in(offloaded[0])

# Folded ranks have no traces of their own; and a file of something else is none.
subprocess.run([stepsim, "run", "s.yaml", "--samples", "0", "--faster", "0", "-o", "folded.h5"], check=True, capture_output=True)
for file, why in (("folded.h5", "--fold off"), ("s.yaml", "is no run file")):
    done = subprocess.run([sys.executable, "-B", chakra, file, "-o", "none"], capture_output=True, text=True)
    assert done.returncode == 2 and why in done.stderr and not os.path.exists("none"), done
