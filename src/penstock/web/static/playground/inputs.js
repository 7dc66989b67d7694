// Input images: chosen from the disk, pasted, dropped, or picked from earlier results.

import { ask, fileUrl, Refused } from "../gateway.js";
import { useData } from "../data.js";
import { Dialog, Empty, Loaded } from "../parts/controls.js";
import { Icon } from "../parts/icons.js";
import { Thumb } from "../parts/media.js";
import { html, useEffect, useRef, useState } from "../view.js";

const MOST_OFFERED = 24;

// An input: `source` is what is sent, a data URI or an https URL; `preview` is what is shown.
export function fromFile(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onerror = () => reject(new Error(`${file.name || "The file"} cannot be read.`));
    reader.onload = () => resolve({ source: reader.result, preview: reader.result, name: file.name || "image.png" });
    reader.readAsDataURL(file);
  });
}

// A stored file of this gateway is read here, because the gateway does not fetch from itself; one of an object store is sent as URL.
export async function fromStored(url) {
  const near = fileUrl(url);
  if (near === url && new URL(url, location.href).origin !== location.origin) return { source: url, preview: url, name: "image.png", url };
  const response = await fetch(near);
  if (!response.ok) throw new Refused(response.status, { message: "This image is no longer stored." });
  return { ...(await fromFile(await response.blob())), url: new URL(near, location.href).href };
}

function EarlierResults({ onPick, onClose }) {
  const found = useData(async (signal) => {
    const { data } = await ask("/v1/requests?limit=60&status=completed", { signal });
    const images = data.flatMap(({ outputs }) => outputs).filter(({ content_type: type }) => type.startsWith("image/"));
    return images.slice(0, MOST_OFFERED);
  });
  return html`<${Dialog} title="Earlier results" wide onClose=${onClose}>
    <${Loaded} of=${found}>${(outputs) => (outputs.length === 0
      ? html`<${Empty} icon="image" title="No images yet">Generate one first, then pick it here.<//>`
      : html`<div class="picks">${outputs.map((output, place) => html`<button type="button" key=${output.id} onClick=${() => onPick(output.url)}
          aria-label=${`Use image ${place + 1}`}><${Thumb} kind="image" output=${output} width="480" /></button>`)}</div>`)}<//>
  <//>`;
}

const notImages = (names) => `${names.join(", ")} ${names.length === 1 ? "is not an image" : "are not images"}. Only images can be used here.`;

export function ImageInputs({ label, help, images, most, wrong, onChange, children }) {
  const [picking, setPicking] = useState(false);
  const [problem, setProblem] = useState("");
  const [over, setOver] = useState(false);
  const chooser = useRef(null);
  const add = async (pending) => {
    setProblem("");
    try {
      const added = await Promise.all(pending);
      onChange([...images, ...added].slice(-most));
    } catch (fault) {
      setProblem(fault.message);
    }
  };
  const addFiles = (files) => {
    const found = [...files].filter((file) => file.type.startsWith("image/"));
    const others = [...files].filter((file) => !file.type.startsWith("image/")).map(({ name }) => name || "The file");
    if (found.length) add(found.map(fromFile)).then(() => { if (others.length) setProblem(notImages(others)); });
    else if (files.length) setProblem(notImages(others));
  };
  useEffect(() => {
    const paste = (event) => { if (event.clipboardData?.files.length) { event.preventDefault(); addFiles(event.clipboardData.files); } };
    document.addEventListener("paste", paste);
    return () => document.removeEventListener("paste", paste);
  }, [images, most]);
  const drop = (event) => {
    event.preventDefault();
    setOver(false);
    addFiles(event.dataTransfer.files);
  };
  return html`<div class="field" role="group" aria-label=${label}>
    <span class="label">${label}</span>
    <div class=${`drop ${over ? "over" : ""}`} onDragOver=${(event) => { event.preventDefault(); setOver(true); }}
        onDragLeave=${() => setOver(false)} onDrop=${drop}>
      ${images.length > 0 && html`<ul class="thumbs">${images.map((image, place) => html`<li key=${place}>
        <img src=${image.preview} alt=${`Input ${place + 1}`} />
        <button type="button" class="button small icon" aria-label=${`Remove input ${place + 1}`}
          onClick=${() => onChange(images.filter((other) => other !== image))}><${Icon} name="close" size="12" /></button></li>`)}</ul>`}
      ${images.length < most && html`<p class="soft small">
          ${images.length ? "Add another, or drop it here." : "Drop an image here, or paste one."}</p>`}
      <div class="row">
        <button type="button" class="button small" onClick=${() => chooser.current.click()}>Choose a file</button>
        <button type="button" class="button small" onClick=${() => setPicking(true)}>Earlier results</button>
        ${children}
      </div>
      <input ref=${chooser} class="only-heard" type="file" accept="image/*"
          multiple=${most > 1} tabindex="-1" aria-label=${`${label}: file`}
        onChange=${(event) => { addFiles(event.target.files); event.target.value = ""; }} />
    </div>
    ${(problem || wrong) && html`<span class="wrong" role="alert">${problem || wrong}</span>`}
    ${help && html`<span class="help">${help}</span>`}
    ${picking && html`<${EarlierResults} onClose=${() => setPicking(false)}
        onPick=${(url) => { setPicking(false); add([fromStored(url)]); }} />`}
  </div>`;
}
