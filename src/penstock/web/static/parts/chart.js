// Charts over time, drawn by uPlot, with a legend and the same figures as a table.

import { Table } from "./table.js";
import { html, useEffect, useRef, useState } from "../view.js";

let library = null;
const load = () => {
  library ??= import("../third_party/uplot.js").then((module) => module.default);
  return library;
};
const HEIGHT = 180;
const COLOURS = 6;
const colourName = (place) => `--series-${(place % COLOURS) + 1}`;

// The colour that a custom property has in the current theme, as canvas understands it.
function colour(name, element) {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  element.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

// Every second, third, … label, so that each has 64 pixels.
function thinned(splits, width) {
  const step = Math.ceil((splits.length * 64) / width);
  return splits.map((at, place) => ((splits.length - 1 - place) % step ? null : at));
}

// Stacked bars are drawn from the highest to the lowest, each as the sum of those below it.
function stack(series) {
  const sums = [];
  for (const { values } of series) {
    const below = sums.at(-1);
    sums.push(values.map((value, place) => (value ?? 0) + (below?.[place] ?? 0)));
  }
  return sums.reverse();
}

const fromZero = (low, high) => [0, high > 0 ? high * 1.1 : 1];

function options(uPlot, { element, width, times, series, kind, format, axisText, range, onPoint }) {
  const soft = colour("--soft", element);
  const line = colour("--line", element);
  const axis = { stroke: soft, grid: { stroke: line, width: 1 }, ticks: { show: false }, font: "12px Inter, system-ui, sans-serif", gap: 6 };
  const order = kind === "bars" ? series.map((_, place) => series.length - 1 - place) : series.map((_, place) => place);
  const span = times.length > 1 ? times[1] - times[0] : 86_400;
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false, points: { show: kind === "lines" }, drag: { x: false, y: false } },
    padding: [8, 24, 0, 0],
    scales: {
      x: { time: true, range: () => [times[0] - span * 0.6, times.at(-1) + span * 0.6] },
      y: { range: (_, low, high) => range(low, high) },
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        size: 28,
        splits: () => times,
        filter: (plot, splits) => thinned(splits, plot.bbox.width / devicePixelRatio),
        values: (_, splits) => splits.map((at) => (at === null ? "" : axisText(at))),
      },
      { ...axis, size: 62, values: (_, values) => values.map(format), space: 34 },
    ],
    series: [{}, ...order.map((place) => {
      const stroke = colour(colourName(place), element);
      return kind === "bars"
        ? { stroke, fill: stroke, width: 0, points: { show: false }, paths: uPlot.paths.bars({ size: [0.65, 44], radius: 0.12 }) }
        : { stroke, width: 2, spanGaps: true, points: { show: times.length < 40, size: 5, fill: stroke } };
    })],
    hooks: { setCursor: [(plot) => onPoint(plot.cursor.idx ?? null)] },
  };
}

// `series`: [{ name, values }], one value for each of `times` (Unix seconds). `format` writes a value.
export function Chart({ title, times, series, kind = "bars", format, timeText, axisText, range = fromZero }) {
  const holder = useRef(null);
  const [point, setPoint] = useState(null);
  useEffect(() => {
    let plot = null;
    let gone = false;
    const element = holder.current;
    async function draw() {
      const uPlot = await load();
      if (gone) return;
      plot?.destroy();
      const data = [times, ...(kind === "bars" ? stack(series) : series.map(({ values }) => values))];
      plot = new uPlot(options(uPlot, { element, width: element.clientWidth, times, series, kind, format, axisText, range, onPoint: setPoint }), data, element);
    }
    draw();
    const sized = new ResizeObserver(() => plot?.setSize({ width: element.clientWidth, height: HEIGHT }));
    sized.observe(element);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", draw);
    window.addEventListener("themechange", draw);
    return () => {
      gone = true;
      plot?.destroy();
      sized.disconnect();
      dark.removeEventListener("change", draw);
      window.removeEventListener("themechange", draw);
    };
  }, [JSON.stringify([times, series]), kind]);
  const columns = [{ name: "From", cell: (place) => timeText(times[place]) },
    ...series.map(({ name, values }) => ({ name, kind: "number", cell: (place) => (values[place] === null ? "–" : format(values[place])) }))];
  return html`<figure class="chart">
    <figcaption class="legend">
      ${series.map(({ name, values }, place) => html`<span key=${name}><i class=${`swatch s${(place % COLOURS) + 1}`}></i>
          ${name}${point !== null && values[point] !== undefined ? html` <b class="figures">
          ${values[point] === null ? "–" : format(values[point])}</b>` : ""}</span>`)}
      <span class="soft figures moment">${point !== null && times[point] ? timeText(times[point]) : ""}</span>
    </figcaption>
    <div ref=${holder} class="plot" role="img" aria-label=${`Chart: ${title}. The same figures are in the table below.`}></div>
    <details><summary class="small">View as table</summary><${Table} label=${`${title} in figures`} columns=${columns}
        rows=${times.map((_, place) => place).reverse()} /></details>
  </figure>`;
}
