"""Predicted training steps from Python: each function asks the program `stepsim` and hands back what it says.

    step = stepsim.run("qwen3-30b-sft-zero3", {"strategy.zero": 2})
    step["step_time_s"], step["feasible"]

Scenarios are names, paths of scenarios, or files of other programs (Axolotl, DeepSpeed, TRL, ...). Numbers are SI: seconds,
bytes, FLOP. The keys of each answer are in `stepsim.records`, and in docs/json.md.
"""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from stepsim import records

__all__ = ["Error", "InputError", "check", "explain", "memory", "program", "read_trace", "records", "run", "sweep", "trace"]

Settings = Mapping[str, Any]


class Error(Exception):
    """The program is not here, or did not do what it should."""


class InputError(Error):
    """The input is wrong: the text names file, line, key and the nearest word that there is."""


def program() -> str:
    """The program that is asked: $STEPSIM, else what this package carries, else `stepsim` of the PATH."""
    carried = pathlib.Path(__file__).parent / "program/stepsim"
    found = os.environ.get("STEPSIM") or (str(carried) if carried.exists() else shutil.which("stepsim"))
    if not found:
        raise Error("no program stepsim in the PATH: the environment variable STEPSIM names one")
    return found


def _word(value: Any) -> str:
    """A value as YAML: True as true, lists and dicts as JSON, which YAML holds."""
    if isinstance(value, str):
        return value
    return json.dumps(value)


def _words(scenario: str | os.PathLike[str], settings: Settings | None, options: Mapping[str, Any]) -> list[str]:
    words = [os.fspath(scenario)]
    for key, value in (settings or {}).items():
        words += ["--set", f"{key}={_word(value)}"]
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(option)
        elif value is not None and value is not False:
            words += [option, _word(value)]
    return words


def _ask(command: str, words: Iterable[str]) -> dict[str, Any]:
    line = [program(), command, *words, "--json"]
    done = subprocess.run(line, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode == 2:
        raise InputError(done.stderr.strip().removeprefix("stepsim: "))
    if done.returncode not in (0, 1):  # 1: the answer is no
        raise Error(f"{' '.join(line)}: exit {done.returncode}: {done.stderr.strip()}")
    return cast(dict[str, Any], json.loads(done.stdout))


def run(scenario: str | os.PathLike[str], settings: Settings | None = None, **options: Any) -> records.RunResult:
    """One training step. Options are those of `stepsim run`: cluster="h100-8", nodes=2, samples=16, ..."""
    return cast(records.RunResult, _ask("run", _words(scenario, settings, options)))


def memory(scenario: str | os.PathLike[str], settings: Settings | None = None, **options: Any) -> records.MemoryResult:
    """Whether it fits, and what would make it fit."""
    return cast(records.MemoryResult, _ask("memory", _words(scenario, settings, options)))


def explain(
    a: str | os.PathLike[str], b: str | os.PathLike[str] | None = None, settings: Settings | None = None, **options: Any
) -> records.ExplainResult:
    """Why A takes longer than B; without B, than A with other settings."""
    words = _words(a, settings, options)
    if b is not None:
        words.insert(1, os.fspath(b))
    return cast(records.ExplainResult, _ask("explain", words))


def check(claims: str | os.PathLike[str], **options: Any) -> records.CheckResult:
    """Whether claims hold, under which conditions, and how sure that is."""
    return cast(records.CheckResult, _ask("check", _words(claims, None, options)))


def sweep(
    scenario: str | os.PathLike[str],
    vary: Mapping[str, Sequence[Any] | str],
    settings: Settings | None = None,
    **options: Any,
) -> Any:
    """One row for each combination: a pandas.DataFrame where pandas is there, else a list of dictionaries.

    vary={"strategy.zero": [2, 3], "job.micro_batch": "1:16:*2"}
    """
    words = _words(scenario, settings, options)
    for key, values in vary.items():
        said = values if isinstance(values, str) else ",".join(_word(value) for value in values)
        words += ["--vary", f"{key}={said}"]
    points = _ask("sweep", words)["points"]
    try:
        import pandas
    except ImportError:
        return points
    return pandas.DataFrame(points)


def trace(
    scenario: str | os.PathLike[str], file: str | os.PathLike[str], settings: Settings | None = None, **options: Any
) -> records.RunResult:
    """The same as run(), and the whole step in an HDF5 file; see docs/trace-format.md."""
    words = [*_words(scenario, settings, options), "-o", os.fspath(file)]
    return cast(records.RunResult, _ask("run", words))


def read_trace(file: str | os.PathLike[str]) -> dict[str, Any]:
    """What happened in a step, as the program exports it for Perfetto: `traceEvents` with `name`, `ts` and `dur` in microseconds."""
    with tempfile.TemporaryDirectory() as folder:
        events = pathlib.Path(folder) / "events.json"
        line = [program(), "export", os.fspath(file), "--perfetto", str(events)]
        done = subprocess.run(line, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode == 2:
            raise InputError(done.stderr.strip().removeprefix("stepsim: "))
        if done.returncode != 0:
            raise Error(f"{' '.join(line)}: exit {done.returncode}: {done.stderr.strip()}")
        return cast(dict[str, Any], json.loads(events.read_text()))
