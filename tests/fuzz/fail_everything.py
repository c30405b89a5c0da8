"""fail_everything.py STEPSIM FAULTS.so TINY.yaml [SAMPLES [COMMAND...]]: each request for memory and each call about files fails once.

Runs `run`, `sweep`, one that goes on where it was, and `report` of a tiny scenario once for every place in the code that asks for memory, for every 100th request, and for
every call that opens, reads, writes, syncs, renames ... Each must end as if nothing had failed, with the same files, or with exit code 2 or 3
and a message, and the files that were there before. SAMPLES: only so many of each kind, evenly spread; 0: all. Exit code 1: one did not.
HDF5 does not look whether it got memory: its own requests, told by the symbols of its code, do not fail, and are counted apart. So STEPSIM
is one that has its symbols, as it was built.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

stepsim, faults, tiny = (str(pathlib.Path(word).resolve()) for word in sys.argv[1:4])
samples = int(sys.argv[4]) if len(sys.argv) > 4 else 0
OLD = b"what was here before\n"
SECONDS = 60
COMMANDS = {
    "run": (["run", "tiny.yaml", "--samples", "2", "--faster", "0", "-o", "out.h5"], ["out.h5"]),
    "sweep": (["sweep", "tiny.yaml", "--vary", "job.micro_batch=1,2", "-o", "out"], ["out.csv", "out.h5"]),
    "resume": (["sweep", "tiny.yaml", "--vary", "job.micro_batch=1,2", "-o", "out"], ["out.csv", "out.h5"]),
    "report": (["report", "tiny.h5", "-o", "out.html"], ["out.html"]),
}
EVERY = {"allocation": 100}
HDF5 = {}  # where its code is


def code_of_hdf5(program):
    """Where HDF5's functions are, in the program or in the shared library that it loads."""
    loaded = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    library = next((line.split()[2] for line in loaded.splitlines() if "libhdf5" in line), None)
    listed = subprocess.run(["nm", "-n", *(["-D", library] if library else [program])], capture_output=True, text=True, check=False).stdout
    symbols = [(int(line[:16], 16), line[19:]) for line in listed.splitlines() if line[17:18] in ("t", "T")]
    spans = []
    for (begin, name), (end, _) in zip(symbols, symbols[1:]):
        if not name.startswith("H5"):
            continue
        if spans and spans[-1][1] == begin:
            spans[-1][1] = end
        else:
            spans.append([begin, end])
    if not spans:
        sys.exit(f"{library or program}: has no symbols of HDF5, so its requests for memory cannot be told from ours")
    found = {"STEPSIM_FAULT_HDF5": ",".join(f"{begin:x}-{end:x}" for begin, end in spans)}
    return {**found, "STEPSIM_FAULT_SHARED": "1"} if library else found


def counts_in(report):
    if not report.exists():
        return {}
    return {name: int(number) for name, number in (line.split() for line in report.read_text().splitlines())}


def call(folder, words, fault):
    report = folder / "report"
    report.unlink(missing_ok=True)
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "LD_PRELOAD": faults, "STEPSIM_FAULT": fault,
                   "STEPSIM_FAULT_REPORT": str(report), **HDF5}
    done = subprocess.run([stepsim, *words], cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=SECONDS, check=False)
    return done, counts_in(report)


def outputs(folder, names):
    return {name: (folder / name).read_bytes() if (folder / name).exists() else None for name in names}


def leftovers(folder, known):
    return sorted(name for name in os.listdir(folder) if name not in known)


def problem_of(folder, words, names, fault, sound, journal):
    """What is wrong with how it ended, or nothing; and whether HDF5 itself asked, whose request does not fail."""
    for name in names:
        (folder / name).write_bytes(OLD)
    for name in leftovers(folder, {"tiny.yaml", "tiny.h5", "report", *names}):
        (folder / name).unlink()
    if journal:
        (folder / "out.journal").write_bytes(journal)
    try:
        done, counts = call(folder, words, fault)
    except subprocess.TimeoutExpired:
        return "does not end", 0
    return ended_badly(folder, names, fault, sound, journal, done), counts.get("of_hdf5", 0)


def ended_badly(folder, names, fault, sound, journal, done):
    """What is wrong with how it ended; nothing where it is as it should be."""
    now, said = outputs(folder, names), done.stderr.decode(errors="replace")
    # A sweep whose worker fails has a row that says so, and ends with 3.
    whole = all(now[name] in (OLD, sound["files"][name]) for name in names) or (
        done.returncode == 3 and b"got no answer" in done.stderr and names == ["out.csv", "out.h5"] and
        now["out.csv"].count(b"\n") == sound["files"]["out.csv"].count(b"\n") and now["out.h5"].startswith(b"\x89HDF"))
    if done.returncode not in (0, 1, 2, 3):
        return f"ends with {done.returncode}: {said[-200:]}"
    if not whole:
        return f"leaves half a file ({done.returncode})"
    if journal and done.returncode > 1 and now != sound["files"] and outputs(folder, ["out.journal"])["out.journal"] != journal:
        return f"loses points of its journal ({done.returncode})"
    if any(".tmp-" in name for name in leftovers(folder, {})) and not fault.startswith("remove:"):
        return f"leaves {leftovers(folder, {})} ({done.returncode})"
    if done.returncode in (2, 3) and "stepsim: " not in said:
        # Where the message itself could not be written nobody can be told.
        return None if fault.startswith("write:") else f"says nothing ({done.returncode})"
    if done.returncode < 2 and done.stdout != sound["output"]:
        return f"ends well with another output: {said[-200:]}"
    if done.returncode < 2 and now != sound["files"]:
        return f"ends well without its files: {said[-200:]}"
    return None


def chosen(count, step):
    every = range(step, count + 1, step)
    return every if samples == 0 or len(every) <= samples else [every[i * len(every) // samples] for i in range(samples)]


def main():
    problems, ended, spared = [], {}, 0
    HDF5.update(code_of_hdf5(stepsim))
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # one worker at a time: the same calls in the same order
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        shutil.copy(tiny, folder / "tiny.yaml")
        subprocess.run([stepsim, "run", "tiny.yaml", "--samples", "0", "--faster", "0", "-o", "tiny.h5"], cwd=folder, check=True,
                       capture_output=True)
        # A sweep that is done but for its table.
        call(folder, COMMANDS["sweep"][0], "rename:1")
        finished = (folder / "out.journal").read_bytes()
        for command in sys.argv[5:] or COMMANDS:
            words, names = COMMANDS[command]
            journal = finished if command == "resume" else None
            for name in leftovers(folder, {"tiny.yaml", "tiny.h5"}):
                (folder / name).unlink()
            if journal:
                (folder / "out.journal").write_bytes(journal)
            done, counts = call(folder, words, "count:0")
            assert done.returncode == 0 and counts, done
            sound = {"output": done.stdout, "files": outputs(folder, names)}
            for kind, count in counts.items():
                if kind in ("failed", "of_hdf5", "clock"):
                    continue
                tried = chosen(count, EVERY.get(kind, 1))
                ended[command, kind] = len(tried)
                for number in tried:
                    problem, of_hdf5 = problem_of(folder, words, names, f"{kind}:{number}", sound, journal)
                    spared += of_hdf5
                    if problem:
                        problems.append(f"{command}, {kind} {number} of {count}: {problem}")
                        print(problems[-1], flush=True)
    for (command, kind), tried in ended.items():
        if tried:
            print(f"{command:7} {kind:10} {tried:6}")
    print(f"{sum(ended.values()) - spared} failures, {len(problems)} of them handled badly; {spared} requests of HDF5's own did not fail")
    return 1 if problems else 0


sys.exit(main())
