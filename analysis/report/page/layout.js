// A page stands on these: its data, sections, and charts that are laid out again when the width
// changes.

const data = JSON.parse(document.getElementById("data").textContent);
const charts = [];  // whatever has to be laid out again when the width changes

function section(id, title, note, ...content) {
  document.getElementById("contents").append(element("a", {href: `#${id}`}, title));
  document.getElementById("page").append(element("section", {id, "aria-label": title}, element("h2", {}, title),
    note ? element("p", {class: "note"}, note) : "", ...content));
}

function chart(made) {
  charts.push(made);
  return made.element;
}

function tile(label, value, aside, kind) {
  return element("div", {class: "tile"}, element("div", {class: "label"}, label), element("div", {class: `value ${kind || ""}`}, value),
    aside ? element("div", {class: "aside"}, aside) : "");
}

function layOut() {
  colours.known.clear();
  charts.forEach((one) => one.layOut());
  document.querySelectorAll(".chart").forEach(offer);
}

function saveAs(name, type, content) {
  const link = element("a", {download: name, href: URL.createObjectURL(new Blob([content], {type}))});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// Saves a figure as a file of its own: what the page's style says of it goes along.
function asSvg(chart) {
  const drawn = chart.querySelector("svg"), canvas = chart.querySelector("canvas");
  const [width, height] = canvas ? [canvas.clientWidth, canvas.clientHeight] : drawn.viewBox.baseVal ? [drawn.viewBox.baseVal.width, drawn.viewBox.baseVal.height] : [0, 0];
  const svg = d3.create("svg").attr("xmlns", "http://www.w3.org/2000/svg").attr("viewBox", `0 0 ${width} ${height}`).attr("width", width).attr("height", height);
  svg.append("rect").attr("width", width).attr("height", height).attr("fill", colours.of("--paper"));
  if (canvas) svg.append("image").attr("href", canvas.toDataURL()).attr("width", width).attr("height", height);
  const kept = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font", "font-weight", "text-anchor", "paint-order", "display"];
  const copy = (from, to) => {
    const style = getComputedStyle(from);
    kept.forEach((name) => to.style.setProperty(name, style.getPropertyValue(name)));
    [...from.children].forEach((child, i) => copy(child, to.children[i]));
  };
  if (drawn) {
    const whole = drawn.cloneNode(true);
    copy(drawn, whole);
    svg.node().append(...whole.childNodes);
  }
  return {text: new XMLSerializer().serializeToString(svg.node()), width, height};
}

function asPng({text, width, height}, take) {
  const image = new Image();
  image.onload = () => {
    const canvas = element("canvas", {width: 2 * width, height: 2 * height});
    canvas.getContext("2d").drawImage(image, 0, 0, 2 * width, 2 * height);
    canvas.toBlob(take, "image/png");
  };
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
}

// A button under each chart that shows something takes it along.
function offer(chart) {
  const full = chart.querySelector("svg, canvas") !== null;
  const there = chart.nextElementSibling && chart.nextElementSibling.classList.contains("take-along") ? chart.nextElementSibling : null;
  if (there) there.hidden = !full || chart.hidden;
  if (there || !full) return;
  const name = () => `${(chart.closest("section") || document.body).id || "chart"}`;
  chart.after(element("div", {class: "take-along note"},
    element("button", {type: "button", "aria-label": `this figure as SVG`, onclick: () => saveAs(`${name()}.svg`, "image/svg+xml", asSvg(chart).text)}, "SVG"),
    element("button", {type: "button", "aria-label": `this figure as PNG`, onclick: () => asPng(asSvg(chart), (blob) => saveAs(`${name()}.png`, "image/png", blob))}, "PNG")));
}

let width = innerWidth;
addEventListener("resize", () => {
  if (innerWidth !== width) requestAnimationFrame(layOut);
  width = innerWidth;
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", layOut);
addEventListener("beforeprint", layOut);
addEventListener("afterprint", layOut);
document.addEventListener("keydown", (event) => { if (event.key === "Escape") { tip.hide(); focus.set(null); } });
