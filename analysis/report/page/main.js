// This makes the page from its data, section by section.

function tiles(step) {
  const {summary} = step;
  const made = [tile(summary.step_time === undefined || summary.step_time === step.step_time ? "step time" : "time drawn", seconds(step.step_time),
    summary.step_time_low ? `${seconds(summary.step_time_low)} to ${seconds(summary.step_time_high)} in 8 of 10 draws` : `${whole(step.operations)} operation${step.operations === 1 ? "" : "s"}`)];
  if (summary.tokens_per_second_per_gpu) made.push(tile("throughput", whole(significant(summary.tokens_per_second_per_gpu, 3)), "tokens per second and GPU"));
  if (summary.model_flops_utilisation) made.push(tile("utilisation", percent(summary.model_flops_utilisation), "of the bf16 peak"));
  if (summary.energy) made.push(tile("energy", joules(summary.energy), `a step, ${watts(summary.energy / (summary.step_time || step.step_time))} in the mean`));
  if (summary.memory_capacity) {
    const needed = summary.memory_needed || summary.peak_memory;
    const fits = needed <= summary.memory_capacity;
    made.push(tile("memory", bytes(needed), `of ${bytes(summary.memory_capacity)} usable: ${fits ? "fits" : "does not fit"}`, fits ? "" : "bad"));
  }
  const guesses = step.constants.filter((constant) => constant[4] === "guess").length;
  if (step.constants.length) made.push(tile("guesses", String(guesses), `of ${step.constants.length} constants behind this`));
  return element("div", {class: "tiles"}, ...made);
}

// Says what a person wants to know first.
function conclusionOf(step) {
  const {summary} = step, [most] = [...step.breakdown].sort((a, b) => b.exposed - a.exposed);
  const needed = summary.memory_needed || summary.peak_memory;
  return `A step takes ${seconds(summary.step_time || step.step_time)}${most ? `, ${percent(most.exposed / step.step_time)} of it ${words(most.cause)}` : ""}`
    + `${summary.memory_capacity ? `, and needs ${bytes(needed)} of ${bytes(summary.memory_capacity)}: it ${needed <= summary.memory_capacity ? "fits" : "does not fit"}` : ""}.`;
}

function sweepConclusion(sweep) {
  const able = sweep.points.filter((point) => !point.reason);
  if (!able.length) return sweep.nearest ? `No point can run. Nearest is ${sweep.nearest}${sweep.remedies.length ? `; this makes it run: ${sweep.remedies[0]}` : ""}.` : "No point can run: the table says why.";
  const names = shortKeys(sweep.keys), varied = d3.range(sweep.keys.length).filter((k) => new Set(sweep.points.map((point) => point.values[k])).size > 1);
  const best = able.reduce((one, other) => other.rate * other.gpus > one.rate * one.gpus ? other : one);
  return `Fastest is ${varied.map((k) => `${names[k]} ${best.values[k]}`).join(", ") || "the only one"}: ${seconds(best.step_time)} a step, ${whole(significant(best.rate, 3))} tokens per second and GPU, ${bytes(best.memory)} on a GPU.`;
}

function claimsConclusion(claims) {
  const count = (verdict) => claims.filter((claim) => claim.verdict === verdict).length;
  return `Of ${claims.length} claim${claims.length === 1 ? "" : "s"} ${["supported", "refuted", "depends", "undecided"].filter(count).map((verdict) => `${count(verdict)} ${verdict === "depends" ? "depend" + (count(verdict) === 1 ? "s" : "") + " on conditions" : `${count(verdict) === 1 ? "is" : "are"} ${verdict}`}`).join(", ")}.`;
}

function lead(text) {
  return element("p", {class: "headline"}, text);
}

// Says what was taken, and loudly what the figures are without.
function takenOf(step) {
  return [step.taken ? element("p", {class: "subtitle"}, element("b", {}, "Taken: "), step.taken) : "",
    step.missing.length ? element("p", {class: "bad"}, element("b", {}, "Not modelled: "), step.missing.join("; ")) : ""];
}

function head(steps) {
  const box = document.getElementById("head");
  if (steps.length === 0) {
    box.append(element("h1", {}, data.sweep ? data.sweep.title : data.title));
    if (data.sweep) box.append(lead(sweepConclusion(data.sweep)));
    if (data.claims.length) box.append(lead(claimsConclusion(data.claims)));
    return;
  }
  if (steps.length === 1) {
    box.append(element("h1", {}, steps[0].title), element("p", {class: "subtitle"}, steps[0].subtitle), lead(conclusionOf(steps[0])), ...takenOf(steps[0]), tiles(steps[0]));
    return;
  }
  box.append(element("h1", {}, "Two steps side by side"));
  if (data.gap) box.append(lead(data.gap.headline));
  steps.forEach((step, side) => box.append(element("h3", {}, sideMark(side), step.title), element("p", {class: "subtitle"}, step.subtitle), ...takenOf(step), tiles(step)));
}

// Shows a chart of every step, under its letter where there are several.
function ofEach(steps, make) {
  return steps.map((step, side) => element("div", {}, steps.length > 1 ? element("h3", {}, sideMark(side), step.title) : "", make(step)));
}

function gapSection(gap, steps) {
  const [a, b] = steps;
  section("gap", "Why they differ", `A takes ${seconds(a.step_time)}, B ${seconds(b.step_time)}: a gap of ${seconds(a.step_time - b.step_time)}. The parts add up to it.`,
    ...(gap.settings && gap.settings.rows.length ? [element("h3", {}, "By setting"), element("div", {class: "by-setting"}, chart(waterfall({rows: settingBars(gap.settings)}, steps))), settingTable(gap.settings, a.step_time - b.step_time),
      gap.settings.without_effect.length ? element("p", {class: "note"}, `Without effect here: ${gap.settings.without_effect.map(({key}) => key).join(", ")}.`) : "", element("h3", {}, "By cause")] : []),
    ...gap.notes.map((note) => element("p", {}, note)), element("div", {class: "by-cause"}, chart(waterfall(gap, steps))),
    gap.sureness ? element("p", {}, `${gap.sureness} A thin line shows how far a bar reaches in 8 of 10 draws.`) : "", gapTable(gap, steps),
    ...(gap.movers.length ? [element("h3", {}, "What the gap rests on most"), element("ul", {}, ...gap.movers.map((mover) => element("li", {}, mover)))] : []));
  section("path", "What each waits for", `The critical path: every operation on it started when the one before it was done. ${gap.parting}`,
    ...gap.paths.map((path, side) => element("div", {}, element("h3", {}, sideMark(side), steps[side].title), pathTable(path))));
}

function sweepSection(sweep) {
  const able = sweep.points.filter((point) => !point.reason);
  const causes = [...new Set(able.flatMap((point) => point.parts.map(([cause]) => cause)))];
  const plots = new SweepPlots(sweep);
  section("sweep", "Sweep", !able.length ? "" : `${whole(able.length)} of ${whole(sweep.points.length)} points can run. Fastest has the most tokens per second, cheapest the least GPU time per token; no other point beats the front in both.`,
    chart(plots), ...sweepReading(sweep), element("h3", {}, "All points"), element("div", {class: "legend note"}, ...causes.map((cause) =>
      element("span", {title: meanings[cause] || ""}, swatch(cause), words(cause), "\u2003"))), sweepTable(sweep, plots.key === "front"));
}

function sections() {
  const {steps} = data;
  const end = Math.max(0, ...steps.map((step) => step.step_time));
  if (data.claims.length) section("claims", "Claims", "Each judged over the ranges of the constants.", claimTable(data.claims));
  if (data.gap) gapSection(data.gap, steps);
  if (data.sweep) sweepSection(data.sweep);
  if (!steps.length) return;
  const causes = [...new Set(steps.flatMap((step) => step.breakdown.map((row) => row.cause)))];
  section("time", "Where the time goes", "Exposed: nothing more urgent ran on the GPU at that time, and the exposed times add up to the step. Hidden (pale): behind something else.", breakdown(steps));
  const merged = steps.some((step) => step.resolution > 0);
  section("timeline", "Timeline", `Every stream of a rank, filled as high as it is busy.${merged ? ` Operations that follow each other within ${seconds(Math.max(...steps.map((step) => step.resolution)))} are drawn together.` : ""} Drag to move, zoom with the buttons, two fingers or Ctrl and the wheel.`,
    legend(causes.filter((cause) => cause !== "idle")), ...ofEach(steps, (step) => chart(new Timeline(step, end))));
  const holding = steps.filter((step) => step.memory);
  if (holding.length) {
    const most = 1.08 * Math.max(...holding.map(({memory}) => Math.max(memory.capacity || 0, memory.needed || 0, memory.peak)));
    section("memory", "Memory", "What the first rank's device holds.", element("div", {class: steps.length > 1 ? "pair" : ""},
      ...ofEach(steps, (step) => step.memory ? chart(new Memory(step, end, most)) : "no memory was followed")));
  }
  if (steps.some((step) => step.links.length))
    section("links", "Links", "The busiest first. What an operation sends counts evenly over its time, headers included; the height of a row is the link's capacity.", ...ofEach(steps, (step) => chart(new Links(step))));
  if (steps.some((step) => step.constants.length))
    section("constants", "Constants", "Every figure that this rests on, the least certain first.",
      element("details", innerWidth >= 640 ? {open: ""} : {}, element("summary", {}, "all of them, with their sources"), constantTable(steps)));
  section("scenario", steps.length > 1 ? "Scenarios" : "Scenario", "", ...ofEach(steps, (step) => element("details", {}, element("summary", {}, "what was asked"), element("pre", {tabindex: "0"}, step.scenario))));
}

head(data.steps);
sections();
layOut();
addEventListener("beforeprint", () => document.querySelectorAll("#constants details").forEach((details) => { details.open = true; }));
document.documentElement.dataset.ready = "yes";
