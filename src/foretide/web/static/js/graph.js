// The pipeline as a graph: built once per topology and width, then only its numbers change.
import { layered } from "./layout.js";
import { number, percent, plural } from "./format.js";

const SVG = "http://www.w3.org/2000/svg";
const PIPS = 10;

function make(tag, attributes = {}, parent = null, text = null) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== null) element.textContent = text;
  if (parent) parent.append(element);
  return element;
}

export class Graph {
  constructor(holder, choose) {
    this.holder = holder;
    this.choose = choose;
    this.operators = [];
    this.nodes = new Map();
    this.edges = [];
    this.unit = "replica";
    new ResizeObserver(() => this.fit()).observe(holder);
  }

  show(operators) {
    const same = JSON.stringify(operators) === JSON.stringify(this.operators);
    if (same) return;
    this.operators = operators;
    this.upright = undefined;
    this.fit();
  }

  fit() {
    if (!this.operators.length || !this.holder.clientWidth) return;
    const upright = this.holder.clientWidth < 620;
    if (upright !== this.upright) this.draw(upright);
    const room = this.holder.clientWidth;
    const scale = Math.max(Math.min(room / this.width, 1.15), this.operators.length > 12 ? 0.62 : 0.72);
    const svg = this.holder.firstChild;
    svg.setAttribute("width", this.width * scale);
    svg.setAttribute("height", this.height * scale);
  }

  draw(upright) {
    this.upright = upright;
    const many = this.operators.length > 16;
    const size = many ? { w: 104, h: 46, along: upright ? 26 : 40, across: upright ? 12 : 12 } : { w: 146, h: 78, along: upright ? 34 : 52, across: 18 };
    const { layers, edges, loops } = layered(this.operators);
    const place = this.place(layers, size, upright);
    const back = loops.length ? loops.length * 16 + 6 : 0;
    const [side, edge] = loops.length ? [22, 6] : [6, 6];
    const [padX, padY] = upright ? [edge, side] : [side, edge];
    const extent = [...place.values()];
    const right = Math.max(...extent.map((p) => p.x)) + size.w;
    const bottom = Math.max(...extent.map((p) => p.y)) + size.h;
    this.width = right + padX * 2 + (upright ? back : 0);
    this.height = bottom + padY * 2 + (upright ? 0 : back);
    const svg = make("svg", { viewBox: `${-padX} ${-padY} ${this.width} ${this.height}`, role: "group", "aria-label": "pipeline of operators" });
    const tip = make("marker", { id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto", markerUnits: "userSpaceOnUse" }, make("defs", {}, svg));
    make("path", { d: "M0 .8 7.500 4 0 7.200z", class: "tip" }, tip);
    this.edges = [];
    for (const e of edges) this.edge(svg, e, this.way(e, place, size, upright), "edge");
    loops.forEach((loop, i) => this.edge(svg, loop, this.wayBack(loop, place, size, upright, (upright ? right : bottom) + 14 + i * 16), "edge loop"));
    this.nodes = new Map(this.operators.map((o) => [o.name, this.node(svg, o, place.get(o.name), size, many)]));
    this.holder.replaceChildren(svg);
    this.mark(this.chosen);
    if (this.last) this.update(this.last, this.live);
  }

  place(layers, size, upright) {
    const step = upright ? size.w + size.across : size.h + size.across;
    const widest = Math.max(...layers.map((l) => l.length));
    const place = new Map();
    layers.forEach((layer, depth) => {
      layer.forEach((id, i) => {
        const across = ((widest - layer.length) / 2 + i) * step;
        const along = depth * ((upright ? size.h : size.w) + size.along);
        place.set(id, upright ? { x: across, y: along } : { x: along, y: across });
      });
    });
    return place;
  }

  way(edge, place, size, upright) {
    const from = place.get(edge.from);
    const to = place.get(edge.to);
    const stops = [
      upright ? [from.x + size.w / 2, from.y + size.h] : [from.x + size.w, from.y + size.h / 2],
      ...edge.via.map((id) => place.get(id)).flatMap((p) => (upright ? [[p.x + size.w / 2, p.y], [p.x + size.w / 2, p.y + size.h]] : [[p.x, p.y + size.h / 2], [p.x + size.w, p.y + size.h / 2]])),
      upright ? [to.x + size.w / 2, to.y - 1] : [to.x - 1, to.y + size.h / 2],
    ];
    let d = `M${stops[0]}`;
    for (let i = 1; i < stops.length; i++) {
      const [ax, ay] = stops[i - 1];
      const [bx, by] = stops[i];
      d += upright ? `C${ax},${(ay + by) / 2} ${bx},${(ay + by) / 2} ${bx},${by}` : `C${(ax + bx) / 2},${ay} ${(ax + bx) / 2},${by} ${bx},${by}`;
    }
    return d;
  }

  // A loop runs between layers and in a lane of its own beside them, never behind an operator.
  wayBack(loop, place, size, upright, lane) {
    const from = place.get(loop.from);
    const to = place.get(loop.to);
    const [r, gap] = [9, 15];
    if (upright) {
      const [ax, ay, bx, by] = [from.x + size.w * 0.72, from.y + size.h, to.x + size.w * 0.72, to.y];
      const [down, up] = [ay + gap, by - gap];
      return `M${ax},${ay}V${down - r}Q${ax},${down} ${ax + r},${down}H${lane - r}Q${lane},${down} ${lane},${down - r}V${up + r}Q${lane},${up} ${lane - r},${up}H${bx + r}Q${bx},${up} ${bx},${up + r}V${by - 1}`;
    }
    const [ax, ay, bx, by] = [from.x + size.w, from.y + size.h * 0.72, to.x, to.y + size.h * 0.72];
    const [right, left] = [ax + gap, bx - gap];
    return `M${ax},${ay}H${right - r}Q${right},${ay} ${right},${ay + r}V${lane - r}Q${right},${lane} ${right - r},${lane}H${left + r}Q${left},${lane} ${left},${lane - r}V${by + r}Q${left},${by} ${left + r},${by}H${bx - 1}`;
  }

  edge(svg, { from, to }, d, kind) {
    const line = make("path", { d, class: kind, "marker-end": "url(#tip)" }, svg);
    const pulse = make("path", { d, class: "pulse" }, svg);
    const title = make("title", {}, line);
    this.edges.push({ from, to, line, pulse, title });
  }

  node(svg, o, { x, y }, { w, h }, many) {
    const group = make("g", { class: "node", transform: `translate(${x} ${y})`, tabindex: 0, role: "button", "data-operator": o.name }, svg);
    make("rect", { class: "box", width: w, height: h, rx: 11 }, group);
    const name = make("text", { class: "name", x: 11, y: many ? 17 : 20 }, group, shorten(o.name, many ? 10 : o.stateful ? 11 : 14));
    if (o.stateful) make("text", { class: "quiet", x: w - 11, y: many ? 17 : 20, "text-anchor": "end" }, group, many ? "s" : "stateful");
    const parts = { group, name, many };
    parts.count = make("text", { class: "count", x: 11, y: many ? 33 : 41 }, group);
    parts.pips = many ? null : make("g", {}, group);
    parts.rate = many ? null : make("text", { class: "quiet", x: 11, y: 59 }, group);
    parts.waiting = make("text", { class: "waiting", x: w - 11, y: many ? 33 : 59, "text-anchor": "end" }, group);
    make("rect", { class: "track", x: 11, y: h - 9, width: w - 22, height: 3.5, rx: 1.75 }, group);
    parts.level = make("rect", { class: "level", x: 11, y: h - 9, width: 0, height: 3.5, rx: 1.75 }, group);
    parts.room = w - 22;
    parts.title = make("title", {}, group);
    group.addEventListener("click", () => this.choose(o.name));
    group.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        this.choose(o.name);
      }
    });
    return parts;
  }

  mark(name) {
    this.chosen = name;
    for (const [operator, parts] of this.nodes) parts.group.classList.toggle("chosen", operator === name);
  }

  update(now, live) {
    this.last = now;
    this.live = live;
    this.holder.classList.toggle("live", live);
    for (const [name, parts] of this.nodes) {
      const o = now[name];
      if (o) this.numbers(name, parts, o);
    }
    for (const { from, to, line, pulse, title } of this.edges) {
      const rate = now[from] ? now[from].feeds[to] || 0 : 0;
      line.setAttribute("stroke-width", (1.1 + Math.log10(1 + rate) * 0.75).toFixed(2));
      pulse.style.display = rate > 0 ? "" : "none";
      title.textContent = `${from} to ${to}: ${number(rate)} events/s`;
    }
  }

  numbers(name, parts, o) {
    const load = o.utilization;
    const group = parts.group.classList;
    group.toggle("warm", load !== null && load > 0.85 && load <= 0.97);
    group.toggle("hot", load !== null && load > 0.97);
    group.toggle("behind", o.backlog > Math.max(5 * o.rate, 1));
    parts.level.setAttribute("width", (parts.room * Math.min(load || 0, 1)).toFixed(1));
    parts.title.textContent = `${name}: ${plural(o.replicas, this.unit)}, ${o.need ?? "?"} needed, ${o.planned ?? "?"} planned, busy ${percent(load)}, ${plural(Math.round(o.backlog), "event")} waiting, ${number(o.rate)} events/s`;
    parts.group.setAttribute("aria-label", parts.title.textContent);
    if (this.unit === "slot") {
      this.shared(parts, o);
      return;
    }
    const change = o.planned !== null && o.planned !== o.replicas ? ` → ${o.planned}` : "";
    parts.count.textContent = parts.many ? `×${o.replicas}${change}` : `${o.replicas}${change}`;
    const waiting = o.backlog >= 0.5 ? `${number(Math.round(o.backlog))} waiting` : percent(load);
    parts.waiting.textContent = parts.many && change && o.backlog < 0.5 ? "" : waiting;
    if (parts.rate) parts.rate.textContent = `${number(o.rate)}/s`;
    if (parts.pips) this.pips(parts, o);
  }

  // A query of an attached application: the slots it needs of those that all queries share.
  shared(parts, o) {
    parts.count.textContent = o.need === null ? "" : plural(o.need, "slot");
    parts.waiting.textContent = o.backlog >= 0.5 ? `${number(Math.round(o.backlog))} waiting` : "";
    if (parts.rate) parts.rate.textContent = `${number(o.rate)}/s`;
  }

  pips(parts, o) {
    const planned = o.planned === null ? o.replicas : o.planned;
    const drawn = `${o.replicas}/${planned}`;
    if (parts.drawn === drawn) return;
    parts.drawn = drawn;
    parts.pips.replaceChildren();
    const from = 11 + parts.count.getComputedTextLength() + 8 || 34;
    const shown = Math.min(Math.max(o.replicas, planned), PIPS);
    const pitch = Math.min(9, (parts.room + 11 - from) / shown); // all of them fit: narrower where there are many
    for (let i = 0; i < shown; i++) {
      const kind = i >= o.replicas ? "pip coming" : i >= planned ? "pip going" : "pip";
      make("rect", { class: kind, x: from + i * pitch, y: 33, width: (pitch * 2) / 3, height: 8, rx: Math.min(2, pitch / 4) }, parts.pips);
    }
  }
}

function shorten(name, length) {
  return name.length > length ? `${name.slice(0, length - 1)}…` : name;
}
