#!/usr/bin/env python3
"""Draws docs/fidelity.svg: predicted against measured tokens per second and GPU, by family.

stepsim-rows scenarios/measured/steps --json | docs/plot_fidelity.py docs/fidelity.svg
"""
import json
import sys

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "stepsim"  # the same input gives the same bytes
import matplotlib.pyplot as plt

answer = json.load(sys.stdin)
families = {}
for row in answer["rows"]:
    if row["metric"] == "tok_s_gpu":
        families.setdefault(row["family"], []).append((row["measured"], row["predicted"]))
figure, axes = plt.subplots(figsize=(9, 7))
marks = "osD^v<>ph*XPd8"
for i, (family, points) in enumerate(sorted(families.items())):
    x, y = zip(*points)
    axes.scatter(x, y, s=22, marker=marks[i % len(marks)], alpha=0.75, linewidths=0, label=f"{family} ({len(points)})")
every = [p for points in families.values() for p in points]
low, high = min(map(min, every)) / 1.3, max(map(max, every)) * 1.3
axes.plot([low, high], [low, high], color="black", linewidth=0.8)
axes.fill_between([low, high], [0.9 * low, 0.9 * high], [1.1 * low, 1.1 * high], color="grey", alpha=0.25, linewidth=0,
                  label="within 10 %")
axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high), xlabel="measured tokens/s/GPU",
         ylabel="predicted tokens/s/GPU")
axes.legend(fontsize=7, loc="upper left")
figure.tight_layout()
figure.savefig(sys.argv[1], metadata={"Date": None})
