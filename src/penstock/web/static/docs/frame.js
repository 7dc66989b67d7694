// What all pages of the documentation have: the theme, the menu of small screens, the search.

import { Icon } from "../parts/icons.js";
import { applyTheme, ThemeSwitch } from "../theme.js";
import { html, render, useEffect, useState } from "../view.js";
import { Search } from "./search.js";

function Tools() {
  const [open, setOpen] = useState(false);
  useEffect(() => { document.getElementById("side").classList.toggle("open", open); }, [open]);
  return html`<${Search} />
    <button type="button" class="button plain icon menu" aria-label="Menu" aria-expanded=${String(open)}
      onClick=${() => setOpen(!open)}><${Icon} name=${open ? "close" : "menu"} /></button>`;
}

export function startFrame() {
  applyTheme();
  render(html`<${ThemeSwitch} />`, document.getElementById("theme"));
  render(html`<${Tools} />`, document.getElementById("tools"));
  document.querySelector(".pages [aria-current]")?.scrollIntoView({ block: "nearest" });
}
