"""read_trace.py TRACE-FORMAT.MD TINY_TRACE: does the example in the documentation do what it says, and
does stepsim refuse files that other programs have changed? Exits with 77 (skipped) without h5py."""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

try:
    import h5py
    import numpy as np
except ImportError:
    sys.exit(77)

document, tiny_trace = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
folder = pathlib.Path(tempfile.mkdtemp())
failures = 0


def expect(what, found, wanted):
    global failures
    if found != wanted:
        failures += 1
        print(f"{what}:\n  expected {wanted!r}\n  found    {found!r}")


def message_about(file):
    """What stepsim says about a file, without the file's name."""
    result = subprocess.run([tiny_trace, "read", file], capture_output=True, text=True)
    if result.returncode not in (0, 2):
        return f"exit code {result.returncode}: {result.stderr}"
    return result.stdout.removeprefix(f"{file}: ").strip()


def changed(change):
    """A copy of the run after `change`."""
    file = folder / "changed.h5"
    shutil.copy(folder / "run.h5", file)
    with h5py.File(file, "r+") as run:
        change(run)
    return file


def replace(run, path, data):
    del run[path]
    run[path] = data


def add_one(run, path):
    run[path][...] = run[path][...] + 1


try:
    subprocess.run([tiny_trace, "write", folder / "run.h5"], check=True)

    # The example, against numbers reckoned from tests/support/tiny_run.hpp.
    (example,) = re.findall(r"```python\n(.*?)```", document.read_text(), re.S)
    result = subprocess.run([sys.executable, "-c", example], cwd=folder, capture_output=True, text=True)
    computed, gathered, again = 1, 0.5, 0.5
    wanted = [
        f"compute: {computed:.3f} s",
        f"recompute: {again:.3f} s",
        f"gather_bytes: {gathered:.3f} s",
        f"gpu0 -> gpu1 is busy {0.5 / 3:.1%} of the time",
        f"peak device memory: {3 + 2:.1f} GB at 2.000 s",
    ]
    expect("the example", (result.stdout.splitlines(), result.stderr), (wanted, ""))

    with h5py.File(folder / "run.h5") as run:
        text = document.read_text()
        for attribute in run.attrs:
            expect(f"{attribute} is documented", f"`{attribute}`" in text, True)
        columns = []
        run.visititems(lambda path, item: columns.append(path) if isinstance(item, h5py.Dataset) else None)
        for path in columns:
            name = path.split("/")[-1]
            if not path.startswith("summary/"):
                expect(f"{path} is documented", re.search(rf"\b{name}\b", text) is not None, True)
        expect("unit of /ops/flops", run["ops/flops"].attrs["unit"], b"FLOP")
        expect("unit of a ratio", run["summary/mfu"].attrs["unit"], b"")
        expect("scenario", run["scenario"].asstr()[()].splitlines()[0], "name: tiny, größer als null")

    # Files that HDF5 finds flawless, but that are no run.
    damaged = "is damaged or no run: "
    expect("untouched", message_about(changed(lambda run: None)), "")
    expect("other version",
           message_about(changed(lambda run: run.attrs.modify("schema_version", np.uint32(4)))),
           "was written by a later stepsim, 0.1.0: it has schema version 4, and this one reads version 3")
    expect("no version", message_about(changed(lambda run: run.attrs.pop("schema_version"))),
           damaged + "schema_version: is missing")
    expect("missing column", message_about(changed(lambda run: run.__delitem__("ops/rank"))),
           damaged + "/ops/rank: H5Dopen2 failed")
    expect("other type", message_about(changed(lambda run: replace(run, "ops/rank", [0.5, 1, 2, 3]))),
           damaged + "/ops/rank: has another type")
    expect("text of any length", message_about(changed(lambda run: replace(run, "names", ["a", "b"]))),
           damaged + "/names: has another type")
    expect("scenario", message_about(changed(lambda run: run["scenario"].__setitem__((), "x"))),
           damaged + "the scenario does not match its digest")
    expect("short column",
           message_about(changed(lambda run: replace(run, "ops/layer", np.zeros(3, "<i2")))),
           damaged + "the columns of a table differ in length")
    expect("endless column",
           message_about(changed(lambda run: (run.__delitem__("ops/layer"),
                                              run.create_dataset("ops/layer", (1 << 40,), "<i2", chunks=(64,))))),
           damaged + "/ops/layer: is too long")
    expect("column that was never written",
           message_about(changed(lambda run: (run.__delitem__("ops/layer"),
                                              run.create_dataset("ops/layer", (1 << 12,), "<i2", chunks=(64,))))),
           damaged + "/ops/layer: is too long")

    # Values that lie elsewhere would put any file of this machine into what is made of the run.
    def outside(run):
        old = run["names"]
        size = old.dtype.itemsize
        kind = h5py.h5t.C_S1.copy()
        kind.set_size(size)
        kind.set_cset(h5py.h5t.CSET_UTF8)
        kind.set_strpad(h5py.h5t.STR_NULLPAD)
        made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        made.set_external(str(folder / "secret").encode(), 0, old.shape[0] * size)
        space = h5py.h5s.create_simple(old.shape)
        del run["names"]
        h5py.h5d.create(run.id, b"names", kind, space, made)

    def virtual(run):
        old = run["ops/layer"]
        layout = h5py.VirtualLayout(old.shape, old.dtype)
        layout[:] = h5py.VirtualSource(str(folder / "run.h5"), "ops/layer", old.shape)
        del run["ops/layer"]
        run.create_virtual_dataset("ops/layer", layout)

    (folder / "secret").write_bytes(b"secret" * 1000)
    expect("external storage", message_about(changed(outside)), damaged + "/names: lies in another file")
    expect("virtual layout", message_about(changed(virtual)), damaged + "/ops/layer: lies in another file")
    for what, link in ("external", h5py.ExternalLink("run.h5", "/scenario")), ("soft", h5py.SoftLink("/names")):
        expect(f"{what} link", message_about(changed(lambda run: replace(run, "scenario", link))),
               damaged + "holds a link to elsewhere")

    times = damaged + "an operation's times are out of order, or of the run"
    for what, value in ("endless", np.nan), ("huge", 1e300), ("negative", -1.0):
        expect(f"{what} makespan", message_about(changed(lambda run: run.attrs.modify("makespan", value))), times)
        expect(f"{what} start", message_about(changed(lambda run: run["ops/start"].__setitem__(0, value))), times)
    expect("end before the start",
           message_about(changed(lambda run: run["ops/finish"].__setitem__(..., run["ops/finish"][:][::-1]))), times)
    expect("later predecessor", message_about(changed(lambda run: add_one(run, "edges/targets"))),
           damaged + "an operation may depend only on earlier ones")
    expect("unknown link", message_about(changed(lambda run: add_one(run, "devices/engines"))),
           damaged + "device gpu1 names an unknown engine link")
finally:
    shutil.rmtree(folder)

sys.exit(1 if failures else 0)
