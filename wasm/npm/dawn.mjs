// Runs a Go program of GOOS=js under Node.js with Dawn, the WebGPU of Chromium, as navigator.gpu: for go test -exec. Unlike Chromium
// it takes any Vulkan adapter, and one that computes nothing but has every feature: DAWN=backend=null. The environment variable
// has Dawn's options, separated by spaces.

import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { create, globals } from "webgpu";

Object.assign(globalThis, globals);
const options = (process.env.DAWN ?? "").split(" ").filter(Boolean);
Object.defineProperty(globalThis, "navigator", { value: { gpu: create(options) }, configurable: true });
process.argv.splice(1, 1); // what Go's loader expects: it, the program, arguments
process.argv.splice(1, 0, "go_js_wasm_exec");
createRequire(import.meta.url)(execFileSync("go", ["env", "GOROOT"], { encoding: "utf8" }).trim() + "/lib/wasm/wasm_exec_node.js");
