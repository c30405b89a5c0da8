// This chart shows where the time goes: one row per cause, one bar per step.

function breakdown(steps) {
  const rows = new Map();
  steps.forEach((step, side) => step.breakdown.forEach((row) => {
    if (!rows.has(row.cause)) rows.set(row.cause, []);
    rows.get(row.cause)[side] = row;
  }));
  const exposed = (sides) => Math.max(...sides.filter(Boolean).map((row) => row.exposed));
  const order = [...rows].sort((a, b) => exposed(b[1]) - exposed(a[1]));
  const longest = Math.max(...order.map(([, sides]) => Math.max(...sides.filter(Boolean).map((row) => row.exposed + row.hidden))));
  const table = element("table", {class: "bars"}, element("thead", {}, element("tr", {},
    element("th", {}, "cause"), element("th", {}, ""), element("th", {class: "number"}, "exposed"),
    element("th", {class: "number"}, "of the step"), element("th", {class: "number"}, "hidden"))));
  const body = element("tbody");
  for (const [cause, sides] of order) body.append(breakdownRow(cause, sides, steps, longest));
  table.append(body);
  const fade = () => [...body.rows].forEach((row) => { row.style.opacity = focus.fades(row.dataset.cause) ? 0.35 : 1; });
  focus.listeners.push(fade);
  return table;
}

function breakdownRow(cause, sides, steps, longest) {
  const width = (time) => `width:${((steps.length > 1 ? 96 : 100) * time / longest).toFixed(3)}%;background:var(--cause-${cause.replace(/_/g, "-")})`;
  const lines = (text) => steps.map((step, side) => element("div", {}, sides[side] ? text(sides[side], step) : "\u2013"));
  const bars = steps.map((step, side) => element("div", {class: "bar", title: sides[side] ? `${seconds(sides[side].exposed)} exposed, ${seconds(sides[side].hidden)} hidden` : ""},
    steps.length > 1 ? element("b", {}, "AB"[side]) : "",
    ...(sides[side] ? [element("i", {style: width(sides[side].exposed)}), element("i", {class: "hidden-part", style: width(sides[side].hidden)})] : [])));
  const any = sides.some((row) => row && row.hidden > 0);
  return element("tr", {"data-cause": cause},
    element("td", {class: "cause", title: meanings[cause] || ""}, swatch(cause), words(cause)),
    element("td", {class: "bar-cell"}, ...bars),
    element("td", {class: "number"}, ...lines((row) => seconds(row.exposed))),
    element("td", {class: "number"}, ...lines((row, step) => percent(row.exposed / step.step_time))),
    element("td", {class: "number hidden-time"}, ...(any ? lines((row) => seconds(row.hidden)) : [])));
}
