"""check_memory_viz.py STEPSIM OUT SCENARIO [KEY=VALUE...]: what `export --memory-viz` writes is a snapshot as PyTorch's allocator gives it, says the
same as the prediction, and is the same from a saved trace."""

import bisect
import json
import os
import pickle
import subprocess
import sys

stepsim, out, scenario, *settings = sys.argv[1:]
changed = [word for setting in settings for word in ("--set", setting)]
os.makedirs(out, exist_ok=True)
saved, file, again = (os.path.join(out, name) for name in ("step.h5", "memory.pickle", "again.pickle"))


def run(*words):
    done = subprocess.run([stepsim, *words], stdout=subprocess.PIPE, text=True)
    assert done.returncode in (0, 1), words  # 1: it does not fit
    return done.stdout


answer = json.loads(run("run", scenario, *changed, "--samples", "0", "--json", "-o", saved))
said = run("export", scenario, *changed, "--memory-viz", file)
run("export", saved, "--memory-viz", again)
with open(file, "rb") as a, open(again, "rb") as b:
    data = a.read()
    assert data == b.read(), "a scenario and its saved trace are exported differently"
snapshot = pickle.loads(data)
assert set(snapshot) == {"segments", "device_traces", "allocator_settings"}
(trace,) = snapshot["device_traces"]
expandable = snapshot["allocator_settings"]["expandable_segments"]


def check_frames(frames):
    assert frames
    for frame in frames:
        assert set(frame) == {"name", "filename", "line"} and frame["name"] and frame["filename"] and frame["line"] == 0, frame


# The trace, event by event: nothing overlaps, what is given back was taken, and lies where the driver gave memory.
live, asked, mapped = {}, {}, {}
now = peak = reserved = 0
classes = at_peak = {}
last_time = 0
for entry in trace:
    action, size, stream = entry["action"], entry["size"], entry["stream"]
    assert size > 0 and stream in (0, 1, 2) and entry["time_us"] >= last_time, entry
    last_time = entry["time_us"]
    check_frames(entry["frames"])
    if action == "oom":
        assert entry["device_free"] >= 0
        continue
    address = entry["addr"]
    if action in ("segment_alloc", "segment_map"):
        assert (action == "segment_map") == expandable and size % 2**21 == 0
        assert address not in mapped
        mapped[address] = size, stream
        reserved += size
    elif action in ("segment_free", "segment_unmap"):
        reserved -= size
        if action == "segment_free":
            assert mapped.pop(address) == (size, stream)
    elif action == "alloc":
        assert address % 512 == 0 and address not in live
        live[address] = size, stream, entry["frames"][0]["name"]
        now += size
        name = entry["frames"][0]["name"]
        classes[name] = classes.get(name, 0) + size
        if now > peak:
            peak, at_peak = now, {name: size for name, size in classes.items() if size > 0}
    elif action == "free_requested":
        assert live[address][:2] == (size, stream), (entry, live[address])
        asked[address] = size
    elif action == "free_completed":
        assert asked.pop(address) == size
        classes[live.pop(address)[2]] -= size
        now -= size
    else:
        raise AssertionError(action)
assert not asked

# Two that are there at the same moment do not overlap: by address, with a list that is kept in order.
order, ends = [], {}
for entry in trace:
    if entry["action"] == "alloc":
        at, end = entry["addr"], entry["addr"] + entry["size"]
        place = bisect.bisect(order, at)
        assert place == 0 or ends[order[place - 1]] <= at, entry
        assert place == len(order) or end <= order[place], entry
        order.insert(place, at)
        ends[at] = end
    elif entry["action"] == "free_completed":
        del order[bisect.bisect_left(order, entry["addr"])]

# The segments are what the trace leaves behind.
left, total = {}, 0
for segment in snapshot["segments"]:
    assert segment["device"] == 0 and segment["segment_type"] in ("large", "small") and segment["segment_pool_id"] == (0, 0)
    assert segment["is_expandable"] == expandable
    check_frames(segment["frames"])
    address, used, requested = segment["address"], 0, 0
    for block in segment["blocks"]:
        assert block["address"] == address and block["size"] >= max(block["requested_size"], 512) and block["size"] % 512 == 0
        address += block["size"]
        if block["state"] == "active_allocated":
            check_frames(block["frames"])
            left[block["address"]] = block["requested_size"], segment["stream"], block["frames"][0]["name"]
            used += block["size"]
            requested += block["requested_size"]
        else:
            assert block["state"] == "inactive" and block["requested_size"] == 0 and block["frames"] == []
    assert segment["allocated_size"] == segment["active_size"] == used and segment["requested_size"] == requested
    assert address == segment["address"] + segment["total_size"]
    total += segment["total_size"]
assert left == live and total == reserved, (total, reserved)

# The peak is the one that `run` prints, class by class; each request is rounded to a byte.
printed = {name.removesuffix("_bytes"): size for name, size in answer["classes"].items()}
for own in ("allocator_slack", "library"):
    del printed[own]
assert set(printed) == set(at_peak), (printed, at_peak)
for name, size in printed.items():
    assert abs(size - at_peak[name]) <= len(trace), (name, size, at_peak[name])
print(said)
