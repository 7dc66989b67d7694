// Who is signed in. What proves it is in a cookie that scripts cannot read; no key is kept in the browser's storage.

const listeners = new Set();
let session = null;
let farewell = ""; // why the last session ended
// Earlier versions kept the key here.
localStorage.removeItem("key");
sessionStorage.removeItem("key");

export const reasonForEnd = () => farewell;
export const ownKeyId = () => session?.key.id;

export function onSessionChange(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

// The session as the gateway tells of it: { key, org, expires_at }.
export function startSession(found) {
  session = found;
  farewell = "";
  for (const listener of listeners) listener(session);
}

// Removes everything that this tab remembers of its runs.
export function endSession(why = "") {
  session = null;
  farewell = why;
  sessionStorage.clear();
  for (const listener of listeners) listener(session);
}
