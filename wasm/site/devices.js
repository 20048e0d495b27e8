// The device that the panels share.

import { open } from "./wavelane/wavelane.js";

const listeners = [];
let device = null;
let opening = null; // the AbortController of an open in progress

/** The open device, or null. */
export const current = () => device;

/** The open device, or an error that says where to open one. */
export function need() {
  if (!device || device.closed) throw new Error("no device is open: open one in the first panel");
  return device;
}

/** Calls f with each device that is opened from now on, and with null before one is closed: what was made on it ends with it. */
export function onDevice(f) {
  listeners.push(f);
}

/** Opens a device in place of the one before. Where that fails, the one before stays. */
export async function switchTo(options) {
  opening?.abort();
  const controller = (opening = new AbortController());
  const next = await open({ ...options, signal: controller.signal });
  if (controller.signal.aborted) {
    next.close();
    controller.signal.throwIfAborted();
  }
  const before = device;
  if (before) for (const f of listeners) f(null);
  before?.close();
  device = next;
  for (const f of listeners) f(device);
  return device;
}
