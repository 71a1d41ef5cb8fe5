// Decisions, newest first: what was to change, why, and what the guards made of it.
import { instant } from "./format.js";
import { ask } from "./stream.js";

const KEPT = 300;
const PAGE = 30;
const SHOWN = 4;
const HELD = 2;

function element(tag, kind, text) {
  const made = document.createElement(tag);
  if (kind) made.className = kind;
  if (text !== undefined) made.textContent = text;
  return made;
}

export class Feed {
  constructor() {
    this.list = document.getElementById("feed");
    this.older = document.getElementById("older");
    this.every = document.getElementById("every");
    this.older.addEventListener("click", () => this.page());
    this.every.addEventListener("change", () => this.reload());
    this.oldest = null;
  }

  reset(decisions) {
    if (this.every.checked) {
      this.reload();
      return;
    }
    this.list.replaceChildren();
    this.oldest = null;
    this.add(decisions);
    this.older.hidden = decisions.length < PAGE;
  }

  async reload() {
    this.list.replaceChildren();
    this.oldest = null;
    await this.page();
  }

  async page() {
    const before = this.oldest === null ? "" : `&before=${this.oldest}`;
    const answer = await ask(`/api/decisions?limit=${PAGE}&changes=${!this.every.checked}${before}`);
    if (!answer.ok) return;
    const { decisions, first } = await answer.json();
    for (const decision of decisions.reverse()) this.list.append(this.item(decision));
    if (decisions.length) this.oldest = decisions[decisions.length - 1].seq;
    this.older.hidden = decisions.length < PAGE || this.oldest <= first;
    this.empty();
  }

  // New decisions, oldest first, go to the top.
  add(decisions) {
    for (const decision of decisions) {
      this.list.prepend(this.item(decision));
      this.oldest = this.oldest === null ? decision.seq : Math.min(this.oldest, decision.seq);
    }
    while (this.list.children.length > KEPT) this.list.lastChild.remove();
    this.empty();
  }

  async tick(decisions, points) {
    if (this.every.checked && points) {
      const newest = this.list.firstChild && this.list.firstChild.dataset.seq;
      const answer = await ask(`/api/decisions?since=${newest ? Number(newest) + 1 : 0}&limit=50`);
      if (answer.ok) this.add((await answer.json()).decisions);
    } else {
      this.add(decisions);
    }
  }

  empty() {
    const note = this.list.querySelector(".none");
    if (note) note.parentElement.remove();
    if (this.list.children.length) return;
    const item = element("li");
    item.append(element("p", "none", "No replicas had to change so far."));
    this.list.append(item);
  }

  item(decision) {
    const item = element("li");
    item.dataset.seq = decision.seq;
    const when = element("p", "when");
    const held = decision.outcome === "unchanged" && decision.changes.length > 0;
    when.append(element("span", `badge ${decision.outcome}`, held ? "held back" : decision.outcome), element("time", "", instant(decision.at)));
    item.append(when);
    if (decision.error) item.append(element("p", decision.outcome === "failed" ? "fault" : "none", decision.error));
    const changes = decision.changes.filter((c) => c.running !== c.planned);
    const kept = decision.changes.filter((c) => c.running === c.planned);
    this.group(item, changes, SHOWN, (n) => `and ${n} more`);
    this.group(item, kept, kept.length > HELD ? 0 : HELD, (n) => `guards held back ${n === 1 ? "1 operator" : `${n} operators`}`);
    if (decision.note) item.append(element("p", "change why", decision.note));
    if (!decision.changes.length && !decision.error && !decision.note) item.append(element("p", "none", "Replicas stay as they are."));
    return item;
  }

  // The first few at once, the others behind a line that says how many.
  group(item, changes, shown, say) {
    changes.slice(0, shown).forEach((change) => item.append(this.change(change)));
    if (changes.length <= shown) return;
    const more = element("details");
    more.append(element("summary", "", say(changes.length - shown)));
    changes.slice(shown).forEach((change) => more.append(this.change(change)));
    item.append(more);
  }

  change(change) {
    const line = element("p", "change");
    const arrow = change.running === change.planned ? `stays at ${change.planned}` : `${change.running ?? "?"} → ${change.planned}`;
    line.append(element("b", "", change.operator), " ", element("span", "arrow", arrow));
    if (change.reason) line.append(" ", element("span", "why", change.reason));
    if (change.guards !== null) line.append(element("span", "guard", `guards: ${change.proposed} proposed; ${change.guards}`));
    return line;
  }
}
