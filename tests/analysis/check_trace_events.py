"""check_trace_events.py STEPSIM OUT SCENARIO: what `export --perfetto` writes keeps the rules of the
Trace Event format, says the same as the HDF5 trace of the step, and is the same for both."""

import collections
import json
import os
import subprocess
import sys

try:
    import h5py
except ImportError:
    sys.exit(77)

stepsim, out, scenario = sys.argv[1:]
os.makedirs(out, exist_ok=True)
h5, full, small = (os.path.join(out, name) for name in ("step.h5", "full.json", "small.json"))


def run(*words):
    subprocess.run([stepsim, *words], check=True, stdout=subprocess.DEVNULL)


def nanoseconds(microseconds):
    whole = round(microseconds * 1000)
    assert abs(microseconds * 1000 - whole) < 0.01, f"{microseconds} is no whole nanosecond"
    return whole


class Slices:
    """Of one thread: which one is there at a moment."""

    def __init__(self, slices):
        self.slices = sorted(slices)
        for (_, finish), (start, _) in zip(self.slices, self.slices[1:]):
            assert finish <= start, "slices of a thread overlap"

    def has(self, moment):
        low, high = 0, len(self.slices)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self.slices[middle][0] <= moment else (low, middle)
        return low > 0 and moment < self.slices[low - 1][1]


def check_rules(path):
    """The rules of the format, event by event. Returns the events by phase."""
    with open(path) as file:
        trace = json.load(file)
    assert trace["displayTimeUnit"] == "ms"
    by_phase = collections.defaultdict(list)
    for event in trace["traceEvents"]:
        assert event["ph"] in "MXsfC", event
        assert isinstance(event["name"], str) and event["name"], event
        for key in ("pid", "tid"):
            assert isinstance(event[key], int) and event[key] >= 0, event
        assert event["ts"] >= 0, event
        by_phase[event["ph"]].append(event)

    named = {(e["name"], e["pid"], e["tid"]): e["args"] for e in by_phase["M"]}
    slices = collections.defaultdict(list)
    for event in by_phase["X"]:
        assert ("process_name", event["pid"], 0) in named, event
        assert ("thread_name", event["pid"], event["tid"]) in named, event
        start = nanoseconds(event["ts"])
        slices[event["pid"], event["tid"]].append((start, start + nanoseconds(event["dur"])))
        assert event["dur"] >= 0 and event["cat"], event
    threads = {place: Slices(found) for place, found in slices.items()}

    begun = {event["id"]: event for event in by_phase["s"]}
    ended = {event["id"]: event for event in by_phase["f"]}
    assert len(begun) == len(by_phase["s"]) and begun.keys() == ended.keys(), "arrows have two ends"
    for id, begin in begun.items():
        end = ended[id]
        assert end["bp"] == "e" and (begin["name"], begin["cat"]) == (end["name"], end["cat"])
        assert nanoseconds(begin["ts"]) < nanoseconds(end["ts"]), "an arrow points backwards"
        for event in (begin, end):
            place = threads[event["pid"], event["tid"]]
            assert place.has(nanoseconds(event["ts"])), f"no slice at the end of an arrow: {event}"

    last = {}
    for event in by_phase["C"]:
        assert ("process_name", event["pid"], 0) in named, event
        assert event["args"] and all(value >= 0 for value in event["args"].values()), event
        key = event["pid"], event["name"]
        assert last.get(key, 0) <= event["ts"], "a counter runs backwards"
        last[key] = event["ts"]
    return by_phase, named


def busy_by_cause(events):
    sums = collections.Counter()
    for event in events:
        parts = {k[:-4]: v for k, v in event["args"].items() if k.endswith(", us") and " " not in k[:-4]}
        if event["args"].get("operations", 1) == 1:
            parts = {event["cat"]: event["dur"]}
        sums.update(parts)
    return sums


def check_against_h5(events, named):
    with h5py.File(h5) as run:
        ops, patterns, memory = run["ops"], run["patterns"], run["memory"]
        causes = {v: k for k, v in h5py.check_enum_dtype(ops["cause"].dtype).items()}
        ranks = range(run.attrs["ranks"])
        seconds = ops["finish"][:] - ops["start"][:]
        offsets = patterns["members_offsets"][:]
        expected = collections.Counter()
        for cause, pattern, length in zip(ops["cause"][:], ops["pattern"][:], seconds):
            times = 1 if pattern == 4294967295 else offsets[pattern + 1] - offsets[pattern]
            if length > 0:
                expected[causes[cause]] += times * length * 1e6
        for rank in ranks:
            assert ("process_name", rank, 0) in named
        found = busy_by_cause(events["X"])
        assert expected.keys() == found.keys(), (expected.keys(), found.keys())
        for cause, time in expected.items():  # each slice is rounded to a nanosecond
            assert abs(found[cause] - time) <= 0.001 * len(seconds), (cause, found[cause], time)

        held = peak = 0.0
        device = h5py.check_enum_dtype(memory["pool"].dtype)["device"]
        rows = zip(memory["time"][:], memory["delta"][:], memory["rank"][:], memory["pool"][:])
        for _, delta in sorted(((t, d) for t, d, r, p in rows if r == 0 and p == device),
                               key=lambda row: (row[0], row[1] < 0)):
            held += delta
            peak = max(peak, held)
        levels = [sum(e["args"].values()) for e in events["C"]
                  if e["pid"] == 0 and e["name"] == "device memory that comes and goes, GB"]
        assert abs(max(levels) - peak / 1e9) < 1e-4, (max(levels), peak)

        links = {f"{name}, %" for name, bytes in zip(run["links/name"].asstr()[:], run["links/bytes"][:])
                 if bytes > 0}
        assert links == {e["name"] for e in events["C"] if e["pid"] == len(ranks)}


run("run", scenario, "--samples", "0", "-o", h5)
run("export", h5, "--perfetto", full, "--max-events", "10000000")
events, named = check_rules(full)
check_against_h5(events, named)
assert {e["name"] for e in events["s"]} == {"launch", "into collective"}

# From the scenario itself: the same bytes.
run("export", scenario, "--perfetto", small, "--max-events", "10000000")
with open(full, "rb") as a, open(small, "rb") as b:
    assert a.read() == b.read(), "a scenario and its saved trace are exported differently"

# Fewer events: the same time, in slices that several operations share.
run("export", h5, "--perfetto", small, "--max-events", "2000")
fewer, named = check_rules(small)
assert len(fewer["X"]) + len(fewer["s"]) + len(fewer["f"]) <= 2000
assert any(e["args"].get("operations", 1) > 1 for e in fewer["X"])
assert sum(e["args"].get("operations", 1) for e in fewer["X"]) == len(events["X"])
check_against_h5(fewer, named)
print(f"{len(events['X'])} slices, {len(events['s'])} arrows, {len(events['C'])} counts")
