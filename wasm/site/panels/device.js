// What the device is, and the choice of another.

import { onDevice, switchTo } from "../devices.js";
import { $, explain, make, say } from "../ui.js";

export function init() {
  const form = $("device-form");
  onDevice(show);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const data = new FormData(form);
    choose({ device: data.get("kind"), software: data.has("software") });
  });
  choose({});
}

async function choose(options) {
  const status = $("device-status");
  say(status, "Opening …");
  try {
    const device = await switchTo(options);
    say(status, `Open: ${device.info.kind === "cpu" ? "the CPU" : "WebGPU"}, ${device.info.name || "no name given"}.`, "good");
    device.lost.then((error) => say(status, explain(error), "bad"));
  } catch (error) {
    if (error.name !== "AbortError") say(status, explain(error), "bad"); // aborted: the reader has chosen anew
  }
}

function show(device) {
  $("device-info").hidden = !device;
  if (!device) return;
  const { info } = device;
  const facts = {
    kind: info.kind,
    name: info.name || "(not told)",
    vendor: info.vendor || "(not told)",
    backend: info.backend,
    adapter: info.kind === "webgpu" ? (info.software ? "software" : "hardware") : "none",
    reason: info.reason,
  };
  $("device-facts").replaceChildren(...Object.entries(facts).flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, String(value))]));
  $("device-features").replaceChildren(...(info.features.length ? info.features : ["none"]).map((f) => make("li", {}, f)));
  const limits = Object.entries(info.limits).sort(([a], [b]) => a.localeCompare(b));
  const rows = limits.map(([name, value]) => make("tr", {}, make("th", { scope: "row" }, name), make("td", { class: "number" }, limit(value))));
  $("device-limits").replaceChildren(...(rows.length ? rows : [make("tr", {}, make("td", { colspan: 2 }, "none: memory is all that limits the CPU"))]));
}

function limit(value) {
  return [value].flat().map((v) => v.toLocaleString("en")).join(" × ");
}
