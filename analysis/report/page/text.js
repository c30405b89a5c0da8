// These write figures as a person reads them, and make elements from them.

function significant(value, digits) {
  const text = Math.abs(value).toPrecision(digits);
  return (value < 0 ? "\u2212" : "") + (text.includes("e") ? String(Math.round(Math.abs(value))) : text);
}

function scaled(value, units) {
  const size = Math.abs(value);
  const [unit, name] = units.find(([least]) => size >= least * 0.9995) || units[units.length - 1];
  return `${significant(value / unit, 3)}\u00a0${name}`;
}

function seconds(value) {
  if (value === 0) return "0\u00a0s";
  if (Math.abs(value) >= 7200) return `${significant(value / 3600, 3)}\u00a0h`;
  return scaled(value, [[1, "s"], [1e-3, "ms"], [1e-6, "us"], [1e-9, "ns"]]);
}

// Writes a part of a gap.
function signedSeconds(value) {
  return (value > 0 ? "+" : "") + seconds(value);
}

function bytes(value) {
  if (value === 0) return "0\u00a0B";
  return scaled(value, [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]]);
}

function joules(value) {
  return scaled(value, [[1e9, "GJ"], [1e6, "MJ"], [1e3, "kJ"], [1, "J"]]);
}

function watts(value) {
  return scaled(value, [[1e6, "MW"], [1e3, "kW"], [1, "W"]]);
}

function percent(share) {
  return `${share <= -0.0005 ? "\u2212" : ""}${(100 * Math.abs(share)).toFixed(1)}\u00a0%`;
}

function whole(value) {
  return String(value).replace(/\B(?=(\d{3})+$)/g, ",");  // of whole numbers
}

// Writes a mark of an axis with as many digits as the distance to the next one needs.
function mark(value, distance, largest = value) {
  const [unit, name] = distance >= 0.1 || (largest >= 1 && distance >= 1e-3) ? [1, "s"] : distance >= 1e-4 ? [1e-3, "ms"] : [1e-6, "us"];
  const digits = Math.max(0, -Math.floor(Math.log10(distance / unit) + 1e-9));
  return `${(value / unit).toFixed(Math.min(digits, 6))} ${name}`;
}

function words(name) {
  return name.replace(/_/g, " ");
}

// element("td", {class: "number"}, "12 s", child): texts stay texts.
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== null) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== undefined && child !== null && child !== ""));
  return made;
}

// The tip says what is under the pointer, beside it and within the window.
const tip = {
  box: document.getElementById("tip"),
  show(x, y, lines) {
    this.box.replaceChildren(...lines.map(([text, kind]) => {
      const line = element("div", {class: kind || ""});
      line.append(kind === "title" ? element("b", {}, text) : text);
      return line;
    }));
    this.box.hidden = false;
    const {width, height} = this.box.getBoundingClientRect();
    const left = x + 16 + width > innerWidth ? x - 16 - width : x + 16;
    this.box.style.left = `${Math.max(6, Math.min(left, innerWidth - width - 6))}px`;
    this.box.style.top = `${y + 18 + height > innerHeight ? Math.max(6, y - 14 - height) : y + 18}px`;
  },
  hide() { this.box.hidden = true; },
};
