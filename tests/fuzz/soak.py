"""soak.py STEPSIM FAULTS.so TINY.yaml MINUTES [SEED]: a sweep that is killed, runs out of room and out of time, over and over.

Trials of one sweep, until the time is gone: each is interrupted some times, by SIGKILL of it, SIGKILL of one of its workers, a limit on the
size of files, a full disk (where one can be mounted), or a clock that jumps; then it is let to its end. No point of the journal may be lost
or stand there twice, and the table must be the same byte for byte. Prints counts; exit code 1: something was lost.
"""
import collections
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

stepsim, faults, tiny = (str(pathlib.Path(word).resolve()) for word in sys.argv[1:4])
minutes = float(sys.argv[4])
dice = random.Random(int(sys.argv[5]) if len(sys.argv) > 5 else time.time_ns())
WORDS = ["sweep", "tiny.yaml", "--vary", "job.micro_batch=1:24", "--vary", "strategy.zero=2,3", "--workers", "2", "-o", "table"]
POINTS = 48
counts = collections.Counter()


def start(folder, clock=False, most_bytes=None):
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder)}
    if clock:
        environment |= {"LD_PRELOAD": faults, "STEPSIM_FAULT": "clock:0"}

    def limit():
        if most_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))

    return subprocess.Popen([stepsim, *WORDS], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, preexec_fn=limit)


def points_in(folder):
    """Numbers of the points whose lines are whole."""
    journal = folder / "table.journal"
    lines = journal.read_bytes().split(b"\n")[1:-1] if journal.exists() else []
    return [int(line.split(b"\t")[0]) for line in lines]


def children_of(process):
    try:
        return pathlib.Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        return []


def kill_worker(child):
    workers = children_of(child.pid)
    if not workers:
        return False
    try:
        os.kill(int(dice.choice(workers)), signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def interrupt(folder, seconds):
    """One begun sweep and one misfortune."""
    kind = dice.choice(["kill", "kill", "worker", "limit", "clock"])
    child = start(folder, clock=kind == "clock", most_bytes=dice.randrange(200, 30000) if kind == "limit" else None)
    if kind != "limit":
        time.sleep(dice.uniform(0, seconds))
    happened = kind == "limit"
    if kind in ("kill", "clock") and child.poll() is None:
        os.kill(child.pid, signal.SIGKILL)
        happened = True
    elif kind == "worker":
        happened = kill_worker(child)
    child.communicate(timeout=600)
    counts[kind] += happened
    counts["kills"] += happened and kind != "limit"
    counts["full disks"] += kind == "limit" and child.returncode == 2
    if child.returncode not in (0, 2, 3, -signal.SIGKILL):
        counts["ended otherwise"] += 1
        print(f"{kind}: ended with {child.returncode}", flush=True)


def tables(folder):
    return [(folder / name).read_bytes() if (folder / name).exists() else None for name in ("table.csv", "table.h5")]


def trial(folder, sound, seconds):
    shutil.copy(tiny, folder / "tiny.yaml")
    before = []
    for _ in range(dice.choice([1, 2, 3, 5])):
        interrupt(folder, seconds)
        now = points_in(folder)
        counts["points twice"] += len(now) - len(set(now))
        if (folder / "table.journal").exists() or tables(folder) == [None, None]:
            counts["points lost"] += len(set(before) - set(now))
            before = now
        else:  # it came to its end
            break
    child = start(folder)
    _, error = child.communicate(timeout=600)
    if child.returncode != 0 or tables(folder) != sound:
        counts["wrong tables"] += 1
        print(f"ended with {child.returncode}, {'another' if tables(folder) != sound else 'the same'} table: {error[-300:]}", flush=True)
    left = [name for name in os.listdir(folder) if name not in ("tiny.yaml", "table.csv", "table.h5")]
    counts["files left"] += len(left)
    counts["trials"] += 1


def full_disk(place, sound):
    """The same on a disk that is full, and then no longer."""
    folder = pathlib.Path(place) / "small"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(folder)], capture_output=True, check=False).returncode:
        counts["no tmpfs"] = 1
        folder.rmdir()
        return
    try:
        shutil.copy(tiny, folder / "tiny.yaml")
        room = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
        (folder / "filler").write_bytes(b"x" * max(0, room - dice.randrange(4096, 49152, 4096)))
        child = start(folder)
        child.communicate(timeout=600)
        counts["full disks"] += child.returncode == 2
        (folder / "filler").unlink()
        child = start(folder)
        child.communicate(timeout=600)
        counts["wrong tables"] += child.returncode != 0 or tables(folder) != sound
    finally:
        subprocess.run(["umount", str(folder)], check=True)
        folder.rmdir()


def main():
    until = time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory() as place:
        reference = pathlib.Path(place) / "reference"
        reference.mkdir()
        shutil.copy(tiny, reference / "tiny.yaml")
        begun = time.monotonic()
        start(reference).communicate(timeout=600)
        seconds = time.monotonic() - begun
        sound = tables(reference)
        assert None not in sound and sound[0].count(b"\n") == POINTS + 1, "the sweep itself does not run"
        while time.monotonic() < until:
            folder = pathlib.Path(place) / "trial"
            folder.mkdir()
            trial(folder, sound, seconds)
            shutil.rmtree(folder)
            if not counts["no tmpfs"]:
                full_disk(place, sound)
    bad = sum(counts[name] for name in ("points lost", "points twice", "wrong tables", "files left", "ended otherwise"))
    print("; ".join(f"{name}: {counts[name]}" for name in ("trials", "kills", "worker", "clock", "full disks", "points lost", "points twice",
                                                           "wrong tables", "files left", "ended otherwise")))
    return 1 if bad else 0


sys.exit(main())
