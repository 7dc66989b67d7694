// Numbers, money and times as people read them.

const whole = new Intl.NumberFormat();

export const count = (number) => whole.format(number);

// Two decimals from a cent upwards; below that, as many as show two digits.
export function money(usd) {
  const amount = Number(usd ?? 0);
  const size = Math.abs(amount);
  if (size === 0) return "$0.00";
  const decimals = size >= 0.1 ? 2 : Math.min(9, 1 - Math.floor(Math.log10(size)));
  const text = size.toLocaleString(undefined, { minimumFractionDigits: 2, maximumFractionDigits: decimals });
  return `${amount < 0 ? "−" : ""}$${text}`;
}

export function duration(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
  return `${(ms / 3_600_000).toFixed(1)} h`;
}

export function bytes(number) {
  if (number === null || number === undefined) return "–";
  if (number < 1000) return `${number} B`;
  if (number < 1_000_000) return `${(number / 1000).toFixed(0)} kB`;
  return `${(number / 1_000_000).toFixed(1)} MB`;
}

export const moment = (text) => new Date(text).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
export const day = (text) => new Date(text).toLocaleDateString(undefined, { dateStyle: "medium" });
export const percent = (share) => (share === null || share === undefined ? "–" : `${(share * 100).toFixed(share >= 0.9995 || share === 0 ? 0 : 1)} %`);

const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "short" });
const STEPS = [["second", 60], ["minute", 60], ["hour", 24], ["day", 30], ["month", 12], ["year", Infinity]];

export function ago(text, now = Date.now()) {
  let distance = (new Date(text) - now) / 1000;
  if (Math.abs(distance) < 5) return "just now";
  for (const [unit, size] of STEPS) {
    if (Math.abs(distance) < size) return relative.format(Math.round(distance), unit);
    distance /= size;
  }
  return "";
}

export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;
