"use strict";
/* What is not a time series: cost bars, latency ranges, busy time per replica, the table, the decisions. */
const data = JSON.parse(document.getElementById("data").textContent);
const runs = data.runs;
const $ = (id) => document.getElementById(id);
const tone = (i) => `var(--c${i % 10})`;

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "tone") made.style.setProperty("--tone", value);
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value);
  }
  made.append(...children.filter((c) => c !== null && c !== undefined));
  return made;
}

function short(value, digits = 3) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size >= 1e9) return (value / 1e9).toPrecision(digits) + " G";
  if (size >= 1e6) return (value / 1e6).toPrecision(digits) + " M";
  if (size >= 1e4) return Math.round(value).toLocaleString("en");
  if (size >= 100 || Number.isInteger(value)) return String(Math.round(value));
  return String(Number(value.toPrecision(digits)));
}

const FORMS = {
  money: (v) => short(v),
  ratio: (v) => v.toFixed(2),
  share: (v) => (v === 0 || Math.abs(v) >= 0.9995 ? (100 * v).toFixed(0) : (100 * v).toFixed(1)) + " %",
  count: (v) => v.toLocaleString("en"),
  ms: (v) => ms(v),
  seconds: (v) => short(v),
};

function ms(value) {
  if (value === null || value === undefined) return "–";
  if (value >= 1000) return short(value / 1000) + " s";
  return short(value) + " ms";
}

function clock(seconds) {
  const s = Math.round(seconds),
    two = (n) => String(n).padStart(2, "0");
  if (s >= 172800) return Math.floor(s / 86400) + "d " + two(Math.floor((s % 86400) / 3600)) + "h";
  const tail = two(Math.floor((s % 3600) / 60)) + ":" + two(s % 60);
  return s >= 3600 ? Math.floor(s / 3600) + ":" + tail : tail;
}

/* Operators that get a chart of their own: all, or the twelve that most replicas worked for, in the pipeline's order. */
const busiest = (() => {
  const work = (o) => Math.max(...runs.map((r) => r.replicas[o].reduce((a, b) => a + b, 0) + r.need[o].reduce((a, b) => a + b, 0)));
  const few = new Set(
    [...data.operators]
      .map((o) => [work(o), o])
      .sort((a, b) => b[0] - a[0])
      .slice(0, 12)
      .map(([, o]) => o),
  );
  return data.operators.filter((o) => few.has(o));
})();

function drawn(id) {
  $(id).dataset.drawn = "true";
}

function drawCost() {
  const order = runs
    .map((r, i) => i)
    .filter((i) => runs[i].figures.cost !== null)
    .sort((a, b) => runs[a].figures.cost - runs[b].figures.cost);
  const best = runs[0].optimum_cost;
  const widest = Math.max(best, ...order.map((i) => runs[i].figures.cost)) * 1.02;
  const percent = (v) => (100 * v) / widest + "%";
  for (const i of order) {
    const { figures, cost_changes, system } = runs[i];
    const running = element("b", { title: `running: ${short(figures.cost - cost_changes)}` });
    running.style.width = percent(figures.cost - cost_changes);
    const changes = element("b", { title: `changing: ${short(cost_changes)}` });
    changes.style.left = percent(figures.cost - cost_changes);
    changes.style.width = percent(cost_changes);
    const line = element("u", { title: `optimum: ${short(best)}` });
    line.style.left = percent(best);
    const label = figures.cost_ratio === null ? short(figures.cost) : figures.cost_ratio.toFixed(2) + " ×";
    $("cost").append(
      element(
        "div",
        { class: "bar", tone: tone(i) },
        element("span", { title: system }, system),
        element("div", { class: "track" }, running, changes, line),
        element("span", { title: short(figures.cost) }, label),
      ),
    );
  }
  $("cost").append(
    element(
      "div",
      { class: "key" },
      element("span", {}, element("i"), "replicas running"),
      element("span", {}, element("i", { class: "pale" }), "starting, stopping, re-routing"),
    ),
  );
  drawn("cost");
}

function drawPercentiles() {
  const target = runs[0].target_ms;
  const known = runs.map((r, i) => i).filter((i) => runs[i].figures.latency_p50_ms !== null);
  if (!known.length) {
    const means = runs.filter((r) => r.figures.latency_mean_ms !== null).map((r) => `${r.system}: mean ${ms(r.figures.latency_mean_ms)}`);
    $("percentiles").append(
      element(
        "p",
        { class: "hint" },
        means.length ? means.join("; ") + ". Percentiles of the whole run were not measured." : "Latency was not measured.",
      ),
    );
    return drawn("percentiles");
  }
  const values = known
    .flatMap((i) => [runs[i].figures.latency_p50_ms, runs[i].figures.latency_p99_ms])
    .concat(target ? [target] : [])
    .map((v) => Math.max(v, 0.01));
  const low = Math.floor(Math.log10(Math.min(...values)) * 2) / 2,
    high = Math.ceil(Math.log10(Math.max(...values) * 1.05) * 2) / 2;
  const place = (v) => (100 * (Math.log10(Math.max(v, 0.01)) - low)) / Math.max(high - low, 0.5);
  known.sort((a, b) => runs[a].figures.latency_p90_ms - runs[b].figures.latency_p90_ms);
  for (const i of known) {
    const f = runs[i].figures;
    const track = element("div", {
      class: "track",
      title: `p50 ${ms(f.latency_p50_ms)}, p90 ${ms(f.latency_p90_ms)}, p99 ${ms(f.latency_p99_ms)}`,
    });
    for (const to of [f.latency_p99_ms, f.latency_p90_ms]) {
      const range = element("s");
      range.style.left = place(f.latency_p50_ms) + "%";
      range.style.width = Math.max(0.4, place(to) - place(f.latency_p50_ms)) + "%";
      track.append(range);
    }
    const dot = element("em");
    dot.style.left = place(f.latency_p50_ms) + "%";
    track.append(dot);
    if (target) {
      const line = element("u", { title: "target " + ms(target) });
      line.style.left = place(target) + "%";
      track.append(line);
    }
    $("percentiles").append(
      element(
        "div",
        { class: "bar", tone: tone(i) },
        element("span", { title: runs[i].system }, runs[i].system),
        track,
        element("span", { title: "p99" }, ms(f.latency_p99_ms)),
      ),
    );
  }
  const scale = element("div");
  for (let e = Math.ceil(low); e <= high; e++) {
    const tick = element("span", {}, ms(10 ** e));
    tick.style.left = place(10 ** e) + "%";
    if (place(10 ** e) > 97) tick.style.transform = "translateX(-100%)"; // it would run into the label beside the scale
    scale.append(tick);
  }
  $("percentiles").append(element("div", { class: "scale" }, element("span"), scale, element("span", {}, "p99")));
  drawn("percentiles");
}

/* One run: its first third against its last, before and after it learned. Several: each as a whole. */
function drawBalance() {
  const operators = busiest.filter((o) => runs.some((r) => r.balance[o]));
  if (!operators.length) return $("balance-section").remove();
  $("balance").dataset.chart = "balance";
  for (const operator of operators) {
    const box = element("div", {}, element("h3", {}, operator));
    const rows = runs.flatMap((run, i) => {
      const [whole, first, last] = run.balance[operator] || [];
      if (!whole) return [];
      return runs.length > 1 ? [[i, run.system, whole]] : [[i, "first third", first], [i, "last third", last]]; // prettier-ignore
    });
    const most = Math.max(...rows.map(([, , part]) => part.busy[0])) || 1;
    for (const [i, label, { busy, uneven }] of rows) {
      const bars = busy.map((share, j) => {
        const bar = element("b", { title: `${j ? `number ${j + 1}` : "busiest replica"} of a window: ${Math.round(100 * share)} % busy` });
        bar.style.height = (100 * share) / most + "%";
        return bar;
      });
      box.append(
        element(
          "div",
          { class: "balance-row", tone: tone(i) },
          element("span", {}, label, element("br"), `max/mean ${uneven.toFixed(2)}`),
          element("div", { class: "spark" }, ...bars),
        ),
      );
    }
    $("balance").append(box);
  }
  drawn("balance");
}

let sorted = { key: null, down: false };
function drawTable() {
  const table = $("figures"),
    order = runs.map((_, i) => i),
    { key, down } = sorted;
  if (key) {
    const value = (i) => (key === "system" ? runs[i].system : runs[i].figures[key]);
    order.sort(
      (a, b) => (value(a) === null) - (value(b) === null) || (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0) * (down ? -1 : 1),
    );
  }
  const columns = [{ key: "system", label: "system", means: "" }, ...data.figures];
  const head = columns.map((c) => {
    const press = () => {
      sorted = { key: c.key, down: sorted.key === c.key ? !sorted.down : c.better === "high" };
      drawTable();
    };
    const cell = element("th", { title: c.means, scope: "col" }, element("button", { type: "button", onclick: press }, c.label));
    if (c.key === key) cell.setAttribute("aria-sort", down ? "descending" : "ascending");
    return cell;
  });
  const best = {};
  for (const f of data.figures) {
    const known = runs.map((r) => r.figures[f.key]).filter((v) => v !== null);
    if (f.better && new Set(known).size > 1) best[f.key] = f.better === "low" ? Math.min(...known) : Math.max(...known);
  }
  const rows = order.map((i) => {
    const cells = data.figures.map((f) => {
      const v = runs[i].figures[f.key];
      return element("td", v !== null && v === best[f.key] ? { class: "best" } : {}, v === null ? "–" : FORMS[f.form](v));
    });
    return element("tr", {}, element("td", { tone: tone(i) }, element("i"), runs[i].system), ...cells);
  });
  table.replaceChildren(element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows));
}

function drawDecisions() {
  const who = $("decision-system").value,
    text = $("decision-text").value.toLowerCase();
  const steps = runs.flatMap((r, i) => r.steps.map((s) => ({ ...s, i, system: r.system }))).filter((s) => !who || s.system === who);
  steps.sort((a, b) => a.at_s - b.at_s);
  const found = steps.filter((s) => !text || JSON.stringify([s.changes, s.note, s.outcome]).toLowerCase().includes(text));
  const items = found.slice(0, 300).map((s) => {
    const lines = s.changes.map((c) =>
      element(
        "p",
        {},
        element("strong", {}, `${c.operator} ${c.before === null ? "" : c.before + " → "}${c.after}`),
        c.why ? `: ${c.why}` : "",
      ),
    );
    if (s.note) lines.push(element("p", { class: s.outcome === "failed" ? "failed" : "" }, s.note));
    return element(
      "li",
      { tone: tone(s.i) },
      element("time", {}, clock(s.at_s)),
      element("span", { class: "who" }, `${s.system}${s.outcome === "advised" ? " advises" : ""}`),
      element("div", {}, ...lines),
    );
  });
  $("decisions").replaceChildren(...items);
  const left = runs.filter((r) => !who || r.system === who).reduce((n, r) => n + r.steps_left_out, 0);
  const notes = [];
  if (!found.length) notes.push(steps.length ? "Nothing matches." : "Nothing was changed.");
  if (found.length > items.length) notes.push(`The first ${items.length} of ${found.length} are shown.`);
  if (left) notes.push(`${left} earlier decisions are in the journal only.`);
  $("decisions-note").textContent = notes.join(" ");
}
