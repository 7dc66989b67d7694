// Images, videos and sounds that were made, as they are shown on a page.

import { thumbnailUrl } from "../gateway.js";
import { TASKS } from "../playground/tasks.js";
import { onSessionChange } from "../session.js";
import { html, useState } from "../view.js";
import { Icon } from "./icons.js";
import { Player } from "./player.js";
import { SOUND_KINDS } from "./status.js";

const urls = new Map();
onSessionChange(() => urls.clear());

// The URL under which an output was first seen: each response has another signature, and the browser would load the file again.
export function lastingUrl(output, width) {
  const name = `${output.id} ${width}`;
  if (!urls.has(name)) urls.set(name, thumbnailUrl(output, width));
  return urls.get(name);
}

export const forgetUrl = (output, width) => urls.delete(`${output.id} ${width}`);

const isSound = (type) => type.startsWith("audio/");

export function kindIcon(kind, type = "") {
  return TASKS[kind]?.icon ?? (SOUND_KINDS.has(kind) || isSound(type) ? "sound" : "list");
}

// A small copy of an output, or the icon of its kind where there is none (any more).
export function Thumb({ kind, output, alt = "", width = 160 }) {
  const [gone, setGone] = useState(false);
  const lost = () => { forgetUrl(output, width); setGone(true); };
  if (!output || gone || isSound(output.content_type)) {
    return html`<span class=${`thumb tint ${kind ?? ""}`}><${Icon} name=${kindIcon(kind, output?.content_type)} /></span>`;
  }
  return html`<span class="thumb"><img src=${lastingUrl(output, width)} alt=${alt} loading="lazy" decoding="async" onError=${lost} /></span>`;
}

// An output at the size of the page: an image as a copy that opens the file itself, a video behind its poster, a sound in a player. `url` is the file.
// With `onOpen` a click on an image does that instead. `onSize` is called with the width and height of a video, which the gateway does not store.
export function Output({ url, small, type = "", alt, onOpen, onSize }) {
  const [gone, setGone] = useState(false);
  const [poor, setPoor] = useState(false); // without a small copy
  if (gone) return html`<p class="gone soft small">This file is no longer stored, or its URL has expired.</p>`;
  if (type.startsWith("video/")) {
    return html`<video src=${url} poster=${small} controls loop playsinline preload=${small && !onSize ? "none" : "metadata"} aria-label=${alt}
        onError=${() => setGone(true)} onLoadedMetadata=${({ target }) => onSize?.(target.videoWidth, target.videoHeight)}></video>`;
  }
  if (isSound(type)) return html`<${Player} key=${url} url=${url} type=${type} alt=${alt} onError=${() => setGone(true)} />`;
  const open = onOpen && ((event) => { if (!event.ctrlKey && !event.metaKey) { event.preventDefault(); onOpen(); } });
  return html`<a class="shown" href=${url} target="_blank" rel="noreferrer" aria-label=${`Open the image: ${alt}`} onClick=${open}>
    <img src=${poor ? url : small ?? url} alt=${alt} onError=${() => (small && !poor ? setPoor(true) : setGone(true))} /></a>`;
}
