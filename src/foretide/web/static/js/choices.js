// What other shares of the events within the target would have cost on the load so far: a bar for each.
import { NONE, instant, milliseconds, percent } from "./format.js";

export function showChoices(card, run, choices) {
  card.hidden = !choices;
  if (!choices) return;
  const promised = run.share === null ? null : choices.costs[choices.shares.indexOf(run.share)] ?? null;
  const most = Math.max(...choices.costs);
  card.querySelector("ol").replaceChildren(...choices.shares.map((share, i) => row(share, choices.costs[i], promised, most, share === run.share)));
  const target = run.target_latency_ms === null ? "the target" : milliseconds(run.target_latency_ms);
  card.querySelector("#choices-hint").textContent = `share within ${target}, and replicas for each busy one, on the load until ${instant(choices.at)}`;
  card.querySelector("#choices-sentence").textContent = choices.sentence;
}

function row(share, cost, promised, most, own) {
  const item = document.createElement("li");
  item.className = own ? "promised" : "";
  const label = Object.assign(document.createElement("span"), { textContent: percent(share) });
  const track = Object.assign(document.createElement("span"), { className: "track" });
  const level = Object.assign(document.createElement("span"), { className: "level" });
  level.style.width = `${(100 * cost) / most}%`;
  track.append(level);
  const beside = own ? "promised" : promised === null ? "" : change(cost / promised - 1);
  const value = Object.assign(document.createElement("span"), { textContent: [cost.toFixed(2), beside].filter(Boolean).join(", ") });
  item.append(label, track, value);
  return item;
}

function change(by) {
  const rounded = Math.round(100 * Math.abs(by));
  if (!Number.isFinite(by)) return NONE;
  return rounded ? `${rounded} % ${by > 0 ? "more" : "less"}` : "as much";
}
