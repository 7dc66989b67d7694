// Images and videos that were made, as they are shown on a page.

import { fileUrl } from "../gateway.js";
import { TASKS } from "../playground/tasks.js";
import { onSessionChange } from "../session.js";
import { html, useState } from "../view.js";
import { Icon } from "./icons.js";

const urls = new Map();
onSessionChange(() => urls.clear());

// The URL under which an output was first seen: each response has another signature, and the browser would load the file again.
function lastingUrl({ id, url }) {
  if (!urls.has(id)) urls.set(id, fileUrl(url));
  return urls.get(id);
}

// A small square: the output, or the icon of its kind where there is none (any more).
export function Thumb({ kind, output, alt = "" }) {
  const [gone, setGone] = useState(false);
  const lost = () => { urls.delete(output.id); setGone(true); };
  if (!output || gone) return html`<span class=${`thumb tint ${kind ?? ""}`}><${Icon} name=${TASKS[kind]?.icon ?? "list"} /></span>`;
  const url = lastingUrl(output);
  return html`<span class="thumb">${output.content_type.startsWith("video/")
    ? html`<video src=${`${url}#t=0.1`} preload="metadata" muted playsinline tabindex="-1" aria-label=${alt || "Video"} onError=${lost}></video>`
    : html`<img src=${url} alt=${alt} loading="lazy" decoding="async" onError=${lost} />`}</span>`;
}

// `onSize` is called with the width and height of a video, which the gateway does not store.
export function Output({ url, type = "", alt, onSize }) {
  const [gone, setGone] = useState(false);
  if (gone) return html`<p class="gone soft small">This file is no longer stored, or its URL has expired.</p>`;
  if (type.startsWith("video/")) {
    return html`<video src=${url} controls loop playsinline preload="metadata" aria-label=${alt} onError=${() => setGone(true)}
        onLoadedMetadata=${({ target }) => onSize?.(target.videoWidth, target.videoHeight)}></video>`;
  }
  return html`<a class="shown" href=${url} target="_blank" rel="noreferrer" aria-label=${`Open the image: ${alt}`}>
    <img src=${url} alt=${alt} onError=${() => setGone(true)} /></a>`;
}
