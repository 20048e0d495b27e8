// What all panels need: elements, words for errors, numbers as text.

export const $ = (id) => document.getElementById(id);

/** Makes an element. Attributes that are functions are event listeners; false and null leave an attribute out. */
export function make(tag, attributes = {}, ...children) {
  const e = document.createElement(tag);
  set(e, attributes);
  e.append(...children);
  return e;
}

export function makeSVG(tag, attributes = {}, ...children) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
  set(e, attributes);
  e.append(...children);
  return e;
}

function set(e, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") e.addEventListener(name, value);
    else if (value !== false && value !== null && value !== undefined) e.setAttribute(name, value === true ? "" : value);
  }
}

/** Writes to a status line; a kind of "bad" or "good" colours it. */
export function say(status, text, kind = "") {
  status.textContent = text;
  status.classList.toggle("bad", kind === "bad");
  status.classList.toggle("good", kind === "good");
}

/** What an error means to a reader. */
export function explain(error) {
  switch (error?.name) {
    case "AbortError":
      return "Cancelled.";
    case "NotAllowedError":
      return "The browser may not use the camera: allow it in the address bar, or open a file.";
    case "NotFoundError":
    case "OverconstrainedError":
      return "There is no camera on this machine.";
    case "NotReadableError":
      return "The camera is in use elsewhere, or does not answer.";
    case "DeviceLostError":
      return `The device is lost: ${error.message}. Open it again above.`;
  }
  if (!error?.message) return String(error);
  return error.name === "Error" ? error.message : `${error.name}: ${error.message}`;
}

/**
 * Runs a measurement with its buttons, its progress bar and its status line. Work gets an AbortSignal and a function that shows
 * progress from 0 to 1, and returns what to say at the end.
 */
export async function measure({ start, cancel, progress, status }, work) {
  const controller = new AbortController();
  const abort = () => controller.abort();
  cancel.addEventListener("click", abort);
  start.disabled = true;
  cancel.disabled = false;
  progress.hidden = false;
  progress.value = 0;
  try {
    const show = (share, text) => {
      progress.value = share;
      if (text) say(status, text);
    };
    say(status, await work(controller.signal, show), "good");
  } catch (error) {
    say(status, explain(error), error?.name === "AbortError" ? "" : "bad");
  } finally {
    cancel.removeEventListener("click", abort);
    start.disabled = false;
    if (document.activeElement === cancel) start.focus(); // a disabled element would lose the focus to the page
    cancel.disabled = true;
    progress.hidden = true;
  }
}

/** Lets the page paint and take input. */
export const pause = () => new Promise((resolve) => setTimeout(resolve));

export function median(list) {
  const sorted = [...list].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** A number with three significant digits and no exponent. */
export function figure(x) {
  if (!Number.isFinite(x)) return String(x);
  const digits = x === 0 ? 0 : Math.max(0, 2 - Math.floor(Math.log10(Math.abs(x))));
  return x.toLocaleString("en", { minimumFractionDigits: Math.min(digits, 4), maximumFractionDigits: Math.min(digits, 4) });
}

export const milliseconds = (t) => `${figure(t)} ms`;

/** Numbers from −1 to 1 that are the same on each visit. */
export function noise(n, seed = 1) {
  const x = new Float32Array(n);
  let state = seed >>> 0 || 1;
  for (let i = 0; i < n; i++) {
    state ^= state << 13; // xorshift32, Marsaglia 2003
    state ^= state >>> 17;
    state ^= state << 5;
    x[i] = (state >>> 0) / 2 ** 31 - 1;
  }
  return x;
}
