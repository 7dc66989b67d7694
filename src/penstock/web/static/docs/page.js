// A page of the documentation: buttons that copy code, and the place in the contents.

import { CopyButton } from "../parts/controls.js";
import { html, render } from "../view.js";
import { startFrame } from "./frame.js";

function addCopyButtons() {
  for (const snippet of document.querySelectorAll(".prose .snippet")) {
    const place = document.createElement("div");
    snippet.append(place);
    render(html`<${CopyButton} text=${snippet.querySelector("code").textContent} />`, place);
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
