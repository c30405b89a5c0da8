// What a page stands on: its data, sections, and charts that are laid out again when the width changes.

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
