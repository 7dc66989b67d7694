// Calls to the gateway that served this page, with the key that was entered. The key is stored in this tab only.

let key = sessionStorage.getItem("key");
let scopes = null; // null: not known yet

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
  scopes = null;
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

async function hasScope(scope) {
  scopes ??= (await ask("/v1/key")).scopes;
  return scopes.includes(scope);
}

export const isAdmin = () => hasScope("admin");

// Returns null for a key without the operator scope: the health of providers comes from the calls of all organizations.
export const providers = async () => ((await hasScope("operator")) ? (await ask("/v1/providers")).data : null);
