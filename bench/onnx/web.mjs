// Times real ONNX models with wavelane/onnx and with onnxruntime-web in turns: both as WebAssembly on one thread of Node.js.
//
//   make wasm-package && npm install --prefix /tmp/peer onnxruntime-web
//   node bench/onnx/web.mjs out/npm/wavelane /tmp/peer/node_modules/onnxruntime-web ~/.cache/wavelane/onnx-*/cases/real [TURNS]
//
// Printed are the medians of the turns' times and of their ratios, the largest difference of the results, and what a page downloads.

import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { readTensor } from "../../wasm/internal/jstest/tensor.js";

const [ours, theirs, folder, turns = "5"] = process.argv.slice(2);
const { load, tensor } = await import(pathToFileURL(resolve(ours, "onnx.js")));
const ort = await import(pathToFileURL(resolve(theirs, "dist", "ort.wasm.min.mjs")));
ort.env.wasm.numThreads = 1;
ort.env.logLevel = "error";

const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];

/** The median of some runs. */
async function timed(run) {
  const times = [];
  for (let i = 0; i < 9; i++) {
    const start = performance.now();
    await run();
    times.push(performance.now() - start);
  }
  return median(times);
}

console.log(`${"model".padEnd(32)} onnxruntime-web ms  wavelane ms  ratio (above 1: wavelane is faster)  largest difference`);
for (const name of readdirSync(folder).sort()) {
  const data = new Uint8Array(readFileSync(join(folder, name, "model.onnx")));
  const [a, b] = [await load(data, { device: "cpu" }), await ort.InferenceSession.create(data)];
  const [x, y] = [{}, {}];
  a.inputs.forEach((v, i) => {
    const path = join(folder, name, "test_data_set_0", `input_${i}.pb`);
    if (!existsSync(path)) return;
    const t = readTensor(new Uint8Array(readFileSync(path)));
    x[v.name] = tensor(t.data, t.shape);
    y[v.name] = new ort.Tensor(t.name, t.data, t.shape);
  });
  const [got, want] = [await a.run(x), await b.run(y)];
  let worst = 0;
  for (const output of Object.keys(want)) {
    const g = got[output].data, w = want[output].data;
    if (g.length !== w.length) throw new Error(`${name}: ${output} has ${g.length} elements, ${w.length} there`);
    for (let i = 0; i < w.length; i++) worst = Math.max(worst, Math.abs(Number(g[i]) - Number(w[i])));
  }
  const times = [];
  for (let i = 0; i < Number(turns); i++) times.push([await timed(() => b.run(y)), await timed(() => a.run(x))]);
  const [t, o, ratio] = [median(times.map(([t]) => t)), median(times.map(([, o]) => o)), median(times.map(([t, o]) => t / o))];
  console.log(`${name.padEnd(32)} ${t.toFixed(2).padStart(18)}  ${o.toFixed(2).padStart(11)}  ${ratio.toFixed(2).padStart(5)}  ${worst.toExponential(1).padStart(30)}`);
  a.close();
  await b.release();
}
const size = (...files) => files.reduce((n, f) => n + gzipSync(readFileSync(f), { level: 9 }).length, 0);
const modules = readdirSync(ours).filter((f) => f.endsWith(".js") && f !== "wavelane.js").map((f) => join(ours, f));
const dist = (f) => join(theirs, "dist", f);
console.log(`downloads, compressed: onnxruntime-web ${size(dist("ort.wasm.min.mjs"), dist("ort-wasm-simd-threaded.mjs"), dist("ort-wasm-simd-threaded.wasm"))} bytes, ` +
  `wavelane/onnx ${size(join(ours, "wavelane-onnx.wasm"), ...modules)} bytes`);
