// Times real ONNX models with wavelane/onnx and with onnxruntime-web in turns: both as WebAssembly on one thread of Node.js, or, with
// --webgpu, both on WebGPU in headless Chromium, whose adapter is SwiftShader, a software one.
//
//   make wasm-package && npm install --prefix /tmp/peer onnxruntime-web
//   node bench/onnx/web.mjs [--webgpu] out/npm/wavelane /tmp/peer/node_modules/onnxruntime-web ~/.cache/wavelane/onnx-*/cases/real [TURNS]
//
// Printed are the medians of the turns' times and of their ratios, the largest difference of the results, and what a page downloads.
// Chromium is the program that the environment variable CHROMIUM names, or chromium.

import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join, normalize, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { readTensor } from "../../wasm/internal/jstest/tensor.js";
import { compare } from "./turns.js";

const args = process.argv.slice(2).filter((a) => a !== "--webgpu");
const [ours, theirs, folder, turns = "5"] = args;
const here = import.meta.dirname;
const models = readdirSync(folder).sort();

async function inNode() {
  const onnx = await import(pathToFileURL(resolve(ours, "onnx.js")));
  const ort = await import(pathToFileURL(resolve(theirs, "dist", "ort.wasm.min.mjs")));
  ort.env.wasm.numThreads = 1;
  ort.env.logLevel = "error";
  for (const name of models) {
    const read = (path) => new Uint8Array(readFileSync(join(folder, name, path)));
    const tensors = [0, 1, 2, 3].map((i) => `test_data_set_0/input_${i}.pb`).map((f) => (existsSync(join(folder, name, f)) ? readTensor(read(f)) : null));
    console.log(await compare(name, read("model.onnx"), tensors, { onnx, options: { device: "cpu" } }, { ort, providers: ["wasm"] }, Number(turns), 9));
  }
}

async function inChromium() {
  const types = { ".js": "text/javascript", ".mjs": "text/javascript", ".html": "text/html", ".wasm": "application/wasm" };
  const roots = { ours, theirs: join(theirs, "dist"), real: folder };
  let done;
  const end = new Promise((resolve) => (done = resolve));
  const server = createServer(async (request, response) => {
    const path = normalize(decodeURIComponent(new URL(request.url, "http://localhost").pathname));
    if (path === "/say" || path === "/done") {
      let text = "";
      for await (const part of request) text += part;
      if (text) console.log(text);
      if (path === "/done") done();
      return response.end();
    }
    if (path === "/models") return response.end(JSON.stringify({ models, turns: Number(turns) }));
    const [, root, ...rest] = path.split("/");
    const fixed = { "turns.js": join(here, "turns.js"), "tensor.js": join(here, "../../wasm/internal/jstest/tensor.js"), "webgpu.html": join(here, "webgpu.html") };
    const file = roots[root] ? join(roots[root], ...rest) : fixed[root];
    if (!file || !existsSync(file)) {
      response.statusCode = 404;
      return response.end();
    }
    response.setHeader("Content-Type", types[extname(file)] ?? "application/octet-stream");
    response.end(readFileSync(file));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const profile = mkdtempSync(join(tmpdir(), "chromium-"));
  const browser = spawn(process.env.CHROMIUM ?? "chromium", ["--headless=new", "--no-sandbox", "--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader",
    `--user-data-dir=${profile}`, "--no-first-run", "--disable-background-networking", `http://127.0.0.1:${server.address().port}/webgpu.html`], { stdio: "ignore" });
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => browser.kill());
  const gone = new Promise((resolve) => browser.on("exit", () => resolve("Chromium has ended")).on("error", (e) => resolve(String(e))));
  const early = await Promise.race([end, gone]);
  if (early) console.log(early);
  browser.kill();
  await gone;
  server.closeAllConnections();
  server.close();
  rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
}

console.log(`${"model".padEnd(32)} onnxruntime-web ms  wavelane ms  ratio (above 1: wavelane is faster)  largest difference`);
const webgpu = args.length < process.argv.length - 2;
await (webgpu ? inChromium() : inNode());
const size = (...files) => files.reduce((n, f) => n + gzipSync(readFileSync(f), { level: 9 }).length, 0);
const modules = readdirSync(ours).filter((f) => f.endsWith(".js") && f !== "wavelane.js").map((f) => join(ours, f));
const dist = (f) => join(theirs, "dist", f);
const peer = webgpu ? ["ort.webgpu.min.mjs", "ort-wasm-simd-threaded.asyncify.mjs", "ort-wasm-simd-threaded.asyncify.wasm"]
  : ["ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm"];
console.log(`downloads, compressed: onnxruntime-web ${size(...peer.map(dist))} bytes, ` +
  `wavelane/onnx ${size(join(ours, "wavelane-onnx.wasm"), ...modules)} bytes`);
