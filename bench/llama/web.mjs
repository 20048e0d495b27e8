// Times a language model with wavelane/llm and with wllama, llama.cpp as WebAssembly, in turns: both in workers of one page in Chromium, on one thread.
//
//   make wasm-package && npm install --prefix /tmp/peer @wllama/wllama puppeteer-core
//   node bench/llama/web.mjs out/npm/wavelane /tmp/peer/node_modules MODEL.gguf [TURNS] [CHROMIUM]
//
// Each turn continues the same prompt greedily, after one that both forget for it. Printed are the medians of the turns' tokens/s and of their
// ratios, the texts, and what a page downloads; then what wavelane/llm takes on WebGPU, by Chromium's software adapter, for a short prompt.

import { createReadStream, readFileSync, readdirSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { extname, join, resolve } from "node:path";
import { gzipSync } from "node:zlib";

const [ours, modules, file, turns = "5", chromium = "/usr/bin/chromium"] = process.argv.slice(2);
const theirs = join(modules, "@wllama/wllama/esm");
const puppeteer = createRequire(resolve(modules, "x.js"))("puppeteer-core");

const types = { ".js": "text/javascript", ".wasm": "application/wasm", ".html": "text/html" };
const server = createServer((q, r) => {
  const path = new URL(q.url, "http://x").pathname;
  r.setHeader("Content-Type", types[extname(path)] ?? "application/octet-stream");
  if (path === "/index.html") return r.end("<!doctype html><title>turns</title>");
  const from = path.startsWith("/ours/") ? join(ours, path.slice(6)) : path.startsWith("/theirs/") ? join(theirs, path.slice(8)) : path === "/model.gguf" ? file : "";
  if (!from || !statSync(from, { throwIfNoEntry: false })) return r.writeHead(404).end();
  r.setHeader("Content-Length", statSync(from).size);
  createReadStream(from).pipe(r);
}).listen(0, "127.0.0.1");
await new Promise((r) => server.once("listening", r));

/** Runs in the page. */
async function measure(turns) {
  const { load } = await import("/ours/llm.js");
  const { Wllama } = await import("/theirs/index.js");
  const bytes = await (await fetch("/model.gguf")).blob();
  const a = await load(bytes, { device: "cpu", context: 1024 });
  const b = new Wllama({ default: "/theirs/wasm/wllama.wasm" }, { suppressNativeLog: true });
  await b.loadModel([bytes], { n_ctx: 1024, n_threads: 1, n_gpu_layers: 0, n_batch: 512 });
  const prompt = "It was the year when they finally came to the island. The ship had been at sea for many weeks, and the men were tired of bread and of each other. ".repeat(4);
  const one = async (a, prompt, maxTokens) => { // ms to the first token, tokens/s after it
    const start = performance.now();
    let first = 0, n = 0, text = "";
    for await (const t of a.generate(prompt, { maxTokens, ignoreEnd: true })) {
      text += t.text;
      if (n++ === 0) first = performance.now();
    }
    return { first: first - start, rate: (n - 1) / (performance.now() - first) * 1000, text };
  };
  const other = async () => {
    const start = performance.now();
    let first = 0, n = 0, text = "";
    for await (const c of await b.createCompletion({ prompt, max_tokens: 49, temperature: 0, top_k: 1, ignore_eos: true, cache_prompt: false, stream: true })) {
      const part = c.choices?.[0]?.text ?? "";
      if (!part) continue;
      text += part;
      if (n++ === 0) first = performance.now();
    }
    return { first: first - start, rate: (n - 1) / (performance.now() - first) * 1000, text };
  };
  const rows = [];
  for (let i = 0; i <= turns; i++) {
    for await (const _ of a.generate("x", { maxTokens: 1 })); // which the prompt does not begin with
    const row = [await one(a, prompt, 49), await other()];
    if (i > 0) rows.push(row); // the first warms up
  }
  await b.exit();
  const tokens = (await a.tokenize(prompt)).length;
  await a.close();
  const start = performance.now();
  const gpu = await load(bytes, { device: "webgpu", software: true, cache: false, context: 1024 });
  const loading = performance.now() - start;
  return { rows, tokens, gpu: { loading, ...await one(gpu, "The capital of France is", 17) } };
}

const browser = await puppeteer.launch({ executablePath: chromium, args: ["--no-sandbox", "--headless=new", "--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"], protocolTimeout: 0 });
try {
  const page = await browser.newPage();
  page.on("pageerror", (e) => console.error(String(e)));
  await page.goto(`http://127.0.0.1:${server.address().port}/index.html`);
  const { rows, tokens, gpu } = await page.evaluate(measure, Number(turns));
  const median = (list) => [...list].sort((x, y) => x - y)[list.length >> 1];
  const of = (f) => median(rows.map(f)).toFixed(2);
  console.log(`prompt of ${tokens} tokens, first token after: wllama ${of(([, o]) => o.first / 1000)} s, wavelane ${of(([w]) => w.first / 1000)} s, ratio ${of(([w, o]) => o.first / w.first)} (above 1: wavelane is faster)`);
  console.log(`48 tokens after it: wllama ${of(([, o]) => o.rate)} tokens/s, wavelane ${of(([w]) => w.rate)}, ratio ${of(([w, o]) => w.rate / o.rate)}`);
  console.log(`WebGPU: loaded in ${(gpu.loading / 1000).toFixed(2)} s, first token after ${(gpu.first / 1000).toFixed(2)} s, then ${gpu.rate.toFixed(2)} tokens/s: ${JSON.stringify(gpu.text)}`);
  console.log(`wllama: ${JSON.stringify(rows[0][1].text)}\nwavelane: ${JSON.stringify(rows[0][0].text)}`);
} finally {
  await browser.close();
  server.close();
}
const size = (...files) => files.reduce((n, f) => n + gzipSync(readFileSync(f), { level: 9 }).length, 0);
const scripts = readdirSync(ours).filter((f) => f.endsWith(".js") && !f.startsWith("onnx")).map((f) => join(ours, f));
console.log(`downloads, compressed: wllama ${size(join(theirs, "index.min.js"), join(theirs, "wasm/wllama.wasm"))} bytes, wavelane/llm ${size(join(ours, "wavelane-llm.wasm"), ...scripts)} bytes`);
