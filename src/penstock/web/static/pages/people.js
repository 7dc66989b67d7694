// People: who may sign in with the issuer, their roles, and those who wait for one.

import { useData } from "../data.js";
import { ask } from "../gateway.js";
import { day } from "../format.js";
import { Confirm, CopyButton, Dialog, Empty, Head, Loaded, Panel, Problem, SelectField, TextField } from "../parts/controls.js";
import { Icon } from "../parts/icons.js";
import { Status, When } from "../parts/status.js";
import { Table } from "../parts/table.js";
import { html, useState } from "../view.js";
import { OwnKeyLimits } from "./own_key_limits.js";

const ROLES = {
  viewer: "Viewer: reads figures and records, without prompts and outputs",
  member: "Member: makes calls",
  admin: "Admin: also manages keys, webhooks, labels and people",
};
const OPERATOR = "Operator: everything, in all organizations";
const EVERYWHERE = "*";

const change = (user, body) => ask(`/v1/users/${user.id}`, { method: "PATCH", body });
const called = ({ name, email, id }) => name || email || id;

function RoleDialog({ user, orgs, own, isOperator, onClose }) {
  const [org, setOrg] = useState(own);
  const former = user.roles.find(({ org_id: id }) => id === org)?.role ?? "";
  const [role, setRole] = useState(former);
  const [problem, setProblem] = useState(null);
  const choices = org === EVERYWHERE ? [["", "None"], ["operator", OPERATOR]] : [["", "None"], ...Object.entries(ROLES)];
  const choose = (id) => { setOrg(id); setRole(user.roles.find((each) => each.org_id === id)?.role ?? ""); };
  async function save(event) {
    event.preventDefault();
    try {
      await change(user, { org_id: org, role: role || null });
      onClose(true);
    } catch (refusal) {
      setProblem(refusal);
    }
  }
  const footer = html`<button type="button" class="button" onClick=${() => onClose(false)}>Cancel</button><button class="button main"
      form="role-form">Save</button>`;
  return html`<${Dialog} title=${`Role of ${called(user)}`} onClose=${() => onClose(false)} footer=${footer}>
    <form id="role-form" class="stack" onSubmit=${save}>
      ${isOperator && html`<${SelectField} label="Organization" value=${org} onInput=${choose}
          options=${[...orgs.map(({ id, name }) => [id, name]), [EVERYWHERE, "All organizations"]]} />`}
      <${SelectField} label="Role" value=${role} onInput=${setRole} options=${choices}
          help="A role that is given here stays, whatever groups the person is in. It counts at once." />
      <${Problem} problem=${problem} /></form><//>`;
}

function InviteDialog({ orgs, own, isOperator, onClose }) {
  const [texts, setTexts] = useState({ email: "", role: "member", org: own });
  const [made, setMade] = useState(null);
  const [problem, setProblem] = useState(null);
  const set = (name) => (text) => setTexts({ ...texts, [name]: text });
  async function invite(event) {
    event.preventDefault();
    try {
      setMade(await ask("/v1/invitations", { method: "POST", body: { email: texts.email.trim(), role: texts.role, org_id: texts.org } }));
      setProblem(null);
    } catch (refusal) {
      setProblem(refusal);
    }
  }
  if (made) {
    return html`<${Dialog} title="The invitation" onClose=${() => onClose(true)} footer=${html`<button type="button" class="button main"
        onClick=${() => onClose(true)}>Done</button>`}>
      <p>Send this link to ${made.email}. It is shown only once, good once, and for seven days.</p>
      <div class="snippet"><pre tabindex="0" aria-label="The link">${made.url}</pre><${CopyButton} text=${made.url} /></div><//>`;
  }
  const footer = html`<button type="button" class="button" onClick=${() => onClose(false)}>Cancel</button><button class="button main"
      form="invite-form">Make the link</button>`;
  return html`<${Dialog} title="Invite a person" onClose=${() => onClose(false)} footer=${footer}>
    <form id="invite-form" class="stack" onSubmit=${invite}>
      <${TextField} label="E-mail address" type="email" required value=${texts.email} onInput=${set("email")}
          help="The address that your company's sign-in knows the person by." />
      ${isOperator && html`<${SelectField} label="Organization" value=${texts.org} onInput=${set("org")} options=${orgs.map(({ id, name }) => [id, name])} />`}
      <${SelectField} label="Role" value=${texts.role} onInput=${set("role")} options=${Object.entries(ROLES)} />
      <${Problem} problem=${problem} /></form><//>`;
}

function OpenInvitations({ invitations, nameOf, onChange }) {
  const [problem, setProblem] = useState(null);
  const withdraw = (id) => ask(`/v1/invitations/${id}`, { method: "DELETE" }).then(onChange, setProblem);
  const columns = [
    { name: "Invited", kind: "words", cell: ({ email }) => html`<span class="anywhere">${email}</span>` },
    { name: "Role", kind: "words", cell: ({ role, org_id: id }) => html`${role} <span class="soft">of ${nameOf(id)}</span>` },
    { name: "Until", kind: "nowrap", cell: ({ expires_at: at }) => day(at) },
    { name: "Actions", quiet: true, kind: "actions", cell: ({ id, email }) => html`<button type="button" class="button small"
        aria-label=${`Take back the invitation of ${email}`} onClick=${() => withdraw(id)}>Take back</button>` },
  ];
  return html`<${Panel} title="Waiting invitations" flush><${Problem} problem=${problem} />
    <${Table} label="Waiting invitations" columns=${columns} rows=${invitations} rowKey=${({ id }) => id} /><//>`;
}

export function People({ own, session }) {
  const isOperator = own.scopes.includes("operator");
  const page = useData(async (signal) => {
    const [people, invited, ways, orgs] = await Promise.all([ask("/v1/users", { signal }), ask("/v1/invitations", { signal }), ask("/auth/options", { signal }),
      isOperator ? ask("/v1/orgs", { signal }) : { data: [session.org] }]);
    return { people: people.data, invitations: invited.data, hasIssuer: (ways.oidc ?? ways.proxy) !== null, orgs: orgs.data };
  });
  const [open, setOpen] = useState(null);
  const close = (changed) => { setOpen(null); if (changed) page.reload(); };
  const nameOf = (id) => (id === EVERYWHERE ? "all organizations" : page.data.orgs.find((org) => org.id === id)?.name ?? id);
  const columns = [
    { name: "Person", kind: "words", cell: (user) => html`<strong class="medium anywhere">${called(user)}</strong>${user.name && user.email
      && html`<span class="small soft anywhere"><br />${user.email}</span>`}` },
    { name: "Roles", kind: "words", cell: ({ roles }) => (roles.length ? roles.map(({ role, org_id: id, source }) => html`<div key=${id}
      class="small">${role} <span class="soft">of ${nameOf(id)}${source === "groups" ? ", by group" : ""}</span></div>`)
      : html`<span class="chip warn"><span class="dot"></span>Waiting for a role</span>`) },
    { name: "Status", cell: ({ status }) => html`<${Status} of=${status} />` },
    { name: "Signed in", kind: "nowrap", cell: ({ seen_at: at }) => html`<${When} at=${at} />` },
    { name: "Actions", quiet: true, kind: "actions", cell: (user) => html`<div class="row">
      <button type="button" class="button small role" aria-label=${`Role of ${called(user)}`} onClick=${() => setOpen({ kind: "role", user })}>Role</button>
      ${isOperator && html`<button type="button" class="button small" aria-label=${`${user.status === "active" ? "Deactivate" : "Activate"} ${called(user)}`}
        onClick=${() => setOpen({ kind: "status", user })}>${user.status === "active" ? "Deactivate" : "Activate"}</button>`}</div>` },
  ];
  const status = () => (open.user.status === "active" ? "deactivated" : "active");
  return html`<div class="page">
    <${Head} title="People" about="Who signs in with your company's account, and what each of them may do.">
      ${(page.data?.hasIssuer || page.data?.people.length > 0) && html`<button type="button" class="button"
          onClick=${() => setOpen({ kind: "limits" })}>Limits of their keys</button>`}
      ${page.data?.hasIssuer && html`<button type="button" class="button main" id="invite" onClick=${() => setOpen({ kind: "invite" })}><${Icon}
          name="plus" />Invite</button>`}<//>
    ${page.data?.invitations.length > 0 && html`<${OpenInvitations} invitations=${page.data.invitations} nameOf=${nameOf} onChange=${page.reload} />`}
    <${Panel} label="People" flush><${Loaded} of=${page}>${({ people, hasIssuer }) => (people.length
      ? html`<${Table} label="People" columns=${columns} rows=${people} rowKey=${({ id }) => id} />`
      : html`<${Empty} icon="people" title="Nobody yet" action=${html`<a class="button" href="/docs/people">How to set it up</a>`}>${hasIssuer
          ? "People appear here when they first sign in." : "Name an issuer in penstock.toml, and people sign in with it instead of a key."}<//>`)}<//><//>
    ${open?.kind === "invite" && html`<${InviteDialog} orgs=${page.data.orgs} own=${session.org.id} isOperator=${isOperator} onClose=${close} />`}
    ${open?.kind === "limits" && html`<${OwnKeyLimits} onClose=${() => close(false)} />`}
    ${open?.kind === "role" && html`<${RoleDialog} user=${open.user} orgs=${page.data.orgs} own=${session.org.id} isOperator=${isOperator} onClose=${close} />`}
    ${open?.kind === "status" && html`<${Confirm} title=${`${status() === "active" ? "Activate" : "Deactivate"} ${called(open.user)}?`}
      question=${status() === "active" ? "The person may sign in again." : "All sessions end at once, and the keys that the person has made are revoked for good."}
      verb=${status() === "active" ? "Activate" : "Deactivate"} action=${() => change(open.user, { status: status() })} onClose=${close} />`}
  </div>`;
}
