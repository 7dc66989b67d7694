// The page of webhooks: show the secret that deliveries are signed with.

import { ask, explain } from "./gateway.js";
import { at, copy, say } from "./paint.js";

export function webhooks() {
  at("show-secret").addEventListener("click", reveal);
  at("hide-secret").addEventListener("click", () => {
    hide();
    at("show-secret").focus();
  });
  at("copy-secret").addEventListener("click", () => copy(at("secret"), "secret-said"));
  return { load: () => ({}), paint: () => {}, clear: hide };
}

// Runs on a click only: the first call creates the secret, and others may see the screen.
async function reveal() {
  try {
    at("secret").value = (await ask("/v1/webhooks/secret")).key;
  } catch (problem) {
    say("secret-said", explain(problem), { bad: true });
    return;
  }
  say("secret-said", "");
  at("secret-part").hidden = false;
  at("show-secret").hidden = true;
  at("copy-secret").focus();
}

function hide() {
  at("secret").value = "";
  at("secret-part").hidden = true;
  at("show-secret").hidden = false;
  say("secret-said", "");
}
