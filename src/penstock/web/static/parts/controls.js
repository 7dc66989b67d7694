// Parts that most pages use: notices, empty states, fields, dialogs, copying.

import { explain } from "../gateway.js";
import { html, useEffect, useId, useRef, useState } from "../view.js";
import { Icon } from "./icons.js";

export function Problem({ problem, children }) {
  if (!problem) return null;
  return html`<div class="notice bad" role="alert"><${Icon} name="alert" /><div><${Prose} text=${explain(problem)} />${children}</div></div>`;
}

export function Empty({ icon, title, children, action }) {
  return html`<div class="empty"><${Icon} name=${icon} size="28" /><h2>${title}</h2><p>${children}</p>
    ${action && html`<div class="row">${action}</div>`}</div>`;
}

export function Loading({ what = "Loading" }) {
  return html`<div class="empty" role="status"><span class="spinner"></span><span class="only-heard">${what}</span></div>`;
}

// Shows the problem, a spinner, or what `children` makes of the data. Data that could not be refreshed stays visible.
export function Loaded({ of: { data, problem }, children }) {
  if (data === null) return problem ? html`<${Problem} problem=${problem} />` : html`<${Loading} />`;
  return html`<${Problem} problem=${problem} />${children(data)}`;
}

export function Head({ title, about, back, children }) {
  const heading = useRef(null);
  useEffect(() => { document.title = `${title} · Penstock`; }, [title]);
  useEffect(() => { if (document.activeElement === document.body) heading.current?.focus({ preventScroll: true }); }, []);
  return html`<header class="head">
    <div>${back && html`<a class="back" href=${back.href}>← ${back.label}</a>`}
      <h1 tabindex="-1" ref=${heading}>${title}</h1>${about && html`<p>${about}</p>`}</div>
    ${children && html`<div class="row">${children}</div>`}
  </header>`;
}

export function Panel({ title, about, aside, children, flush = false, label }) {
  return html`<section class="panel" aria-label=${label ?? title}>
    ${title && html`<header><div><h2>${title}</h2>${about && html`<p>${about}</p>`}</div>${aside && html`<div class="row">
        ${aside}</div>`}</header>`}
    ${children && (flush ? children : html`<div class="body">${children}</div>`)}
  </section>`;
}

// Text in which `names` stand between backticks.
export function Prose({ text }) {
  return (text ?? "").split("`").map((part, place) => (place % 2 ? html`<code>${part}</code>` : part));
}

// A labelled control. `children` gets the attributes that connect the control with its label, help and error. When its form is sent
// with values that it cannot take, the browser's words stand at every such field instead of in a bubble at the first.
export function Field({ label, aside, help, wrong: said, wide = false, children }) {
  const id = useId();
  const [fault, setFault] = useState("");
  const wrong = said || fault;
  const mark = (event) => {
    event.preventDefault();
    setFault(event.target.validationMessage);
    if (event.target.form?.querySelector(":is(input, select, textarea):invalid") === event.target) event.target.focus();
  };
  const described = [help && `${id}-help`, wrong && `${id}-wrong`].filter(Boolean).join(" ");
  const attributes = { id, "aria-describedby": described || undefined, "aria-invalid": wrong ? "true" : undefined, onInvalid: mark };
  return html`<div class=${wide ? "field wide" : "field"} onInput=${() => setFault("")}>
    <label for=${id}><span>${label}</span>${aside}</label>
    ${children(attributes)}
    ${wrong && html`<span class="wrong" id=${`${id}-wrong`} role="alert"><${Prose} text=${wrong} /></span>`}
    ${help && html`<span class="help" id=${`${id}-help`}>${help}</span>`}
  </div>`;
}

export function TextField({ label, value, onInput, aside, help, wrong, wide, ...rest }) {
  return html`<${Field} label=${label} aside=${aside} help=${help} wrong=${wrong} wide=${wide}>
    ${(attributes) => html`<input ...${rest} ...${attributes} value=${value} onInput=${(event) => onInput(event.target.value)} />`}
  <//>`;
}

export function SelectField({ label, value, onInput, options, aside, help, wrong, ...rest }) {
  return html`<${Field} label=${label} aside=${aside} help=${help} wrong=${wrong}>
    ${(attributes) => html`<select ...${rest} ...${attributes} value=${value} onChange=${(event) => onInput(event.target.value)}>
      ${options.map(([option, text]) => html`<option key=${option} value=${option} selected=${option === value}>${text}</option>`)}
    </select>`}
  <//>`;
}

export function Dialog({ title, onClose, children, footer, wide = false, kind = wide ? "wide" : "", toField = true }) {
  const element = useRef(null);
  const id = useId();
  useEffect(() => {
    const before = document.activeElement;
    element.current.showModal();
    if (toField) element.current.querySelector(".body :is(input, textarea, select)")?.focus(); // instead of the button that closes it
    return () => before?.isConnected && before.focus();
  }, []);
  return html`<dialog ref=${element} class=${kind} aria-labelledby=${id}
      onCancel=${(event) => { event.preventDefault(); onClose(); }}>
    <header><h2 id=${id}>${title}</h2>
      <button type="button" class="button plain icon small" aria-label="Close" onClick=${onClose}><${Icon} name="close" /></button></header>
    <div class="body">${children}</div>
    ${footer && html`<footer>${footer}</footer>`}
  </dialog>`;
}

// Asks before something that cannot be undone. `action` runs it; its problem is shown in the dialog.
export function Confirm({ title, question, verb, action, onClose }) {
  const [state, setState] = useState({ busy: false, problem: null });
  async function confirm() {
    setState({ busy: true, problem: null });
    try {
      await action();
      onClose(true);
    } catch (problem) {
      setState({ busy: false, problem });
    }
  }
  const footer = html`
    <button type="button" class="button" onClick=${() => onClose(false)}>Cancel</button>
    <button type="button" class="button main danger" disabled=${state.busy} onClick=${confirm}>${verb}</button>`;
  return html`<${Dialog} title=${title} onClose=${() => onClose(false)} footer=${footer}>
    <p class="anywhere">${question}</p><${Problem} problem=${state.problem} />
  <//>`;
}

export function CopyButton({ text, label = "Copy", kind = "small" }) {
  const [result, setResult] = useState(null);
  async function copy() {
    const done = await copyText(typeof text === "function" ? text() : text);
    setResult(done ? "Copied" : "Cannot copy here");
    setTimeout(() => setResult(null), 1500);
  }
  return html`<button type="button" class=${`button ${kind}`} onClick=${copy}>
    <${Icon} name=${result === "Copied" ? "check" : "copy"} /><span aria-live="polite">${result ?? label}</span></button>`;
}

// Returns whether it worked. On plain http the browser has no clipboard for scripts, only the older command.
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    (document.querySelector("dialog[open]") ?? document.body).append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}
