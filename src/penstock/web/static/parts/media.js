// Images and videos that were made, as they are shown on a page.

import { html, useState } from "../view.js";

export function Output({ url, type = "", alt }) {
  const [gone, setGone] = useState(false);
  if (gone) return html`<p class="gone soft small">This file is no longer stored, or its URL has expired.</p>`;
  if (type.startsWith("video/")) {
    return html`<video src=${url} controls loop playsinline preload="metadata" aria-label=${alt} onError=${() => setGone(true)}></video>`;
  }
  return html`<a class="shown" href=${url} target="_blank" rel="noreferrer" aria-label=${`Open the image: ${alt}`}>
    <img src=${url} alt=${alt} onError=${() => setGone(true)} /></a>`;
}
