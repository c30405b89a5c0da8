// Figures over a swept key, one line per series.

class Plot {
  constructor(plot) {
    this.plot = plot;
    this.element = element("div", {class: "chart"});
  }
  layOut() {
    const width = this.element.clientWidth;
    if (width === 0) return;
    const {series} = this.plot;
    const height = 280, left = 64, bottom = 44, right = 12, top = 22;
    const xs = [...new Set(d3.merge(series.map((one) => one.x)))].sort(d3.ascending);
    const wide = xs.length > 2 && xs[0] > 0 && xs[xs.length - 1] / xs[0] >= 16;
    const x = (wide ? d3.scaleLog : d3.scaleLinear)(d3.extent(xs), [left + 8, width - right - 8]);
    const y = d3.scaleLinear([0, d3.max(series, (one) => d3.max(one.y)) || 1], [height - bottom, top]).nice();
    const names = ["compute", "launch", "gather-bytes", "offload-transfer", "routing-sync", "recompute", "module-hooks", "other"];
    const colour = (i) => colours.of(`--cause-${names[i % names.length]}`);
    const dash = (i) => ["none", "6 3", "2 3", "8 3 2 3"][Math.floor(i / names.length) % 4];
    const svg = d3.create("svg").attr("viewBox", `0 0 ${width} ${height}`).attr("role", "img").attr("aria-label", this.plot.title);
    svg.append("g").attr("class", "axis").attr("transform", `translate(${left},0)`).call(d3.axisLeft(y).ticks(5).tickSize(-(width - left - right)));
    svg.append("g").attr("class", "axis").attr("transform", `translate(0,${height - bottom})`)
      .call(d3.axisBottom(x).tickValues(xs.length <= 12 ? xs : x.ticks(8)).tickFormat((value) => d3.format("~s")(value)));
    svg.append("text").attr("class", "faint").attr("x", left).attr("y", 12).text(this.plot.y);
    svg.append("text").attr("class", "faint").attr("x", width - right).attr("y", height - 6).attr("text-anchor", "end").text(this.plot.x);
    series.forEach((one, i) => {
      const points = one.x.map((value, at) => [value, one.y[at]]).filter(([, value]) => value !== null);
      svg.append("path").attr("fill", "none").attr("stroke", colour(i)).attr("stroke-width", 2).attr("stroke-dasharray", dash(i))
        .attr("d", d3.line().x(([value]) => x(value)).y(([, value]) => y(value))(points));
      svg.append("g").selectAll("circle").data(points).join("circle").attr("cx", ([value]) => x(value)).attr("cy", ([, value]) => y(value))
        .attr("r", 4).attr("fill", colour(i))
        .on("pointermove", ([value, level]) => tip.show(d3.event.clientX, d3.event.clientY,
          [[one.name || this.plot.y, "title"], [`${this.plot.x} ${value}: ${significant(level, 4)}`]]))
        .on("pointerleave", () => tip.hide());
    });
    const keys = series.length > 1 ? element("div", {class: "legend note"}, ...series.map((one, i) =>
      element("span", {}, element("span", {class: "swatch", style: `background:${colour(i)}`}), one.name, "\u2003"))) : "";
    this.element.replaceChildren(element("h3", {}, this.plot.title), svg.node(), keys);
  }
}
