// The dashboard: sign in with a key, switch between pages, refresh them, sign out.

import { explain, forget, hasKey, hold, keep } from "./gateway.js";
import { keys } from "./keys.js";
import { overview, showModels } from "./overview.js";
import { at } from "./paint.js";
import { recordings } from "./recordings.js";
import { webhooks } from "./webhooks.js";

const REFRESH_MS = 5000;
const pages = { overview: overview(refresh), keys: keys(refresh), recordings: recordings(refresh), webhooks: webhooks() };
const links = [...document.querySelectorAll("nav a")];
let current = "overview";
let round = 0; // results that arrive after a newer refresh has begun are dropped
let timer = 0;

async function refresh() {
  clearTimeout(timer);
  if (at("house").hidden) return;
  const mine = ++round;
  const page = pages[current];
  let again = page.polls;
  try {
    const seen = document.hidden ? null : await page.load();
    if (mine !== round) return;
    if (seen) page.paint(seen);
    at("ready").textContent = "";
  } catch (problem) {
    if (mine !== round) return;
    if (problem.status === 401) return leave(problem.message);
    at("ready").textContent = explain(problem);
    again = true;
  }
  if (again) timer = setTimeout(refresh, REFRESH_MS);
}

function turn() {
  const name = location.hash.slice(1);
  current = Object.hasOwn(pages, name) ? name : "overview";
  for (const link of links) {
    const here = link.hash === `#${current}`;
    at(`${link.hash.slice(1)}-page`).hidden = !here;
    if (here) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
    if (here) document.title = current === "overview" ? "Penstock" : `${link.textContent} · Penstock`;
  }
  return refresh();
}

async function enter() {
  const mine = ++round;
  try {
    await showModels();
  } catch (problem) {
    if (mine === round) leave(explain(problem));
    return;
  }
  if (mine !== round) return;
  keep();
  at("door").hidden = true;
  inside(true);
  await turn();
}

function leave(why = "") {
  clearTimeout(timer);
  round += 1;
  forget();
  for (const page of Object.values(pages)) page.clear();
  for (const dialog of document.querySelectorAll("dialog")) dialog.close();
  at("refusal").textContent = why;
  at("ready").textContent = "";
  inside(false);
  at("door").hidden = false;
  at("key").focus();
}

function inside(yes) {
  for (const id of ["house", "leave", "pages"]) at(id).hidden = !yes;
}

at("enter").addEventListener("submit", (event) => {
  event.preventDefault();
  hold(at("key").value.trim());
  at("key").value = "";
  enter();
});
at("leave").addEventListener("click", () => leave());
window.addEventListener("hashchange", () => { if (!at("house").hidden) turn(); });
document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
if (hasKey()) enter();
