// The dashboard. Everything shown is put there as text: what callers and providers said never becomes markup.

const REFRESH_MS = 5000;
const STATUSES = ["completed", "processing", "pending", "upstream_failure", "rejected", "cancelled"];
const at = (id) => document.getElementById(id);
const state = { key: sessionStorage.getItem("key"), page: "", pages: {}, admin: true, timer: 0 };

class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function ask(path, options = {}) {
  const headers = { authorization: `Bearer ${state.key}`, ...(options.body && { "content-type": "application/json" }) };
  const answer = await fetch(path, { ...options, headers });
  const body = await answer.json();
  if (!answer.ok) throw new Refused(answer.status, body.error?.message ?? `The gateway answered ${answer.status}.`);
  return body;
}

function element(name, text, { kind = "", ...rest } = {}) {
  return Object.assign(document.createElement(name), { textContent: text, className: kind, ...rest });
}

function row(...cells) {
  const made = document.createElement("tr");
  for (const [content, kind] of cells) {
    const cell = element("td", "", { kind: kind ?? "" });
    cell.append(content);
    made.append(cell);
  }
  return made;
}

const money = (usd) => `$${Number(usd ?? 0).toFixed(6).replace(/(\.\d\d\d*?)0+$/, "$1")}`;
const took = (ms) => (ms == null ? "" : ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`);
const moment = (text) => new Date(text).toLocaleString();

// ------------------------------------------------------------------------------------------------------------ figures

async function showFigures() {
  const midnight = new Date();
  midnight.setHours(0, 0, 0, 0);
  const since = encodeURIComponent(midnight.toISOString());
  const [balance, today] = await Promise.all([
    ask("/v1/balance"), ask(`/v1/requests?limit=1&summary=true&created_after=${since}`),
  ]);
  const figures = [
    balance.billing_type === "prepaid" ? [money(balance.available.amount), "available"] : ["Billed", "after use"],
    [money(today.summary.total_cost), "spent today"], [String(today.summary.count), "requests today"],
  ];
  at("figures").replaceChildren(...figures.map(([value, words]) => {
    const figure = document.createElement("div");
    figure.append(element("strong", value), element("span", words));
    return figure;
  }));
}

// ----------------------------------------------------------------------------------------------------------- requests

const COLOURS = { completed: "good", upstream_failure: "bad", rejected: "bad" };

async function showRequests() {
  const status = at("status").value;
  const first = `/v1/requests?limit=20&summary=true${status && `&status=${status}`}`;
  const list = await ask(state.page || first);
  state.pages = { older: list.next_page_url, newer: list.previous_page_url };
  at("older").disabled = !list.next_page_url;
  at("newer").disabled = !list.previous_page_url;
  if (list.summary) at("sum").textContent = `${list.summary.count} in all, ${money(list.summary.total_cost)}`;
  at("requests").replaceChildren(...list.data.map((one) => {
    const id = element("button", one.id, { type: "button" });
    id.addEventListener("click", () => show(one));
    return row(
      [moment(one.created_at)], [one.model ?? ""], [one.status, COLOURS[one.status] ?? "quiet"],
      [money(one.cost), "number"], [took(one.duration_ms), "number"], [id],
    );
  }));
}

function show(record) {
  at("record").textContent = JSON.stringify(record, null, 2);
  at("detail").showModal();
}

function turn(where) {
  const { pathname, search } = new URL(state.pages[where], location.href); // wherever the gateway thinks that it is
  state.page = pathname + search;
  refresh();
}

// ---------------------------------------------------------------------------------------------------------- providers

async function showProviders() {
  if (!state.admin) return;
  let list;
  try {
    list = await ask("/v1/providers");
  } catch (problem) {
    if (problem.status !== 403) throw problem;
    state.admin = false; // a key without that scope sees everything else
    return;
  }
  const on = list.data.filter((one) => one.on);
  at("providers").replaceChildren(...on.flatMap((provider) => {
    if (!provider.health.length) return [row([provider.name], [`${provider.models} models`, "quiet"], ["not called yet", "quiet"], [""], [""], [""])];
    return provider.health.map((one) => row(
      [provider.name], [one.model],
      one.well ? ["well", "good"] : [`rests for ${Math.ceil(one.well_in_seconds)} s`, "bad"],
      [String(one.good), "number"], [String(one.bad), "number"], [one.last_problem ?? "", "quiet"],
    ));
  }));
  const off = list.data.filter((one) => !one.on).map((one) => one.name);
  at("off").textContent = off.length ? `Without a credential or switched off: ${off.join(", ")}.` : "";
  at("providers-part").hidden = false;
}

// ------------------------------------------------------------------------------------------------------------- trying

async function showModels() {
  const list = await ask("/compat/v1/models");
  const pictures = list.data.filter((one) => (one.modes ?? []).includes("text-to-image"));
  at("model").replaceChildren(...pictures.map((one) => element("option", one.id)));
}

async function make(event) {
  event.preventDefault();
  at("made").textContent = "Under way…";
  at("made").className = "quiet";
  const began = performance.now();
  try {
    const body = JSON.stringify({ model: at("model").value, prompt: at("prompt").value, size: at("size").value });
    const made = await ask("/compat/v1/images/generations", { method: "POST", body });
    at("pictures").replaceChildren(...made.data.map((one) => element("img", "", { src: one.url, alt: at("prompt").value })));
    at("made").textContent = `${made.size ?? ""} in ${took(Math.round(performance.now() - began))}`;
  } catch (problem) {
    at("made").textContent = problem.message;
    at("made").className = "bad";
  }
  refresh();
}

// ------------------------------------------------------------------------------------------------------ coming, going

async function refresh() {
  clearTimeout(state.timer);
  try {
    if (!document.hidden) await Promise.all([showFigures(), showRequests(), showProviders()]);
    at("ready").textContent = "";
  } catch (problem) {
    if (problem.status === 401) return leave(problem.message);
    at("ready").textContent = problem instanceof Refused ? problem.message : "The gateway cannot be reached.";
  }
  state.timer = setTimeout(refresh, REFRESH_MS);
}

async function enter() {
  try {
    await showModels();
  } catch (problem) {
    return leave(problem instanceof Refused ? problem.message : "The gateway cannot be reached.");
  }
  sessionStorage.setItem("key", state.key);
  at("door").hidden = true;
  at("house").hidden = at("leave").hidden = false;
  await refresh();
}

function leave(why = "") {
  clearTimeout(state.timer);
  sessionStorage.removeItem("key");
  Object.assign(state, { key: null, page: "", admin: true });
  at("refusal").textContent = why;
  at("house").hidden = at("leave").hidden = true;
  at("requests").replaceChildren();
  at("pictures").replaceChildren();
  at("door").hidden = false;
}

at("status").replaceChildren(element("option", "all", { value: "" }), ...STATUSES.map((one) => element("option", one)));
at("enter").addEventListener("submit", (event) => {
  event.preventDefault();
  state.key = at("key").value.trim();
  at("key").value = "";
  enter();
});
at("leave").addEventListener("click", () => leave());
at("try").addEventListener("submit", make);
at("status").addEventListener("change", () => { state.page = ""; refresh(); });
at("older").addEventListener("click", () => turn("older"));
at("newer").addEventListener("click", () => turn("newer"));
document.addEventListener("visibilitychange", () => { if (state.key && !document.hidden) refresh(); });
if (state.key) enter();
