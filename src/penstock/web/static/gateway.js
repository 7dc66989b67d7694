// Calls to the gateway that served this page, with the key that was entered. The key is stored in this tab only.

let key = sessionStorage.getItem("key");
let admin = null; // null: not known yet

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
  if (!/^[!-~]+$/.test(key)) throw new Refused(401, "This is not a valid key."); // a header cannot contain it
  const mine = key;
  const headers = { authorization: `Bearer ${key}`, ...(body && { "content-type": "application/json" }) };
  const response = await fetch(path, { method, headers, body: body && JSON.stringify(body) });
  const result = await response.json();
  if (key !== mine) throw new Refused(0, ""); // the user has signed out
  if (!response.ok) throw new Refused(response.status, result.error?.message ?? `The gateway returned status ${response.status}.`);
  return result;
}

export const explain = (problem) => (problem instanceof Refused ? problem.message : "The gateway cannot be reached.");

// Returns null for a key without the admin scope; there is no cheaper way to learn whether a key has it.
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
