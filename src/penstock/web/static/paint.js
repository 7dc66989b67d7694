// Helpers that build the pages. Values are inserted as text only, so that what callers sent never becomes markup.

export const at = (id) => document.getElementById(id);

export const money = (usd) => `$${Number(usd ?? 0).toFixed(6).replace(/(\.\d\d\d*?)0+$/, "$1")}`;
export const took = (ms) => (ms == null ? "" : ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`);
export const moment = (text) => new Date(text).toLocaleString();

export function element(name, text, { kind = "", ...rest } = {}) {
  return Object.assign(document.createElement(name), { textContent: text, className: kind, ...rest });
}

export function button(text, does, { kind = "", of = "", label = "" } = {}) {
  const made = element("button", text, { type: "button", kind, value: of });
  if (label) made.setAttribute("aria-label", label);
  made.addEventListener("click", does);
  return made;
}

export function row(...cells) {
  const made = document.createElement("tr");
  for (const [content, kind] of cells) {
    const cell = element("td", "", { kind: kind ?? "" });
    cell.append(...[content].flat());
    made.append(cell);
  }
  return made;
}

// Replaces the rows of a table, unless nothing changed; the keyboard focus stays on the same button.
export function fill(body, rows) {
  const names = [...body.parentElement.tHead.rows[0].cells].map((one) => one.textContent);
  for (const one of rows) [...one.cells].forEach((cell, place) => { cell.dataset.name = names[place]; });
  if (rows.length === body.rows.length && rows.every((one, place) => one.isEqualNode(body.rows[place]))) return;
  const held = body.contains(document.activeElement) ? document.activeElement : null;
  body.replaceChildren(...rows);
  if (!held) return;
  const same = [...body.querySelectorAll("button")].find((one) => one.value === held.value && one.textContent === held.textContent);
  same?.focus();
}

export function show(record, pictures = []) {
  at("record").textContent = JSON.stringify(record, null, 2);
  at("seen").replaceChildren(...pictures);
  if (!at("detail").open) at("detail").showModal();
}

// Asks the user to confirm; resolves to true or false. The Escape key means no.
export function sure(question, verb) {
  at("question").textContent = question;
  at("yes").textContent = verb;
  at("sure").returnValue = "";
  at("sure").showModal();
  at("no").focus();
  return new Promise((done) => {
    at("sure").addEventListener("close", () => done(at("sure").returnValue === "yes"), { once: true });
  });
}

export function say(place, words, { bad = false } = {}) {
  at(place).textContent = words;
  at(place).classList.toggle("bad", bad);
}

// Copies a field. Browsers allow this only for pages from TLS or from this machine; elsewhere the text is selected.
export async function copy(field, place) {
  field.focus();
  field.select();
  try {
    await navigator.clipboard.writeText(field.value);
    say(place, "Copied.");
  } catch {
    say(place, document.execCommand("copy") ? "Copied." : "The text is selected; copy it with the keyboard.");
  }
}

// A list that is read page by page, and its two buttons.
export class Pages {
  constructor(first, newer, older, turned) {
    Object.assign(this, { first, newer, older, path: null, neighbours: {} });
    newer.addEventListener("click", () => this.turn("previous_page_url", turned));
    older.addEventListener("click", () => this.turn("next_page_url", turned));
  }

  // Reads the current page; if it is empty or its cursor was deleted, the first page.
  async read(ask) {
    if (this.path) {
      const list = await ask(this.path).catch((problem) => { if (problem.status !== 404) throw problem; });
      if (list?.data.length) return list;
      this.restart();
    }
    return ask(this.first());
  }

  turn(where, turned) {
    const { pathname, search } = new URL(this.neighbours[where], location.href); // the host may differ from ours
    this.path = pathname + search;
    turned();
  }

  seen(list) {
    this.neighbours = list;
    this.newer.disabled = !list.previous_page_url;
    this.older.disabled = !list.next_page_url;
  }

  restart() {
    this.path = null;
  }
}
