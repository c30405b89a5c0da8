// These tables show claims with their verdicts, and every constant with its grade.

const verdicts = {supported: ["\u2713", "good"], refuted: ["\u2717", "bad"], depends: ["\u25d0", "open"], undecided: ["?", "open"]};

function claimTable(claims) {
  return element("table", {class: "stack"}, element("thead", {}, element("tr", {}, element("th", {}, "verdict"),
    element("th", {}, "claim"), element("th", {class: "number"}, "holds in draws"), element("th", {}, "why"))),
    element("tbody", {}, ...claims.map((claim) => {
      const [sign, kind] = verdicts[claim.verdict] || ["", ""];
      return element("tr", {}, element("td", {class: `verdict ${kind}`}, `${sign} ${claim.verdict}`),
        element("td", {}, element("strong", {}, claim.id), claim.text ? element("div", {}, claim.text) : ""),
        element("td", {class: "number"}, claim.probability === null ? "" : `${percent(claim.probability)} of ${claim.draws}`),
        element("td", {}, claim.conditions.length && claim.conditions[0].values.length ? chart(new ClaimStrip(claim)) : "", claim.reason,
          claim.moved ? element("div", {class: "note"}, claim.moved) : ""));
    })));
}

// Each draw is a dot against the band that is claimed, in a row for each condition.
class ClaimStrip {
  constructor(claim) {
    this.claim = claim;
    this.element = element("div", {class: "chart strip"});
  }
  layOut() {
    const {claim, element: box} = this, width = box.clientWidth;
    if (width === 0) return;
    const text = {s: seconds, B: bytes}[claim.unit] || ((value) => significant(value, 3));
    const {at_least: low, at_most: high, conditions} = claim, several = conditions.length > 1;
    const pitch = several ? 38 : 24, bottom = conditions.length * pitch + 6, right = 14;
    const values = conditions.flatMap((each) => [...each.values, each.stated]).filter(Number.isFinite);
    const [least, most] = d3.extent([...values, ...[low, high].filter((end) => end !== null)]);
    const x = d3.scaleLinear([least, most], [right, width - right]).nice();
    const svg = d3.create("svg").attr("viewBox", `0 0 ${width} ${bottom + 24}`).attr("role", "img").attr("aria-label",
      `claimed: ${low === null ? `at most ${text(high)}` : high === null ? `at least ${text(low)}` : `${text(low)} to ${text(high)}`}; ${conditions.map((each) => `${each.name ? `${each.name}: ` : ""}${text(d3.min(each.values))} to ${text(d3.max(each.values))} in ${each.values.length} draws`).join("; ")}`);
    const from = low === null ? 0 : x(low), to = high === null ? width : x(high);
    svg.append("rect").attr("class", "claimed").attr("x", from).attr("width", Math.max(1, to - from)).attr("height", bottom).attr("fill", colours.of("--good")).attr("fill-opacity", 0.14);
    svg.append("g").attr("class", "axis").attr("transform", `translate(0,${bottom})`).call(d3.axisBottom(x).ticks(Math.max(2, Math.floor(width / 90))).tickSize(-bottom).tickPadding(6).tickFormat(claim.unit ? text : null));
    const inside = (value) => (low === null || value >= low) && (high === null || value <= high);
    conditions.forEach((each, i) => {
      const at = i * pitch + pitch - 10;
      if (several) svg.append("text").attr("class", "faint").attr("x", 2).attr("y", at - 12).text(each.name || "as it stands");
      svg.append("g").selectAll("circle").data(each.values.filter(Number.isFinite)).join("circle").attr("cx", x).attr("cy", at).attr("r", 4.5)
        .attr("fill", (value) => colours.of(inside(value) ? "--good" : "--bad")).attr("fill-opacity", 0.55);
      svg.append("line").attr("x1", x(each.stated)).attr("x2", x(each.stated)).attr("y1", at - 8).attr("y2", at + 8).attr("stroke", colours.of("--ink")).attr("stroke-width", 2);
      svg.append("rect").attr("x", 0).attr("y", at - 10).attr("width", width).attr("height", 20).attr("fill", "transparent")
        .on("pointermove", () => tip.show(d3.event.clientX, d3.event.clientY, [[`${each.values.filter(inside).length} of ${each.values.length} draws are within what is claimed`, "title"], [`${text(each.stated)} under stated constants (the line)`]]))
        .on("pointerleave", () => tip.hide());
    });
    box.replaceChildren(svg.node());
  }
}

// A long name may be broken behind its dots and bars.
function breakable(name) {
  return name.split(/(?<=[._])/).flatMap((part) => [part, element("wbr")]);
}

const grades = ["guess", "datasheet", "vendor", "derived", "fitted", "measured"];  // the least certain first

// Shows the constants of all steps, each once; `sides` says in which steps it has this value.
function mergedConstants(steps) {
  const merged = new Map();
  steps.forEach((step, side) => step.constants.forEach((constant) => {
    const key = constant.join("\u0000");
    if (!merged.has(key)) merged.set(key, {constant, sides: []});
    merged.get(key).sides.push(side);
  }));
  return [...merged.values()].sort((a, b) => grades.indexOf(a.constant[4]) - grades.indexOf(b.constant[4]));
}

function constantTable(steps) {
  const all = mergedConstants(steps);
  const rows = all.map(({constant: [name, value, low, high, grade, source], sides}) => element("tr", {"data-grade": grade},
    element("td", {class: "name"}, ...(steps.length > 1 && sides.length < steps.length ? sides.map((side) => sideMark(side)) : []), ...breakable(name)),
    element("td", {class: "number"}, value), element("td", {class: "number"}, low === high ? "" : `${low} to ${high}`),
    element("td", {}, element("span", {class: `grade ${grade}`}, grade)), element("td", {class: "source"}, source)));
  const buttons = ["all", ...grades].filter((grade) => grade === "all" || all.some(({constant}) => constant[4] === grade))
    .map((grade) => element("button", {type: "button", "aria-pressed": String(grade === "all"), onclick: (event) => {
      buttons.forEach((button) => button.setAttribute("aria-pressed", String(button === event.currentTarget)));
      rows.forEach((row) => { row.hidden = grade !== "all" && row.dataset.grade !== grade; });
    }}, `${grade} ${grade === "all" ? all.length : all.filter(({constant}) => constant[4] === grade).length}`));
  return element("div", {}, element("div", {class: "controls", role: "group", "aria-label": "Grades to show"}, ...buttons),
    element("div", {class: "scroll"}, element("table", {class: "stack constants"}, element("thead", {}, element("tr", {}, element("th", {}, "constant"),
      element("th", {class: "number"}, "value"), element("th", {class: "number"}, "range"), element("th", {}, "grade"), element("th", {}, "source"))),
      element("tbody", {}, ...rows))));
}

function sideMark(side) {
  return element("span", {class: side === 0 ? "side" : "side b"}, "AB"[side] || String(side + 1));
}
