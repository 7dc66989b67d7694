// Calls to the gateway that this page came from, with the key that was entered. The key stays in this tab.

let key = sessionStorage.getItem("key");
let admin = null; // not known yet

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export const hasKey = () => key !== null;
export const keep = () => sessionStorage.setItem("key", key);
export const ownId = () => `key_${key?.split("_")[1]}`; // a key begins with its id

export function hold(text) {
  key = text;
  admin = null;
}

export function forget() {
  hold(null);
  sessionStorage.removeItem("key");
}

export async function ask(path, { method = "GET", body } = {}) {
  if (!/^[!-~]+$/.test(key)) throw new Refused(401, "That is not a key."); // no header could carry it
  const mine = key;
  const headers = { authorization: `Bearer ${key}`, ...(body && { "content-type": "application/json" }) };
  const answer = await fetch(path, { method, headers, body: body && JSON.stringify(body) });
  const said = await answer.json();
  if (key !== mine) throw new Refused(0, ""); // whoever asked has left
  if (!answer.ok) throw new Refused(answer.status, said.error?.message ?? `The gateway answered ${answer.status}.`);
  return said;
}

export const explain = (problem) => (problem instanceof Refused ? problem.message : "The gateway cannot be reached.");

// The list of providers is for keys with the admin scope, and nothing else tells so cheaply whether this is one.
export async function providers() {
  if (admin === false) return null;
  try {
    const list = await ask("/v1/providers");
    admin = true;
    return list.data;
  } catch (problem) {
    if (problem.status !== 403) throw problem;
    admin = false;
    return null;
  }
}

export const isAdmin = async () => admin ?? (await providers()) !== null;
