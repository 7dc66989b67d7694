// The view library: Preact, with htm templates instead of a build step. Values in a template become text, never markup.

import { h } from "./third_party/preact.js";
import htm from "./third_party/htm.js";

export const html = htm.bind(h);
export { Fragment, createContext, render } from "./third_party/preact.js";
export { useContext, useEffect, useId, useLayoutEffect, useMemo, useReducer, useRef, useState } from "./third_party/hooks.js";
