// node api_node.js <folder of the package>: tests the API on the CPU device and prints a report.

import { pathToFileURL } from "node:url";
import { run } from "./api.js";
import { ending } from "./ending.js";

const globals = Object.getOwnPropertyNames(globalThis);
const [folder] = process.argv.slice(2);

// The program's memory, to see it grow, and to spoil it.
let memory = null;
const instantiate = WebAssembly.instantiate;
WebAssembly.instantiate = async (...args) => {
  const result = await instantiate.apply(WebAssembly, args);
  memory = (result.instance ?? result).exports.mem ?? memory;
  return result;
};

const wavelane = await import(pathToFileURL(`${folder}/wavelane.js`));
const dev = await wavelane.open();
const report = await run(wavelane, dev, { globals, calls: 10_000, wasmBytes: () => memory.buffer.byteLength });
dev.close();
report["the end of the program"] = await ending(wavelane, () => memory);
console.log(JSON.stringify(report));
