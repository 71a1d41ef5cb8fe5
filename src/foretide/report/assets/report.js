/* Time series (uPlot), the theme, the choice of systems. */
const shown = new Set(runs.length <= 5 ? runs.map((_, i) => i) : firstChoice());
const charts = new Map();
const sync = uPlot.sync("report");
let percentile = "p99_ms";

function firstChoice() {
  const share = (i) => runs[i].figures.slo_share ?? 0,
    ratio = (i) => runs[i].figures.cost_ratio ?? Infinity;
  const better = (a, b) => (runs[a].short === null && runs[b].short === null ? ratio(a) - ratio(b) : share(b) - share(a) || ratio(a) - ratio(b));
  return runs
    .map((_, i) => i)
    .sort(better)
    .slice(0, 4);
}

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const faded = (hex, alpha) =>
  hex +
  Math.round(alpha * 255)
    .toString(16)
    .padStart(2, "0");
const stepped = uPlot.paths.stepped({ align: -1 });
/* All operators together; replicas that are slots which all of them share count once. */
const all = (values, shared = false) =>
  Object.values(values).reduce(
    (sum, v) => sum.map((s, i) => (shared ? Math.max(s, v[i] ?? 0) : s + (v[i] ?? 0))),
    Object.values(values)[0].map(() => 0),
  );

const WHOLE = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000];
const clockwork = timeline(data.started_at);

/* One chart: `lines` are {label, values, stroke, ...}; a second call with the same id replaces the first. */
function chart(id, title, lines, options = {}) {
  const box = $(id),
    log = options.log === true;
  charts.get(id)?.destroy();
  delete box.dataset.drawn;
  box.dataset.chart = id;
  const axis = {
    stroke: css("--soft"),
    grid: { stroke: css("--grid"), width: 1 },
    ticks: { stroke: css("--grid"), width: 1 },
    font: "11px system-ui",
  };
  const value = options.value ?? ((v) => short(v)),
    first = runs[0].at_s.map(clockwork.at);
  const series = lines.map((l) => ({
    width: 1.6,
    spanGaps: false,
    points: { show: runs[0].at_s.length < 3 || options.points === true, size: 4 },
    ...l,
    values: undefined,
    value: (_, v) => (v === null || v === undefined ? "–" : value(v)),
  }));
  const made = new uPlot(
    {
      width: Math.max(260, box.clientWidth),
      height: options.height ?? 240,
      legend: { show: options.legend !== false },
      cursor: { sync: { key: sync.key }, drag: { x: true, y: false } },
      scales: {
        x: { time: false },
        y: log
          ? { distr: 3, log: 10, range: (_, lo, hi) => logRange(lo, hi) }
          : { range: (_, lo, hi) => [0, Math.max(hi || 0, options.least ?? 0) * 1.06 || 1] },
      },
      axes: [
        { ...axis, ...clockwork.axis },
        {
          ...axis,
          size: 64,
          ...(options.whole ? { incrs: WHOLE } : {}),
          values: (_, vs) => vs.map((v) => (v === null ? "" : value(v))),
          ...(log ? { filter: (u, vs) => vs.map((v) => (Number.isInteger(Math.round(Math.log10(v) * 1e6) / 1e6) ? v : null)) } : {}),
        },
      ],
      series: [{ label: "time", value: (_, v) => (v === null ? "–" : clockwork.write(v)) }, ...series],
      hooks: {
        draw: [
          () => {
            box.dataset.drawn = "true";
          },
        ],
      },
    },
    [[2 * first[0] - (first[1] ?? 2 * first[0]), ...first], ...lines.map((l) => [l.values[0], ...l.values])],
    box,
  );
  made.root.setAttribute("role", "img");
  made.root.setAttribute("aria-label", title);
  charts.set(id, made);
}

function logRange(lo, hi) {
  if (lo === null || hi === null || !(hi > 0)) return [1, 1000];
  return [10 ** Math.floor(Math.log10(Math.max(lo, 0.01))), 10 ** Math.ceil(Math.log10(Math.max(hi, 0.02)) + 1e-9)];
}

const perSystem = (values, extra = {}) =>
  runs
    .map((r, i) => ({ r, i }))
    .filter(({ i }) => shown.has(i))
    .map(({ r, i }) => ({ label: r.system, values: values(r), stroke: tone(i), ...(member(i) % 3 === 1 ? { dash: [9, 3] } : member(i) % 3 === 2 ? { dash: [2, 3] } : {}), ...extra }))
    .filter((l) => l.values && l.values.some((v) => v !== null));

function needLines(need, optimum) {
  const soft = css("--need");
  return [
    { label: "need", values: need, stroke: soft, fill: faded(soft, 0.35), paths: stepped, width: 1 },
    { label: "optimum", values: optimum, stroke: css("--ink"), dash: [2, 4], paths: stepped, width: 1.2 },
  ];
}

function drawSeries() {
  const first = runs[0],
    ink = css("--ink"),
    soft = css("--need");
  chart(
    "load",
    "load and forecast",
    [
      { label: "load /s", values: first.rate, stroke: ink, fill: faded(soft, 0.25), paths: stepped, width: 1.4 },
      ...perSystem((r) => r.forecast, { dash: [5, 4], paths: stepped }),
    ],
    { height: 260 },
  );
  chart(
    "replicas",
    "replicas of all operators against need",
    [...needLines(all(first.need), all(first.optimum)), ...perSystem((r) => all(r.replicas, r.shared_slots), { paths: stepped })],
    { height: 280, whole: true },
  );
  for (const operator of busiest)
    chart(
      `operator-${operator}`,
      `replicas of ${operator} against need`,
      [...needLines(first.need[operator], first.optimum[operator]), ...perSystem((r) => r.replicas[operator], { paths: stepped })],
      { height: 150, legend: false, whole: true },
    );
  drawLatency();
  chart(
    "backlog",
    "backlog",
    perSystem((r) => r.backlog),
    { height: 220 },
  );
  chart(
    "utilization",
    "utilization",
    perSystem((r) => r.utilization),
    { height: 220, least: 1, value: (v) => Math.round(100 * v) + " %" },
  );
  if ($("hosts"))
    chart(
      "hosts",
      "hosts in use",
      perSystem((r) => r.hosts, { paths: stepped }),
      { height: 200, whole: true },
    );
}

function drawLatency() {
  const target = runs[0].target_ms;
  const lines = perSystem((r) => r.latency_ms[percentile].map((v) => (v === null ? null : Math.max(v, 0.01))));
  if (target) lines.push({ label: "target", values: runs[0].at_s.map(() => target), stroke: css("--ink"), dash: [6, 5], width: 1.2 });
  chart("latency", "latency over time", lines, { height: 260, log: true, value: ms, points: runs[0].at_s.length <= 120 });
  for (const b of $("latency-pick").children) b.setAttribute("aria-pressed", String(b.dataset.key === percentile));
}

function theme(name) {
  document.documentElement.dataset.theme = name;
  for (const part of document.querySelectorAll("[data-run]")) part.style.setProperty("--tone", tone(Number(part.dataset.run)));
  drawSeries();
}

function start() {
  if (!runs.some((r) => r.hosts.some((v) => v !== null))) $("hosts-section").remove();
  for (const operator of busiest)
    $("operators").append(element("div", {}, element("h3", {}, operator), element("div", { id: `operator-${operator}` })));
  if (data.operators.length > busiest.length)
    $("operators").append(
      element("p", { class: "hint" }, `The busiest ${busiest.length} of ${data.operators.length} operators; all are in the total.`),
    );
  for (const [key, label] of [
    ["p50_ms", "p50"],
    ["p90_ms", "p90"],
    ["p99_ms", "p99"],
    ["mean_ms", "mean"],
  ])
    $("latency-pick").append(
      element(
        "button",
        {
          type: "button",
          "data-key": key,
          onclick: () => {
            percentile = key;
            drawLatency();
          },
        },
        label,
      ),
    );
  if (runs.length > 1)
    runs.forEach((r, i) => {
      const button = element("button", { type: "button", run: i, "aria-pressed": String(shown.has(i)) }, element("i"), r.system);
      button.addEventListener("click", () => {
        if (shown.has(i)) shown.delete(i);
        else shown.add(i);
        button.setAttribute("aria-pressed", String(shown.has(i)));
        drawSeries();
      });
      $("systems").append(button);
    });
  else $("systems").remove();
  const left = new Map();
  for (const [name, why] of Object.entries(data.left_out)) left.set(why, [...(left.get(why) ?? []), name]);
  $("left-out").append(...[...left].map(([why, names]) => element("p", {}, `Left out: ${names.join(", ")}: ${why}`)));
  $("decision-system").append(element("option", { value: "" }, "all systems"), ...runs.map((r) => element("option", {}, r.system)));
  $("decision-system").hidden = runs.length === 1;
  $("footer").append(
    ...(runs[0].windows_per_point > 1
      ? [
          element(
            "p",
            {},
            `Each point of a chart stands for ${runs[0].windows_per_point} windows: means, for backlog and latency the largest.`,
          ),
        ]
      : []),
    ...(data.command ? [element("p", {}, "Made with: ", element("code", {}, data.command))] : []),
  );
  drawFrontier();
  drawCost();
  drawPercentiles();
  drawBalance();
  drawChoices();
  drawTable();
  for (const id of ["decision-system", "decision-text"]) $(id).addEventListener("input", drawDecisions);
  drawDecisions();
  const dark = matchMedia("(prefers-color-scheme: dark)");
  $("theme").addEventListener("click", () => theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
  dark.addEventListener("change", () => theme(dark.matches ? "dark" : "light"));
  theme(dark.matches ? "dark" : "light");
  let width = document.body.clientWidth;
  addEventListener("resize", () => {
    if (document.body.clientWidth === width) return;
    width = document.body.clientWidth;
    for (const [id, c] of charts) c.setSize({ width: Math.max(260, $(id).clientWidth), height: c.height });
  });
}
start();
