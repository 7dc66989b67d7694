// The dashboard: sign in, the frame with its navigation, and the page that the URL names.

import { useData } from "./data.js";
import { ask, explain } from "./gateway.js";
import { money } from "./format.js";
import { Icon } from "./parts/icons.js";
import { Confirm, Head, Loading } from "./parts/controls.js";
import { SignIn } from "./pages/sign_in.js";
import { AuditLog } from "./pages/audit_log.js";
import { Batches } from "./pages/batches.js";
import { Destinations } from "./pages/destinations.js";
import { Drill } from "./pages/drill.js";
import { Guards } from "./pages/guards.js";
import { Keys } from "./pages/keys.js";
import { Labels } from "./pages/labels.js";
import { Library } from "./pages/library.js";
import { Models } from "./pages/models.js";
import { Organizations } from "./pages/organizations.js";
import { Overview } from "./pages/overview.js";
import { People } from "./pages/people.js";
import { Playground } from "./pages/playground.js";
import { Providers } from "./pages/providers.js";
import { Recordings } from "./pages/recordings.js";
import { Requests } from "./pages/requests.js";
import { Settings } from "./pages/settings.js";
import { Trials } from "./pages/trials.js";
import { Verify } from "./pages/verify.js";
import { Webhooks } from "./pages/webhooks.js";
import { pageUrl, useRoute } from "./route.js";
import { endSession, onSessionChange, startSession } from "./session.js";
import { applyTheme, ThemeSwitch } from "./theme.js";
import { html, render, useEffect, useState } from "./view.js";

// Each page: its name in the URL, its label, its icon, its component, and the scopes of which one is needed to see it.
const GROUPS = [
  [
    { name: "overview", label: "Overview", icon: "chart", page: Overview },
    { name: "playground", label: "Playground", icon: "play", page: Playground },
    { name: "library", label: "Library", icon: "wall", page: Library },
    { name: "requests", label: "Requests", icon: "list", page: Requests },
    { name: "batches", label: "Batches", icon: "stack", page: Batches },
    { name: "trials", label: "Trials", icon: "star", page: Trials },
  ],
  [
    { name: "models", label: "Models", icon: "cube", page: Models },
    { name: "providers", label: "Providers", icon: "plug", page: Providers, scope: "admin operator" },
    { name: "recordings", label: "Recordings", icon: "tape", page: Recordings },
    { name: "destinations", label: "Destinations", icon: "stack", page: Destinations, scope: "admin" },
    { name: "guards", label: "Guards", icon: "shield", page: Guards, scope: "admin operator" },
    { name: "webhooks", label: "Webhooks", icon: "hook", page: Webhooks },
    { name: "keys", label: "Keys", icon: "key", page: Keys },
    { name: "labels", label: "Labels", icon: "sliders", page: Labels },
    { name: "drill", label: "Drill", icon: "chart", page: Drill },
    { name: "verify", label: "Verify", icon: "seal", page: Verify },
  ],
  [
    { name: "organizations", label: "Organizations", icon: "people", page: Organizations, scope: "operator" },
    { name: "people", label: "People", icon: "people", page: People, scope: "admin" },
    { name: "audit-log", label: "Audit log", icon: "list", page: AuditLog, scope: "admin operator" },
    { name: "settings", label: "Settings", icon: "sliders", page: Settings, scope: "operator" },
  ],
];
const PAGES = GROUPS.flat();
const isOffered = ({ scope }, scopes) => !scope || scope.split(" ").some((each) => scopes.includes(each));
const UNKNOWN = { name: null, page: () => html`<div class="page"><${Head} title="Page not found" about="This page doesn't exist, or your key has no access to it." />
  <div><a class="button" href=${pageUrl("overview")}>Overview</a></div></div>` };

function Navigation({ here, scopes }) {
  const offered = GROUPS.map((group) => group.filter((page) => isOffered(page, scopes)));
  return html`<nav aria-label="Pages">${offered.filter((group) => group.length).map((group, place) => html`<ul key=${place}>
    ${group.map((page) => html`<li key=${page.name}>
      <a href=${pageUrl(page.name)} aria-current=${page.name === here ? "page" : undefined}><${Icon} name=${page.icon} />${page.label}</a>
    </li>`)}</ul>`)}</nav>`;
}

function Balance() {
  const { data } = useData((signal) => ask("/v1/balance", { signal }), [], { every: 15_000 });
  if (!data) return null;
  const prepaid = data.billing_type === "prepaid";
  return html`<span class="soft figures" id="balance">${prepaid ? `${money(data.available.amount)} available` : "Postpaid"}</span>`;
}

// Ends the session at the gateway; the page forgets it in any case.
async function signOut(everywhere) {
  try {
    await ask(`/v1/session?everywhere=${everywhere}`, { method: "DELETE" });
  } finally {
    endSession();
  }
}

// Which organization the session acts in, where there are several.
function Organization({ org, user }) {
  const move = async (id) => {
    await ask("/v1/session/org", { method: "POST", body: { org_id: id } });
    location.reload();
  };
  if (!user || user.organizations.length < 2) return null;
  return html`<select class="narrow" id="org" aria-label="Organization" onChange=${(event) => move(event.target.value)}>
    ${user.organizations.map(({ id, name }) => html`<option key=${id} value=${id} selected=${id === org.id}>${name}</option>`)}</select>`;
}

function Frame({ own, session }) {
  const { org, user } = session;
  const route = useRoute();
  const [open, setOpen] = useState(false);
  const [asked, setAsked] = useState(false); // whether to sign out everywhere
  const named = route.path[0] ? PAGES.find((each) => each.name === route.path[0] && isOffered(each, own.scopes)) : PAGES[0];
  const page = named ?? UNKNOWN;
  useEffect(() => setOpen(false), [route]);
  useEffect(() => window.scrollTo(0, 0), [page.name, route.path[1]]);
  return html`
    <a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); document.querySelector("main h1")?.focus(); }}>Skip to the page</a>
    <div class="frame">
      <header class=${`side ${open ? "open" : ""}`}>
        <a class="brand" href=${pageUrl("")}><img src="/dashboard/icon.svg" alt="" />Penstock</a>
        <button type="button" class="button plain icon menu" aria-label="Menu" aria-expanded=${String(open)}
          onClick=${() => setOpen(!open)}><${Icon} name=${open ? "close" : "menu"} /></button>
        <div class="drawer">
          <${Navigation} here=${page.name} scopes=${own.scopes} />
          <div class="account">
            <div class="who"><strong class="anywhere">${user?.name || user?.email || own.name || `Key …${own.last_four}`}</strong><${Balance} /></div>
            <${Organization} org=${org} user=${user} />
            <a class="soft small" href="/docs">Documentation</a>
            <div class="row ends"><${ThemeSwitch} />
              <button type="button" id="sign-out" class="button plain small" onClick=${() => signOut(false)}>Sign out</button></div>
            <button type="button" id="sign-out-everywhere" class="button plain small" title=${user ? "All your sessions, in every browser, and your keys" : "All sessions of this key, in every browser"}
              onClick=${() => (user ? setAsked(true) : signOut(true))}>Sign out everywhere</button>
          </div>
        </div>
      </header>
      <main id="main"><${page.page} key=${route.path.join("/")} own=${own} session=${session} path=${route.path.slice(1)} query=${route.query} /></main>
      ${asked && html`<${Confirm} title="Sign out everywhere" verb="Sign out everywhere" action=${() => signOut(true)} onClose=${() => setAsked(false)}
          question="All your sessions end, in every browser, and the keys that you have made are revoked for good." />`}
    </div>`;
}

function App() {
  const [session, setSession] = useState(undefined); // undefined: not known yet, null: nobody is signed in
  const [problem, setProblem] = useState(null);
  useEffect(() => onSessionChange(setSession), []);
  useEffect(() => {
    ask("/v1/session").then(startSession, (refusal) => (refusal.status === 401 ? endSession() : setProblem(refusal)));
  }, []);
  if (session === null) return html`<${SignIn} />`;
  if (session) return html`<${Frame} own=${session.key} session=${session} key=${session.key.id} />`;
  if (!problem) return html`<${Loading} />`;
  return html`<main class="door"><div class="panel"><h1>Penstock</h1><p class="bad" role="alert">${explain(problem)}</p>
    <button type="button" class="button" onClick=${() => location.reload()}>Try again</button></div></main>`;
}

applyTheme();
render(html`<${App} />`, document.body);
