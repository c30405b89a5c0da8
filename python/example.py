"""Which setting makes Qwen3-30B's ZeRO-3 slow? What each cell prints stands behind it, and a test holds it."""

# %% one step
import stepsim

slow = stepsim.run("qwen3-30b-sft-zero3", samples=0)
print(f"{slow['step_time_s']:.0f} s, {slow['breakdown'][0]['cause']}")
#: 110 s, optimizer

# %% the same with one setting changed
fast = stepsim.run("qwen3-30b-sft-zero3", {"strategy.zero_optimization.sub_group_size": 1e9}, samples=0)
print(f"{fast['step_time_s']:.0f} s")
#: 36 s

# %% many settings
points = stepsim.sweep("llama32-3b-sft-zero3", {"job.micro_batch": [1, 2, 4], "strategy.zero": [2, 3]})
rows = points.to_dict("records") if hasattr(points, "to_dict") else points
best = max((row for row in rows if row["feasible"]), key=lambda row: row["tokens_per_second"])
print(best["job.micro_batch"], best["strategy.zero"])
#: 4 2

# %% does it fit?
print(stepsim.memory("mpt7b-zero2-oom")["verdict"])
#: oom

# %% what is wrong is said
try:
    stepsim.run("qwen3-30b-sft-zero3", {"strategy.zro": 2})
except stepsim.InputError as error:
    print(error)
#: --set: strategy.zro: unknown key (did you mean "zero"?)
