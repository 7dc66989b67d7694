// Draw a mask on an image: what is painted is edited. The mask is a PNG that is transparent where it was painted.

import { Dialog } from "../parts/controls.js";
import { Icon } from "../parts/icons.js";
import { html, useEffect, useRef, useState } from "../view.js";

const PAINT = "rgb(226 62 87)";
const KEYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

// Returns a canvas whose painted pixels became holes in black.
function cutOut(painted) {
  const mask = document.createElement("canvas");
  mask.width = painted.width;
  mask.height = painted.height;
  const context = mask.getContext("2d");
  context.fillRect(0, 0, mask.width, mask.height);
  context.globalCompositeOperation = "destination-out";
  context.drawImage(painted, 0, 0);
  // The edge of a stroke is half transparent; a mask has only open and closed pixels.
  const pixels = context.getImageData(0, 0, mask.width, mask.height);
  for (let at = 3; at < pixels.data.length; at += 4) pixels.data[at] = pixels.data[at] < 128 ? 0 : 255;
  context.putImageData(pixels, 0, 0);
  return mask;
}

export function MaskEditor({ image, onDone, onClose }) {
  const canvas = useRef(null);
  const last = useRef(null);
  const history = useRef([]);
  const spot = useRef({ x: 0.5, y: 0.5 });
  const cursor = useRef(null);
  const [tool, setTool] = useState("brush");
  const [width, setWidth] = useState(12); // percent of the shorter side
  const [size, setSize] = useState(null);
  const [painted, setPainted] = useState(false);

  useEffect(() => {
    const loaded = new Image();
    loaded.onload = () => setSize({ width: loaded.naturalWidth, height: loaded.naturalHeight });
    loaded.src = image.preview;
  }, [image]);

  const radius = () => (Math.min(canvas.current.width, canvas.current.height) * width) / 200;
  const remember = () => {
    const context = canvas.current.getContext("2d");
    history.current = [...history.current.slice(-19), context.getImageData(0, 0, canvas.current.width, canvas.current.height)];
  };
  const stroke = (from, to) => {
    const context = canvas.current.getContext("2d");
    context.globalCompositeOperation = tool === "brush" ? "source-over" : "destination-out";
    context.strokeStyle = PAINT;
    context.lineCap = "round";
    context.lineWidth = radius() * 2;
    context.beginPath();
    context.moveTo(from.x, from.y);
    context.lineTo(to.x + 0.01, to.y);
    context.stroke();
    setPainted(true);
  };
  const place = (event) => {
    const box = canvas.current.getBoundingClientRect();
    return { x: ((event.clientX - box.left) / box.width) * canvas.current.width, y: ((event.clientY - box.top) / box.height) * canvas.current.height };
  };
  const down = (event) => {
    canvas.current.setPointerCapture(event.pointerId);
    remember();
    last.current = place(event);
    stroke(last.current, last.current);
  };
  const move = (event) => {
    if (!last.current) return;
    const next = place(event);
    stroke(last.current, next);
    last.current = next;
  };
  const moveCursor = () => {
    cursor.current.style.left = `${spot.current.x * 100}%`;
    cursor.current.style.top = `${spot.current.y * 100}%`;
  };
  // By keyboard: the arrows move the brush, the space bar paints.
  const press = (event) => {
    const at = () => ({ x: spot.current.x * canvas.current.width, y: spot.current.y * canvas.current.height });
    if (KEYS[event.key]) {
      const [x, y] = KEYS[event.key];
      const before = at();
      spot.current = { x: Math.min(1, Math.max(0, spot.current.x + x * 0.03)), y: Math.min(1, Math.max(0, spot.current.y + y * 0.03)) };
      if (event.shiftKey) stroke(before, at());
    } else if (event.key === " ") {
      remember();
      stroke(at(), at());
    } else return;
    moveCursor();
    event.preventDefault();
  };
  const undo = () => {
    const before = history.current.pop();
    if (before) canvas.current.getContext("2d").putImageData(before, 0, 0);
    if (!history.current.length) setPainted(false);
  };
  const clear = () => {
    canvas.current.getContext("2d").clearRect(0, 0, canvas.current.width, canvas.current.height);
    history.current = [];
    setPainted(false);
  };

  const footer = html`
    <button type="button" class="button" onClick=${onClose}>Cancel</button>
    <button type="button" class="button main" id="use-mask" disabled=${!painted}
        onClick=${() => onDone(cutOut(canvas.current).toDataURL("image/png"))}>Use this mask</button>`;
  return html`<${Dialog} title="Paint what to change" wide onClose=${onClose} footer=${footer}>
    <div class="row">
      <div class="tabs" role="group" aria-label="Tool">
        <button type="button" aria-pressed=${String(tool === "brush")} onClick=${() => setTool("brush")}><${Icon}
            name="brush" />Brush</button>
        <button type="button" aria-pressed=${String(tool === "eraser")} onClick=${() => setTool("eraser")}>Eraser</button>
      </div>
      <label class="row grow small">Width <input class="grow" type="range" min="2" max="40" value=${width}
          onInput=${(event) => setWidth(Number(event.target.value))} /></label>
      <button type="button" class="button small" onClick=${undo}>Undo</button>
      <button type="button" class="button small" onClick=${clear}>Clear</button>
    </div>
    <div class="easel">
      <img src=${image.preview} alt="The image to edit" />
      ${size && html`<canvas ref=${canvas} id="mask" width=${size.width} height=${size.height} tabindex="0" role="img"
        aria-label="Mask. Paint with the mouse, or move with the arrow keys and paint with the space bar; with Shift the arrows paint."
        onPointerDown=${down} onPointerMove=${move} onPointerUp=${() => { last.current = null; }} onKeyDown=${press}></canvas>
        <span ref=${cursor} class="brush-spot" aria-hidden="true"></span>`}
    </div>
  <//>`;
}
