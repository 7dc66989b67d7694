// Load what a page shows, and keep it fresh while the tab is visible.

import { ask } from "./gateway.js";
import { onSessionChange } from "./session.js";
import { useEffect, useReducer, useState } from "./view.js";

const SHARE = 20; // a refresh may take one part in 20 of the time

// Returns { data, problem, loading, reload }. `load` runs again when an input changes, on `reload`, and every `every` ms, or less
// often if it takes long.
// After a failed refresh the data stays, beside the problem.
export function useData(load, inputs = [], { every = 0 } = {}) {
  const [state, setState] = useState({ data: null, problem: null, loading: true });
  const [round, reload] = useReducer((count) => count + 1, 0);
  useEffect(() => {
    const control = new AbortController();
    let timer = 0;
    let running = false;
    async function run() {
      clearTimeout(timer);
      const began = Date.now();
      if (!document.hidden && !running) {
        running = true;
        try {
          const data = await load(control.signal);
          if (!control.signal.aborted) setState({ data, problem: null, loading: false });
        } catch (problem) {
          if (!control.signal.aborted) setState((last) => ({ ...last, problem, loading: false }));
        }
        running = false;
      }
      if (every && !control.signal.aborted) timer = setTimeout(run, Math.max(every, SHARE * (Date.now() - began)));
    }
    const wake = () => { if (every && !document.hidden) run(); };
    setState((last) => ({ ...last, loading: true }));
    run();
    document.addEventListener("visibilitychange", wake);
    return () => {
      control.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", wake);
    };
  }, [...inputs, round]);
  return { ...state, reload };
}

const kept = new Map();
onSessionChange(() => kept.clear());

// One call for all pages of a session, such as the list of models.
export function once(path) {
  if (!kept.has(path)) {
    const pending = ask(path);
    pending.catch(() => kept.delete(path));
    kept.set(path, pending);
  }
  return kept.get(path);
}

export const models = async () => (await once("/compat/v1/models?schema=true")).data;
