// This chart shows what a rank holds over the step, by what it is for, with what it may hold.

// One colour per class, the same in every step of the page.
const holdings = {
  names: [],
  colour(name) {
    if (!this.names.includes(name)) this.names.push(name);
    return colours.of(`--hold-${this.names.indexOf(name) % 14}`);
  },
};

class Memory {
  constructor(step, end, most) {
    this.step = step;
    this.end = end;
    this.most = most;
    this.element = element("div", {class: "chart"});
  }
  layers() {
    const {memory} = this.step, rest = [];
    const base = [0, ...memory.times];
    const layers = [];
    const seen = (levels) => d3.max(levels) >= 0.002 * memory.peak;  // else nobody would
    for (const [name, size] of memory.always) {
      const levels = base.map(() => size);
      if (seen(levels)) layers.push({name, levels});
      else rest.push(levels);
    }
    const held = new Map(layers.map((layer) => [layer.name, layer]));
    memory.classes.forEach((name, i) => {
      const levels = [0, ...memory.levels[i].map((level) => level * 1e6)];
      if (held.has(name)) held.get(name).levels = held.get(name).levels.map((level, at) => level + levels[at]);
      else if (seen(levels)) layers.push({name, levels});
      else rest.push(levels);
    });
    if (rest.length) layers.push({name: "small ones", levels: base.map((_, at) => d3.sum(rest, (levels) => levels[at]))});
    const floor = base.map(() => 0);
    layers.forEach((layer) => {
      layer.colour = holdings.colour(layer.name);
      layer.bottom = floor.slice();
      layer.levels.forEach((level, at) => { floor[at] += level; });
      layer.top = floor.slice();
    });
    return layers;
  }
  layOut() {
    const width = this.element.clientWidth;
    if (width === 0) return;
    const {step, most} = this, {memory} = step;
    const height = 250, top = 26, bottom = 24, left = 58;
    const x = d3.scaleLinear([0, this.end], [left, width - 18]);
    const y = d3.scaleLinear([0, this.most], [height - bottom, top]);
    const layers = this.layers();
    const times = [0, ...memory.times.map((time) => time * step.tick)];
    const svg = d3.create("svg").attr("viewBox", `0 0 ${width} ${height}`).attr("role", "img").attr("aria-label",
      `Memory over the step: at most ${bytes(memory.peak)}, at ${memory.peak_at}`);
    svg.append("g").attr("class", "axis").attr("transform", `translate(${left},0)`)
      .call(d3.axisLeft(y).ticks(5).tickSize(-(width - left - 18)).tickFormat((value) => value === 0 ? "0" : most >= 2e9 ? `${value / 1e9} GB` : `${value / 1e6} MB`));
    const marks = x.ticks(Math.max(2, Math.floor(width / 120)));
    svg.append("g").attr("class", "axis").attr("transform", `translate(0,${height - bottom})`)
      .call(d3.axisBottom(x).tickValues(marks).tickFormat((value) => mark(value, marks.length > 1 ? marks[1] - marks[0] : 1)));
    const area = d3.area().curve(d3.curveStepAfter).x((layer, i) => x(i < times.length ? times[i] : step.step_time));
    for (const layer of layers) {
      const points = [...layer.top.keys(), layer.top.length];
      const level = (list, i) => list[Math.min(i, list.length - 1)];
      svg.append("path").attr("fill", layer.colour)
        .attr("d", area.y0((i) => y(level(layer.bottom, i))).y1((i) => y(level(layer.top, i)))(points));
    }
    this.drawLimits(svg, x, y, width);
    this.listen(svg, x, times, layers);
    const said = [`peak ${bytes(memory.peak)}: ${words(memory.peak_at)}`, ...(memory.needed && memory.needed !== memory.peak ? [`with the allocator's slack ${bytes(memory.needed)}`] : []),
      ...(memory.capacity ? [`usable ${bytes(memory.capacity)}`] : [])];
    this.element.replaceChildren(svg.node(), width < 560 ? element("p", {class: "peak note"}, said.join("; ")) : "", element("div", {class: "legend note"}, ...layers.slice().reverse().map((layer) =>
      element("span", {}, element("span", {class: "swatch", style: `background:${layer.colour}`}), words(layer.name), "\u2003"))));
  }
  drawLimits(svg, x, y, width) {
    const {memory} = this.step;
    const narrow = width < 560;
    const line = (value, text, colour, dash, above) => {
      svg.append("line").attr("x1", x.range()[0]).attr("x2", width - 18).attr("y1", y(value)).attr("y2", y(value))
        .attr("stroke", colour).attr("stroke-width", 1.5).attr("stroke-dasharray", dash);
      if (!narrow) svg.append("text").attr("x", width - 20).attr("y", y(value) + (above ? -6 : 14)).attr("text-anchor", "end").text(text);
    };
    if (memory.capacity) line(memory.capacity, `usable ${bytes(memory.capacity)}`, colours.of("--bad"), "none", true);
    if (memory.needed && memory.needed !== memory.peak)
      line(memory.needed, `with the allocator's slack ${bytes(memory.needed)}`, colours.of("--faint"), "4 3", !memory.capacity || memory.needed < 0.93 * memory.capacity || memory.needed > memory.capacity);
    const at = x(memory.peak_time), level = y(memory.peak);
    const above = !memory.capacity || level - y(memory.capacity) > 34 || level < y(memory.capacity);
    const end = at > width / 2;
    svg.append("circle").attr("cx", at).attr("cy", level).attr("r", 4.5).attr("fill", colours.of("--ink")).attr("stroke", colours.of("--paper")).attr("stroke-width", 1.5);
    if (!narrow) svg.append("text").attr("class", "peak").attr("x", at + (end ? -9 : 9)).attr("y", level + (above ? -8 : 18)).attr("text-anchor", end ? "end" : "start")
      .attr("paint-order", "stroke").attr("stroke", colours.of("--paper")).attr("stroke-width", 3.5).attr("stroke-linejoin", "round")
      .attr("font-weight", 600).text(`peak ${bytes(memory.peak)}: ${words(memory.peak_at)}`);
  }
  listen(svg, x, times, layers) {
    const rule = svg.append("line").attr("y1", 26).attr("y2", 226).attr("stroke", colours.of("--ink")).attr("opacity", 0);
    svg.on("pointermove", () => {
      const event = d3.event;
      const {left, width} = svg.node().getBoundingClientRect();
      const time = x.invert((event.clientX - left) * svg.node().viewBox.baseVal.width / width);
      const i = Math.max(0, d3.bisectRight(times, time) - 1);
      if (time < 0 || time > this.step.step_time) return;
      rule.attr("x1", x(time)).attr("x2", x(time)).attr("opacity", 0.5);
      const held = layers.map((layer) => [layer.name, layer.levels[i]]).filter(([, level]) => level > 0);
      tip.show(event.clientX, event.clientY, [[`${bytes(d3.sum(held, ([, level]) => level))} at ${seconds(time)}`, "title"],
        ...held.reverse().map(([name, level]) => [`${words(name)}  ${bytes(level)}`])]);
    }).on("pointerleave", () => {
      rule.attr("opacity", 0);
      tip.hide();
    });
  }
}
