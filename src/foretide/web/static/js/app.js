// The page: receives the stream's events, keeps the series and shows them. All numbers come from the server.
import { CHARTS, Chart } from "./charts.js";
import { showChoices } from "./choices.js";
import { Feed } from "./feed.js";
import { NONE, bytes, milliseconds, number, percent, plural, span } from "./format.js";
import { Graph } from "./graph.js";
import { ask, follow, token } from "./stream.js";

const POINTS = 600;
const REFRESH_WHOLE_MS = 30000;
const $ = (id) => document.getElementById(id);

const page = { run: null, now: null, recent: null, whole: null, wholeAt: 0, operator: null, range: "recent", detail: null, drawing: false };
const charts = Object.keys(CHARTS).map((id) => new Chart(id));
const graph = new Graph($("graph"), (name) => choose(name === page.operator ? null : name));
const feed = new Feed();

// ---- stream ----

function onState(event) {
  Object.assign(page, { run: event.run, now: event.now, recent: event.recent, whole: null, detail: null });
  if (page.run) graph.show(page.run.operators);
  if (page.operator && !(page.run && page.run.operators.some((o) => o.name === page.operator))) page.operator = null;
  feed.reset(event.decisions);
  load();
}

function onTick(event) {
  page.now = event.now;
  append(page.recent, event.points, POINTS);
  if (page.whole) append(page.whole, event.points, Infinity);
  if (page.detail) appendDetail(event);
  feed.tick(event.decisions, event.points.at.length);
  if (page.range === "whole" && performance.now() - page.wholeAt > REFRESH_WHOLE_MS) load();
  else draw();
}

function append(columns, points, limit) {
  if (!columns || !points.at.length) return;
  columns.at.push(...points.at);
  for (const [name, values] of Object.entries(points.channels)) columns.channels[name].push(...values);
  const extra = columns.at.length - limit;
  if (extra > 0) [columns.at, ...Object.values(columns.channels)].forEach((values) => values.splice(0, extra));
}

function appendDetail(event) {
  if (event.points.at.length !== 1) {
    if (event.points.at.length > 1) load();
    return;
  }
  const now = event.now.operators[page.operator];
  const measured = event.points.channels.replicas[0] !== null;
  page.detail.at.push(event.points.at[0]);
  for (const name of Object.keys(page.detail.channels)) page.detail.channels[name].push(measured && now ? now[name] : null);
  if (page.range === "recent" && page.detail.at.length > POINTS) [page.detail.at, ...Object.values(page.detail.channels)].forEach((values) => values.shift());
}

// Fetch what the stream does not carry: the whole run, or one operator.
async function load() {
  draw();
  const { range, operator } = page;
  if (!page.run || (range === "recent" && !operator)) return;
  const wanted = [ask(`/api/series?range=${range}`)];
  if (operator) wanted.push(ask(`/api/series?range=${range}&operator=${encodeURIComponent(operator)}`));
  const answers = await Promise.all(wanted);
  if (!answers.every((a) => a.ok) || range !== page.range || operator !== page.operator) return;
  const [all, detail] = await Promise.all(answers.map((a) => a.json()));
  if (range === "whole") Object.assign(page, { whole: all, wholeAt: performance.now() });
  page.detail = detail || null;
  draw();
}

// ---- drawing ----

function draw() {
  if (page.drawing) return;
  page.drawing = true;
  requestAnimationFrame(() => {
    page.drawing = false;
    drawNow();
  });
}

function drawNow() {
  const { run, now } = page;
  drawHeader(run, now);
  if (!run) return;
  drawTiles(run, now);
  drawFacts(run, now);
  graph.unit = run.shared_slots ? "slot" : "replica";
  graph.update(now.operators, now.live);
  graph.mark(page.operator);
  drawCharts(run, now);
  showChoices($("choices"), run, now.choices);
  document.body.dataset.windows = now.windows;
}

function drawHeader(run, now) {
  $("run-name").textContent = run ? run.name : "Foretide";
  document.title = run ? `${run.name} · Foretide` : "Foretide";
  const target = run && run.target_latency_ms !== null ? ` · target ${milliseconds(run.target_latency_ms)}` : "";
  const share = run && run.share !== null ? ` for ${percent(run.share)} of events` : "";
  $("run-facts").textContent = run ? `${run.system} · window ${span(run.window_s)}${target}${target && share}` : "waiting for the journal's first line";
  $("spark-ui").hidden = !(run && run.spark_ui);
  if (run && run.spark_ui) $("spark-ui").href = run.spark_ui;
  const reading = now.read_share < 1;
  $("status").className = now.live ? "status live" : "status";
  $("status-text").textContent = reading ? `reading ${Math.floor(now.read_share * 100)} %` : now.live ? "live" : "finished";
  const [asked, held] = [now.asked_mode, now.mode];
  for (const button of $("mode").querySelectorAll("button")) {
    button.setAttribute("aria-pressed", String(button.dataset.mode === held));
    button.disabled = asked === null;
    button.classList.toggle("asked", asked !== null && asked !== held && button.dataset.mode === asked);
  }
  $("mode").title = asked === null ? "no loop is listening: the run is over, or its mode is fixed" : "";
  const trouble = now.outcome === "waiting" || now.outcome === "failed" ? `${now.outcome === "failed" ? "The last step failed" : "Waiting"}: ${now.error}` : "";
  $("notice").hidden = !trouble;
  $("notice").textContent = trouble;
  const short = run ? now.cost.short : null;
  $("short").hidden = !short;
  $("short").textContent = short ? `So far it ran short: ${short}.` : "";
}

function tile(id, value, sub, level = "") {
  $(`v-${id}`).textContent = value;
  $(`s-${id}`).textContent = sub || "\u00a0";
  $(`v-${id}`).closest(".tile").className = `tile ${level}`;
}

function drawTiles(run, now) {
  const next = now.outlook ? now.outlook.mean[0] : null;
  const upper = now.outlook && now.outlook.upper ? `, up to ${number(now.outlook.upper[0])}` : "";
  tile("load", number(now.load), next === null ? "no forecast yet" : `next ${number(next)}${upper}`);
  drawReplicas(run, now);
  const latency = now.latency;
  const [p99, target] = [latency && latency.p99_ms, run.target_latency_ms];
  const within = latency && latency.within_share !== null ? `${percent(latency.within_share)} within target` : target !== null ? `target ${milliseconds(target)}` : "";
  tile("latency", milliseconds(p99), within, p99 !== null && target !== null && p99 > target ? "hot" : "");
  const seconds = now.backlog !== null && now.load > 0 ? now.backlog / now.load : null;
  tile("backlog", number(now.backlog === null ? null : Math.round(now.backlog)), seconds === null ? "" : seconds < 0.05 ? "nothing waits" : `${milliseconds(seconds * 1000)} of load`, seconds > 10 ? "hot" : seconds > 3 ? "warm" : "");
  const { saved_share: saved, short } = now.cost;
  const dearer = saved !== null && saved < 0;
  $("h-saved").textContent = dearer ? "Extra cost" : "Saved";
  tile("saved", percent(dearer ? -saved : saved), short ? "ran short" : "against static peak", dearer ? "warm" : saved > 0 ? "good" : "");
}

// An attached application scales executors; its queries share their task slots.
function drawReplicas(run, now) {
  const plan = now.planned !== null && now.planned !== now.replicas ? `, plan ${now.planned}` : "";
  if (run.shared_slots) {
    $("h-replicas").textContent = "Executors";
    $("c-replicas").querySelector("h2").textContent = "Slots against need";
    const need = now.need === null ? "" : `, need ${now.need}`;
    tile("replicas", number(now.executors), now.replicas === null ? "" : `${plural(now.replicas, "slot")}${need}`);
    return;
  }
  const most = run.operators.reduce((sum, o) => sum + o.max_replicas, 0);
  const over = run.operators.filter((o) => now.operators[o.name] && now.operators[o.name].need > o.max_replicas).map((o) => o.name);
  const limit = over.length ? `, above the maximum of ${over.join(", ")}` : "";
  tile("replicas", number(now.replicas), now.need === null ? "" : `need ${now.need}${plan}${limit}`, over.length || now.need > most ? "hot" : "");
}

// The newest window in words: of the operator that is selected, or of the whole run.
function drawFacts(run, now) {
  const of = page.operator ? [page.operator] : Object.keys(now.operators);
  const ops = of.map((name) => now.operators[name]).filter(Boolean);
  const known = (field) => ops.map((o) => o[field]).filter((v) => v !== null && v !== undefined);
  const sum = (field) => (known(field).length ? known(field).reduce((a, b) => a + b, 0) : null);
  const slowest = known("batch_s").length ? Math.max(...known("batch_s")) : null;
  const watermark = known("watermark_at").length ? Math.min(...known("watermark_at")) : null;
  const input = page.operator ? ops[0] && ops[0].rate : now.load;
  const output = page.operator ? ops[0] && ops[0].processed : now.processed;
  const facts = [
    ["input", input === null || input === undefined ? null : `${number(input)}/s`],
    ["processing", output === null || output === undefined ? null : `${number(output)}/s`],
    [page.operator ? "batch duration" : "longest batch", slowest === null ? null : milliseconds(slowest * 1000)],
    ["state", sum("state_rows") === null ? null : `${plural(sum("state_rows"), "row")}, ${bytes(sum("state_bytes"))}`],
    ["watermark", watermark === null || watermark <= 0 ? null : `${span(Math.max(0, now.at - watermark))} behind`],
    ["executors", now.executors === null ? null : number(now.executors)],
    ["task slots", now.slots === null ? null : number(now.slots), "tasks that Spark can run at once; a local master has that many threads on this machine's cores"],
    ["lead time", now.lead_s === null ? null : milliseconds(now.lead_s * 1000)],
    ["model error", now.model_error === null ? null : `${number(100 * now.model_error)} %`],
  ];
  $("facts").replaceChildren(...facts.filter(([, value]) => value !== null).map(([name, value, meaning]) => {
    const item = Object.assign(document.createElement("div"), { title: meaning || "" });
    item.append(Object.assign(document.createElement("dt"), { textContent: name }), Object.assign(document.createElement("dd"), { textContent: value }));
    return item;
  }));
}

function drawCharts(run, now) {
  const base = page.range === "whole" && page.whole ? page.whole : page.recent;
  if (!base || !base.at.length) return;
  const detail = page.operator && page.detail && page.detail.range === base.range ? page.detail : null;
  const perSecond = now.cost.static_peak === null || !now.seconds ? null : now.cost.static_peak / now.seconds;
  const columns = {
    ...base.channels,
    target: base.at.map(() => run.target_latency_ms),
    peak: base.channels.seconds.map((s) => (s === null || perSecond === null || now.cost.short ? null : s * perSecond)),
  };
  const p99 = base.channels.p99_ms.reduce((most, v) => Math.max(most, v || 0), 0);
  const log = run.target_latency_ms !== null && p99 > 8 * run.target_latency_ms && base.channels.p50_ms.every((v) => v === null || v > 0);
  for (const chart of charts) {
    const own = detail && (chart.id === "c-load" || chart.id === "c-replicas");
    if (own) chart.show(detail.at, detail.channels, { operator: page.operator });
    else if (chart.id === "c-load") chart.show(...withOutlook(base, columns, run, now), { now: now.at });
    else chart.show(base.at, columns, { log: chart.id === "c-latency" && log });
  }
  $("scope").hidden = !page.operator;
  $("scope").textContent = page.operator ? `${page.operator}  ✕` : "";
  const merged = base.windows_per_point > 1 ? `, ${base.windows_per_point} windows per point` : "";
  $("span").textContent = `${span(base.at[base.at.length - 1] - base.at[0])}${merged}`;
}

// The load chart looks ahead: the forecast for the windows that come is drawn after the newest point.
function withOutlook(base, columns, run, now) {
  if (!now.outlook) return [base.at, columns];
  const last = base.at[base.at.length - 1];
  const ahead = now.outlook.mean.map((_, i) => last + (i + 1) * run.window_s);
  const none = ahead.map(() => null);
  return [
    [...base.at, ...ahead],
    {
      load: [...columns.load, ...none],
      forecast: [...columns.forecast, ...now.outlook.mean],
      upper: [...columns.upper, ...(now.outlook.upper || none)],
      processed: [...columns.processed, ...none],
    },
  ];
}

// ---- what a person does ----

function choose(name) {
  page.operator = name;
  page.detail = null;
  $("graph-hint").textContent = name ? `the charts show ${name}` : "select an operator to see its charts";
  load();
}

function pick(range) {
  page.range = range;
  page.detail = page.whole = null;
  for (const button of $("range").querySelectorAll("button")) button.setAttribute("aria-pressed", String(button.dataset.range === range));
  load();
}

// Asks for the token; resolves to true when one was given.
function askToken(why, error = "") {
  const dialog = $("token-dialog");
  $("token-why").textContent = why;
  $("token-error").textContent = error;
  $("token").value = "";
  dialog.showModal();
  return new Promise((resolve) => {
    const end = (given) => {
      $("token-form").onsubmit = $("token-cancel").onclick = dialog.oncancel = null;
      dialog.close();
      resolve(given);
    };
    $("token-form").onsubmit = (event) => {
      event.preventDefault();
      token.set($("token").value.trim());
      end(true);
    };
    $("token-cancel").onclick = () => end(false);
    dialog.oncancel = () => end(false);
  });
}

const PRINTED = "It was printed where this dashboard was started.";

async function setMode(mode, error = "") {
  if (!token.get() || error) {
    if (!(await askToken(`Changing the mode needs the token. ${PRINTED}`, error))) return;
  }
  const answer = await ask("/api/mode", { method: "PUT", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ mode }) });
  if (answer.status === 401) {
    token.forget();
    await setMode(mode, "That token is not right.");
  } else if (!answer.ok) {
    $("notice").hidden = false;
    $("notice").textContent = (await answer.json()).error;
  }
}

for (const button of $("mode").querySelectorAll("button")) button.addEventListener("click", () => setMode(button.dataset.mode));
for (const button of $("range").querySelectorAll("button")) button.addEventListener("click", () => pick(button.dataset.range));
$("scope").addEventListener("click", () => choose(null));
$("theme").addEventListener("click", () => window.foretideTheme.toggle());

follow({
  state: onState,
  tick: onTick,
  open: () => {},
  token: async () => {
    const wrong = token.get() ? "That token is not right." : "";
    token.forget();
    while (!(await askToken(`Reading needs the token. ${PRINTED}`, wrong)));
  },
  lost: (why) => {
    $("status").className = "status lost";
    $("status-text").textContent = "connection lost, trying again";
    $("status").title = why || NONE;
  },
});
