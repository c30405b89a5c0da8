// The timeline shows what every stream did, to zoom into. A track is filled as high as it is busy,
// in the colours of the causes: what is too narrow to be drawn alone is added up per pixel.

function unpackTrack(track, mixed) {
  const size = track.gaps.length;
  const unpacked = {rank: track.rank, stream: track.stream, starts: new Float64Array(size), ends: new Float64Array(size),
    kinds: track.kinds, counts: track.counts, mixedAt: new Int32Array(size), mixed};
  let at = 0, place = 0;
  for (let i = 0; i < size; ++i) {
    at += track.gaps[i];
    unpacked.starts[i] = at;
    unpacked.ends[i] = at += track.times[i];
    if (track.counts[i] > 1) {
      unpacked.mixedAt[i] = place;
      place += 1 + 2 * mixed[place];
    }
  }
  return unpacked;
}

// Calls with cause and share of the time of each cause in span i.
function forShares(step, track, i, visit) {
  if (track.counts[i] === 1) return visit(step.kinds[track.kinds[i]][1], 1);
  const at = track.mixedAt[i];
  for (let j = 0; j < track.mixed[at]; ++j) visit(track.mixed[at + 1 + 2 * j], track.mixed[at + 2 + 2 * j] / 1000);
}

class Timeline {
  constructor(step, end) {
    this.step = step;
    this.end = end / step.tick;  // of the axis: that of the longest step on the page
    this.tracks = step.tracks.map((track) => unpackTrack(track, track.mixed));
    this.shown = this.tracks;
    this.svg = d3.create("svg").attr("height", 24).attr("aria-hidden", "true");
    this.canvas = element("canvas", {tabindex: "0", role: "img", "aria-label":
      `Timeline of ${step.title}. Arrow keys move, plus and minus zoom, 0 shows the whole step.`});
    this.box = element("div", {class: "chart"}, this.svg.node(), this.canvas);
    this.element = element("div", {}, this.controls(), this.box);
    this.transform = d3.zoomIdentity;
    this.listen();
    focus.listeners.push(() => this.draw());
  }

  controls() {
    const button = (label, text, act) => element("button", {type: "button", "aria-label": label, title: label, onclick: act}, text);
    const row = element("div", {class: "controls"},
      button("Zoom in", "+", () => this.zoomBy(2)), button("Zoom out", "\u2212", () => this.zoomBy(0.5)),
      button("Show the whole step", "whole step", () => this.show(0, this.end)));
    const seen = new Set();
    for (const [phase, begin, end] of this.step.phases) {
      if (seen.has(phase) || phase === "other") continue;
      seen.add(phase);
      row.append(button(`Zoom to the first ${phase}`, phase, () => this.show(begin, end)));
    }
    const ranks = [...new Set(this.tracks.map((track) => track.rank))];
    if (ranks.length > 1) row.append(this.rankChoice(ranks));
    return row;
  }
  rankChoice(ranks) {
    const some = 4;
    const choice = element("select", {"aria-label": "Ranks to show", onchange: () => {
      const value = choice.value;
      this.shown = this.tracks.filter((track) => value === "all" || (value === "some" ? ranks.indexOf(track.rank) < some : track.rank === Number(value)));
      this.layOut();
    }});
    if (ranks.length > some) choice.append(element("option", {value: "some"}, `first ${some} ranks`));
    choice.append(element("option", {value: "all"}, "all ranks"));
    for (const rank of ranks) choice.append(element("option", {value: rank}, `rank ${rank}`));
    if (ranks.length > some) this.shown = this.tracks.filter((track) => ranks.indexOf(track.rank) < some);
    return choice;
  }

  listen() {
    const canvas = d3.select(this.canvas);
    this.zoom = d3.zoom()
      .filter(() => {
        const event = d3.event;
        if (event.type === "wheel") return event.ctrlKey || event.metaKey || document.activeElement === this.canvas;
        return !event.button;
      })
      .on("zoom", () => {
        this.transform = d3.event.transform;
        tip.hide();
        this.draw();
      });
    canvas.call(this.zoom).style("touch-action", "pan-y");
    const point = (event) => {
      const {left, top} = this.canvas.getBoundingClientRect();
      const lines = this.describe(event.clientX - left, event.clientY - top);
      if (lines) tip.show(event.clientX, event.clientY, lines);
      else tip.hide();
    };
    this.canvas.addEventListener("pointermove", (event) => { if (event.pointerType === "mouse" && !event.buttons) point(event); });
    this.canvas.addEventListener("click", point);
    this.canvas.addEventListener("pointerleave", () => tip.hide());
    this.canvas.addEventListener("keydown", (event) => {
      const step = this.width / 6;
      const acts = {ArrowLeft: () => this.panBy(step), ArrowRight: () => this.panBy(-step), "+": () => this.zoomBy(2),
        "=": () => this.zoomBy(2), "-": () => this.zoomBy(0.5), 0: () => this.show(0, this.end), Home: () => this.show(0, this.end)};
      if (!acts[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      acts[event.key]();
    });
  }
  zoomBy(factor) { d3.select(this.canvas).call(this.zoom.scaleBy, factor); }
  panBy(pixels) { d3.select(this.canvas).call(this.zoom.translateBy, pixels / this.transform.k, 0); }
  show(begin, end) {
    const margin = begin === 0 && end === this.end ? 0 : 0.03 * (end - begin);
    const from = this.base(Math.max(0, begin - margin)), to = this.base(Math.min(this.end, end + margin));
    const k = this.width / Math.max(1e-9, to - from);
    d3.select(this.canvas).call(this.zoom.transform, d3.zoomIdentity.scale(k).translate(-from, 0));
  }

  layOut() {
    const whole = this.box.clientWidth;
    if (whole === 0) return;
    this.narrow = whole < 560;
    this.gutter = this.narrow ? 0 : 84;
    this.width = whole - this.gutter;
    this.rows = [];
    let y = 20;  // below the phases
    let rank = -1;
    const several = new Set(this.shown.map((track) => track.rank)).size > 1;
    for (const track of this.shown) {
      if (several && track.rank !== rank) y += 18;
      const heading = several && track.rank !== rank ? track.rank : null;
      rank = track.rank;
      if (this.narrow) y += 15;
      this.rows.push({track, y, height: 30, heading});
      y += 30 + 6;
    }
    this.height = y;
    const ratio = Math.min(3, window.devicePixelRatio || 1);
    this.canvas.width = Math.round(whole * ratio);
    this.canvas.height = Math.round(y * ratio);
    this.canvas.style.height = `${y}px`;
    this.context = this.canvas.getContext("2d");
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.svg.attr("viewBox", `0 0 ${whole} 24`).attr("width", whole);
    this.base = d3.scaleLinear([0, this.end], [0, this.width]);
    this.zoom.extent([[0, 0], [this.width, y]]).translateExtent([[0, 0], [this.width, y]])
      .scaleExtent([1, Math.max(2, this.end / this.width)]);
    this.draw();
  }

  draw() {
    if (!this.context) return;
    const context = this.context;
    this.x = this.transform.rescaleX(this.base);
    const [begin, end] = this.x.domain();
    const tick = this.step.tick;
    const marks = Math.max(2, Math.floor(this.width / 110));
    const time = d3.scaleLinear([begin * tick, end * tick], [this.gutter, this.gutter + this.width]);
    const places = time.ticks(marks);
    const distance = places.length > 1 ? places[1] - places[0] : (end - begin) * tick;
    this.svg.selectAll("g").data([0]).join("g").attr("class", "axis").attr("transform", "translate(0,22)")
      .call(d3.axisTop(time).tickValues(places).tickSize(5).tickFormat((value) => mark(value, distance, end * tick)))
      .selectAll("text").attr("text-anchor", (value) => time(value) < this.gutter + 20 ? "start" : time(value) > this.gutter + this.width - 24 ? "end" : "middle");
    context.clearRect(0, 0, this.gutter + this.width, this.height);
    context.save();
    context.beginPath();
    context.rect(this.gutter, 0, this.width, this.height);
    context.clip();
    context.translate(this.gutter, 0);
    this.drawPhases(context);
    for (const row of this.rows) this.drawRow(context, row);
    context.restore();
    this.drawNames(context);
  }

  drawNames(context) {
    context.textBaseline = "middle";
    context.font = "12.5px system-ui, 'DejaVu Sans', sans-serif";
    context.textAlign = "left";
    for (const {track, y, height, heading} of this.rows) {
      context.fillStyle = colours.of("--ink");
      context.fillText(words(track.stream), 0, this.narrow ? y - 8 : y + height / 2);
      if (heading === null) continue;
      const alike = this.step.alike[track.rank] || 1;
      context.fillStyle = colours.of("--faint");
      context.fillText(`rank ${heading}${alike > 1 ? `, stands for ${alike} alike` : ""}`, 0, y - (this.narrow ? 24 : 9));
    }
  }

  drawPhases(context) {
    context.font = "11.5px system-ui, 'DejaVu Sans', sans-serif";
    context.textBaseline = "middle";
    for (const [phase, begin, end] of this.step.phases) {
      const left = Math.max(0, this.x(begin)), right = Math.min(this.width, this.x(end));
      if (right - left < 1) continue;
      context.fillStyle = colours.of("--empty");
      context.fillRect(left, 0, right - left - 1, 16);
      context.fillStyle = colours.of("--faint");
      if (right - left > context.measureText(phase).width + 6) context.fillText(phase, left + 3, 8);
    }
  }

  drawRow(context, {track, y, height}) {
    const {x, width, step} = this;
    const [begin, end] = x.domain();
    const causes = data.causes.length;
    const columns = new Float32Array((width + 1) * causes);
    context.fillStyle = colours.of("--empty");
    context.globalAlpha = 0.5;
    context.fillRect(0, y, Math.min(width, x(step.step_time / step.tick)), height);
    context.globalAlpha = 1;
    for (let i = d3.bisectRight(track.ends, begin); i < track.starts.length && track.starts[i] < end; ++i) {
      const left = x(track.starts[i]), right = x(track.ends[i]);
      if (right - left >= 2) {
        this.drawSpan(context, track, i, left, right, y, height);
        continue;
      }
      for (let column = Math.max(0, Math.floor(left)); column <= Math.min(width, Math.floor(right)); ++column) {
        const inside = Math.min(right, column + 1) - Math.max(left, column);
        forShares(step, track, i, (cause, share) => { columns[column * causes + cause] += share * inside; });
      }
    }
    for (let column = 0; column <= width; ++column) this.drawColumn(context, columns, column, y, height);
  }

  drawColumn(context, columns, column, y, height) {
    const causes = data.causes.length;
    let sum = 0;
    for (let cause = 0; cause < causes; ++cause) sum += columns[column * causes + cause];
    if (sum === 0) return;
    const scale = Math.max(1, 2.5 / (sum * height)) * (sum > 1 ? 1 / sum : 1);  // nothing is too little to be seen
    let bottom = y + height;
    for (let cause = 0; cause < causes; ++cause) {
      const part = columns[column * causes + cause] * scale * height;
      if (part === 0) continue;
      const name = data.causes[cause];
      context.globalAlpha = focus.fades(name) ? 0.13 : 1;
      context.fillStyle = causeColour(name);
      context.fillRect(column, bottom - part, 1, part);
      bottom -= part;
    }
    context.globalAlpha = 1;
  }

  drawSpan(context, track, i, left, right, y, height) {
    const from = Math.max(-2, left), wide = Math.min(this.width + 2, right) - from;
    const gap = wide > 6 ? 1 : 0;
    let bottom = y + height;
    forShares(this.step, track, i, (cause, share) => {
      const name = data.causes[cause];
      context.globalAlpha = focus.fades(name) ? 0.13 : 1;
      context.fillStyle = causeColour(name);
      context.fillRect(from, bottom - share * height, wide - gap, share * height);
      bottom -= share * height;
    });
    if (track.counts[i] === 1 && wide > 44) {
      const kind = this.step.kinds[track.kinds[i]];
      context.fillStyle = textOn(causeColour(data.causes[kind[1]]));
      context.font = "11.5px system-ui, 'DejaVu Sans', sans-serif";
      context.textBaseline = "middle";
      let text = words(this.step.names[kind[0]]);
      while (text.length > 3 && context.measureText(text).width > wide - 10) text = text.slice(0, -2).trimEnd() + "\u2026";
      if (text.length > 3) context.fillText(text, Math.max(from, 0) + 5, y + height / 2);
    }
    context.globalAlpha = 1;
  }

  // Returns the lines of the tip for a point, or nothing.
  describe(pixel, y) {
    const row = this.rows.find((one) => y >= one.y && y < one.y + one.height);
    const along = pixel - this.gutter;
    if (!row || along < 0) return null;
    const {track} = row;
    const first = d3.bisectLeft(track.ends, this.x.invert(along - 1)), limit = this.x.invert(along + 1);
    let last = first;
    while (last < track.starts.length && track.starts[last] <= limit) ++last;
    if (last === first) return null;
    const moment = this.x.invert(along);
    for (let i = first; i < last; ++i)
      if (track.counts[i] === 1 && track.starts[i] <= moment && moment <= track.ends[i] && this.x(track.ends[i]) - this.x(track.starts[i]) >= 2)
        return this.describeOne(track, i);
    return this.describeMany(track, first, last);
  }
  describeOne(track, i) {
    const [name, cause, phase, layer, microBatch, size, traffic] = this.step.kinds[track.kinds[i]];
    const tick = this.step.tick;
    const where = [words(data.phase_names[phase])];
    if (layer >= 0) where.push(`layer ${layer}`);
    if (microBatch >= 0) where.push(`micro-batch ${microBatch}`);
    return [[words(this.step.names[name]), "title"], [`${seconds((track.ends[i] - track.starts[i]) * tick)} of ${words(data.causes[cause])}, from ${mark(track.starts[i] * tick, Math.max(1e-6, (this.x.domain()[1] - this.x.domain()[0]) * tick / 1000))}`],
      [where.join(", "), "faint"], ...(size ? [[`${size}${traffic ? `, ${traffic}` : ""}`, "faint"]] : [])];
  }
  describeMany(track, first, last) {
    const tick = this.step.tick;
    let operations = 0, busy = 0;
    const sums = new Map();
    for (let i = first; i < last; ++i) {
      operations += track.counts[i];
      forShares(this.step, track, i, (cause, share) => {
        const time = share * (track.ends[i] - track.starts[i]);
        busy += time;
        sums.set(cause, (sums.get(cause) || 0) + time);
      });
    }
    const length = track.ends[last - 1] - track.starts[first];
    const parts = [...sums].sort((a, b) => b[1] - a[1]).slice(0, 5);
    return [[`${whole(operations)} operation${operations === 1 ? "" : "s"} in ${seconds(length * tick)}`, "title"],
      [`busy ${percent(length > 0 ? Math.min(1, busy / length) : 1)} of it`, "faint"],
      ...parts.map(([cause, time]) => [`${words(data.causes[cause])}  ${seconds(time * tick)}`])];
  }
}
