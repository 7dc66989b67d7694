// The first page: balance and spending, a form to generate an image, requests, and the health of providers.

import { ask, explain, providers } from "./gateway.js";
import { Pages, at, button, element, fill, moment, money, row, say, show, took } from "./paint.js";

const STATUSES = ["completed", "processing", "pending", "upstream_failure", "rejected", "cancelled"];
const COLOURS = { completed: "good", upstream_failure: "bad", rejected: "bad" };

export function overview(refresh) {
  const pages = new Pages(
    () => `/v1/requests?limit=20&summary=true${at("status").value && `&status=${at("status").value}`}`,
    at("newer"), at("older"), refresh,
  );
  at("status").replaceChildren(element("option", "all", { value: "" }), ...STATUSES.map((one) => element("option", one)));
  at("status").addEventListener("change", () => { pages.restart(); refresh(); });
  at("try").addEventListener("submit", async (event) => {
    event.preventDefault();
    await make();
    refresh();
  });

  return {
    polls: true,

    async load() {
      const midnight = new Date();
      midnight.setHours(0, 0, 0, 0);
      const since = encodeURIComponent(midnight.toISOString());
      const [balance, today, requests, health] = await Promise.all([
        ask("/v1/balance"), ask(`/v1/requests?limit=1&summary=true&created_after=${since}`), pages.read(ask), providers(),
      ]);
      return { balance, today, requests, health };
    },

    paint({ balance, today, requests, health }) {
      paintFigures(balance, today.summary);
      pages.seen(requests);
      paintRequests(requests);
      paintProviders(health);
    },

    clear() {
      pages.restart();
      at("requests").replaceChildren();
      at("providers").replaceChildren();
      at("figures").replaceChildren();
      at("pictures").replaceChildren();
      say("made", "");
    },
  };
}

function paintFigures(balance, today) {
  const figures = [
    balance.billing_type === "prepaid" ? [money(balance.available.amount), "available"] : ["Postpaid", "billing"],
    [money(today.total_cost), "spent today"], [String(today.count), "requests today"],
  ];
  at("figures").replaceChildren(...figures.map(([value, words]) => {
    const figure = document.createElement("div");
    figure.append(element("strong", value), element("span", words));
    return figure;
  }));
}

function paintRequests(list) {
  if (list.summary) at("sum").textContent = `${list.summary.count} in total, ${money(list.summary.total_cost)}`;
  fill(at("requests"), list.data.map((one) => row(
    [moment(one.created_at)], [one.model ?? "", "words"], [one.status, COLOURS[one.status] ?? "quiet"],
    [money(one.cost), "number"], [took(one.duration_ms), "number"], [button(one.id, () => show(one), { of: one.id })],
  )));
}

function paintProviders(all) {
  at("providers-part").hidden = all === null; // a key without the operator scope
  if (all === null) return;
  const rows = all.filter((one) => one.on).flatMap((provider) => {
    if (!provider.health.length) return [row([provider.name], [`${provider.models} models`, "quiet"], ["not called yet", "quiet"], [""], [""], [""])];
    return provider.health.map((one) => row(
      [provider.name], [one.model, "words"],
      one.well ? ["healthy", "good"] : [`paused for ${Math.ceil(one.well_in_seconds)} s`, "bad"],
      [String(one.good), "number"], [String(one.bad), "number"], [one.last_problem ?? "", "quiet words"],
    ));
  });
  fill(at("providers"), rows);
  const off = all.filter((one) => !one.on).map((one) => one.name);
  at("off").textContent = off.length ? `Off, or without a credential: ${off.join(", ")}.` : "";
}

// --------------------------------------------------------------------------------------------------------- generating

export async function showModels() {
  const list = await ask("/compat/v1/models");
  const models = list.data.filter((one) => (one.modes ?? []).includes("text-to-image"));
  at("model").replaceChildren(...models.map((model) => element("option", model.id)));
}

async function make() {
  say("made", "Generating…");
  const began = performance.now();
  try {
    const body = { model: at("model").value, prompt: at("prompt").value, size: at("size").value };
    const made = await ask("/compat/v1/images/generations", { method: "POST", body });
    at("pictures").replaceChildren(...made.data.map((one) => element("img", "", { src: one.url, alt: at("prompt").value })));
    say("made", `${made.size ?? ""} in ${took(Math.round(performance.now() - began))}`);
  } catch (problem) {
    say("made", explain(problem), { bad: true });
  }
}
