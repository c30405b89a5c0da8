// These plots show the points of a sweep: memory against time with the points that nothing beats in
// both, or three plots over one key, a line for each setting of the others; and a table of all of
// them.

function isNumber(text) {
  return text !== "" && Number.isFinite(Number(text));
}

// "strategy.zero" of a table's key: the end is enough to read, or two parts where ends are alike.
function shortKeys(keys) {
  const end = (key, parts) => words(key.split(".").slice(-parts).join(" "));
  return keys.map((key) => end(key, keys.filter((other) => end(other, 1) === end(key, 1)).length > 1 ? 2 : 1));
}

// A person does not tell apart more lines than these.
const MOST_LINES = 12;

// Returns the points that no other beats in both, the quickest first. Their time is that of a step
// where steps have as many tokens, and of a million tokens elsewhere.
function frontOf(points) {
  const alike = points.every((point) => Math.abs(point.tokens - points[0].tokens) < 1e-6 * points[0].tokens);
  points.forEach((point) => { point.time = alike ? point.step_time : 1e6 * point.step_time / point.tokens; });
  const front = [];
  for (const point of [...points].sort((a, b) => a.time - b.time || a.memory - b.memory))
    if (!front.length || point.memory < front[front.length - 1].memory) front.push(point);
  return front;
}

// Marks a line as it is drawn: colours come again with other dashes.
function lineMark({colour, dash}) {
  const svg = d3.create("svg").attr("width", 26).attr("height", 10).attr("class", "line-mark").attr("aria-hidden", "true");
  svg.append("line").attr("x1", 1).attr("x2", 25).attr("y1", 5).attr("y2", 5).attr("stroke", colour).attr("stroke-width", 2.5).attr("stroke-dasharray", dash);
  return svg.node();
}

class SweepPlots {
  constructor(sweep) {
    this.sweep = sweep;
    const distinct = (k) => new Set(sweep.points.map((point) => point.values[k])).size;
    this.numeric = d3.range(sweep.keys.length).filter((k) => distinct(k) > 1 && sweep.points.every((point) => isNumber(point.values[k])));
    const able = sweep.points.filter((point) => !point.reason);
    // Tokens per second depend most on the key of the largest effect: the mean spread along it, the
    // others as they are.
    const effect = (k) => {
      const groups = new Map();
      able.forEach((point) => {
        const rest = point.values.filter((_, i) => i !== k).join();
        groups.set(rest, [...(groups.get(rest) || []), point.rate]);
      });
      return d3.mean([...groups.values()], (rates) => 1 - d3.min(rates) / d3.max(rates)) || 0;
    };
    this.numeric.sort((a, b) => effect(b) - effect(a));
    this.names = shortKeys(sweep.keys);
    this.varied = d3.range(sweep.keys.length).filter((k) => distinct(k) > 1);
    this.key = this.numeric[0];
    this.able = able.filter((point) => point.step_time > 0 && point.memory > 0);
    this.front = frontOf(this.able);
    if (!able.length) this.key = undefined;
    if (this.able.length > 1 && (this.key === undefined || this.lines().length > MOST_LINES)) this.key = "front";
    this.plots = [["tokens per second and GPU", (point) => point.rate, whole], ["step time", (point) => point.step_time, seconds],
      ["memory of a GPU", (point) => point.memory, bytes]].map(([title, of, text]) => ({title, of, text, box: element("div", {class: "chart"})}));
    this.keys = element("div", {class: "legend note"});
    this.trio = element("div", {class: "trio"}, ...this.plots.map(({box}) => element("div", {}, box)));
    this.whole = element("div", {class: "chart"});
    this.element = element("div", {}, this.choice(), this.keys, this.trio, this.whole);
  }
  choice() {
    const ways = this.numeric.map((k) => [k, `over ${this.sweep.keys[k]}`]);
    if (this.able.length > 1) ways.push(["front", "memory against time"]);
    if (ways.length < 2) return "";
    const choice = element("select", {"aria-label": "What is plotted", onchange: () => {
      this.key = choice.value === "front" ? "front" : Number(choice.value);
      this.layOut();
    }}, ...ways.map(([value, text]) => element("option", {value, selected: value === this.key ? "" : null}, text)));
    return element("div", {class: "controls"}, choice);
  }

  // Each setting of the other keys has a line, in the order of the table.
  lines() {
    const {sweep, key} = this;
    const others = this.varied.filter((k) => k !== key);
    const lines = new Map();
    for (const point of sweep.points) {
      const name = others.map((k) => `${this.names[k]} ${point.values[k]}`).join(", ");
      if (!lines.has(name)) lines.set(name, []);
      if (!point.reason) lines.get(name).push([Number(point.values[key]), point]);
    }
    lines.forEach((points) => points.sort((a, b) => a[0] - b[0]));
    return [...lines].filter(([, points]) => points.length);
  }

  layOut() {
    this.trio.hidden = this.keys.hidden = this.key === "front";
    this.whole.hidden = !this.trio.hidden;
    if (this.key === undefined) return;
    if (this.key === "front") {
      this.drawFront();
      return;
    }
    const lines = this.lines();
    const hues = ["compute", "launch", "gather-bytes", "offload-transfer", "routing-sync", "recompute"];
    const style = lines.map((line, i) => ({colour: colours.of(`--cause-${hues[i % hues.length]}`), dash: ["none", "6 3", "2 3", "9 3 2 3"][Math.floor(i / hues.length) % 4]}));
    this.keys.replaceChildren(...(lines.length < 2 ? [] : lines.map(([name], i) => element("span", {},
      lineMark(style[i]), name, "\u2003"))));
    for (const plot of this.plots) this.drawPlot(plot, lines, style);
  }

  settingsOf(point) {
    return this.varied.map((k) => `${this.names[k]} ${point.values[k]}`).join(", ");
  }

  drawFront() {
    const width = this.whole.clientWidth;
    if (width === 0) return;
    const height = 360, left = 62, right = 34, top = 26, bottom = 44;
    const x = d3.scaleLinear(d3.extent(this.able, (point) => point.time), [left + 10, width - right]).nice();
    const y = d3.scaleLinear([0, d3.max(this.able, (point) => point.memory)], [height - bottom, top]).nice();
    const title = this.able.every((point) => point.time === point.step_time) ? "step time" : "time of a million tokens";
    const svg = d3.create("svg").attr("viewBox", `0 0 ${width} ${height}`).attr("role", "img").attr("aria-label", `memory of a GPU against ${title}: `
      + this.front.map((point) => `${bytes(point.memory)} in ${seconds(point.time)}`).join(", "));
    svg.append("text").attr("x", 0).attr("y", 13).attr("font-weight", 600).text("memory of a GPU");
    svg.append("g").attr("class", "axis").attr("transform", `translate(${left},0)`)
      .call(d3.axisLeft(y).ticks(5).tickSize(-(width - left - right)).tickFormat((value) => value === 0 ? "0" : bytes(value)));
    svg.append("g").attr("class", "axis").attr("transform", `translate(0,${height - bottom})`)
      .call(d3.axisBottom(x).ticks(Math.floor((width - left) / 90)).tickFormat((value) => seconds(value)));
    svg.append("text").attr("class", "faint").attr("x", width - right).attr("y", height - 6).attr("text-anchor", "end").text(title);
    svg.append("path").attr("fill", "none").attr("stroke", colours.of("--cause-compute")).attr("stroke-width", 2)
      .attr("d", d3.line().x((point) => x(point.time)).y((point) => y(point.memory)).curve(d3.curveStepAfter)(this.front));
    const best = new Set(this.front);
    svg.append("g").selectAll("circle").data(this.able).join("circle").attr("cx", (point) => x(point.time)).attr("cy", (point) => y(point.memory))
      .attr("r", (point) => best.has(point) ? 5.5 : 4).attr("fill", (point) => colours.of(best.has(point) ? "--cause-compute" : "--faint")).attr("stroke", colours.of("--paper"))
      .on("pointermove", (point) => tip.show(d3.event.clientX, d3.event.clientY, [[`${seconds(point.time)}, ${bytes(point.memory)}`, "title"],
        [this.settingsOf(point)], ...(best.has(point) ? [["no other is quicker with less memory", "faint"]] : [])]))
      .on("pointerleave", () => tip.hide());
    this.whole.replaceChildren(svg.node());
  }

  drawPlot({title, of, text, box}, lines, style) {
    const width = box.clientWidth;
    if (width === 0) return;
    const height = 240, left = 62, right = 14, top = 26, bottom = 40;
    const xs = [...new Set(d3.merge(lines.map(([, points]) => points.map(([x]) => x))))].sort(d3.ascending);
    const steep = xs.length > 2 && xs[0] > 0 && xs[xs.length - 1] / xs[0] >= 16;
    const x = (steep ? d3.scaleLog : d3.scaleLinear)(d3.extent(xs), [left + 8, width - right]);
    const [least, most] = d3.extent(d3.merge(lines.map(([, points]) => points.map(([, point]) => of(point)))));
    const y = d3.scaleLinear([least > 0.6 * most ? least - 0.25 * (most - least) : 0, most || 1], [height - bottom, top]).nice();
    const svg = d3.create("svg").attr("viewBox", `0 0 ${width} ${height}`).attr("role", "img").attr("aria-label", `${title} over ${this.sweep.keys[this.key]}`);
    svg.append("text").attr("x", 0).attr("y", 13).attr("font-weight", 600).text(title);
    svg.append("g").attr("class", "axis").attr("transform", `translate(${left},0)`)
      .call(d3.axisLeft(y).ticks(4).tickSize(-(width - left - right)).tickFormat((value) => value === 0 ? "0" : text(value)));
    const fitting = Math.max(2, Math.floor((width - left) / 44));
    const marks = xs.length <= fitting ? xs : xs.filter((value, i) => i % Math.ceil(xs.length / fitting) === 0);
    svg.append("g").attr("class", "axis").attr("transform", `translate(0,${height - bottom})`)
      .call(d3.axisBottom(x).tickValues(marks).tickFormat((value) => String(value)));
    svg.append("text").attr("class", "faint").attr("x", width - right).attr("y", height - 6).attr("text-anchor", "end").text(this.sweep.keys[this.key]);
    lines.forEach(([name, points], i) => {
      svg.append("path").attr("fill", "none").attr("stroke", style[i].colour).attr("stroke-width", 2).attr("stroke-dasharray", style[i].dash)
        .attr("d", d3.line().x(([value]) => x(value)).y(([, point]) => y(of(point)))(points));
      svg.append("g").selectAll("circle").data(points).join("circle").attr("cx", ([value]) => x(value)).attr("cy", ([, point]) => y(of(point)))
        .attr("r", 4.5).attr("fill", style[i].colour).attr("stroke", colours.of("--paper"))
        .on("pointermove", ([value, point]) => tip.show(d3.event.clientX, d3.event.clientY, [[`${text(of(point))}`, "title"],
          [`${this.sweep.keys[this.key]} ${value}${name ? `, ${name}` : ""}`], ...(point.mark ? [[point.mark, "faint"]] : [])]))
        .on("pointerleave", () => tip.hide());
    });
    box.replaceChildren(svg.node());
  }
}

// Shows what the points say, and what would help: the fastest of them, or one to run at all.
function sweepReading(sweep) {
  const list = (lines) => element("ul", {class: "reading"}, ...lines.map((line) => element("li", {}, line)));
  const gains = sweep.changes.map(([change, gain]) => `${change}: ${percent(gain)} more tokens per second`);
  if (sweep.remedies.length) return [element("h3", {}, `What makes ${sweep.nearest} run`), list(sweep.remedies)];
  return [...(sweep.reading.length ? [element("h3", {}, "What they say"), list(sweep.reading)] : []),
    ...(gains.length ? [element("h3", {}, "What would make the fastest faster"), list(gains)] : [])];
}

function sweepTable(sweep, quickestFirst) {
  const most = 1000;
  const figures = (point) => point.reason ? [element("td", {colspan: "4", class: "source"}, point.reason)] : [
    element("td", {class: "number"}, seconds(point.step_time)), element("td", {class: "number"}, whole(significant(point.rate, 3))),
    element("td", {class: "number"}, bytes(point.memory)),
    element("td", {class: "mix"}, element("div", {class: "bar"}, ...point.parts.map(([cause, time]) => element("i", {
      title: `${words(cause)} ${seconds(time)}, ${percent(time / point.step_time)}`, style: `width:${(100 * time / point.step_time).toFixed(2)}%;background:var(--cause-${cause.replace(/_/g, "-")})`}))))];
  const names = shortKeys(sweep.keys);
  const row = (point) => element("tr", {}, ...point.values.map((value) => element("td", {class: isNumber(value) ? "number" : ""}, value)),
    ...figures(point), element("td", {}, element("strong", {}, point.mark)));
  const number = (k) => sweep.points.every((point) => isNumber(point.values[k])) ? "number" : "";
  const body = element("tbody", {});
  // Points that cannot run stand last.
  const fill = (of, up) => {
    const value = (point) => point.reason ? Infinity : up * of(point);
    body.replaceChildren(...(of ? [...sweep.points].sort((a, b) => value(a) - value(b)) : sweep.points).slice(0, most).map(row));
  };
  const sorted = (title, of, up) => element("th", {class: "number"}, element("button", {class: "plain", title: `sort by ${title}`, onclick: () => fill(of, up)}, title));
  const stepTime = (point) => point.step_time;
  fill(quickestFirst ? stepTime : undefined, 1);
  return element("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": "All points"}, element("table", {class: "points"},
    element("thead", {}, element("tr", {}, ...sweep.keys.map((key, k) => element("th", {class: number(k), title: key}, names[k])),
      sorted("step time", stepTime, 1), sorted("tok/s/GPU", (point) => point.rate, -1), sorted("memory", (point) => point.memory, 1),
      element("th", {class: "mix"}, "shares of the step"), element("th", {}))),
    body),
    sweep.points.length > most ? element("p", {class: "note"}, `The first ${most} of ${whole(sweep.points.length)} points.`) : "");
}
