// This chart shows how full each link was: one row per link, the busiest first.

class Links {
  constructor(step) {
    this.step = step;
    this.rows = step.links.map((link) => ({link, chart: element("div", {class: "chart"})}));
    this.element = element("div", {}, ...this.rows.map(({link, chart}) => element("div", {class: "link-row"},
      element("div", {class: "name"}, link.name, element("span", {},
        `${percent(link.mean)} of ${link.capacity} on average, ${link.carried}; in use ${percent(link.busy)} of the time`)), chart)));
  }
  layOut() {
    for (const {link, chart} of this.rows) {
      const width = chart.clientWidth, height = 40;
      if (width === 0) return;
      const x = d3.scaleLinear([0, link.use.length], [0, width]), y = d3.scaleLinear([0, 1000], [height - 1, 3]);
      const svg = d3.create("svg").attr("viewBox", `0 0 ${width} ${height}`).attr("role", "img")
        .attr("aria-label", `${link.name}: ${percent(link.mean)} full on average`);
      svg.append("rect").attr("y", 3).attr("width", width).attr("height", height - 4).attr("fill", colours.of("--empty"));
      svg.append("path").attr("fill", causeColour("gather_bytes"))
        .attr("d", d3.area().curve(d3.curveStepAfter).x((share, i) => x(i)).y0(height - 1).y1((share) => y(Math.min(1000, share)))([...link.use, link.use[link.use.length - 1]]));
      svg.on("pointermove", () => {
        const event = d3.event, {left, width: shown} = svg.node().getBoundingClientRect();
        const i = Math.max(0, Math.min(link.use.length - 1, Math.floor((event.clientX - left) / shown * link.use.length)));
        tip.show(event.clientX, event.clientY, [[`${percent(link.use[i] / 1000)} full`, "title"],
          [`around ${seconds((i + 0.5) / link.use.length * this.step.step_time)}`, "faint"]]);
      }).on("pointerleave", () => tip.hide());
      chart.replaceChildren(svg.node());
    }
  }
}
