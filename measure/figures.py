#!/usr/bin/env python3
"""What else a step is made of, on the machine here: kernels that stream, launches, copies, the optimizer, the allocator.

  python3 measure/figures.py FOLDER [SECTION...]

Writes FOLDER/figures.csv. Sections: streams, experts, loss, optimizer, bits_optimizer, host,
copies, driver, files, host_adam."""

import itertools
import os
import sys
import time

import torch
import torch.nn.functional as F

import timing

folder, *wanted = sys.argv[1:] or sys.exit(__doc__)
figures = timing.Table(folder, "figures.csv", "id hardware what size value unit software notes".split())
gpu, software = timing.gpu_name(), timing.software()


def figure(name, value, unit, *, size="", what="", notes=""):
    figures.add(id=name, hardware=gpu, what=what, size=size, value=f"{value:.4g}", unit=unit, software=software, notes=notes)


def randn(*shape, dtype=torch.bfloat16):
    return torch.randn(*shape, device="cuda", dtype=dtype)


def streams():
    """Bytes that each must move, over the time: 2 for a number of 16 bits read or written."""
    for numbers in (2**14, 2**18, 2**20, 2**22, 2**24, 2**26, 2**28):
        rows = numbers // 2048
        x, y, out = randn(rows, 2048), randn(rows, 2048), torch.empty(rows, 2048, device="cuda", dtype=torch.bfloat16)
        wide, weight = torch.empty(rows, 2048, device="cuda"), randn(2048)
        kinds = {"copy": (4, lambda: out.copy_(x)), "add": (6, lambda: torch.add(x, y, out=out)), "scale": (4, lambda: torch.mul(x, 2.0, out=out)),
                 "cast_up": (6, lambda: wide.copy_(x)), "cast_down": (6, lambda: out.copy_(wide)), "silu": (4, lambda: F.silu(x)), "square_fp32": (8, lambda: wide.pow(2)),
                 "mean_fp32": (4, lambda: wide.mean(-1, keepdim=True)), "rms_norm": (4, lambda: F.rms_norm(x, (2048,), weight)), "layer_norm": (4, lambda: F.layer_norm(x, (2048,), weight)),
                 "softmax_fp32": (6, lambda: F.softmax(x, -1, dtype=torch.float32)), "transpose": (4, lambda: x.T.contiguous()), "sum_rows": (2, lambda: x.sum(0)), "fill": (2, lambda: out.zero_()),
                 "half_turn": (4, lambda: torch.cat((-x[:, 1024:], x[:, :1024]), -1))}
        for kind, (moved, work) in kinds.items():
            seconds = timing.gpu_seconds(work, least=0.005, rounds=3)
            figure(f"stream-{kind}", moved * numbers / seconds / 1e9, "GB/s", size=numbers, what=f"{seconds * 1e6:.2f} us")


def experts():
    """Rows picked by an index, and added by one: 8, 4 or 2 of each token, as loops and grouped products need them."""
    for tokens, wide, top in [(4096, 2048, 8), (16384, 2048, 8), (16384, 2880, 4), (8192, 4096, 2)]:
        x, sums = randn(tokens, wide), torch.zeros(tokens, wide, device="cuda", dtype=torch.bfloat16)
        index = torch.arange(tokens, device="cuda").repeat_interleave(top)[torch.randperm(tokens * top, device="cuda")]
        many = randn(tokens * top, wide)
        moved = 4 * many.numel()
        for name, work, bytes_ in [("index", lambda: x[index], moved), ("index_select", lambda: torch.index_select(x, 0, index), moved),
                                   ("index_add", lambda: sums.index_add_(0, index, many), moved + 2 * many.numel()),
                                   ("gather", lambda: torch.gather(x, 0, index[:, None].expand(-1, wide)), moved),
                                   ("scatter_add", lambda: sums.scatter_add_(0, index[:, None].expand(-1, wide), many), moved + 2 * many.numel()),
                                   ("index_put", lambda: sums.index_put_((index,), many, accumulate=True), moved + 2 * many.numel()),
                                   ("sum_of_top", lambda: many.view(tokens, top, wide).sum(1), 2 * many.numel() + 2 * sums.numel())]:
            seconds = timing.gpu_seconds(work, rounds=3, graph=name != "index_put")
            figure(f"rows-{name}", bytes_ / seconds / 1e9, "GB/s", size=f"{tokens}x{wide}x{top}", what=f"{seconds * 1e6:.1f} us")
        count = {2048: 128, 2880: 32, 4096: 8}[wide]
        logits = randn(tokens, count)
        for name, work in [("softmax", lambda: F.softmax(logits, -1, dtype=torch.float32)), ("topk", lambda: torch.topk(logits, top, -1)),
                           ("one_hot", lambda: F.one_hot(index.view(tokens, top) % count, count)), ("argsort", lambda: torch.argsort(index % count)),
                           ("bincount", lambda: torch.bincount(index % count, minlength=count)), ("where", lambda: torch.where(index % count == 3))]:
            figure(f"router-{name}", timing.gpu_seconds(work, least=0.005, rounds=3, graph=False) * 1e6, "us", size=f"{tokens}x{count}x{top}")


def loss():
    for tokens, words in [(2048, 151936), (4096, 128256), (8192, 32000)]:
        logits, labels = randn(tokens, words).requires_grad_(), torch.randint(words, (tokens,), device="cuda")
        entropy = lambda: F.cross_entropy(logits.float(), labels)
        with torch.no_grad():
            figure("loss-forward", timing.gpu_seconds(entropy, graph=False) * 1e6, "us", size=f"{tokens}x{words}", notes="cast up, cross entropy in 32 bits")
        value = entropy()
        figure("loss-backward", timing.gpu_seconds(lambda: torch.autograd.grad(value, logits, retain_graph=True), graph=False) * 1e6, "us", size=f"{tokens}x{words}")
        del value
        table, words_of = randn(words, 2048).requires_grad_(), torch.randint(words, (tokens,), device="cuda")
        rows = F.embedding(words_of, table)
        g = torch.randn_like(rows)
        figure("embedding-backward", timing.gpu_seconds(lambda: torch.autograd.grad(rows, table, g, retain_graph=True), graph=False) * 1e6, "us", size=f"{tokens}x{words}x2048")


def optimizer():
    shapes = [(2048, 2048)] * 4 + [(8192, 2048)] * 3 + [(2048,)] * 2
    for layers, dtype, kind in itertools.product([16, 64], [torch.bfloat16, torch.float32], ["fused", "foreach"]):
        parameters = [torch.nn.Parameter(torch.randn(*shape, device="cuda", dtype=dtype)) for _ in range(layers) for shape in shapes]
        for parameter in parameters:
            parameter.grad = torch.randn_like(parameter)
        numbers = sum(p.numel() for p in parameters)
        update = torch.optim.AdamW(parameters, lr=1e-4, **{kind: True})
        update.step()
        size = f"{len(parameters)} tensors, {numbers} numbers of {dtype}"
        seconds = timing.gpu_seconds(update.step, graph=False, least=0.2)
        figure(f"adamw-{kind}", seconds / numbers * 1e12, "ps/number", size=size, what=f"{seconds * 1e3:.3f} ms")
        figure(f"adamw-{kind}-host", timing.host_seconds(update.step, calls=2, rounds=5) / len(parameters) * 1e6, "us/tensor", size=size)
        clip = lambda: torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        seconds = timing.gpu_seconds(clip, graph=False, least=0.1)
        figure("clip", seconds / numbers * 1e12, "ps/number", size=size)
        figure("clip-host", timing.host_seconds(clip, calls=2, rounds=5) / len(parameters) * 1e6, "us/tensor", size=size)
        figure("zero_grad-host", timing.host_seconds(lambda: update.zero_grad(set_to_none=False), calls=2, rounds=5) / len(parameters) * 1e6, "us/tensor", size=size)
        del parameters, update
        torch.cuda.empty_cache()


def bits_optimizer():
    """Optimizers of bitsandbytes: a kernel for each tensor, and the host stops behind it."""
    import bitsandbytes.optim as optim
    kinds = {"adamw8": optim.AdamW8bit, "paged_adamw8": optim.PagedAdamW8bit, "adamw32": optim.AdamW32bit, "lion8": optim.Lion8bit}
    for (name, kind), (tensors, numbers) in itertools.product(kinds.items(), ((400, 2**16), (100, 2**20), (40, 2**24), (4, 2**28))):
        parameters = [torch.nn.Parameter(randn(numbers)) for _ in range(tensors)]
        for parameter in parameters:
            parameter.grad = randn(numbers) * 1e-3
        update = kind(parameters, lr=1e-5)
        seconds = timing.gpu_seconds(update.step, graph=False)
        figure(f"bits-{name}-{tensors}", seconds / tensors * 1e6, "us a tensor", size=f"{tensors} tensors of {numbers} numbers", what="bf16", notes=f"{seconds / tensors / numbers * 1e12:.4g} ps a number")
        del parameters, update


def host():
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        processor = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    figure("cores", os.cpu_count(), "cores", what=processor)
    x, out = randn(8, 64), torch.empty(8, 64, device="cuda", dtype=torch.bfloat16)
    weight, linear = randn(64, 64), torch.nn.Linear(64, 64, device="cuda", dtype=torch.bfloat16, bias=False)
    tracked = randn(8, 64).requires_grad_()
    with torch.no_grad():
        for name, work in {"add_out": lambda: torch.add(x, x, out=out), "add": lambda: x + x, "view": lambda: x.view(4, 128), "linear": lambda: F.linear(x, weight), "module": lambda: linear(x),
                           "rms_norm": lambda: F.rms_norm(x, (64,)), "cast": lambda: x.float(), "index": lambda: x[0], "empty": lambda: torch.empty(8, 64, device="cuda")}.items():
            figure(f"host-{name}", timing.host_seconds(work) * 1e6, "us")
    for name, work in {"add": lambda: tracked + tracked, "linear": lambda: linear(tracked), "view": lambda: tracked.view(4, 128)}.items():
        figure(f"host-tracked-{name}", timing.host_seconds(work) * 1e6, "us")
    for name, chain in {"mul": lambda y: y * x, "linear": linear}.items():
        def built():
            y = tracked
            for _ in range(300):
                y = chain(y)
            return y.sum()
        times = []
        for _ in range(7):
            total = built()
            torch.cuda.synchronize()
            begin = time.perf_counter()
            total.backward()
            torch.cuda.synchronize()
            times.append((time.perf_counter() - begin) / 300)
        figure(f"host-backward-{name}", sorted(times)[3] * 1e6, "us", notes="an operator's gradient, one kernel" if name == "mul" else "two products and a sum of gradients")
    figure("sync-item", timing.host_seconds(lambda: x[0, 0].item(), calls=100) * 1e6, "us", notes="index, copy of a value and the wait")
    figure("sync-empty", timing.host_seconds(torch.cuda.synchronize, calls=100) * 1e6, "us")
    event = torch.cuda.Event()
    side = torch.cuda.Stream()
    figure("host-event", timing.host_seconds(event.record) * 1e6, "us")
    figure("host-wait", timing.host_seconds(lambda: side.wait_event(event)) * 1e6, "us")

    def on_side():
        with torch.cuda.stream(side):
            pass
    figure("host-stream-switch", timing.host_seconds(on_side) * 1e6, "us")
    small = timing.gpu_seconds(lambda: torch.add(x, x, out=out), least=0.001)
    figure("small-kernel-graph", small * 1e6, "us", notes="one behind the other in a graph")
    figure("small-kernel-stream", timing.gpu_seconds(lambda: torch.add(x, x, out=out), least=0.01, graph=False) * 1e6, "us", notes="one behind the other as the host launches them")


def copies():
    for size in (2**12, 2**16, 2**20, 2**24, 2**28, 2**30):
        there = torch.empty(size, device="cuda", dtype=torch.uint8)
        pinned, plain = torch.ones(size, dtype=torch.uint8, pin_memory=True), torch.ones(size, dtype=torch.uint8)
        for name, work in {"to_gpu-pinned": lambda: there.copy_(pinned, non_blocking=True), "from_gpu-pinned": lambda: pinned.copy_(there, non_blocking=True)}.items():
            seconds = timing.gpu_seconds(work, graph=False, least=0.01)
            figure(f"copy-{name}", size / seconds / 1e9, "GB/s", size=size, what=f"{seconds * 1e6:.1f} us")
        for name, work in {"to_gpu-plain": lambda: there.copy_(plain), "from_gpu-plain": lambda: plain.copy_(there)}.items():
            seconds = timing.host_seconds(work, calls=2, rounds=3)
            figure(f"copy-{name}", size / seconds / 1e9, "GB/s", size=size, what=f"{seconds * 1e6:.1f} us")
        if size >= 2**28:
            side, back, other = torch.cuda.Stream(), torch.ones(size, dtype=torch.uint8, pin_memory=True), torch.empty(size, device="cuda", dtype=torch.uint8)

            def both():
                with torch.cuda.stream(side):
                    back.copy_(other, non_blocking=True)
                there.copy_(pinned, non_blocking=True)
                torch.cuda.current_stream().wait_stream(side)
            figure("copy-both", 2 * size / timing.gpu_seconds(both, graph=False, least=0.1) / 1e9, "GB/s", size=size, notes="both directions at once, their sum")
            a, b = torch.ones(size, dtype=torch.uint8), torch.ones(size, dtype=torch.uint8)
            begin = time.perf_counter()
            for _ in range(3):
                a.copy_(b)
            figure("copy-host", 3 * size / (time.perf_counter() - begin) / 1e9, "GB/s", size=size, notes=f"a tensor on the host, {torch.get_num_threads()} threads")
    begin = time.perf_counter()
    torch.empty(2**32, dtype=torch.uint8, pin_memory=True)
    figure("pin", 2**32 / (time.perf_counter() - begin) / 1e9, "GB/s", size=2**32)


def driver():
    """How fast the driver hands memory out and takes it back: whole blocks, and pieces that are mapped."""
    from cupy.cuda import runtime
    for size in (2**21, 20 * 2**20, 2**28, 2**30, 2**33):
        for fill in (False, True):
            out, back = [], []
            for _ in range(5):
                torch.cuda.synchronize()
                begin = time.perf_counter()
                block = runtime.malloc(size)
                runtime.deviceSynchronize()
                out.append(time.perf_counter() - begin)
                if fill:
                    runtime.memset(block, 1, size)
                    runtime.deviceSynchronize()
                begin = time.perf_counter()
                runtime.free(block)
                runtime.deviceSynchronize()
                back.append(time.perf_counter() - begin)
            notes = "written before it was freed" if fill else ""
            figure("driver-malloc", sorted(out)[2] * 1e6, "us", size=size, notes=notes)
            figure("driver-free", sorted(back)[2] * 1e6, "us", size=size, notes=notes)
    from cuda.bindings import driver as cu
    place = cu.CUmemAllocationProp()
    place.type, place.location.type, place.location.id = cu.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED, cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE, 0
    access = cu.CUmemAccessDesc()
    access.location.type, access.location.id, access.flags = place.location.type, 0, cu.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    for piece in (2 * 2**20, 20 * 2**20):
        pieces = 100
        _, base = cu.cuMemAddressReserve(piece * pieces, 0, 0, 0)
        spent = {"create": 0.0, "map": 0.0, "open": 0.0, "unmap": 0.0, "release": 0.0}

        def timed(name, call, *arguments):
            begin = time.perf_counter()
            code, *rest = call(*arguments)
            spent[name] += time.perf_counter() - begin
            assert code == cu.CUresult.CUDA_SUCCESS, (name, code)
            return rest[0] if rest else None
        handles = [timed("create", cu.cuMemCreate, piece, place, 0) for _ in range(pieces)]
        for at, handle in enumerate(handles):
            timed("map", cu.cuMemMap, int(base) + at * piece, piece, 0, handle, 0)
            timed("open", cu.cuMemSetAccess, int(base) + at * piece, piece, [access], 1)
        for at in range(pieces):
            timed("unmap", cu.cuMemUnmap, int(base) + at * piece, piece)
            timed("release", cu.cuMemRelease, handles[at])
        for name, seconds in spent.items():
            figure(f"driver-{name}", seconds / pieces * 1e6, "us", size=piece, notes="one piece")


def files():
    content = {"weights": [torch.randn(2**24, dtype=torch.float32) for _ in range(32)]}
    size = 32 * 2**26
    path = os.path.join("/tmp", "measured.pt")
    for name, work in {"torch.save": lambda: torch.save(content, path), "torch.load": lambda: torch.load(path)}.items():
        begin = time.perf_counter()
        work()
        figure(f"file-{name}", size / (time.perf_counter() - begin) / 1e9, "GB/s", size=size)
    from safetensors.torch import load_file, save_file
    os.remove(path)
    path += ".safetensors"
    flat = {str(at): part for at, part in enumerate(content["weights"])}
    for name, work in {"save_file": lambda: save_file(flat, path), "load_file": lambda: [part.sum() for part in load_file(path).values()]}.items():
        begin = time.perf_counter()
        work()
        figure(f"file-{name}", size / (time.perf_counter() - begin) / 1e9, "GB/s", size=size)
    os.remove(path)


def host_adam():
    numbers = 2**28
    for threads in (1, 2, 4, 8, 16):
        torch.set_num_threads(threads)
        for kind in ("fused", "foreach"):
            parameter = torch.nn.Parameter(torch.randn(numbers))
            parameter.grad = torch.randn(numbers)
            update = torch.optim.AdamW([parameter], lr=1e-4, **{kind: True})
            update.step()
            begin = time.perf_counter()
            update.step()
            figure(f"host-adamw-{kind}", numbers / (time.perf_counter() - begin) / 1e9, "1e9 numbers/s", size=numbers, notes=f"{threads} threads")
            del update, parameter


timing.sections(wanted, {"streams": streams, "experts": experts, "loss": loss, "optimizer": optimizer, "bits_optimizer": bits_optimizer, "host": host, "copies": copies, "driver": driver,
                         "files": files, "host_adam": host_adam})
