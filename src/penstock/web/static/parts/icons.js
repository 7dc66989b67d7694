// Small line icons, drawn on a grid of 16.

import { html } from "../view.js";

const PATHS = {
  play: "M5 3.2v9.6l7.5-4.8z",
  chart: "M2.5 13.5h11M4.5 11V7.5M8 11V3.5M11.5 11V6",
  list: "M5.5 4h8M5.5 8h8M5.5 12h8M2.5 4h.01M2.5 8h.01M2.5 12h.01",
  cube: "M8 1.8l5.5 3v6.4L8 14.2l-5.5-3V4.8zM2.5 4.8L8 8l5.5-3.2M8 8v6.2",
  plug: "M6 1.8v3M10 1.8v3M4 4.8h8v2.7a4 4 0 0 1-8 0zM8 11.5v2.7",
  tape: "M2 4h12v8H2zM5.3 9.2a1.2 1.2 0 1 0 0-2.4 1.2 1.2 0 0 0 0 2.4zM10.7 9.2a1.2 1.2 0 1 0 0-2.4 1.2 1.2 0 0 0 0 2.4zM5.3 9.2h5.4",
  hook: "M8 5.5a2 2 0 1 0-1.7-1M6.5 5L4.2 9.2M4 13a2 2 0 1 0 0-4M6 11.2h5M12 13a2 2 0 1 0-1.4-3.4M11 9.8L8.4 5.3",
  key: "M5.5 13a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM7.7 7.9L13.5 2M11 4.5l2 2",
  people: "M6 7.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM1.8 13.5c0-2.3 1.9-4 4.2-4s4.2 1.7 4.2 4M11 7.3a2.2 2.2 0 0 0 0-4.2M12 9.8c1.4.5 2.3 1.9 2.3 3.7",
  sliders: "M2.5 4.5h6M11.5 4.5h2M10 6a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3zM2.5 11.5h2M7.5 11.5h6M6 13a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3z",
  image: "M2.5 2.5h11v11h-11zM2.5 11l3.2-3.2 3 3 1.8-1.8 3 3M10.5 6a.8.8 0 1 0 0-1.6.8.8 0 0 0 0 1.6z",
  edit: "M9.5 3.5l3 3-7 7h-3v-3zM11 2l3 3",
  enlarge: "M9.5 2.5h4v4M13.5 2.5l-5 5M6.5 13.5h-4v-4M2.5 13.5l5-5",
  video: "M2 4h8.5v8H2zM10.5 7l3.5-2v6l-3.5-2z",
  chat: "M2.5 3h11v8H8l-3 2.5V11H2.5z",
  alert: "M8 1.8l6.5 11.7h-13zM8 6.2v3.3M8 11.6h.01",
  check: "M3 8.5l3.2 3.2L13 4.8",
  copy: "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3",
  close: "M3.5 3.5l9 9M12.5 3.5l-9 9",
  menu: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
  sun: "M8 10.8a2.8 2.8 0 1 0 0-5.6 2.8 2.8 0 0 0 0 5.6zM8 1.5v1.3M8 13.2v1.3M1.5 8h1.3M13.2 8h1.3M3.4 3.4l.9.9M11.7 11.7l.9.9M12.6 3.4l-.9.9M4.3 11.7l-.9.9",
  moon: "M13.3 9.6A5.8 5.8 0 0 1 6.4 2.7 5.8 5.8 0 1 0 13.3 9.6z",
  display: "M2 3h12v8H2zM6 13.5h4M8 11v2.5",
  again: "M13 8a5 5 0 1 1-1.5-3.6M13 2v3h-3",
  code: "M5.5 4.5L2 8l3.5 3.5M10.5 4.5L14 8l-3.5 3.5",
  open: "M6.5 3.5h-4v10h10v-4M9 2.5h4.5V7M13 3L7.5 8.5",
  download: "M8 2.5v8M4.8 7.5L8 10.7l3.2-3.2M2.5 13.5h11",
  plus: "M8 3v10M3 8h10",
  trash: "M2.5 4.5h11M6 4.5v-2h4v2M4 4.5l.7 9h6.6l.7-9",
  search: "M7 12a5 5 0 1 0 0-10 5 5 0 0 0 0 10zM10.7 10.7L14 14",
  stop: "M4 4h8v8H4z",
  seal: "M8 1.8l5 2v4c0 3-2 5.2-5 6.4-3-1.2-5-3.4-5-6.4v-4zM5.7 8l1.7 1.7 3-3.2",
  brush: "M13.5 2.5L7.5 8.5M6.5 8a2.5 2.5 0 0 1 1.8 3.8C7.2 13.3 4.5 13.8 2 13.5c1-.7 1-1.7 1.3-3C3.6 9 5 8 6.5 8z",
};

export function Icon({ name, size = 16 }) {
  return html`<svg width=${size} height=${size} viewBox="0 0 16 16" fill="none" stroke="currentColor" stroke-width="1.4"
    stroke-linecap="round" stroke-linejoin="round" aria-hidden="true"><path d=${PATHS[name]} /></svg>`;
}
