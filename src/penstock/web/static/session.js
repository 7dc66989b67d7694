// The key that the user entered. It stays in this tab, or in this browser if the user asked for that.

const NAME = "key";
const listeners = new Set();
let key = sessionStorage.getItem(NAME) ?? localStorage.getItem(NAME);
let farewell = ""; // why the last session ended

export const currentKey = () => key;
export const reasonForEnd = () => farewell;
export const ownKeyId = () => `key_${key?.split("_")[1]}`; // a key begins with its id

export function onSessionChange(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function startSession(text, { keep }) {
  key = text;
  farewell = "";
  (keep ? localStorage : sessionStorage).setItem(NAME, key);
  for (const listener of listeners) listener();
}

// Removes the key and everything that this tab remembers of its runs.
export function endSession(why = "") {
  key = null;
  farewell = why;
  localStorage.removeItem(NAME);
  sessionStorage.clear();
  for (const listener of listeners) listener();
}
