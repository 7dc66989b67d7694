// Light, dark, or as the system prefers. The choice is kept in this browser.

import { html, useState } from "./view.js";
import { Icon } from "./parts/icons.js";

const NAME = "theme";
const CHOICES = { system: ["System", "display"], light: ["Light", "sun"], dark: ["Dark", "moon"] };

export function applyTheme(choice = localStorage.getItem(NAME) ?? "system") {
  if (choice === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = choice;
  window.dispatchEvent(new Event("themechange"));
}

export function ThemeSwitch() {
  const [chosen, setChosen] = useState(localStorage.getItem(NAME) ?? "system");
  function choose(choice) {
    if (choice === "system") localStorage.removeItem(NAME);
    else localStorage.setItem(NAME, choice);
    setChosen(choice);
    applyTheme(choice);
  }
  return html`<div class="tabs themes" role="group" aria-label="Theme">
    ${Object.entries(CHOICES).map(([choice, [label, icon]]) => html`
      <button type="button" key=${choice} aria-pressed=${String(choice === chosen)} aria-label=${label} title=${label}
        onClick=${() => choose(choice)}><${Icon} name=${icon} /></button>`)}
  </div>`;
}
