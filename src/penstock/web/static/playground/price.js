// The price before anything is made: a dry run of the same call, shortly after the last change.

import { ask } from "../gateway.js";
import { useEffect, useState } from "../view.js";

const PAUSE_MS = 450;

// Returns { total, each, problem, busy } for calls of the form [{ path, body }]; the price is in US dollars. `changed` is what the price depends on.
export function usePrice(calls, changed) {
  const [state, setState] = useState({ total: null, each: [], problem: null, busy: false });
  useEffect(() => {
    if (!calls.length) return setState({ total: null, each: [], problem: null, busy: false });
    const control = new AbortController();
    setState((last) => ({ ...last, busy: true }));
    const timer = setTimeout(async () => {
      try {
        const estimates = await Promise.all(calls.map(({ path, body }) => ask(`${path}?dryRun=true`, { method: "POST", body, signal: control.signal })));
        const each = estimates.map((estimate) => estimate.total_cost_micros / 1e6);
        if (!control.signal.aborted) setState({ total: each.reduce((sum, cost) => sum + cost, 0), each, problem: null, busy: false });
      } catch (problem) {
        if (!control.signal.aborted) setState({ total: null, each: [], problem, busy: false });
      }
    }, PAUSE_MS);
    return () => {
      control.abort();
      clearTimeout(timer);
    };
  }, [changed]);
  return state;
}
