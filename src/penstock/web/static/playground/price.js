// The price before anything is made: a dry run of the same call, shortly after the last change.

import { ask, isPassing, pause } from "../gateway.js";
import { useEffect, useState } from "../view.js";

const PAUSE_MS = 450;

const NONE = { total: null, each: [], problem: null, busy: false };

// Returns { total, each, problem, busy } for calls of the form [{ path, body }]; the price is in US dollars. `changed` is what the
// price depends on. While the gateway cannot be reached, `problem` says so and `busy` stays: it is asked again.
export function usePrice(calls, changed) {
  const [state, setState] = useState(NONE);
  useEffect(() => {
    if (!calls.length) return setState(NONE);
    const control = new AbortController();
    const { signal } = control;
    const estimate = async ({ path, body }) => (await ask(`${path}?dryRun=true`, { method: "POST", body, signal })).total_cost_micros / 1e6;
    async function run() {
      for (let failures = 0; !signal.aborted; failures += 1) {
        try {
          const each = await Promise.all(calls.map(estimate));
          if (!signal.aborted) setState({ total: each.reduce((sum, cost) => sum + cost, 0), each, problem: null, busy: false });
          return;
        } catch (problem) {
          if (signal.aborted) return;
          setState({ ...NONE, problem, busy: isPassing(problem) });
          if (!isPassing(problem)) return;
        }
        await pause(failures, signal);
      }
    }
    setState((last) => ({ ...last, busy: true }));
    const timer = setTimeout(run, PAUSE_MS);
    return () => {
      control.abort();
      clearTimeout(timer);
    };
  }, [changed]);
  return state;
}
