// The states of requests, messages and attempts as words with a colour.

import { ago, moment } from "../format.js";
import { html } from "../view.js";

export const STATUSES = {
  completed: ["Completed", "good"],
  processing: ["Running", "accent"],
  pending: ["Waiting", "accent"],
  upstream_failure: ["Failed", "bad"],
  rejected: ["Rejected", "warn"],
  cancelled: ["Cancelled", ""],
};
const OTHERS = {
  sent: ["Sent", "accent"],
  validating: ["Being checked", "accent"],
  in_progress: ["Running", "accent"],
  paused: ["Paused", "warn"],
  cancelling: ["Cancelling", "warn"],
  running: ["Running", "accent"],
  failed: ["Failed", "bad"],
  unknown: ["Outcome unknown", "warn"],
  waiting: ["Waiting", "accent"],
  delivered: ["Delivered", "good"],
  exhausted: ["Gave up", "bad"],
  active: ["Active", "good"],
  revoked: ["Revoked", ""],
  deactivated: ["Deactivated", ""],
  expired: ["Expired", "warn"],
};

export function Status({ of }) {
  const [words, colour] = STATUSES[of] ?? OTHERS[of] ?? [of, ""];
  return html`<span class=${`chip ${colour}`}><span class="dot"></span>${words}</span>`;
}

export const KINDS = { image: "Image", edit: "Edit", upscale: "Upscale", video: "Video", chat: "Chat", speech: "Speech", sound: "Sound", transcription: "Transcription" };

// The kinds of requests and models that are about sound.
export const SOUND_KINDS = new Set(["speech", "sound", "transcription", "audio"]);

export const When = ({ at }) => (at ? html`<time datetime=${at} title=${moment(at)}>${ago(at)}</time>` : html`<span
    class="soft">never</span>`);
