"""check_paje.py STEPSIM OUT SCENARIO: what `export --as paje` writes keeps the rules of the Paje format as PajeNG reads it, says the
same as the HDF5 trace of the step, and is the same for both. Where pj_dump is installed, it reads the file as well."""

import collections
import os
import re
import shutil
import subprocess
import sys

try:
    import h5py
except ImportError:
    sys.exit(77)

stepsim, out, scenario = sys.argv[1:]
os.makedirs(out, exist_ok=True)
h5, full, small, again = (os.path.join(out, name) for name in ("step.h5", "full.paje", "small.paje", "again.paje"))

# PajeNG's PajeDefinitions.cc: what an event has to have, in its strict mode. Other fields of PushState are a user's own.
TYPE = {"Alias", "Type", "Name"}
AT = {"Time", "Type", "Container"}
FIELDS = {
    "PajeDefineContainerType": TYPE,
    "PajeDefineStateType": TYPE,
    "PajeDefineVariableType": TYPE,
    "PajeDefineEntityValue": TYPE,
    "PajeDefineLinkType": TYPE | {"StartContainerType", "EndContainerType"},
    "PajeCreateContainer": AT | {"Alias", "Name"},
    "PajeDestroyContainer": {"Time", "Type", "Name"},
    "PajeSetVariable": AT | {"Value"},
    "PajePushState": AT | {"Value"},
    "PajePopState": AT,
    "PajeStartLink": AT | {"Value", "StartContainer", "Key"},
    "PajeEndLink": AT | {"Value", "EndContainer", "Key"},
}
WORDS = re.compile(r'"[^"]*"|[^\s"]+')


def run(*words):
    subprocess.run([stepsim, *words], check=True, stdout=subprocess.DEVNULL)


def events_of(path):
    """Of each line the event's name and its fields, as the file itself defines them."""
    definitions, current, before = {}, None, 0.0
    with open(path, encoding="utf-8") as file:
        for line in file:
            words = WORDS.findall(line)
            assert len(words) <= 20, "PajeNG reads no more words of a line"
            if line.startswith("%EventDef "):
                _, name, number = words
                assert current is None and number not in definitions and name in FIELDS, line
                current = definitions[number] = (name, [])
            elif line.startswith("%EndEventDef"):
                name, fields = current
                assert FIELDS[name] <= {field for field, _ in fields}, (name, fields)
                assert name == "PajePushState" or len(FIELDS[name]) == len(fields), (name, fields)
                current = None
            elif line.startswith("%"):
                _, field, kind = words
                assert kind in ("string", "double", "int", "date"), line
                current[1].append((field, kind))
            else:
                assert current is None
                name, fields = definitions[words[0]]
                assert len(words) == len(fields) + 1, line
                event = {"event": name}
                for (field, kind), word in zip(fields, words[1:]):
                    event[field] = float(word) if kind in ("double", "date") else int(word) if kind == "int" else word.strip('"')
                assert before <= event.get("Time", before), "events are not in the order of time"
                before = event.get("Time", before)
                yield event


class Trace:
    """What the events come to; every rule that PajeNG's simulator has is asserted."""

    def __init__(self, path):
        self.types = {"0": ("container", None, "0", None)}  # alias: nature, parent, name, ends of a link
        self.values = collections.defaultdict(dict)
        self.containers = {"0": ("0", None, "0")}  # alias: type, parent, name
        self.alive, self.states, self.links = {"0"}, [], []
        self.open, self.begun = {}, {}
        self.variables = collections.defaultdict(list)
        for event in events_of(path):
            getattr(self, event["event"][4:])(event)
        assert self.alive == {"0"} and not self.open and not self.begun

    def define(self, event, nature, ends=None):
        assert event["Alias"] not in self.types and self.types[event["Type"]][0] == "container", event
        self.types[event["Alias"]] = (nature, event["Type"], event["Name"], ends)

    def DefineContainerType(self, event):
        self.define(event, "container")

    def DefineStateType(self, event):
        self.define(event, "state")

    def DefineVariableType(self, event):
        self.define(event, "variable")

    def DefineLinkType(self, event):
        self.define(event, "link", (event["StartContainerType"], event["EndContainerType"]))

    def DefineEntityValue(self, event):
        assert self.types[event["Type"]][0] in ("state", "link")
        assert event["Alias"] not in self.values[event["Type"]]
        self.values[event["Type"]][event["Alias"]] = event["Name"]

    def CreateContainer(self, event):
        assert event["Alias"] not in self.containers and event["Container"] in self.alive, event
        assert self.types[event["Type"]][1] == self.containers[event["Container"]][0], event
        self.containers[event["Alias"]] = (event["Type"], event["Container"], event["Name"])
        self.alive.add(event["Alias"])

    def DestroyContainer(self, event):
        assert self.containers[event["Name"]][0] == event["Type"]
        self.alive.remove(event["Name"])

    def belongs(self, event, nature):
        kind, parent, _, _ = self.types[event["Type"]]
        assert kind == nature and event["Container"] in self.alive, event
        assert parent == self.containers[event["Container"]][0], event
        return event["Container"], event["Type"]

    def PushState(self, event):
        place = self.belongs(event, "state")
        assert place not in self.open, "a stream does two things at once"
        self.open[place] = {**event, "name": self.values[event["Type"]][event["Value"]]}

    def PopState(self, event):
        state = self.open.pop(self.belongs(event, "state"))
        assert event["Time"] > state["Time"]
        self.states.append({**state, "seconds": event["Time"] - state["Time"]})

    def SetVariable(self, event):
        self.variables[self.belongs(event, "variable")].append((event["Time"], event["Value"]))

    def StartLink(self, event):
        self.belongs(event, "link")
        assert event["Key"] not in self.begun and event["Value"] in self.values[event["Type"]]
        self.begun[event["Key"]] = event

    def EndLink(self, event):
        self.belongs(event, "link")
        start = self.begun.pop(event["Key"])
        assert (start["Type"], start["Value"]) == (event["Type"], event["Value"])
        ends = self.types[event["Type"]][3]
        assert ends == (self.containers[start["StartContainer"]][0], self.containers[event["EndContainer"]][0])
        self.links.append(start)

    def named(self, kind):
        """The containers of a type, by name, and what they stand in."""
        return {name: self.containers[parent][2] for _, (type_, parent, name) in self.containers.items()
                if self.types[type_][2] == kind}


def wire_bytes(file):
    """Of each link, headers included."""
    patterns, ops = file["patterns"], file["ops"]
    rounds, flows, paths = (patterns[name][:] for name in ("round_offsets", "flow_offsets", "path_offsets"))
    wire, links, weight = patterns["flow_wire"][:], patterns["path_links"][:], file["links/weight"][:]
    per_byte = []
    for first, last in zip(rounds, rounds[1:]):
        sums = collections.Counter()
        for flow in range(flows[first], flows[last]):
            for link in links[paths[flow] : paths[flow + 1]]:
                sums[link] += wire[flow] * weight[link]
        per_byte.append(sums)
    carried = collections.Counter()
    for pattern, amount, start, finish in zip(ops["pattern"][:], ops["bytes"][:], ops["start"][:], ops["finish"][:]):
        if pattern != 4294967295 and finish > start:
            for link, share in per_byte[pattern].items():
                carried[link] += share * amount
    return carried


def check_against_h5(trace):
    with h5py.File(h5) as file:
        ops, patterns, end = file["ops"], file["patterns"], file.attrs["makespan"]
        kinds = {v: k for k, v in h5py.check_enum_dtype(ops["kind"].dtype).items()}
        devices, links = file["devices/name"].asstr()[:], file["links/name"].asstr()[:]
        assert list(trace.named("GPU")) == list(devices)
        assert list(trace.named("HOST")) == [f"host of {name}" for name in devices]
        carried = wire_bytes(file)
        found = {**trace.named("LINK"), **trace.named("LINK_BETWEEN_NODES")}
        assert found.keys() == {links[link] for link, amount in carried.items() if amount > 0}
        for name, node in {**trace.named("GPU"), **trace.named("LINK")}.items():
            assert node == (name.split(".")[0] if name.startswith("node") else "node0"), (name, node)

        offsets, expected = patterns["members_offsets"][:], collections.Counter()
        for kind, pattern, seconds in zip(ops["kind"][:], ops["pattern"][:], ops["finish"][:] - ops["start"][:]):
            if seconds > 0 and kinds[kind] != "join":
                expected[kinds[kind]] += seconds * (1 if pattern == 4294967295 else int(offsets[pattern + 1] - offsets[pattern]))
        busy = collections.Counter()
        for state in trace.states:
            of_host = trace.types[trace.containers[state["Container"]][0]][2] == "HOST"
            assert of_host or state["Kind"] not in ("host", "cpu"), state
            busy[state["Kind"]] += state["seconds"]
        assert busy.keys() == expected.keys()
        for kind, seconds in expected.items():  # each end of a state is rounded to a nanosecond
            assert abs(busy[kind] - seconds) <= 1e-9 * len(trace.states) + 1e-9 * seconds, (kind, busy[kind], seconds)

        place = {trace.containers[alias][2]: alias for alias in trace.containers}
        by_name = {name: i for i, name in enumerate(links)}
        for name in found:
            alias = place[name]
            (used,) = [v for (c, t), v in trace.variables.items() if c == alias and trace.types[t][2] == "bandwidth_used"]
            area = sum(value * (until - at) for (at, value), (until, _) in zip(used, used[1:] + [(end, 0)]))
            bytes_ = carried[by_name[name]]
            assert abs(area - bytes_) <= 1e-4 * bytes_, (name, area, bytes_)


def check_with_pj_dump(trace, path):
    if not shutil.which("pj_dump"):
        return
    dump = subprocess.run(["pj_dump", "--user-defined", "--float-precision=9", path], check=True, capture_output=True, text=True).stdout
    lines = collections.defaultdict(list)
    for line in dump.splitlines():
        lines[line.split(", ")[0]].append(line.split(", "))
    assert len(lines["State"]) == len(trace.states)
    assert len(lines["Link"]) == len(trace.links)
    assert {line[-1] for line in lines["Container"]} >= {name for _, _, name in trace.containers.values()} - {"0"}
    # State, container, type, start, end, duration, level, value, and what a user defines
    seconds = sum(float(line[5]) for line in lines["State"])
    expected = sum(state["seconds"] for state in trace.states)
    assert abs(seconds - expected) <= 1e-9 * len(trace.states), (seconds, expected)
    assert {line[7] for line in lines["State"]} == {state["name"] for state in trace.states}


run("run", scenario, "--samples", "0", "-o", h5)
run("export", h5, "--as", "paje", "-o", full, "--max-events", "10000000")
trace = Trace(full)
assert all(state["Operations"] == 1 for state in trace.states) and trace.links
check_against_h5(trace)
check_with_pj_dump(trace, full)

run("export", scenario, "--as", "paje", "-o", again, "--max-events", "10000000")
with open(full, "rb") as one, open(again, "rb") as other:
    assert one.read() == other.read(), "a run and its scenario are written differently"

run("export", h5, "--as", "paje", "-o", small, "--max-events", "1000")
few = Trace(small)
assert len(few.states) + 2 * len(few.links) <= 1000
assert sum(state["Operations"] for state in few.states) >= len(trace.states)
check_with_pj_dump(few, small)
