// The four charts. Colours come from the style sheet; a change of theme builds them anew.
import { NONE, instant, isClock, number, milliseconds } from "./format.js";

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const stepped = () => window.uPlot.paths.stepped({ align: -1 });
const plain = (v) => number(v);

// On a logarithmic axis only the powers of ten get a line and a label.
const tens = (_, splits) => splits.map((v) => (Math.abs(Math.log10(v) - Math.round(Math.log10(v))) < 1e-6 ? v : null));
const decades = (grid) => ({ filter: tens, grid: { ...grid, filter: tens } });

const WHOLE_NUMBERS = [1, 2, 5].flatMap((n) => [n, n * 10, n * 100, n * 1000, n * 10000]).sort((a, b) => a - b);

// A measurement between two that are missing is no line: it is drawn as a point.
const lonely = (u, series) => {
  const values = u.data[series];
  const missing = (i) => values[i] === null || values[i] === undefined;
  return values.flatMap((_, i) => (!missing(i) && missing(i - 1) && missing(i + 1) ? [i] : []));
};

const RATE = { label: "load", key: "load", colour: "load", width: 2 };
const FORECAST = { label: "forecast", key: "forecast", colour: "forecast", width: 1.6, dash: [5, 4] };
const UPPER = { label: "upper", key: "upper", colour: "band", width: 0, swatch: "band" };
const PROCESSED = { label: "processed", key: "processed", colour: "replicas", width: 1.2 };
const REPLICAS = { label: "running", key: "replicas", colour: "replicas", width: 2, fill: "replicas-fill", step: true };
const NEED = { label: "need", key: "need", colour: "need", width: 1.8, step: true };
const PLANNED = { label: "planned", key: "planned", colour: "replicas", width: 1.2, dash: [2, 3], step: true };

export const CHARTS = {
  "c-load": { series: [RATE, FORECAST, UPPER, PROCESSED], band: [3, 2], write: (v) => `${number(v)}/s` },
  "c-replicas": { series: [REPLICAS, NEED, PLANNED], write: plain, steps: WHOLE_NUMBERS },
  "c-latency": {
    series: [
      { label: "p99", key: "p99_ms", colour: "p99", width: 2 },
      { label: "p90", key: "p90_ms", colour: "p90", width: 1.5 },
      { label: "p50", key: "p50_ms", colour: "p50", width: 1.5 },
      { label: "target", key: "target", colour: "target", width: 1.4, dash: [6, 5] },
    ],
    write: milliseconds,
  },
  "c-cost": {
    series: [
      { label: "paid", key: "cost", colour: "cost", width: 2, fill: "cost-fill" },
      { label: "static peak", key: "peak", colour: "peak", width: 1.6, dash: [6, 5] },
    ],
    write: plain,
  },
};

// What the load chart shows of one operator: its arrivals, and its backlog on an axis of its own.
const OPERATOR = {
  "c-load": [
    { ...RATE, label: "arriving", key: "rate" },
    { label: "processed", key: "processed", colour: "replicas", width: 1.4 },
    { label: "backlog", key: "backlog", colour: "target", width: 1.4, dash: [2, 3], scale: "events", write: plain },
  ],
};
const TITLES = { "c-load": ["Load and forecast", "Arrivals and backlog"] };
const fromZero = (_, low, high) => [0, high > 0 ? high * 1.12 : 1];

export class Chart {
  constructor(id) {
    this.card = document.getElementById(id);
    this.holder = this.card.querySelector(".plot");
    this.legend = this.card.querySelector(".legend");
    this.id = id;
    this.data = null;
    this.plot = null;
    new ResizeObserver(() => this.resize()).observe(this.holder);
    window.addEventListener("foretide-theme", () => this.rebuild());
  }

  // at: instants; columns: key -> values; options: {operator, now, log}
  show(at, columns, options) {
    const series = (options.operator && OPERATOR[this.id]) || CHARTS[this.id].series;
    this.data = [at, ...series.map((s) => columns[s.key] || at.map(() => null))];
    const stays = this.plot && this.series === series && this.log === Boolean(options.log);
    this.series = series;
    this.log = Boolean(options.log);
    this.now = options.now;
    if (TITLES[this.id]) this.card.querySelector("h2").textContent = TITLES[this.id][options.operator ? 1 : 0];
    const measured = this.data.slice(1, -1).some((column) => column.some((v) => v !== null && v !== undefined));
    this.card.classList.toggle("empty", !measured);
    if (stays) {
      this.plot.setData(this.data);
      this.say(this.plot.cursor.idx);
    } else {
      this.rebuild();
    }
    this.values.forEach(({ item }, i) => { item.hidden = i > 0 && !this.data[i + 1].some((v) => v !== null && v !== undefined); });
  }

  rebuild() {
    if (!this.data) return;
    if (this.plot) this.plot.destroy();
    this.plot = new window.uPlot(this.options(), this.data, this.holder);
    this.card.dataset.drawn = "true";
    this.drawLegend();
    this.say(null);
  }

  options() {
    const spec = CHARTS[this.id];
    const axis = { stroke: colour("faint"), grid: { stroke: colour("grid"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
    const clock = isClock(this.data[0][0]);
    return {
      width: this.holder.clientWidth,
      height: this.holder.clientHeight,
      padding: [10, 26, 0, 2],
      legend: { show: false },
      tzDate: clock ? undefined : (ts) => window.uPlot.tzDate(new Date(ts * 1e3), "Etc/UTC"),
      cursor: { sync: { key: "foretide" }, y: false, points: { size: 7 }, drag: { x: true, y: false } },
      scales: { y: this.log ? { distr: 3, log: 10 } : { range: fromZero }, events: { range: fromZero } },
      axes: [
        { ...axis, space: 70, size: 26, values: (_, splits, axisIndex, space, step) => splits.map((t) => instant(t, step < 60)) },
        { ...axis, ...(this.log ? decades(axis.grid) : {}), size: 52, gap: 6, space: 38, ...(spec.steps ? { incrs: spec.steps } : {}), values: (_, splits) => splits.map((v) => (v === null ? "" : spec.write(v))) },
        ...(this.series.some((s) => s.scale) ? [{ ...axis, scale: "events", side: 1, grid: { show: false }, size: 46, gap: 6, space: 38, values: (_, splits) => splits.map(plain) }] : []),
      ],
      series: [{}, ...this.series.map((s) => this.line(s))],
      bands: this.series === spec.series && spec.band ? [{ series: spec.band, fill: colour("band") }] : [],
      hooks: { setCursor: [(u) => this.say(u.cursor.idx)], drawClear: [(u) => this.drawNow(u)] },
    };
  }

  line(s) {
    return {
      stroke: s.width ? colour(s.colour) : "transparent",
      width: s.width,
      dash: s.dash,
      fill: s.fill ? colour(s.fill) : undefined,
      paths: s.step ? stepped() : undefined,
      points: s.width && !s.step ? { show: true, filter: lonely, size: 5, stroke: colour(s.colour), fill: colour(s.colour) } : { show: false },
      spanGaps: false,
      scale: s.scale || "y",
    };
  }

  // A line where measurements end and the forecast begins.
  drawNow(u) {
    if (this.now === null || this.now === undefined || this.id !== "c-load") return;
    const x = Math.round(u.valToPos(this.now, "x", true));
    u.ctx.save();
    u.ctx.strokeStyle = colour("faint");
    u.ctx.globalAlpha = 0.5;
    u.ctx.beginPath();
    u.ctx.moveTo(x, u.bbox.top);
    u.ctx.lineTo(x, u.bbox.top + u.bbox.height);
    u.ctx.stroke();
    u.ctx.restore();
  }

  drawLegend() {
    this.values = this.series.map((s) => {
      const item = document.createElement("span");
      const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      const mark = document.createElementNS("http://www.w3.org/2000/svg", s.swatch ? "rect" : "line");
      const at = s.swatch ? { width: 16, height: 8, rx: 2, fill: colour(s.swatch) } : { x1: 0, x2: 16, y1: 4, y2: 4, stroke: colour(s.colour), "stroke-width": 2.2, "stroke-dasharray": s.dash ? "4 3" : "none" };
      for (const [name, value] of Object.entries(at)) mark.setAttribute(name, value);
      svg.append(mark);
      const value = document.createElement("b");
      item.append(svg, s.label, value);
      return { item, value };
    });
    this.legend.replaceChildren(...this.values.map((v) => v.item));
  }

  // Values under the cursor, or the newest measured ones.
  say(index) {
    const spec = CHARTS[this.id];
    this.values.forEach(({ value }, i) => {
      const column = this.data[i + 1];
      let at = index;
      if (at === null || at === undefined) {
        at = this.last(this.data[1]);
      }
      const found = column[at];
      value.textContent = found === null || found === undefined ? NONE : (this.series[i].write || spec.write)(found);
    });
  }

  last(column) {
    for (let i = column.length - 1; i >= 0; i--) if (column[i] !== null && column[i] !== undefined) return i;
    return column.length - 1;
  }

  resize() {
    if (this.plot && this.holder.clientWidth) this.plot.setSize({ width: this.holder.clientWidth, height: this.holder.clientHeight });
  }
}
