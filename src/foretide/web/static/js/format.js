// How numbers and instants are written. Not measured is a dash, never 0.
export const NONE = "–";

export function number(value) {
  if (value === null || value === undefined) return NONE;
  const size = Math.abs(value);
  if (size >= 1e9) return trim(value / 1e9) + "G";
  if (size >= 1e6) return trim(value / 1e6) + "M";
  if (size >= 1e4) return trim(value / 1e3) + "k";
  if (size >= 100 || Number.isInteger(value)) return Math.round(value).toString();
  return trim(value);
}

function trim(value) {
  return value.toFixed(Math.abs(value) >= 100 ? 0 : 1).replace(/\.0$/, "");
}

export function milliseconds(ms) {
  if (ms === null || ms === undefined) return NONE;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 120000) return `${trim(ms / 1000)} s`;
  return `${trim(ms / 60000)} min`;
}

// Rounded down, so that a share never reads better than it is: one decimal, two near 100 %.
export function percent(share) {
  if (share === null || share === undefined) return NONE;
  const digits = share >= 0.99 && share < 1 ? 2 : 1;
  const scaled = Math.floor(share * 100 * 10 ** digits + 1e-6) / 10 ** digits;
  return `${Number(scaled.toFixed(digits))} %`;
}

export function plural(count, noun) {
  return `${number(count)} ${noun}${count === 1 ? "" : "s"}`;
}

export function bytes(size) {
  if (size === null || size === undefined) return NONE;
  const unit = ["B", "kB", "MB", "GB", "TB"];
  const step = size < 1000 ? 0 : Math.min(unit.length - 1, Math.floor(Math.log10(size) / 3));
  return `${trim(size / 1000 ** step)} ${unit[step]}`;
}

// A journal of a scripted or simulated run may count from 0: its instants are then shown as time since its start.
export const isClock = (at) => at > 1e8;

export function instant(at, seconds = true) {
  if (at === null || at === undefined) return NONE;
  if (!isClock(at)) return span(at);
  return new Date(at * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: seconds ? "2-digit" : undefined, hour12: false });
}

export function span(seconds) {
  const s = Math.round(seconds);
  if (s < 60) return `${s} s`;
  if (s < 3600) return s % 60 ? `${Math.floor(s / 60)} min ${s % 60} s` : `${s / 60} min`;
  const m = Math.round((s % 3600) / 60);
  return m ? `${Math.floor(s / 3600)} h ${m} min` : `${Math.floor(s / 3600)} h`;
}
