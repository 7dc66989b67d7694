// The library: everything that was made and is still stored, as a wall; one of it large, in a lightbox.

import { models, once, useData } from "../data.js";
import { ask, withQuery } from "../gateway.js";
import { Empty, Head, Loading, Problem, SelectField, TextField } from "../parts/controls.js";
import { Icon } from "../parts/icons.js";
import { FavoriteButton, Lightbox } from "../parts/lightbox.js";
import { Thumb } from "../parts/media.js";
import { pageUrl, replaceQuery } from "../route.js";
import { html, useEffect, useState } from "../view.js";

const TYPES = { image: "Images", video: "Videos", audio: "Sound" };
const NAMES = ["search", "type", "model", "key_id", "favorite", "created_after", "created_before"];
const TYPING_MS = 300;
const PAGE = 40;
const NOTHING = { outputs: [], next: null, problem: null, loading: true };

function asked(query) {
  const values = Object.fromEntries(NAMES.map((name) => [name, query.get(name) ?? ""]));
  if (values.created_after) values.created_after = new Date(`${values.created_after}T00:00:00`).toISOString();
  if (values.created_before) values.created_before = new Date(`${values.created_before}T23:59:59.999`).toISOString();
  return values;
}

// The outputs so far, and `more`, which loads the next page.
function useOutputs(url) {
  const [state, setState] = useState(NOTHING);
  const load = async (path, before) => {
    setState((last) => ({ ...last, loading: true }));
    try {
      const { data, next_page_url: next } = await ask(path);
      setState({ outputs: [...before, ...data], next, problem: null, loading: false });
    } catch (problem) {
      setState((last) => ({ ...last, problem, loading: false }));
    }
  };
  useEffect(() => { load(url, []); }, [url]);
  const replace = (changed) => setState((last) => ({ ...last, outputs: last.outputs.map((output) => {
    const found = changed.find(({ id }) => id === output.id);
    return found ? { ...output, ...found } : output;
  }) }));
  return { ...state, replace, more: () => load(state.next, state.outputs) };
}

function Filters({ query, onChange }) {
  const choices = useData(async () => {
    const [known, keys] = await Promise.all([models(), once("/v1/keys?limit=100")]);
    return { known, keys: keys.data };
  });
  const { known = [], keys = [] } = choices.data ?? {};
  const [search, setSearch] = useState(query.get("search") ?? "");
  useEffect(() => {
    const timer = setTimeout(() => { if (search.trim() !== (query.get("search") ?? "")) onChange({ search: search.trim() }); }, TYPING_MS);
    return () => clearTimeout(timer);
  }, [search]);
  const field = (name, label, options) => {
    const chosen = query.get(name) ?? "";
    const isListed = !chosen || options.some(([option]) => option === chosen);
    return html`<${SelectField} label=${label} value=${chosen} options=${[["", "Any"], ...(isListed ? [] : [[chosen, chosen]]), ...options]}
      onInput=${(value) => onChange({ [name]: value })} />`;
  };
  const makes = ({ modes }) => modes.some((mode) => mode !== "chat");
  return html`<details class="folded" open=${matchMedia("(min-width: 44rem)").matches || NAMES.some((name) => query.get(name))}>
    <summary>Filters</summary>
    <div class="filters" role="search" aria-label="Filter the library">
      <${TextField} label="Search" type="search" value=${search} onInput=${setSearch} placeholder="Words of the prompt" />
      ${field("type", "Type", Object.entries(TYPES))}
      ${field("model", "Model", known.filter(makes).map(({ id }) => [id, id]))}
      ${field("key_id", "Key", keys.map(({ id, name, last_four: four }) => [id, `${name || "no name"} …${four}`]))}
      ${field("favorite", "Favorites", [["true", "Only favorites"]])}
      <${TextField} label="From" type="date" value=${query.get("created_after") ?? ""} onInput=${(value) => onChange({ created_after: value })} />
      <${TextField} label="To" type="date" value=${query.get("created_before") ?? ""} onInput=${(value) => onChange({ created_before: value })} />
    </div></details>`;
}

const typeOf = ({ content_type: type }) => type.split("/")[0];

// As wide as the output is in proportion to its height; the rows are filled by growing a little.
function shape({ width, height, content_type: type }) {
  const ratio = Math.min(2.4, Math.max(0.6, width && height ? width / height : type.startsWith("audio/") ? 1 : 16 / 9));
  return { flex: `${ratio} 1 ${ratio * 12}rem` };
}

function Tile({ output, onOpen, onChange }) {
  const type = typeOf(output);
  const words = output.prompt || output.model;
  return html`<li class="tile" style=${shape(output)}>
    <button type="button" class="open" onClick=${onOpen} aria-label=${`Open: ${words}`}>
      <${Thumb} kind=${output.kind} output=${output} width="480" /></button>
    ${type !== "image" && html`<span class="kind"><${Icon} name=${type === "video" ? "play" : "sound"} /></span>`}
    <span class="words"><span class="clamp">${words}</span></span>
    <${FavoriteButton} output=${output} onChange=${onChange} />
  </li>`;
}

export function Library({ query }) {
  const found = useOutputs(withQuery("/v1/outputs", { ...asked(query), limit: PAGE }));
  const filtered = NAMES.some((name) => query.get(name));
  const kept = () => Object.fromEntries([...NAMES, "show"].map((name) => [name, query.get(name)]));
  const change = (values) => replaceQuery("library", { ...kept(), ...values });
  const shown = query.get("show");
  const place = found.outputs.findIndex(({ id }) => id === shown);
  const step = (by) => found.outputs[place + by] && (() => change({ show: found.outputs[place + by].id }));
  return html`<div class="page wide">
    <${Head} title="Library" about="Everything your organization has made and still stores, newest first." />
    <${Filters} query=${query} onChange=${change} />
    <${Problem} problem=${found.problem} />
    ${found.outputs.length > 0 && html`<ul class="wall" aria-label="Outputs">${found.outputs.map((output) => html`<${Tile} key=${output.id}
        output=${output} onOpen=${() => change({ show: output.id })} onChange=${({ id, favorite }) => found.replace([{ id, favorite }])} />`)}</ul>`}
    ${found.loading && html`<${Loading} />`}
    ${!found.loading && found.next && html`<div class="row"><button type="button" class="button" id="more" onClick=${found.more}>
        Show more</button></div>`}
    ${!found.loading && !found.problem && !found.outputs.length && (filtered
      ? html`<div class="panel"><${Empty} icon="search" title="Nothing matches" action=${html`<button type="button" class="button"
          onClick=${() => replaceQuery("library", {})}>Remove the filters</button>`}>No stored result matches all of these filters.<//></div>`
      : html`<div class="panel"><${Empty} icon="wall" title="Nothing here yet" action=${html`<a class="button main"
          href=${pageUrl("playground")}>Open the playground</a>`}>Images, videos and sounds appear here as soon as they are made.<//></div>`)}
    ${shown && html`<${Lightbox} key=${shown} id=${shown} known=${found.outputs[place]} onChange=${found.replace} onShow=${(id) => change({ show: id })}
        onClose=${() => change({ show: null })} previous=${place > 0 && step(-1)} next=${place >= 0 && step(1)} />`}
  </div>`;
}
