/* Truth and forecasts of the test part, for one step ahead at a time. */
const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const shown = new Set(data.models.slice(0, 2).map((_, i) => i));
let step = 0,
  drawn = null;
const clockwork = timeline(data.started_at);

function button(text, pressed, press, tone) {
  const made = document.createElement("button");
  made.type = "button";
  made.setAttribute("aria-pressed", String(pressed));
  if (tone) {
    made.style.setProperty("--tone", tone);
    made.append(document.createElement("i"));
  }
  made.append(text);
  made.addEventListener("click", () => press(made));
  return made;
}

function draw() {
  drawn?.destroy();
  const box = $("chart"), axis = { stroke: css("--soft"), grid: { stroke: css("--grid"), width: 1 }, ticks: { stroke: css("--grid"), width: 1 }, font: "11px system-ui" };
  const lines = [{ label: "load /s", values: data.truth, stroke: css("--ink"), width: 1.2 }];
  data.models.forEach((m, i) => shown.has(i) && lines.push({ label: m.model, values: m.mean[step], stroke: css(`--c${i % 10}`), width: 1.5 }));
  const first = data.models.findIndex((_, i) => shown.has(i));
  if (first >= 0 && data.models[first].upper[step].some((v) => v !== null))
    lines.push({ label: `${data.models[first].model}, upper`, values: data.models[first].upper[step], stroke: css(`--c${first % 10}`), dash: [2, 4], width: 1 });
  drawn = new uPlot({
    width: Math.max(260, box.clientWidth), height: 360, scales: { x: { time: false }, y: { range: (_, lo, hi) => [0, hi * 1.05 || 1] } },
    axes: [{ ...axis, ...clockwork.axis }, { ...axis, size: 70 }],
    series: [{ label: "time", value: (_, v) => (v === null ? "–" : clockwork.write(v)) }, ...lines.map(({ values, ...line }) => ({ spanGaps: false, points: { show: false }, ...line }))],
  }, [data.window.map((w) => clockwork.at(w * data.interval_s)), ...lines.map((l) => l.values)], box);
  drawn.root.setAttribute("role", "img");
  drawn.root.setAttribute("aria-label", "forecast against truth");
  box.dataset.drawn = "true";
}

function theme(name) {
  document.documentElement.dataset.theme = name;
  draw();
}

data.models.forEach((m, i) => $("models").append(button(m.model, shown.has(i), (made) => {
  if (!shown.delete(i)) shown.add(i);
  made.setAttribute("aria-pressed", String(shown.has(i)));
  draw();
}, `var(--c${i % 10})`)));
data.steps.forEach((ahead, i) => $("steps").append(button(`${ahead} ahead`, i === 0, () => {
  step = i;
  [...$("steps").children].forEach((b, j) => b.setAttribute("aria-pressed", String(j === i)));
  draw();
})));
for (const [name, why] of Object.entries(data.left_out)) {
  const line = document.createElement("p");
  line.textContent = `Left out: ${name}: ${why}`;
  $("left-out").append(line);
}
const dark = matchMedia("(prefers-color-scheme: dark)");
$("theme").addEventListener("click", () => theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
dark.addEventListener("change", () => theme(dark.matches ? "dark" : "light"));
theme(dark.matches ? "dark" : "light");
addEventListener("resize", () => drawn.setSize({ width: Math.max(260, $("chart").clientWidth), height: 360 }));
