// Content Credentials: a badge on what was made, and the card behind it.

import { pageUrl } from "../route.js";
import { html } from "../view.js";
import { Icon } from "./icons.js";
import { Facts } from "./table.js";

const WORDS = { signed: "Content Credentials", carried: "Content Credentials", kept: "The vendor's Content Credentials" };
const HOW = {
  signed: "Signed by this gateway when the file was made.",
  carried: "Signed by this gateway, with the vendor's credentials inside.",
  kept: "As the vendor signed them.",
};
const TYPES = {
  algorithmicMedia: "Drawn by a program",
  trainedAlgorithmicMedia: "Made by a model",
  compositeWithTrainedAlgorithmicMedia: "Partly made by a model",
  digitalCapture: "Taken by a camera",
};

export const sourceType = (type) => type && (TYPES[type.split("/").at(-1)] ?? type);

// Shown only where a file has credentials.
export function CredentialsBadge({ of: found }) {
  if (!WORDS[found?.status]) return null;
  const { status, signer, trusted, digital_source_type: type, vendor } = found;
  return html`<details class="credentials"><summary class="chip"><${Icon} name="seal" size="12" />${WORDS[status]}</summary>
    <div class="panel credentials-card"><p class="small soft">${HOW[status]}</p>
      <${Facts} of=${[["Signed by", signer], ["Trusted", trusted === undefined ? null : trusted ? "Yes" : "Not on the trust list"],
        ["Origin", sourceType(type)], ["Vendor", vendor && (vendor.signer ?? vendor.state)]]} />
      <a class="small" href=${pageUrl("verify")}>Verify a file</a></div></details>`;
}
