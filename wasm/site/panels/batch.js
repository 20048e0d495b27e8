// A chain of operations as one batch, and as separate calls.

import { need } from "../devices.js";
import { $, pause, figure, make, measure, median, milliseconds, noise } from "../ui.js";

const size = 64 * 1024;
const lengths = [{ length: 16, rounds: 21 }, { length: 64, rounds: 9 }];

/** Steps that repeat along the chain; target is a device or a batch, which have the same operations. */
const cycle = [
  (target, x) => target.scale(x, 1.25),
  (target, x) => target.abs(x),
  (target, x) => target.sqrt(x),
  (target, x) => target.clip(x, 0.25, 4),
];

export function init() {
  const elements = { start: $("batch-start"), cancel: $("batch-cancel"), progress: $("batch-progress"), status: $("batch-status") };
  elements.start.addEventListener("click", () => measure(elements, compare));
}

async function compare(signal, progress) {
  const device = need();
  const input = noise(size);
  const results = [];
  $("batch-result").replaceChildren();
  for (const [i, { length, rounds }] of lengths.entries()) {
    const chain = Array.from({ length }, (_, k) => cycle[k % cycle.length]);
    const times = { separate: [], batch: [] };
    for (let round = -1; round < rounds; round++) { // the first compiles kernels
      signal.throwIfAborted();
      progress((i + (round + 1) / (rounds + 1)) / lengths.length, `${length} operations, run ${Math.max(round + 1, 1)} of ${rounds} …`);
      await pause();
      const one = await timed(() => separately(device, chain, input, signal));
      const other = await timed(() => asBatch(device, chain, input, signal));
      if (!same(one.value, other.value)) throw new Error(`the two ways differ in their results at ${length} operations`);
      if (round < 0) continue;
      times.separate.push(one.time);
      times.batch.push(other.time);
    }
    results.push({ length, separate: median(times.separate), batch: median(times.batch) });
    show(results);
  }
  return `Done on ${device.info.kind === "cpu" ? "the CPU" : "WebGPU"}; medians of ${lengths.map((l) => l.rounds).join(" and ")} runs. Both ways gave the same numbers.`;
}

async function separately(device, chain, input, signal) {
  let x = input;
  for (const step of chain) {
    signal.throwIfAborted();
    x = await step(device, x);
  }
  return x;
}

async function asBatch(device, chain, input, signal) {
  const b = device.batch();
  let v = b.upload(input);
  for (const step of chain) v = step(b, v);
  b.read(v);
  return (await b.run({ signal }))[0];
}

async function timed(work) {
  const start = performance.now();
  const value = await work();
  return { value, time: performance.now() - start };
}

const same = (x, y) => x.length === y.length && x.every((v, i) => v === y[i]);

function show(results) {
  $("batch-result").replaceChildren(...results.map(({ length, separate, batch }) => {
    const bar = (name, time, kind) => {
      const fill = make("span", { class: `fill ${kind}` });
      fill.style.width = `${(100 * time) / Math.max(separate, batch)}%`;
      return make("div", { class: "bar" }, make("span", { class: "name" }, name), make("span", { class: "track" }, fill), make("span", { class: "value" }, milliseconds(time)));
    };
    const ratio = make("strong", { "data-length": length, "data-ratio": separate / batch }, `${figure(separate / batch)} ×`);
    return make("div", { class: "comparison" }, make("h3", {}, `${length} operations: one batch is `, ratio, separate >= batch ? " as fast" : " as fast, that is slower"),
      bar("separate calls", separate, "other"), bar("one batch", batch, "ours"));
  }));
}
