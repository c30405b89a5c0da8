// The answers are shown here: figures, where the time goes, memory, the gap, and what to take away.

// Returns the answer as the charts of a report page want it.
function stepOf(answer) {
  const {run} = answer;
  return {title: answer.subtitle, step_time: run.step_time_s, run,
    breakdown: run.breakdown.map((row) => ({cause: row.cause, exposed: row.exposed_s, hidden: row.hidden_s})).filter((row) => row.exposed + row.hidden > 0)};
}

const verdictWords = {fits: "fits", tight: "fits, but tightly", oom: "does not fit"};

function answerTiles({run, gpus, drawing}) {
  const range = run.interval_s;
  const made = [tile("step time", seconds(run.step_time_s), range ? `${seconds(range[0])} to ${seconds(range[1])} in 8 of 10 draws` : drawing ? "interval: drawing constants \u2026" : "no interval: the step is long"),
    tile("throughput", whole(significant(run.tokens_per_second_per_gpu, 3)), "tokens per second and GPU"),
    tile("utilisation", percent(run.model_flops_utilisation), `of the bf16 peak of ${whole(gpus)} GPU${gpus === 1 ? "" : "s"}`),
    tile("memory", bytes(run.peak_memory_bytes), `of ${bytes(run.capacity_bytes)} usable: ${verdictWords[run.verdict]}`, run.verdict === "oom" ? "bad" : run.verdict === "tight" ? "open" : "")];
  if (run.energy) made.push(tile("energy", joules(run.energy.step_j), run.energy.job_kwh ? `a step; ${whole(Math.round(run.energy.job_kwh))} kWh the whole job` : "a step"));
  if (run.wall_h) made.push(tile("whole job", seconds(3600 * run.wall_h), run.batches ? `${whole(Math.round(run.batches.optimizer_steps))} steps` : ""));
  return element("div", {class: "tiles"}, ...made);
}

// These bars show what each GPU holds at the peak, class beside class, up to the line of what it
// can.
class MemoryBars {
  constructor(steps) {
    this.steps = steps;
    this.element = element("div", {class: "chart"});
  }
  layOut() {
    const width = this.element.clientWidth;
    if (width === 0) return;
    const {steps} = this, left = steps.length > 1 ? 26 : 0, height = 30, pitch = 56, bottom = steps.length * pitch;
    const most = 1.04 * d3.max(steps, ({run}) => Math.max(run.capacity_bytes, run.peak_memory_bytes));
    const x = d3.scaleLinear([0, most], [left, width - 2]);
    const svg = d3.create("svg").attr("viewBox", `0 0 ${width} ${bottom + 24}`).attr("role", "img").attr("aria-label",
      steps.map(({run}) => `${bytes(run.peak_memory_bytes)} of ${bytes(run.capacity_bytes)} usable: ${verdictWords[run.verdict]}`).join("; "));
    svg.append("g").attr("class", "axis").attr("transform", `translate(0,${bottom})`)
      .call(d3.axisBottom(x).ticks(Math.max(2, Math.floor(width / 110))).tickSize(-bottom).tickPadding(6).tickFormat((value) => value === 0 ? "0" : most >= 2e9 ? `${value / 1e9} GB` : `${value / 1e6} MB`));
    steps.forEach((step, at) => this.drawStep(svg, step, x, at * pitch + 20, height, at));
    this.element.replaceChildren(svg.node());
  }
  drawStep(svg, {run}, x, top, height, at) {
    let from = 0;
    if (x.range()[0] > 0) svg.append("text").attr("x", 0).attr("y", top + height / 2).attr("dy", "0.35em").attr("font-weight", 650).text("AB"[at]);
    for (const [name, size] of Object.entries(run.classes)) {
      svg.append("rect").attr("x", x(from)).attr("y", top).attr("width", Math.max(0, x(from + size) - x(from))).attr("height", height).attr("fill", holdings.colour(name))
        .on("pointermove", () => tip.show(d3.event.clientX, d3.event.clientY, [[`${words(name)}  ${bytes(size)}`, "title"], [`${percent(size / run.peak_memory_bytes)} of what is needed`, "faint"]]))
        .on("pointerleave", () => tip.hide());
      from += size;
    }
    const line = x(run.capacity_bytes);
    svg.append("line").attr("class", "capacity").attr("x1", line).attr("x2", line).attr("y1", top - 5).attr("y2", top + height + 5).attr("stroke", colours.of("--bad")).attr("stroke-width", 2);
    svg.append("text").attr("x", line - 5).attr("y", top - 7).attr("text-anchor", "end").text(`usable ${bytes(run.capacity_bytes)}`);
    svg.append("text").attr("x", x.range()[0]).attr("y", top - 7).attr("font-weight", 600).text(`needed ${bytes(run.peak_memory_bytes)}`);
  }
}

function memoryTable(steps) {
  const names = [...new Set(steps.flatMap(({run}) => Object.keys(run.classes)))];
  const size = ({run}, name) => run.classes[name] || 0;
  const largest = d3.max(names, (name) => d3.max(steps, (step) => size(step, name)));
  names.sort((one, other) => d3.max(steps, (step) => size(step, other)) - d3.max(steps, (step) => size(step, one)));
  return element("table", {class: "bars"}, element("thead", {}, element("tr", {}, element("th", {}, "held at the peak"), element("th", {}, ""), element("th", {class: "number"}, "size"))),
    element("tbody", {}, ...names.map((name) => element("tr", {}, element("td", {class: "cause"}, element("span", {class: "swatch", style: `background:${holdings.colour(name)}`}), words(name)),
      element("td", {class: "bar-cell"}, ...steps.map((step, at) => element("div", {class: "bar"}, steps.length > 1 ? element("b", {}, "AB"[at]) : "",
        element("i", {style: `width:${(96 * size(step, name) / largest).toFixed(2)}%;background:${holdings.colour(name)}`})))),
      element("td", {class: "number"}, ...steps.map((step) => element("div", {}, bytes(size(step, name)))))))));
}

function failureText({run}, at, several) {
  const failed = run.failed_allocation || run.host.failed_allocation;
  return failed ? element("p", {class: "bad"}, several ? sideMark(at) : "", `Fails first: ${bytes(failed.bytes)} for ${words(failed.class)} in ${failed.moment}, with ${bytes(failed.allocated_before)} held before.`) : "";
}

// Says what was taken, and loudly what the figures are without.
function takenOf({run}) {
  const parts = ["method", "batch", "precision", "optimizer", "sharding", "checkpointing", "attention", "loss", "release"];
  const line = parts.map((part) => run.taken[part]).join("; ");
  return [element("p", {class: "note"}, element("b", {}, "Taken: "), line, line.includes("*") ? " (* no file says it)" : ""),
    run.not_modelled.length ? element("p", {class: "bad"}, element("b", {}, "Not modelled: "), run.not_modelled.map(({key, effect}) => `${key} (${effect})`).join("; ")) : ""];
}

// Shows what a file of another program leaves open, and what was read and makes no difference.
function remarks({run}) {
  const {assumptions, notes} = run;
  return [assumptions.length ? element("table", {class: "stack assumptions"}, element("thead", {}, element("tr", {}, ...["not in the file", "taken", "because"].map((word) => element("th", {}, word)))),
    element("tbody", {}, ...assumptions.map((each) => element("tr", {}, element("td", {}, element("strong", {}, each.what)), element("td", {}, each.taken), element("td", {class: "source"}, each.because))))) : "",
  notes.length ? element("details", {}, element("summary", {}, `${notes.length} note${notes.length === 1 ? "" : "s"}`), element("ul", {}, ...notes.map((note) => element("li", {}, note)))) : ""];
}

function part(id, title, note, ...content) {
  return element("section", {id, "aria-label": title}, element("h2", {}, title), note ? element("p", {class: "note"}, note) : "", ...content);
}

// Shows the gap by setting: the same rows as `stepsim explain`.
function gapPart(gap, steps, asking) {
  if (!gap) return part("gap", "Why they differ", asking ? "Putting settings of B into A, alone and with others, and replaying each \u2026" : "");
  if (gap.problems) return part("gap", "Why they differ", "", element("div", {class: "problem"}, gap.problems.map(({text}) => text).join("\n")));
  const {settings} = gap, total = gap.gap_s;
  const rows = settingBars(settings);
  const ended = gap.rows.map((row) => ({...row, reading: row.counterfactual}));
  return part("gap", "Why they differ", "", element("p", {class: "headline"}, gap.summary),
    ...(rows.length ? [chart(waterfall({rows}, steps)), settingTable(settings, total)] : []),
    gap.not_equal.length ? element("p", {}, `Not equal: ${gap.not_equal.join("; ")}.`) : "",
    settings.without_effect.length ? element("p", {class: "note"}, `Without effect here: ${settings.without_effect.map(({key}) => key).join(", ")}.`) : "",
    element("details", {ontoggle: layOut}, element("summary", {}, "the same by cause"), chart(waterfall({rows: ended}, steps))));
}

function takeAway(answer, at, several, pageOf) {
  const copy = (event) => navigator.clipboard.writeText(answer.command).then(() => { event.target.textContent = "Copied"; }, () => {});
  return element("div", {}, several ? element("h3", {}, sideMark(at), answer.subtitle) : "", element("pre", {tabindex: "0", "aria-label": "Command line"}, answer.command),
    element("div", {class: "controls"}, navigator.clipboard ? element("button", {type: "button", onclick: copy}, "Copy the command") : "",
      element("button", {type: "button", onclick: () => saveAs("scenario.yaml", "text/yaml", answer.run.scenario.resolved)}, "Download the scenario"),
      at === 0 ? element("button", {type: "button", onclick: pageOf}, several ? "Download the page of both" : "Download the page") : ""));
}

// `answers`: of a, b and the gap, what is known so far.
function drawAnswers(box, state, answers, pageOf) {
  charts.length = 0;
  focus.listeners.length = 0;
  const sides = sidesOf(state), sound = sides.filter((side) => answers[side] && answers[side].run);
  const steps = sound.map((side) => stepOf(answers[side])), several = sides.length > 1;
  const figures = sound.map((side) => element("div", {}, element("h3", {}, several ? sideMark(side === "a" ? 0 : 1) : "", answers[side].subtitle), ...takenOf(answers[side]), answerTiles(answers[side]), ...remarks(answers[side])));
  const parts = [part("figures", several ? "Two steps" : "One step", "", ...figures)];
  if (sound.length === sides.length && steps.length) {
    if (several) parts.push(gapPart(answers.gap, steps, answers.asking));
    parts.push(part("time", "Where the time goes", "Exposed times add up to the step. Hidden (pale): behind something more urgent.", breakdown(steps)),
      part("memory", "Memory", "What the fullest GPU holds when it holds most.", chart(new MemoryBars(steps)), ...steps.map((step, at) => failureText(step, at, several)), memoryTable(steps)),
      part("take", "Take it along", "", ...sound.map((side, at) => takeAway(answers[side], at, several, pageOf))));
  }
  if (sound.length) box.replaceChildren(...parts);
  box.classList.toggle("stale", !sound.length);  // what is seen is of the settings before
  layOut();
}
