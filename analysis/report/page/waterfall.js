// The waterfall leads from the faster step to the slower one, one bar per cause or setting: they
// add up to the gap.

function waterfall(gap, steps) {
  const box = element("div", {class: "chart"});
  const [a, b] = steps;
  const bars = [{label: "B", name: `B  ${b.title}`, from: 0, to: b.step_time}];
  let at = b.step_time;
  for (const row of gap.rows) bars.push({label: row.label || words(row.cause), cause: row.cause, row, from: at, to: at += row.seconds});
  bars.push({label: "A", name: `A  ${a.title}`, from: 0, to: a.step_time});
  const layOut = () => drawWaterfall(box, bars);
  return {element: box, layOut};
}

// A small gap between long steps would be lost at the end of the bars: there the axis begins later.
function axisStart(bars) {
  const edges = bars.flatMap((bar) => bar.row ? [bar.from, bar.to] : [bar.to]);
  const least = d3.min(edges), most = d3.max(edges);
  return most - least < 0.3 * most ? Math.max(0, least - 0.35 * (most - least)) : 0;
}

// Two long steps may differ by little: then the axis begins where it matters.
function leastShown(bars) {
  const ends = bars.flatMap((bar) => bar.row ? [bar.from, bar.to] : [bar.to]);
  const [least, most] = d3.extent(ends);
  return least < 0.5 * most ? 0 : Math.max(0, least - 0.25 * (most - least || most));
}

function drawWaterfall(box, bars) {
  const width = box.clientWidth;
  if (width === 0) return;
  const narrow = width < 560;
  const longest = d3.max(bars, (bar) => bar.label.length);
  const left = narrow ? 8 : Math.min(width / 2, Math.max(150, 7.2 * longest + 12)), right = 84, lead = narrow ? 16 : 0, height = 22, pitch = height + lead + 8;
  const x = d3.scaleLinear([axisStart(bars), d3.max(bars, (bar) => Math.max(bar.from, bar.to))], [left, width - right]);
  const svg = d3.create("svg").attr("viewBox", `0 0 ${width} ${bars.length * pitch + 40}`).attr("role", "img")
    .attr("aria-label", bars.map((bar) => bar.row ? `${bar.label} ${seconds(bar.row.seconds)}` : `${bar.label} ${seconds(bar.to)}`).join(", "));
  const marks = x.ticks(Math.max(2, Math.floor((width - left - right) / 90)));
  svg.append("g").attr("class", "axis").attr("transform", `translate(0,${bars.length * pitch})`)
    .call(d3.axisBottom(x).tickValues(marks).tickSize(-bars.length * pitch).tickPadding(6).tickFormat((value) => mark(value, marks.length > 1 ? marks[1] - marks[0] : 1)));
  const rows = svg.selectAll("g.bar").data(bars).join("g").attr("class", "bar").attr("transform", (bar, i) => `translate(0,${i * pitch + lead})`);
  rows.append("text").attr("x", 0).attr("y", narrow ? -4 : height / 2).attr("dy", narrow ? 0 : "0.35em").text((bar) => bar.row ? bar.label : bar.label === "A" || bar.label === "B" ? `step ${bar.label}` : bar.label)
    .attr("font-weight", (bar) => bar.row ? 400 : 650);
  const begin = (bar) => Math.max(left, x(bar.from));
  rows.append("rect").attr("x", (bar) => Math.min(begin(bar), x(bar.to))).attr("height", height).attr("rx", 2)
    .attr("width", (bar) => Math.max(1.5, Math.abs(x(bar.to) - begin(bar))))
    .attr("fill", (bar) => bar.cause ? causeColour(bar.cause) : colours.of("--faint"));
  rows.filter((bar, i) => i + 1 < bars.length).append("line").attr("x1", (bar) => x(bar.to)).attr("x2", (bar) => x(bar.to))
    .attr("y1", height).attr("y2", pitch).attr("stroke", colours.of("--faint")).attr("stroke-dasharray", "2 2");
  rows.append("text").attr("x", (bar) => Math.max(x(bar.from), x(bar.to)) + 6).attr("y", height / 2).attr("dy", "0.35em")
    .text((bar) => bar.row ? signedSeconds(bar.row.seconds) : seconds(bar.to));
  rows.on("pointermove", (bar) => bar.row && tip.show(d3.event.clientX, d3.event.clientY,
    [[`${bar.label}  ${signedSeconds(bar.row.seconds)}`, "title"], ...(bar.row.range ? [[`${rangeOf(bar.row)} in 8 of 10 draws of the constants`]] : []), [bar.row.reading || (bar.row.label ? "" : meanings[bar.cause]) || ""], ...(bar.row.constants ? [[bar.row.constants, "faint"]] : [])]))
    .on("pointerleave", () => tip.hide());
  // A whisker shows how far the bar's end moves over the draws.
  rows.filter((bar) => bar.row && bar.row.range).append("line").attr("class", "whisker")
    .attr("x1", (bar) => Math.max(left, x(bar.from + bar.row.range[0]))).attr("x2", (bar) => Math.min(width - 2, x(bar.from + bar.row.range[1])))
    .attr("y1", height + 2).attr("y2", height + 2).attr("stroke", colours.of("--ink")).attr("stroke-width", 1.5);
  box.replaceChildren(svg.node());
}

// Shows the gap by setting: the same rows as `stepsim explain`.
function settingBars(settings) {
  const rows = settings.rows.map((row) => ({label: row.key, cause: row.cause || "other", seconds: row.seconds,
    reading: `${row.a} in A, ${row.b} in B; with that alone as in B, A takes ${seconds(row.a_with_it_alone_s)}`}));
  if (settings.rest_s) rows.push({label: "what no setting says", cause: "residual", seconds: settings.rest_s, reading: ""});
  return rows;
}

function settingTable(settings, total) {
  return element("table", {class: "stack"}, element("thead", {}, element("tr", {}, ...["setting", "in A", "in B"].map((word) => element("th", {}, word)),
    element("th", {class: "number"}, "of the gap"), element("th", {class: "number"}, "A with it alone"))),
  element("tbody", {}, ...settings.rows.map((row) => element("tr", {}, element("td", {class: "name"}, element("strong", {}, ...breakable(row.key))),
    element("td", {"data-label": "in A "}, row.a), element("td", {"data-label": "in B "}, row.b),
    element("td", {class: "number", "data-label": "of the gap "}, `${signedSeconds(row.seconds)}${settings.exact ? "" : ` \u00b1 ${seconds(row.stderr_s)}`}, ${percent(total ? row.seconds / total : 0)}`),
    element("td", {class: "number", "data-label": "A with it alone "}, `${seconds(row.a_with_it_alone_s)}${row.verdict === "oom" ? ", does not fit" : ""}`)))));
}

function rangeOf(row) {
  return `${signedSeconds(row.range[0])} to ${signedSeconds(row.range[1])}`;
}

// Shows what each step waited for, one stretch after the other.
function pathTable(path) {
  const longest = d3.max(path, (part) => part.seconds);
  return element("table", {class: "stack path"}, element("thead", {}, element("tr", {}, element("th", {}, "waits for"), element("th", {class: "number"}, "time"), element("th", {}, "made of"))),
    element("tbody", {}, ...path.map((part) => element("tr", {}, element("td", {}, part.title), element("td", {class: "number"}, seconds(part.seconds)),
      element("td", {}, element("div", {class: "bar", style: `width:${100 * part.seconds / longest}%`},
        ...part.causes.map(([cause, time]) => element("i", {style: `flex:${time} 0 0;background:${causeColour(cause)}`, title: `${words(cause)} ${seconds(time)}`}))),
      element("span", {class: "note"}, part.causes.slice(0, 4).filter(([, time]) => time >= 0.01 * part.seconds).map(([cause, time]) => `${words(cause)} ${seconds(time)}`).join(", ")))))));
}

function gapTable(gap, steps) {
  const total = steps[0].step_time - steps[1].step_time, ranged = gap.rows.some((row) => row.range);
  return element("table", {class: "stack"}, element("thead", {}, element("tr", {}, element("th", {}, "cause"),
    element("th", {class: "number"}, "of the gap"), ...(ranged ? [element("th", {class: "range"}, "8 of 10 draws")] : []), element("th", {}, "what if"), element("th", {}, "carried by"))),
    element("tbody", {}, ...gap.rows.map((row) => element("tr", {},
      element("td", {class: "cause"}, swatch(row.cause), words(row.cause)),
      element("td", {class: "number"}, `${signedSeconds(row.seconds)}, ${percent(total ? row.seconds / total : 0)}`),
      ...(ranged ? [element("td", {class: "range", "data-label": "8 of 10 draws "}, row.range ? rangeOf(row) : "")] : []),
      element("td", {}, row.reading), element("td", {class: "source"}, row.constants)))));
}
