// node api_node.js <folder of the package>: tests the API on the CPU device and prints a report.

import { pathToFileURL } from "node:url";
import { run } from "./api.js";
import { ending } from "./ending.js";

const globals = Object.getOwnPropertyNames(globalThis);
const [folder] = process.argv.slice(2);

// The program's memory, to see it grow, and what makes it fail: from then on, whatever it imports throws, as a trap of its
// own would.
let memory = null;
let fail = null;
const instantiate = WebAssembly.instantiate;
WebAssembly.instantiate = async (module, imports) => {
  let failing = false;
  const functions = Object.entries(imports?.gojs ?? {}).map(([name, f]) => [name, (...args) => {
    if (failing) throw new WebAssembly.RuntimeError(`${name} on purpose`);
    return f(...args);
  }]);
  if (!functions.length) return instantiate.call(WebAssembly, module, imports); // not Go's
  const result = await instantiate.call(WebAssembly, module, { ...imports, gojs: Object.fromEntries(functions) });
  memory = result.exports.mem;
  fail = () => { failing = true; };
  return result;
};

const wavelane = await import(pathToFileURL(`${folder}/wavelane.js`));
const dev = await wavelane.open();
const report = await run(wavelane, dev, { globals, calls: 10_000, wasmBytes: () => memory.buffer.byteLength });
dev.close();
report["the end of the program"] = await ending(wavelane, () => fail());
console.log(JSON.stringify(report));
