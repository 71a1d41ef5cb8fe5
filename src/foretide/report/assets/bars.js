/* What is not a time series: frontier, cost bars, latency ranges, busy time per replica, the table, the decisions. */
const data = JSON.parse(document.getElementById("data").textContent);
const runs = data.runs;
const $ = (id) => document.getElementById(id);
/* One hue per family of systems; its members differ in lightness and in the dashes of their lines. */
const HUES = { Foretide: 212, forecasting: 28, "rate or queueing model": 152, reactive: 316, "host thresholds": 258, learning: 187, fixed: 0, limit: 0, other: 48 };
const GREY = new Set(["fixed", "limit"]);
const member = (i) => runs.slice(0, i).filter((r) => r.family === runs[i].family).length;
function tone(i) {
  const { family } = runs[i],
    dark = document.documentElement.dataset.theme === "dark",
    many = runs.filter((r) => r.family === family).length;
  const light = (dark ? 76 : 36) + (dark ? -1 : 1) * (many > 1 ? (20 * member(i)) / (many - 1) : 6) * (family === "limit" ? 0 : 1);
  return `hsl(${HUES[family] ?? 48} ${GREY.has(family) ? 4 : 72}% ${light}%)`;
}

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "run") {
      made.dataset.run = value;
      made.style.setProperty("--tone", tone(value));
    }
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
  share: (v) => percent(v),
  count: (v) => v.toLocaleString("en"),
  ms: (v) => ms(v),
  seconds: (v) => short(v),
};

/* Rounded down, so that a share never reads better than it is: one decimal, two near 100 %. */
function percent(share) {
  const digits = share >= 0.99 && share < 1 ? 2 : 1;
  return Number((Math.floor(share * 100 * 10 ** digits + 1e-6) / 10 ** digits).toFixed(digits)) + " %";
}

function ms(value) {
  if (value === null || value === undefined) return "–";
  if (value >= 1000) return short(value / 1000) + " s";
  return short(value) + " ms";
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

/* Cost against the share of events within the target: up and to the left is better. */
function drawFrontier() {
  const known = runs.map((_, i) => i).filter((i) => runs[i].figures.cost_ratio !== null && runs[i].figures.slo_share !== null);
  if (known.length < 2) return $("frontier-section").remove();
  const box = $("frontier"),
    width = Math.max(320, box.clientWidth),
    height = 380,
    [left, right, top, bottom] = [58, 22, 18, 42];
  const cost = (i) => runs[i].figures.cost_ratio,
    share = (i) => runs[i].figures.slo_share;
  /* Half of the height up to 90 %, then a part of its own for every further nine. */
  const nines = (s) => (s <= 0.9 ? (2 * s) / 0.9 : 1 - Math.log10(Math.max(1 - s, 1e-4)));
  const most = Math.max(...known.map(cost)) * 1.06,
    least = Math.min(...known.map(cost), 1) * 0.94,
    wide = most / least > 6;
  const along = (v) => (wide ? Math.log(v / least) / Math.log(most / least) : (v - least) / (most - least));
  const x = (v) => left + along(v) * (width - left - right),
    y = (s) => height - bottom - (nines(s) / 5) * (height - top - bottom);
  const svg = drawing("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "cost against share of events within the target" });
  for (const [s, label] of [[0, "0 %"], [0.5, "50 %"], [0.9, "90 %"], [0.99, "99 %"], [0.999, "99.9 %"], [1, "100 %"]]) {
    svg.append(drawing("line", { class: "rule", x1: left, x2: width - right, y1: y(s), y2: y(s) }), drawing("text", { class: "tick", x: left - 8, y: y(s) + 4, "text-anchor": "end" }, label));
  }
  for (const v of costTicks(least, most, wide))
    svg.append(drawing("line", { class: "rule", x1: x(v), x2: x(v), y1: top, y2: height - bottom }), drawing("text", { class: "tick", x: x(v), y: height - bottom + 18, "text-anchor": "middle" }, `${v} ×`));
  svg.append(drawing("text", { class: "tick", x: width - right, y: height - 6, "text-anchor": "end" }, "cost, times the optimum"));
  const promise = runs[0].share;
  svg.append(drawing("line", { class: "promise", x1: left, x2: width - right, y1: y(promise), y2: y(promise) }));
  const best = known.filter((i) => !known.some((j) => j !== i && cost(j) <= cost(i) && share(j) >= share(i) && (cost(j) < cost(i) || share(j) > share(i)))).sort((a, b) => cost(a) - cost(b));
  svg.append(drawing("polyline", { class: "front", points: best.map((i) => `${x(cost(i))},${y(share(i))}`).join(" ") }));
  const taken = [];
  for (const i of known) taken.push({ from: x(cost(i)) - 6, size: 12, y: y(share(i)) + 4 });
  for (const i of [...known].sort((a, b) => share(b) - share(a) || cost(a) - cost(b))) {
    const [px, py] = [x(cost(i)), y(share(i))];
    const short = runs[i].short === null ? "" : `; ran short: ${runs[i].short}`;
    const title = drawing("title", {}, `${runs[i].system}: ${cost(i).toFixed(2)} times the optimum, ${percent(share(i))} in target${short}`);
    const dot = drawing("circle", { class: runs[i].short === null ? "dot" : "dot short", cx: px, cy: py, r: 6 });
    dot.dataset.run = i;
    dot.style.setProperty("--tone", tone(i));
    dot.append(title);
    svg.append(dot, ...label(runs[i].system, px, py, { left, right: width - right, top, bottom: height - bottom - 4 }, taken));
  }
  box.append(svg);
  const families = [...new Set(known.map((i) => runs[i].family))];
  box.append(element("div", { class: "key" }, ...families.map((f) => element("span", { run: known.find((i) => runs[i].family === f) }, element("i", { class: "family" }), f)), element("span", {}, "hollow: ran short")));
  box.dataset.chart = "frontier";
  drawn("frontier");
}

function costTicks(least, most, wide) {
  const steps = wide ? [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500] : [...Array(60)].map((_, k) => Math.round((k + 1) * (most - least > 2.5 ? 5 : 2)) / 10);
  return steps.filter((v) => v >= least && v <= most);
}

/* A name beside its point, at the nearest place where it covers no other; a line leads to it from afar. */
function label(name, px, py, bounds, taken) {
  const size = name.length * 6.4 + 4;
  const free = (from, y) =>
    from >= bounds.left && from + size <= bounds.right && y >= bounds.top && y <= bounds.bottom && !taken.some((b) => Math.abs(b.y - y) < 13 && b.from < from + size && from < b.from + b.size);
  const places = [];
  for (let k = 0; k < 16; k++)
    for (const y of k ? [py + 4 - 13 * k, py + 4 + 13 * k] : [py + 4]) for (const from of [px + 10 + 3 * k, px - 10 - 3 * k - size]) places.push({ from, y, far: k });
  const place = places.find((p) => free(p.from, p.y)) ?? places[0];
  taken.push({ from: place.from, size, y: place.y });
  const near = place.from > px ? place.from - 2 : place.from + size;
  const lead = place.far > 1 ? [drawing("line", { class: "lead", x1: px, y1: py, x2: near, y2: place.y - 4 })] : [];
  return [...lead, drawing("text", { class: "name", x: place.from, y: place.y }, name)];
}

function drawing(tag, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
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
        { class: "bar", run: i },
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
        { class: "bar", run: i },
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

/* The price of other promises, of every system that worked it out. */
function drawChoices() {
  const priced = runs.map((r, i) => i).filter((i) => runs[i].choices.length);
  if (!priced.length) return $("choices-section").remove();
  const most = Math.max(...priced.flatMap((i) => runs[i].choices.map((c) => c.cost)));
  $("choices").dataset.chart = "choices";
  for (const i of priced) {
    if (priced.length > 1) $("choices").append(element("h3", {}, runs[i].system));
    for (const { share, cost } of runs[i].choices) {
      const level = element("b");
      level.style.width = (100 * cost) / most + "%";
      const own = share === runs[i].share ? "bar own" : "bar";
      $("choices").append(
        element("div", { class: own, run: i }, element("span", {}, percent(share)), element("div", { class: "track" }, level), element("span", {}, cost.toFixed(2))),
      );
    }
    $("choices").append(element("p", { class: "hint" }, runs[i].priced));
  }
  drawn("choices");
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
          { class: "balance-row", run: i },
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
      const short = ["saved_cost", "saved_resources"].includes(f.key) && runs[i].short !== null;
      const shown = short ? "ran short" : v === null ? "–" : FORMS[f.form](v);
      return element("td", { ...(v !== null && v === best[f.key] ? { class: "best" } : {}), ...(short ? { title: runs[i].short } : {}) }, shown);
    });
    return element("tr", {}, element("td", { run: i }, element("i"), runs[i].system), ...cells);
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
      { run: s.i },
      element("time", {}, clockwork.write(clockwork.at(s.at_s))),
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
