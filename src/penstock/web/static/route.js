// The URL of a page: `#/requests/req_1?status=completed`. It survives a reload and can be sent to a colleague.

import { useEffect, useState } from "./view.js";

function current() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return { path: path.split("/").filter(Boolean).map(decodeURIComponent), query: new URLSearchParams(query) };
}

export function pageUrl(path, values = {}) {
  const pairs = Object.entries(values).filter(([, value]) => value);
  return `#/${path}${pairs.length ? `?${new URLSearchParams(pairs)}` : ""}`;
}

export const go = (path, values) => { location.hash = pageUrl(path, values); };

// Changes the query of the current page without a new entry in the browser's history.
export function replaceQuery(path, values) {
  history.replaceState(null, "", pageUrl(path, values));
  window.dispatchEvent(new HashChangeEvent("hashchange"));
}

export function useRoute() {
  const [route, setRoute] = useState(current);
  useEffect(() => {
    const update = () => setRoute(current());
    window.addEventListener("hashchange", update);
    return () => window.removeEventListener("hashchange", update);
  }, []);
  return route;
}
