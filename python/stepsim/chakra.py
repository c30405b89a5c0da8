#!/usr/bin/env python3
"""chakra.py RUN.h5 -o FOLDER: a step as Chakra's execution traces, which ASTRA-sim's feeder reads.

Writes NAME.R.et for each rank R and NAME.json, the groups of its collectives, where NAME is that of the run file. RUN.h5 has to hold every
rank: `stepsim run SCENARIO --fold off -o RUN.h5`. Needs h5py.

What a node's type cannot say stands in its attributes: the times of our replay in seconds (`start_s`, `finish_s`), `stream`, `cause`, `phase`,
`layer` and `micro_batch`. Exit code 2: the run file does not do.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import struct
import sys
from typing import Any

# Of the schema's NodeType and CollectiveCommType, as of version 0.0.4.
MEMORY_LOAD, MEMORY_STORE, COMPUTE, SEND, RECEIVE, COLLECTIVE = 2, 3, 4, 5, 6, 7
COLLECTIVES = {"all_reduce": 0, "all_gather": 2, "broadcast": 5, "all_to_all": 6, "reduce_scatter": 7}
VARINT, EIGHT_BYTES, COUNTED = 0, 1, 2  # wire types of protobuf


class Refused(Exception):
    """The run file does not hold what a trace needs."""


def varint(value: int) -> bytes:
    done = bytearray()
    while value > 0x7F:
        done.append(value & 0x7F | 0x80)
        value >>= 7
    done.append(value)
    return bytes(done)


def number(field: int, value: int) -> bytes:
    return varint(field << 3 | VARINT) + varint(value & (1 << 64) - 1)


def counted(field: int, value: bytes) -> bytes:
    return varint(field << 3 | COUNTED) + varint(len(value)) + value


def attribute(name: str, value: Any) -> bytes:
    """AttributeProto: its name, and the member of `value` that the type of ours goes into; whole numbers go into what the feeder asks for."""
    text = counted(1, name.encode())
    if isinstance(value, bool):
        text += number(27, value)
    elif isinstance(value, float):
        text += varint(3 << 3 | EIGHT_BYTES) + struct.pack("<d", value)
    elif isinstance(value, str):
        text += counted(29, value.encode())
    else:
        field = {"tensor_size": 13, "comm_src": 7, "comm_dst": 7, "comm_tag": 7}.get(name, 9)
        text += number(field, int(value))
    return counted(10, text)


def node(place: int, name: str, kind: int, before: list[int], times: tuple[float, float], attributes: dict[str, Any]) -> bytes:
    """Node, behind its length: `before` are data dependencies, times are rounded to the microseconds that the schema has."""
    start, finish = times
    text = number(1, place) + counted(2, name.encode()) + number(3, kind)
    if before:
        text += counted(5, b"".join(varint(each) for each in before))
    text += number(6, round(1e6 * start)) + number(7, round(1e6 * (finish - start)))
    text += attribute("start_s", start) + attribute("finish_s", finish)
    text += b"".join(attribute(key, value) for key, value in attributes.items())
    return varint(len(text)) + text


def lists(offsets: Any, values: Any) -> list[list[int]]:
    ends, all_of = offsets[:].tolist(), values[:].tolist()
    return [all_of[begin:end] for begin, end in zip(ends, ends[1:])]


class Run:
    """A run file in memory: operations with the ranks that take part in each."""

    def __init__(self, path: str) -> None:
        import h5py  # the system's, which other parts of this package do without

        try:
            file = h5py.File(path)
        except OSError as error:
            raise Refused(f"{path}: is no run file: {error}") from error
        with file:
            if "ops" not in file or "lane_sizes" not in file.attrs:
                raise Refused(f"{path}: is no run file: expected what `stepsim run -o` writes")
            if file.attrs["schema_version"] != 3:
                raise Refused(f"{path}: is of layout {file.attrs['schema_version']}; expected 3")
            if (file.attrs["lane_sizes"] != 1).any():
                raise Refused(f"{path}: some ranks stand for others; expected each by itself: stepsim run ... --fold off")
            self.ranks = int(file.attrs["ranks"])
            names = file["names"].asstr()[:].tolist()
            ops, patterns = file["ops"], file["patterns"]
            self.columns: dict[str, list[Any]] = {}
            for key in ops:
                column = ops[key][:].tolist()
                words = h5py.check_enum_dtype(ops[key].dtype)
                if words:
                    said = {value: word for word, value in words.items()}
                    column = [said[value] for value in column]
                self.columns[key] = [names[value] for value in column] if key == "name" else column
            self.traffic = [name.split()[0] for name in patterns["name"].asstr()[:].tolist()]  # "all_gather"
            self.members = lists(patterns["members_offsets"], patterns["members"])
            flows = patterns["flow_offsets"][:][patterns["round_offsets"][:-1]].tolist()
            ends = patterns["flow_source"][:].tolist(), patterns["flow_target"][:].tolist()
            self.first_flow = [(ends[0][flow], ends[1][flow]) if flow < len(ends[0]) else (0, 0) for flow in flows]
            self.before = lists(file["edges/offsets"], file["edges/targets"])

    def members_of(self, op: int) -> list[int]:
        pattern = self.columns["pattern"][op]
        if self.columns["kind"][op] in ("collective", "transfer") and pattern < len(self.members):
            return list(self.members[pattern])
        return [self.columns["rank"][op]]


def collective_of(run: Run, op: int, groups: dict[tuple[int, ...], int]) -> dict[int, tuple[int, dict[str, Any]]]:
    pattern, members, size = run.columns["pattern"][op], run.members_of(op), run.columns["bytes"][op]
    word = run.traffic[pattern]
    if word == "send":
        source, target = run.first_flow[pattern]
        ends = {"is_cpu_op": False, "comm_size": round(size), "comm_src": source, "comm_dst": target, "comm_tag": op}
        return {source: (SEND, ends), target: (RECEIVE, ends)}
    if word not in COLLECTIVES:
        raise Refused(f"the schema has no collective \"{word}\"")
    if word == "all_gather":  # ASTRA-sim counts what each rank brings, nccl-tests and we the whole
        size /= len(members)
    group = groups.setdefault(tuple(sorted(members)), len(groups) + 1)
    found = COLLECTIVE, {"is_cpu_op": False, "comm_type": COLLECTIVES[word], "comm_size": round(size), "pg_name": str(group)}
    return {rank: found for rank in members}


def nodes_of(run: Run, op: int, groups: dict[tuple[int, ...], int]) -> dict[int, tuple[int, dict[str, Any]]]:
    """Returns the node that each rank has of an operation: its type and attributes."""
    kind, size = run.columns["kind"][op], round(run.columns["bytes"][op])
    members = run.members_of(op)
    if kind == "collective" and len(members) > 1:
        return collective_of(run, op, groups)
    if kind == "transfer":
        found = MEMORY_STORE if run.columns["stream"][op] in ("d2h", "drive_out") else MEMORY_LOAD, {"is_cpu_op": False, "tensor_size": size}
        return {rank: found for rank in members}
    work: dict[str, Any] = {"is_cpu_op": kind != "compute"}
    if run.columns["flops"][op] > 0:
        work["num_ops"] = round(run.columns["flops"][op])
    if size > 0:
        work["tensor_size"] = size
    return {members[0]: (COMPUTE, work)}


def write_traces(run: Run, folder: pathlib.Path, name: str) -> int:
    """Writes the files and returns how many nodes they have."""
    groups: dict[tuple[int, ...], int] = {}
    held: list[set[int]] = [set() for _ in range(run.ranks)]
    texts = [bytearray(varint(len(meta)) + meta) for meta in [counted(1, b"0.0.4")] * run.ranks]
    columns, count = run.columns, 0
    for op in range(len(columns["rank"])):
        times = columns["start"][op], columns["finish"][op]
        for rank, (kind, own) in nodes_of(run, op, groups).items():
            before = sorted(each for each in set(run.before[op]) if each in held[rank])
            said = {key: columns[key][op] for key in ("stream", "cause", "phase", "layer", "micro_batch") if columns[key][op] != -1}
            texts[rank] += node(op, columns["name"][op], kind, before, times, {**own, **said})
            held[rank].add(op)
            count += 1
    folder.mkdir(parents=True, exist_ok=True)
    for rank, text in enumerate(texts):
        place = folder / f"{name}.{rank}.et"
        place.with_suffix(".part").write_bytes(text)
        os.replace(place.with_suffix(".part"), place)
    (folder / f"{name}.json").write_text(json.dumps({str(group): members for members, group in groups.items()}) + "\n")
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n\n")[0], epilog="\n\n".join(str(__doc__).split("\n\n")[1:]),
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", metavar="RUN.h5")
    parser.add_argument("-o", "--output", metavar="FOLDER", required=True)
    words = parser.parse_args()
    try:
        count = write_traces(run := Run(words.run), pathlib.Path(words.output), pathlib.Path(words.run).stem)
    except ImportError:
        sys.exit("chakra.py: needs h5py, which the package python3-h5py has")
    except (Refused, OSError) as error:
        print(f"chakra.py: {error}", file=sys.stderr)
        sys.exit(2)
    print(f"{words.output}: {count} nodes of {run.ranks} ranks, with the groups of their collectives in {pathlib.Path(words.run).stem}.json")


if __name__ == "__main__":
    main()
