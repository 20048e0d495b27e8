// GFLOPS of matrix products by size: WebGPU, the CPU device, and plain JavaScript.

import { open } from "../wavelane/wavelane.js";
import { plot } from "../plot.js";
import { $, pause, figure, make, measure, median, noise } from "../ui.js";

const ways = ["WebGPU", "wasm SIMD (CPU device)", "plain JavaScript"];
const smallest = 64;
const checked = 256; // up to here, results are compared with those of plain JavaScript
const patience = 6000; // milliseconds that a run of plain JavaScript may take

export function init() {
  const elements = { start: $("matmul-start"), cancel: $("matmul-cancel"), progress: $("matmul-progress"), status: $("matmul-status") };
  const series = ways.map((name) => ({ name, points: [] }));
  show(series, sizes());
  $("matmul-largest").addEventListener("change", () => show(series, sizes(), true));
  elements.start.addEventListener("click", () => measure(elements, (signal, progress) => benchmark(series, signal, progress)));
}

function sizes() {
  const list = [];
  for (let n = smallest; n <= Number($("matmul-largest").value); n *= 2) list.push(n);
  return list;
}

async function benchmark(series, signal, progress) {
  const all = sizes();
  const skipped = [];
  const devices = [];
  for (const s of series) s.points = [];
  show(series, all);
  try {
    for (const device of ["webgpu", "cpu"]) {
      try {
        devices.push(await open({ device, software: $("device-software").checked, signal }));
      } catch (error) {
        if (signal.aborted) throw error;
        devices.push(null);
        skipped.push(`${device === "webgpu" ? "WebGPU" : "CPU device"}: ${error.message}`);
      }
    }
    let worst = 0;
    let jsRate = 0; // operations per millisecond
    for (const [i, n] of all.entries()) {
      const a = noise(n * n, 1);
      const b = noise(n * n, 2).map((v) => v * Math.sqrt(3 / n)); // x·b is about as large as x
      const want = n <= checked ? await plain(a, b, n, signal) : null;
      for (const [way, name] of ways.entries()) {
        signal.throwIfAborted();
        progress((i + way / ways.length) / all.length, `n = ${n}: ${name} …`);
        let rate;
        if (way < 2) {
          if (!devices[way]) continue;
          if (want) worst = Math.max(worst, difference(await devices[way].matmul(a, b, n, n, n, { signal }), want));
          rate = await onDevice(devices[way], a, b, n, signal);
        } else {
          if (jsRate && (2 * n ** 3) / jsRate > patience) {
            skipped.push(`plain JavaScript at n = ${n} would take ${figure((2 * n ** 3) / jsRate / 1000)} s`);
            continue;
          }
          rate = jsRate = await inJavaScript(a, b, n, signal);
        }
        series[way].points.push([n, rate / 1e6]);
        show(series, all);
        await pause();
      }
    }
    if (!(worst < 1e-3)) throw new Error(`the results differ by ${worst} from those of plain JavaScript`);
    return [`Done. Up to n = ${Math.min(checked, all.at(-1))} all results were compared with plain JavaScript’s: they differ by at most ${worst.toExponential(1)}.`,
      ...skipped.map((s) => `Left out: ${s}.`)].join(" ");
  } finally {
    for (const device of devices) device?.close();
  }
}

/** Operations per millisecond of a chain of products on a device: as many in a batch as take some 100 ms. */
async function onDevice(device, a, b, n, signal) {
  const x = await device.upload(a, [n, n], { signal });
  const y = await device.upload(b, [n, n], { signal });
  let count = 1;
  for (;;) {
    const batch = device.batch();
    let v = batch.import(x);
    const right = batch.import(y);
    for (let i = 0; i < count; i++) v = batch.matmul(v, right);
    batch.read(batch.slice(v, { start: [0, 0], size: [1, 1] })); // waits for all of it
    const plan = await batch.compile({ signal });
    await plan.run({ signal }); // warm
    const times = [];
    for (let run = 0; run < 3; run++) {
      const start = performance.now();
      await plan.run({ signal });
      times.push(performance.now() - start);
      await pause();
    }
    plan.close();
    const time = Math.max(median(times), 0.05);
    if (time > 60 || count >= 128) {
      x.close();
      y.close();
      return (count * 2 * n ** 3) / time;
    }
    count = Math.min(128, Math.ceil((count * 100) / time));
  }
}

/** Operations per millisecond of the triple loop. */
async function inJavaScript(a, b, n, signal) {
  const rates = [];
  for (let spent = 0; rates.length < 3 && spent < patience / 2;) {
    const clock = { time: 0 };
    await plain(a, b, n, signal, clock);
    rates.push((2 * n ** 3) / Math.max(clock.time, 0.05));
    spent += clock.time;
  }
  return median(rates);
}

/** The product by three loops; between rows the page may paint, which does not count. */
async function plain(a, b, n, signal, clock = { time: 0 }) {
  const c = new Float32Array(n * n);
  for (let i = 0; i < n;) {
    const start = performance.now();
    do rowOfProduct(a, b, c, n, i++); while (i < n && performance.now() - start < 20);
    clock.time += performance.now() - start;
    if (i < n) await pause();
    signal.throwIfAborted();
  }
  return c;
}

function rowOfProduct(a, b, c, n, i) {
  for (let k = 0; k < n; k++) {
    const v = a[i * n + k];
    for (let j = 0; j < n; j++) c[i * n + j] += v * b[k * n + j];
  }
}

function difference(x, y) {
  let worst = 0;
  for (let i = 0; i < y.length; i++) {
    const d = Math.abs(x[i] - y[i]);
    if (!(d <= worst)) worst = d; // NaN too
  }
  return worst;
}

function show(series, ticks, keep = false) {
  const measured = series.flatMap((s) => s.points.map((p) => p[0]));
  if (keep && measured.length) return; // the axis of what is shown stays
  plot($("matmul-plot"), { title: "GFLOPS by size", x: { label: "n, size of the matrices n × n", ticks }, y: { label: "GFLOPS" }, series });
  const table = $("matmul-table");
  table.hidden = !measured.length;
  table.tHead.replaceChildren(make("tr", {}, make("th", { scope: "col" }, "n"), ...series.map((s) => make("th", { scope: "col", class: "number" }, s.name))));
  table.tBodies[0].replaceChildren(...ticks.filter((n) => measured.includes(n)).map((n) => make("tr", {}, make("th", { scope: "row" }, String(n)),
    ...series.map((s) => make("td", { class: "number" }, figure(s.points.find((p) => p[0] === n)?.[1] ?? NaN).replace("NaN", "–"))))));
}
