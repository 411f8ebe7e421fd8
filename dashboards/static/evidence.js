// Draws the evidence of an experiment's two tests against their thresholds, and goes on while it
// runs: live.js hands on what the service's event stream says.
"use strict";

(() => {
  const HEIGHT = 260;
  const LEAST = 10;
  const RAISED = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };
  const power = (exponent) => `10${[...String(exponent)].map((digit) => RAISED[digit]).join("")}`;

  const said = (exponent) =>
    exponent < 2 ? (10 ** exponent).toPrecision(2) : exponent < 7 ? Math.round(10 ** exponent).toLocaleString() : `about ${power(Math.round(exponent))}`;

  const palette = () => {
    const probe = document.body.appendChild(document.createElement("span"));
    const found = {};
    for (const name of ["muted", "line", "red", "green"]) {
      probe.style.color = `var(--${name})`;
      found[name] = getComputedStyle(probe).color;
    }
    probe.remove();
    return found;
  };

  // The thresholds go on to the right of what is known.
  const columns = (chart) => {
    const pairs = chart.curve.map((point) => point[0]);
    const rest = pairs[pairs.length - 1] < LEAST ? [null] : [];
    if (rest.length) pairs.push(LEAST);
    return [
      pairs,
      [...chart.curve.map((point) => point[1]), ...rest],
      [...chart.curve.map((point) => point[2]), ...rest],
      pairs.map(() => chart.harmful),
      pairs.map(() => chart.tolerated),
    ];
  };

  const draw = (figure) => {
    const chart = JSON.parse(figure.querySelector('script[type="application/json"]').textContent);
    const place = figure.querySelector(".plot");
    let plot = null;

    const make = () => {
      const colours = palette();
      const axis = { stroke: colours.muted, grid: { stroke: colours.line, width: 1 }, ticks: { stroke: colours.line, width: 1 } };
      if (plot) plot.destroy();
      plot = new uPlot({
        width: Math.max(280, place.clientWidth), height: HEIGHT, legend: { show: false }, cursor: { show: false },
        scales: {
          x: { time: false, range: (_, low, high) => [0, Math.max(LEAST, high)] },
          y: { range: (_, low, high) => [Math.min(-0.5, low), Math.max(high, chart.harmful) + 0.3] },
        },
        axes: [
          { ...axis, label: "treated devices, each paired with one of control", labelSize: 24, size: 34, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000] },
          { ...axis, size: 52, incrs: [1, 2, 5, 10, 20, 50], values: (_, splits) => splits.map((each) => (Number.isInteger(each) ? power(each) : "")) },
        ],
        series: [
          {},
          { stroke: colours.red, width: 2.5, points: { show: false } },
          { stroke: colours.green, width: 2.5, dash: [2, 2], points: { show: false } },
          { stroke: colours.red, width: 1, dash: [8, 5], points: { show: false } },
          { stroke: colours.green, width: 1, dash: [8, 5], points: { show: false } },
        ],
      }, columns(chart), place);
    };
    make();

    const latest = figure.parentElement.querySelector("[data-latest]");
    const say = () => {
      const [pairs, worse, notWorse] = chart.curve[chart.curve.length - 1];
      latest.textContent = `After ${pairs} pairs: worse ${said(worse)}, not worse ${said(notWorse)}.`;
    };

    document.addEventListener("ldfi:progress", (event) => {
      const mine = event.detail.find((each) => each.id === chart.experiment);
      if (!mine || mine.counts.curve.length < chart.curve.length) return;
      chart.curve = mine.counts.curve;
      plot.setData(columns(chart));
      say();
    });
    document.addEventListener("ldfi:theme", make);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", make);
    new ResizeObserver(() => {
      const width = Math.max(280, place.clientWidth);
      if (plot.width !== width) plot.setSize({ width, height: HEIGHT });
    }).observe(place);
  };

  document.querySelectorAll("[data-evidence]").forEach(draw);
})();
