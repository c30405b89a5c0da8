"""What the scripts beside this one share: a clock for the GPU, one for the host, and tables."""

import csv
import gc
import pathlib
import statistics
import sys
import time
import traceback

import torch


def gpu_name():
    name = torch.cuda.get_device_name()
    return {"NVIDIA H100 80GB HBM3": "H100-80GB SXM", "NVIDIA H200": "H200-141GB SXM"}.get(name, name)


def software():
    return f"torch {torch.__version__}"


def gpu_seconds(work, *, least=0.03, rounds=5, graph=True):
    """Seconds that the GPU takes for one call of `work`: the median of `rounds`, of calls one behind the other. A CUDA graph
    holds them, so that the host is not in the way; where capture is refused the host may be."""
    for _ in range(2):
        work()
    torch.cuda.synchronize()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def once(call):
        begin.record()
        call()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / 1e3

    one = max(once(work), 1e-6)
    calls = max(1, min(100, round(least / one)))
    if graph and calls > 1:
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured):
            for _ in range(calls):
                work()
        run = captured.replay
    else:
        def run():
            for _ in range(calls):
                work()
    once(run)
    return statistics.median(once(run) for _ in range(rounds)) / calls


def host_seconds(work, *, calls=200, rounds=7):
    """Seconds that the host takes for one call of `work`, the GPU being idle at first: the median of `rounds`."""
    times = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(calls):
            work()
        times.append((time.perf_counter() - begin) / calls)
    torch.cuda.synchronize()
    return statistics.median(times)


class Table:
    """Rows of a CSV file, behind those that are there, each written when it is known."""

    def __init__(self, folder, name, columns):
        path = pathlib.Path(folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        self.file = open(path, "a", newline="", encoding="utf-8")
        self.rows = csv.DictWriter(self.file, columns, restval="", lineterminator="\n")
        if self.file.tell() == 0:
            self.rows.writeheader()

    def add(self, **cells):
        self.rows.writerow(cells)
        self.file.flush()
        print(" ".join(f"{key}={value}" for key, value in cells.items() if value != ""), flush=True)


def sections(wanted, parts):
    """Runs each part, or those that are wanted; one that fails says why and does not stop the others."""
    for name in wanted:
        if name not in parts:
            sys.exit(f"no {name}; there are {', '.join(parts)}")
    for name, part in parts.items():
        if wanted and name not in wanted:
            continue
        begin = time.monotonic()
        try:
            part()
        except Exception:  # noqa: BLE001
            traceback.print_exc(limit=4)
        gc.collect()
        torch.cuda.empty_cache()
        print(f"-- {name}: {time.monotonic() - begin:.1f} s", file=sys.stderr, flush=True)
