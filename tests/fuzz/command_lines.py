"""command_lines.py STEPSIM MINUTES [SEED]: whole command lines out of help, catalogue, odd numbers and damaged files.

Each must end within 30 s and 4 GB with exit code 0, 1 or 2, a message where it is 2, and no file changed outside the folder that it was started
in. (3 is for bugs, and for workers that somebody killed: nobody does here.) STEPSIM may be built with sanitizers. What does not end so is
kept in a folder beside the current one's, and printed. Exit code 1: there was one.
"""
import json
import os
import pathlib
import random
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
CORPUS = ROOT / "tests/fuzz/corpus"
stepsim, minutes = str(pathlib.Path(sys.argv[1]).resolve()), float(sys.argv[2])
dice = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else time.time_ns())
SANITIZED = b"__asan_init" in pathlib.Path(stepsim).read_bytes()
LIMIT, MEMORY = 30, 4 << 30
NUMBERS = ["-1", "0", "1", "2", "8", "0.5", "65536", "1e9", "1e308", "1e-320", "nan", "inf", "-inf", "99999999999999999999", "2147483648",
           "0x10", "1_000", "", " ", "4:1", "1:4", "1:1e9", "1:8:*2", "1,2", "[1],[2]", "auto", "null", "~", "true", "{a: 1}", "[", "*a", "\u202e", "x" * 300]
QUANTITIES = ["1 s", "25 us", "80 GB", "1MiB", "1GiB:1B", "1KiB:1EiB", "46 GB/s", "3 %", "700 W"]
CONDITIONS = ["fits", "job.micro_batch < 4", "step_time < 60 s and fits", "not (bottleneck == \"compute\")", "max job.micro_batch such that fits",
              "min cluster.nodes such that step_time < 1 s", "((((", "a is 2x faster than b", "A fits", "1/0"]
# Work that a machine cannot bear is another matter than words that nobody can read.
LONG = ("fit", "check", "validate", "kernels", "plan", "sweep", "explain")  # as said they may take minutes: counted, no finds
SMALL = ["--samples", "0", "--faster", "0"]


def said(*words):
    return subprocess.run([stepsim, *words], capture_output=True, text=True, check=False, timeout=LIMIT,
                          env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}).stdout


def vocabulary():
    commands = re.findall(r"^  ([a-z]+)  ", said("--help"), re.M)
    helps = {command: said(command, "--help") for command in commands}
    options = {command: re.findall(r"--[a-z-]+", text) for command, text in helps.items()}
    examples = [shlex.split(line) for text in helps.values() for line in re.findall(r"^ +stepsim (.*[^\\\n])$", text, re.M)]
    names = [word for kind in ("gpus", "nodes", "networks", "processors", "clusters", "stacks", "models", "scenarios", "recipes", "optimizers")
             for word in re.findall(r"^ *([a-z0-9][\w.-]+)", said("list", kind), re.M)]
    keys = re.findall(r"^ *#? ?([a-z_]+):", (ROOT / "scenarios/template.yaml").read_text(), re.M)
    return commands, options, names, examples, [f"{block}.{key}" for block in ("job", "strategy", "cluster") for key in keys]


def damaged(data):
    for _ in range(dice.choice([0, 1, 1, 2, 6])):
        if not data:
            break
        at, kind = dice.randrange(len(data)), dice.random()
        if kind < 0.3:
            numbers = list(re.finditer(rb"-?\d+(\.\d+)?", data))
            if numbers:
                found = dice.choice(numbers)
                data = data[:found.start()] + dice.choice(NUMBERS).encode() + data[found.end():]
        elif kind < 0.5:
            lines = data.split(b"\n")
            lines[dice.randrange(len(lines))] = dice.choice(lines)
            data = b"\n".join(lines)
        elif kind < 0.7:
            data = data[:at] + bytes([dice.randrange(256)]) + data[at + 1:]
        elif kind < 0.8:
            data = data[:at]
        elif kind < 0.9:
            data = data[:at] + data[dice.randrange(len(data)):][:dice.randrange(200)] + data[at:]
        else:
            data = data[:at] + dice.choice([b"\0", b"\xff\xfe", b"\t", b"[" * 70, b"&a ", b"*a", b"k" * 3000, b"\r\n"]) + data[at:]
    return data


class Folder:
    """What is in it may be changed; what lies beside it may not."""

    def __init__(self, place):
        self.outside = pathlib.Path(place)
        self.inside = self.outside / "inside"
        self.inside.mkdir()
        self.stacks = self.outside / "data"  # in front of the catalogue's, for what `fit --write` changes
        shutil.copytree(ROOT / "workloads/stacks", self.stacks / "workloads/stacks")
        for name in ("tiny.yaml", "grpo-small.yaml", "deepspeed.json"):
            shutil.copy(ROOT / "tests/cli" / name, self.outside)
        self.sound = [path for kind in ("tests/cli", "tests/cli/*", "scenarios/seeds", "scenarios/grpo", "claims", "tests/fuzz/corpus/*")
                      for path in sorted(ROOT.glob(kind + "/*")) if path.is_file() and path.stat().st_size < 1 << 16]
        made = [["run", "tiny.yaml", *SMALL, "-o", "run.h5"], ["sweep", "tiny.yaml", "--vary", "job.micro_batch=1,2", "-o", "table"]]
        for words in made:
            subprocess.run([stepsim, *words], cwd=self.outside, capture_output=True, check=True)
        self.sound += [self.outside / name for name in ("run.h5", "table.h5", "table.csv")]
        self.before = self.state()

    def state(self):
        return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in [*self.outside.glob("*"), *ROOT.glob("workloads/*/*.yaml")]
                if path not in (self.inside, self.stacks)}

    def file(self):
        source = dice.choice(self.sound)
        name = dice.choice([source.name, f"f{dice.randrange(4)}{source.suffix}"])
        (self.inside / name).write_bytes(damaged(source.read_bytes()))
        return name

    def renew(self):
        shutil.rmtree(self.inside)
        self.inside.mkdir()
        shutil.copy(self.outside / "tiny.yaml", self.inside)


def words_of(folder, vocabulary_of):
    commands, options, names, examples, keys = vocabulary_of
    command = dice.choice(commands)
    value = lambda: dice.choice([dice.choice(NUMBERS), dice.choice(QUANTITIES), dice.choice(names), folder.file()])
    if dice.random() < 0.6:  # what help says, but for a word or two
        words = []
        for word in dice.choice(examples):
            if (ROOT / word).is_file() or (ROOT / "scenarios/seeds" / f"{word}.yaml").is_file():
                word = dice.choice(["tiny.yaml", "tiny.yaml", folder.file(), word])
            words += dice.choices([[word], [value()], [], [word, word]], [30, 2, 1, 1])[0]
        return words
    setting = lambda: f"{dice.choice(keys)}={value()}"
    words = [] if dice.random() < 0.02 else [command]
    for _ in range(dice.choice([0, 1, 1, 2, 3])):
        words.append(dice.choice([folder.file(), "tiny.yaml", dice.choice(names), dice.choice(NUMBERS + CONDITIONS), "../tiny.yaml"]))
    for _ in range(dice.choice([0, 1, 2, 3, 5])):
        option = dice.choice(options.get(command) or ["--json"])
        if option in ("--set", "--vary", "--zip"):
            words += [option, setting()]
        elif option in ("--output", "--export", "--record", "--perfetto", "--memory-viz"):
            words += [option, dice.choice(["o.h5", "o.html", "out", "tiny.yaml", "no/such/folder"])]
        elif option in ("--where", "--find"):
            words += [option, dice.choice(CONDITIONS)]
        elif option != "--help":
            words += [option, *([value()] if dice.random() < 0.7 else [])]
    return words


def limits():
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 28, 1 << 28))
    if not SANITIZED:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def serves(words):
    """Until somebody stops it."""
    return words[:1] == ["serve"]


def call(folder, words):
    """Exit code and what was said; None: it did not end."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder.inside), "UBSAN_OPTIONS": "print_stacktrace=1:exitcode=99",
                   "ASAN_OPTIONS": "detect_leaks=0:exitcode=99:max_allocation_size_mb=4000"}
    child = subprocess.Popen([stepsim, "--data", folder.stacks, *words], cwd=folder.inside, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, preexec_fn=limits)
    try:
        out, error = child.communicate(timeout=2 if serves(words) else LIMIT)
        return child.returncode, out, error
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        out, error = child.communicate()
        return None, out, error


def problem_of(folder, words, code, error):
    if code is None and (serves(words) or words[:1] and words[0] in LONG):
        return None
    if code is None:
        return f"does not end in {LIMIT} s"
    if code not in (0, 1, 2):
        return f"ends with {code}"
    if code == 2 and words and not error.strip():  # without a word it prints the help
        return "says nothing"
    if b"runtime error" in error or b"Sanitizer" in error:
        return "a sanitizer complains"
    if folder.state() != folder.before:
        return "changes a file outside its folder"
    return None


def main():
    known, codes, finds = vocabulary(), {}, 0
    until = time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory() as place:
        folder = Folder(place)
        while time.monotonic() < until:
            folder.renew()
            words = [word for word in words_of(folder, known) if "\0" not in word]
            code, _, error = call(folder, words)
            codes[code] = codes.get(code, 0) + 1
            problem = problem_of(folder, words, code, error)
            if problem:
                finds += 1
                kept = pathlib.Path(f"found-{finds}")
                shutil.copytree(folder.inside, kept, dirs_exist_ok=True)
                (kept / "command.json").write_text(json.dumps(words))
                (kept / "said.txt").write_bytes(error)
                print(f"{kept}: {problem}: {words}: {error[-300:].decode(errors='replace')}", flush=True)
                folder.before = folder.state()
    ended = ", ".join(f"{code}: {number}" for code, number in sorted(codes.items(), key=str))
    print(f"{sum(codes.values())} command lines, by exit code {ended}; {finds} finds")
    return 1 if finds else 0


sys.exit(main())
