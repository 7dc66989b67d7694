// A page of the documentation: buttons that copy code, and the place in the contents.

import { Icon } from "../parts/icons.js";
import { html, render, useState } from "../view.js";
import { startFrame } from "./frame.js";

function Copy({ text }) {
  const [done, setDone] = useState(false);
  async function copy() {
    await navigator.clipboard.writeText(text);
    setDone(true);
    setTimeout(() => setDone(false), 2000);
  }
  return html`<button type="button" class="button small icon" aria-label=${done ? "Copied" : "Copy"} title="Copy" onClick=${copy}>
    <${Icon} name=${done ? "check" : "copy"} /></button>`;
}

function addCopyButtons() {
  for (const snippet of document.querySelectorAll(".prose .snippet")) {
    const place = document.createElement("div");
    snippet.append(place);
    render(html`<${Copy} text=${snippet.querySelector("code").textContent} />`, place);
  }
}

function followContents() {
  const links = new Map([...document.querySelectorAll(".contents a")].map((link) => [link.hash.slice(1), link]));
  const headings = [...document.querySelectorAll(".prose h2[id]")];
  function mark() {
    const above = headings.filter((heading) => heading.getBoundingClientRect().top < 120);
    const current = (above.at(-1) ?? headings[0])?.id;
    for (const [anchor, link] of links) {
      if (anchor === current) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }
  if (!links.size) return;
  document.addEventListener("scroll", mark, { passive: true });
  mark();
}

startFrame();
addCopyButtons();
followContents();
