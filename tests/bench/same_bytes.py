"""same_bytes.py [--quick] STEPSIM [OTHER...]: every kind of output is the same bytes wherever, however and by whichever compiler it is made.

Each command is run once; then in another folder, on each core, with one worker and with three, without address randomisation, in other
locales and time zones, with other memory contents, and by each OTHER (built by another compiler, with sanitizers or without). Standard output,
exit code and every file must be equal. --quick: few commands. Exit code 1: something differs; the first bytes that do are shown.
"""
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TINY = ROOT / "tests/cli/tiny.yaml"
SMALL = ["--samples", "0", "--faster", "0"]
# Words, and the files that they write. In the order in which they need each other's files.
COMMANDS = [
    (["run", "tiny.yaml", "--samples", "6"], []),
    (["run", "tiny.yaml", "--samples", "6", "--json"], []),
    (["run", "tiny.yaml", *SMALL, "-o", "run.h5"], ["run.h5"]),
    (["sweep", "tiny.yaml", "--vary", "job.micro_batch=1,2,4", "--vary", "strategy.zero=2,3", "-o", "table"], ["table.csv", "table.h5"]),
    (["report", "run.h5", "-o", "run.html"], ["run.html"]),
]
MORE = [
    (["run", "llama32-3b-sft-zero3", "--json"], []),
    (["run", "qwen3-30b-sft-zero3", "--samples", "4"], []),
    (["run", "tiny.yaml", "--fold", "off", "--json", *SMALL], []),
    (["run", "grpo-32b-production", "--json"], []),
    (["memory", "tiny.yaml", "--json"], []),
    (["memory", "qwen3-30b-sft-zero3"], []),
    (["collective", "all_reduce", "--cluster", "h100-8", "--json"], []),
    (["collective", "all_to_all", "--cluster", "superpod-h100", "--nodes", "2", "--sizes", "1MiB:1GiB"], []),
    (["collective", "all_gather", "--cluster", "alps", "--nodes", "2", "--sizes", "1GiB", "-o", "gather.h5"], ["gather.h5"]),
    (["sweep", "tiny.yaml", "--vary", "job.micro_batch=1:6", "--samples", "3", "--json"], []),
    (["sweep", "tiny.yaml", "--find", "max job.micro_batch such that fits"], []),
    (["sweep", "tiny.yaml", "--vary", "job.micro_batch=1,2,4", "--shard", "1/2", "-o", "part"], ["part.shard-1-of-2.h5"]),
    (["sweep", "tiny.yaml", "--vary", "job.micro_batch=1,2,4", "--shard", "2/2", "-o", "part"], ["part.shard-2-of-2.h5"]),
    (["merge", "part.shard-1-of-2.h5", "part.shard-2-of-2.h5", "-o", "part"], ["part.csv", "part.h5"]),
    (["explain", "tiny.yaml", "--set", "strategy.zero=2", "--samples", "3", "--json"], []),
    (["explain", "run.h5", "tiny.yaml", "--set", "job.micro_batch=2", "--samples", "0"], []),
    (["diff", "qwen3-30b-sft-zero3", "qwen3-30b-sft-zero2-offload"], []),
    (["check", "A is at least 2x faster than B", "tiny.yaml", "--set", "strategy.zero=2", "--draws", "6", "--json"], []),
    (["plan", "tiny.yaml", "--json"], []),
    (["plan", "tiny.yaml", "-o", "plans"], ["plans"]),
    (["report", "tiny.yaml", "-o", "step.html"], ["step.html"]),
    (["report", "table.h5", "-o", "table.html"], ["table.html"]),
    (["export", "tiny.yaml", "--perfetto", "trace.json"], ["trace.json"]),
    (["export", "run.h5", "--as", "paje", "-o", "trace.paje"], ["trace.paje"]),
    (["export", "run.h5", "--memory-viz", "memory.pickle"], ["memory.pickle"]),
    (["export", "llama32-3b-sft-zero3", "--as", "deepspeed", "-o", "zero.json"], ["zero.json"]),
    (["import", "zero.json", "--model", "llama-3.2-1b", "--cluster", "h100-8"], []),
    (["kernels", "--json"], []),
    (["validate", "--json"], []),
    (["list", "--json"], []),
    (["list", "models"], []),
    (["show", "h100-sxm"], []),
    (["show", "tiny.yaml"], []),
    (["show", "keys"], []),
]
SECONDS = 900


def locale_folder(place):
    """A locale with commas in its numbers, where this machine has none."""
    made = subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", str(place / "de_DE.UTF-8")], capture_output=True, check=False)
    return made.returncode == 0


class Way:
    """One way to run everything: the program, words before it, what is in its environment, the name of its folder."""

    def __init__(self, name, program, before=(), environment=None, folder="folder", workers=None):
        self.name, self.program, self.before, self.folder, self.workers = name, program, list(before), folder, workers
        self.environment = environment or {}

    def words(self, words):
        return words + (["--workers", str(self.workers)] if self.workers and words[0] == "sweep" else [])


def content(path):
    """A file, or all files of a folder."""
    if path.is_dir():
        return b"".join(str(each.relative_to(path)).encode() + b"\0" + each.read_bytes() for each in sorted(path.rglob("*")) if each.is_file())
    return path.read_bytes() if path.exists() else b"(no file)"


def results(way, place, commands):
    """What each command says and writes, by its words."""
    folder = place / way.folder
    folder.mkdir(parents=True)
    shutil.copy(TINY, folder)
    home = place / "home"
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(home), "ASAN_OPTIONS": "detect_leaks=0", **way.environment}
    found = {}
    for words, files in commands:
        done = subprocess.run([*way.before, way.program, "--data", str(ROOT), *way.words(words)], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=SECONDS, check=False)
        found[" ".join(words)] = {"exit code": str(done.returncode).encode(), "standard output": done.stdout, "standard error": done.stderr,
                                  **{name: content(folder / name) for name in files}}
    shutil.rmtree(folder)
    return found


def difference(a, b):
    at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    return f"byte {at} of {len(a)} and {len(b)}: {a[max(0, at - 40):at + 40]!r} and {b[max(0, at - 40):at + 40]!r}"


def ways_of(programs, place):
    first = programs[0]
    cores = sorted(os.sched_getaffinity(0))
    ways = [Way("another folder", first, folder="a folder/with a space, ä"),
            *(Way(f"core {core}", first, ["taskset", "-c", str(core)]) for core in cores[:2]),
            Way("one worker", first, workers=1), Way("three workers", first, workers=3),
            Way("no address randomisation", first, ["setarch", "-R"]),
            Way("other memory contents, another time zone", first, environment={"MALLOC_PERTURB_": "165", "TZ": "Pacific/Apia"}),
            Way("a locale of the C library's", first, environment={"LC_ALL": "C"})]
    if locale_folder(place):
        ways.append(Way("a German locale", first, environment={"LC_ALL": "de_DE.UTF-8", "LOCPATH": str(place)}))
    return ways + [Way(f"by {other}", other) for other in programs[1:]]


def main():
    words = sys.argv[1:]
    quick = "--quick" in words
    programs = [str(pathlib.Path(word).resolve()) for word in words if word != "--quick"]
    commands = COMMANDS + ([] if quick else MORE)
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        place = pathlib.Path(name)
        sound = results(Way("", programs[0]), place, commands)
        for words, files in commands:
            got = sound[" ".join(words)]
            if got["exit code"] not in (b"0", b"1") or b"(no file)" in [got[file] for file in files]:
                wrong += 1
                print(f"{' '.join(words)}: ends with {got['exit code'].decode()}: {got['standard error'][-300:].decode()}")
        for way in ways_of(programs, place):
            other = results(way, place, commands)
            differ = [(command, part) for command, parts in sound.items() for part in parts if parts[part] != other[command][part]]
            print(f"{way.name}: {len(commands)} commands, {sum(map(len, sound.values()))} outputs, {len(differ)} differ", flush=True)
            for command, part in differ:
                wrong += 1
                print(f"  {command}: {part}: {difference(sound[command][part], other[command][part])}")
        every = hashlib.sha256(b"".join(parts[part] for parts in sound.values() for part in parts)).hexdigest()
        print(f"of all: {every[:16]}")
    return 1 if wrong else 0


sys.exit(main())
