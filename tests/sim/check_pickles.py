"""check_pickles.py PICKLE_AS_JSON: pickles that Python writes are read as Python reads them, or refused."""

import collections
import datetime
import json
import pathlib
import pickle
import pickletools
import subprocess
import sys
import tempfile

program = sys.argv[1]
file = pathlib.Path(tempfile.mkdtemp()) / "f.pickle"


def plain(value):
    """As pickle_as_json shows it."""
    if isinstance(value, dict):
        return [plain(part) for pair in value.items() for part in pair]
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    return value


def read(data):
    file.write_bytes(data)
    done = subprocess.run([program, file], capture_output=True, text=True)
    return done.returncode, done.stdout


frames = [{"name": "forward", "filename": "/a/modeling.py", "line": 7}]
values = [
    None, True, False, 0, -1, 255, 256, 65535, 65536, -(2**31), 2**31, 2**47, 2**63 - 1, -(2**63), 0.1, -1e300, "", "é\u20ac\U0001f600",
    "x" * 300, [], (), {}, (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), list(range(5000)), {str(i): i for i in range(3000)},
    {"segments": [{"address": 2**47 + 512 * i, "frames": frames, "segment_pool_id": (0, 0), "is_expandable": False} for i in range(300)],
     "device_traces": [[{"action": "alloc", "time_us": 1.7e15, "frames": frames}], []]},
]  # fmt: skip
for value in values:
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        for data in (pickle.dumps(value, protocol), pickle._dumps(value, protocol), pickletools.optimize(pickle.dumps(value, protocol))):
            code, said = read(data)
            assert code == 0, (value, protocol, said)
            assert json.loads(said) == plain(value), (value, protocol)


class Harmful:
    def __reduce__(self):
        return (open, (str(file) + ".opened", "w"))


ordered = collections.OrderedDict(a=1)
for value in (Harmful(), ordered, datetime.date(2024, 1, 1), len, {1, 2}, b"bytes", bytearray(b"bytes"), frozenset([1]), 2**64, 1j):
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        code, said = read(pickle.dumps([1, value], protocol))
        assert code == 2 and ": byte " in said, (value, protocol, said)
for protocol in (0, 1):
    code, said = read(pickle.dumps([1], protocol))
    assert code == 2 and said.endswith("byte 0: expected a pickle of protocol 2 to 5, which begins with the byte 0x80\n"), said
assert not pathlib.Path(str(file) + ".opened").exists()
