// What tests call in pages, and workers in theirs.

import * as tables from "/package/operations.js";
import * as wavelane from "/package/wavelane.js";
import { run } from "./api.js";
import { hidden } from "./hidden.js";
import { interop } from "./interop.js";
import { answer } from "./remote.js";

const instantiate = WebAssembly.instantiate;
let memory = null;
WebAssembly.instantiate = async (...args) => {
  const result = await instantiate.apply(WebAssembly, args);
  memory = (result.instance ?? result).exports.mem ?? memory;
  return result;
};

export const jobs = {
  async info(options) {
    const dev = await wavelane.open(options);
    dev.close();
    return dev.info;
  },

  /** Answers conformance cases. */
  async conform(options) {
    const dev = await wavelane.open(options);
    const n = await answer(wavelane, tables, dev, location.origin);
    dev.close();
    return n;
  },

  /** Tests the API. */
  async api(options) {
    const dev = await wavelane.open(options);
    const globals = Object.getOwnPropertyNames(globalThis);
    const calls = options.device === "cpu" ? 2000 : 400;
    const report = await run(wavelane, dev, { globals, calls, wasmBytes: () => memory.buffer.byteLength });
    dev.close();
    return report;
  },

  /** Tests models. */
  async onnx(options) {
    const [onnx, { run }] = await Promise.all([import("/package/onnx.js"), import("./onnx.js")]);
    return run(onnx, options);
  },

  /** Tests language models. */
  async llm(options) {
    const [llm, { run }] = await Promise.all([import("/package/llm.js"), import("./llm.js")]);
    return run(llm, options, location.origin);
  },

  /** Tests what the browser keeps of them. */
  async keeps() {
    const [llm, { keeps }] = await Promise.all([import("/package/llm.js"), import("./llm.js")]);
    return keeps(llm, location.origin);
  },

  /** Tests real models. */
  async real(options) {
    const [onnx, { run }] = await Promise.all([import("/package/onnx.js"), import("./real.js")]);
    return run(onnx, options);
  },

  interop: () => interop(wavelane),

  hidden,

  /** Runs a job in a worker. */
  worker(name, options) {
    const w = new Worker("/test/worker.js", { type: "module" });
    return new Promise((resolve, reject) => {
      w.onmessage = ({ data }) => (data.error ? reject(new Error(data.error)) : resolve(data.result));
      w.onerror = (e) => reject(new Error(e.message));
      w.postMessage({ name, options });
    }).finally(() => w.terminate());
  },
};
