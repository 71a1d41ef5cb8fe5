"use strict";
/* Time on an axis: dates in UTC where they are known, else the time since the start. */
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const ELAPSED_TICKS_S = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 432000, 864000, 1728000,
];
const DATED_TICKS_S = [...ELAPSED_TICKS_S.filter((s) => s <= 86400), 172800, 604800, 1209600, 2419200];
const two = (n) => String(n).padStart(2, "0");

function elapsed(seconds) {
  const s = Math.round(seconds);
  if (s >= 172800) return Math.floor(s / 86400) + " d " + two(Math.floor((s % 86400) / 3600)) + " h";
  const tail = two(Math.floor((s % 3600) / 60)) + ":" + two(s % 60);
  return s >= 3600 ? Math.floor(s / 3600) + ":" + tail : tail;
}

/* `start`: UTC seconds of time 0, or null. `write` is for a sentence, `ticks` for an axis. */
function timeline(start) {
  if (start === null || start === undefined)
    return {
      at: (s) => s,
      write: (s) => elapsed(s),
      axis: { incrs: ELAPSED_TICKS_S, values: (_, at) => at.map(elapsed), space: 70 },
    };
  const day = (d) => `${d.getUTCDate()} ${MONTHS[d.getUTCMonth()]}`;
  const time = (d, seconds) => `${two(d.getUTCHours())}:${two(d.getUTCMinutes())}` + (seconds ? `:${two(d.getUTCSeconds())}` : "");
  const tick = (t, step) => {
    const d = new Date(t * 1000);
    if (step >= 86400) return day(d);
    return t % 86400 === 0 ? day(d) : time(d, step < 60);
  };
  return {
    at: (s) => start + s,
    write: (t) => {
      const d = new Date(t * 1000);
      return `${day(d)} ${d.getUTCFullYear()}, ${time(d, true)} UTC`;
    },
    axis: {
      incrs: DATED_TICKS_S,
      space: 70,
      values: (_, splits, __, ___, step) => {
        const shown = splits.map((t) => tick(t, step));
        if (step < 86400 && shown.length && !splits.some((t) => t % 86400 === 0)) shown[0] = `${day(new Date(splits[0] * 1000))} ${shown[0]}`;
        return shown;
      },
    },
  };
}
