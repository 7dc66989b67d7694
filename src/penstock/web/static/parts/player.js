// A sound that can be heard and seen: the browser's player under a waveform in which a click seeks.

import { html, useEffect, useRef, useState } from "../view.js";

const BARS = 160;
const HEIGHT = 48;
const RATE = 8000; // samples a second are enough for a picture
const LARGEST = 30 * 1024 ** 2; // bytes of a file that is loaded to be drawn

async function bytesOf({ url, file }) {
  if (file) return file.size > LARGEST ? null : file.arrayBuffer();
  const response = await fetch(url);
  if (!response.ok || Number(response.headers.get("content-length")) > LARGEST) return null;
  return response.arrayBuffer();
}

// The loudest sample of each part of a sound, from 0 to 1; the loudest of all is 1.
function peaks(samples) {
  const found = Array.from({ length: BARS }, (_, place) => {
    let most = 0;
    const end = Math.floor(((place + 1) * samples.length) / BARS);
    for (let index = Math.floor((place * samples.length) / BARS); index < end; index += 1) most = Math.max(most, Math.abs(samples[index]));
    return most;
  });
  const loudest = Math.max(...found) || 1;
  return found.map((peak) => peak / loudest);
}

const bars = (of) => of.map((peak, place) => {
  const half = Math.max(0.6, (peak * HEIGHT) / 2);
  return `M${place * 3} ${HEIGHT / 2 - half}h2v${2 * half}h-2z`;
}).join("");

// The outline of a sound, or null until it is known. A file that the browser cannot decode or may not read has none.
function useWaveform(url, file) {
  const [outline, setOutline] = useState(null);
  useEffect(() => {
    let isWanted = true;
    async function draw() {
      try {
        const bytes = await bytesOf({ url, file });
        const sound = bytes && await new OfflineAudioContext(1, 1, RATE).decodeAudioData(bytes);
        if (sound && isWanted) setOutline(bars(peaks(sound.getChannelData(0))));
      } catch { /* the player works without a picture */ }
    }
    setOutline(null);
    draw();
    return () => { isWanted = false; };
  }, [url, file]);
  return outline;
}

// `file` has the bytes where the page has them already. `onPlayer` gets the element, so that others can seek in it.
export function Player({ url, file, alt, type = "", onPlayer, onError }) {
  const player = useRef(null);
  const [played, setPlayed] = useState(0);
  const outline = useWaveform(url, file);
  useEffect(() => onPlayer?.(player.current), []);
  const seek = ({ currentTarget, clientX }) => {
    const { left, width } = currentTarget.getBoundingClientRect();
    const { current: audio } = player;
    if (Number.isFinite(audio.duration)) audio.currentTime = ((clientX - left) / width) * audio.duration;
  };
  const follow = ({ target }) => setPlayed(target.duration ? target.currentTime / target.duration : 0);
  if (type.startsWith("audio/pcm")) return html`<p class="gone soft small">A browser cannot play PCM, which has no header. Save the file instead.</p>`;
  return html`<div class="player">
    <svg class="waveform" viewBox=${`0 0 ${BARS * 3 - 1} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true" onClick=${seek}>
      ${outline && html`<path d=${outline} /><path class="played" d=${outline} style=${{ clipPath: `inset(0 ${100 - played * 100}% 0 0)` }} />`}</svg>
    <audio ref=${player} src=${url} controls preload="metadata" aria-label=${alt} onTimeUpdate=${follow} onSeeked=${follow} onError=${onError}></audio>
  </div>`;
}
