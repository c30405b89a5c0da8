// Claims with their verdicts, and every constant with its grade.

const verdicts = {supported: ["\u2713", "good"], refuted: ["\u2717", "bad"], depends: ["\u25d0", "open"], undecided: ["?", "open"]};

function claimTable(claims) {
  return element("table", {class: "stack"}, element("thead", {}, element("tr", {}, element("th", {}, "verdict"),
    element("th", {}, "claim"), element("th", {class: "number"}, "holds in draws"), element("th", {}, "why"))),
    element("tbody", {}, ...claims.map((claim) => {
      const [sign, kind] = verdicts[claim.verdict] || ["", ""];
      return element("tr", {}, element("td", {class: `verdict ${kind}`}, `${sign} ${claim.verdict}`),
        element("td", {}, element("strong", {}, claim.id), claim.text ? element("div", {}, claim.text) : ""),
        element("td", {class: "number"}, claim.probability === null ? "" : `${percent(claim.probability)} of ${claim.draws}`),
        element("td", {}, claim.reason, claim.moved ? element("div", {class: "note"}, claim.moved) : ""));
    })));
}

// A long name may be broken behind its dots and bars.
function breakable(name) {
  return name.split(/(?<=[._])/).flatMap((part) => [part, element("wbr")]);
}

const grades = ["guess", "datasheet", "vendor", "derived", "fitted", "measured"];  // the least certain first

// Constants of all steps, each once; `sides` says in which steps it has this value.
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
