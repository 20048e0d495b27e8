// ONNX models that a person opens. Their program is loaded with the first of them.

import { current } from "../devices.js";
import { $, explain, figure, make, median, milliseconds, noise, say } from "../ui.js";

const repeats = 5;
const mostBars = 5;

let session = null;
let picture = null; // an ImageBitmap

export function init() {
  $("models-file").addEventListener("change", (e) => take(e.target, load));
  $("models-picture").addEventListener("change", (e) => take(e.target, usePicture));
  $("models-run").addEventListener("click", () => busy(run));
  const zone = $("models-drop");
  zone.addEventListener("dragover", (e) => {
    e.preventDefault();
    zone.classList.add("over");
  });
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", (e) => {
    e.preventDefault();
    zone.classList.remove("over");
    const [file] = e.dataTransfer.files;
    if (file) busy(() => (file.type.startsWith("image/") ? usePicture(file) : load(file)));
  });
}

function take(input, use) {
  const [file] = input.files;
  if (file) busy(() => use(file));
  input.value = ""; // the same file may be opened again
}

/** Does one thing at a time, and says what went wrong. */
async function busy(work) {
  const controls = ["models-file", "models-picture", "models-run"].map($);
  for (const c of controls) c.disabled = true;
  try {
    await work();
  } catch (error) {
    say($("models-status"), explain(error), "bad");
  } finally {
    for (const c of controls) c.disabled = false;
    $("models-run").disabled = !session;
  }
}

async function load(file) {
  say($("models-status"), `Loading ${file.name} …`);
  const { load } = await import("../wavelane/onnx.js");
  const next = await load(file, { device: current()?.info.kind ?? "auto", software: $("device-software").checked });
  session?.close();
  session = next;
  const row = (v) => make("tr", {}, ...[v.name, v.type, v.shape ? `[${v.shape.map((d) => (d === "" ? "?" : d)).join(", ")}]` : "any"]
    .map((text) => make("td", {}, text)));
  $("models-inputs").replaceChildren(...session.inputs.map(row));
  $("models-outputs").replaceChildren(...session.outputs.map(row));
  const names = [...new Set(session.inputs.flatMap((v) => (v.shape ?? []).filter((d) => typeof d === "string")))];
  $("models-sizes").replaceChildren(...names.map((name) =>
    make("label", { class: "field" }, `${name || "?"} `, make("input", { type: "number", min: 1, max: 1 << 20, value: 1, "data-name": name }))));
  $("models-facts").hidden = false;
  $("models-results").replaceChildren();
  $("models-bars").replaceChildren();
  say($("models-status"), `${file.name} on ${session.device.info.name || session.device.info.kind}.` +
    (planes() ? " Its input looks like a picture’s: open one, or run it on noise." : " Run it on noise."));
}

async function usePicture(file) {
  try {
    picture = await createImageBitmap(file);
  } catch {
    throw new Error(`${file.name} is no picture that this browser can read.`);
  }
  say($("models-status"), `${file.name}, ${picture.width} × ${picture.height}.`);
  if (session && planes()) await run();
}

function shapeOf(v) {
  const sizes = Object.fromEntries([...$("models-sizes").querySelectorAll("input")].map((e) => [e.dataset.name, e.valueAsNumber]));
  return (v.shape ?? [1]).map((d) => (typeof d === "number" ? d : sizes[d]));
}

/** The input that takes a picture, [1, channels, height, width] or with channels last. */
function planes() {
  const few = (d) => d === 1 || d === 3;
  return session.inputs.find((v) => v.type === "float32" && v.shape?.length === 4 && (few(v.shape[1]) || few(v.shape[3])));
}

/** The picture's values from −1 to 1 in that shape. */
function pixelsOf(shape) {
  const last = shape[1] !== 1 && shape[1] !== 3;
  const [channels, height, width] = last ? [shape[3], shape[1], shape[2]] : shape.slice(1);
  const context = new OffscreenCanvas(width, height).getContext("2d");
  context.drawImage(picture, 0, 0, width, height);
  const { data } = context.getImageData(0, 0, width, height);
  const n = width * height;
  const out = new Float32Array(shape[0] * channels * n);
  for (let i = 0; i < n; i++) {
    for (let c = 0; c < channels; c++) {
      const v = channels === 1 ? 0.299 * data[4 * i] + 0.587 * data[4 * i + 1] + 0.114 * data[4 * i + 2] : data[4 * i + c];
      out[last ? i * channels + c : c * n + i] = v / 127.5 - 1;
    }
  }
  return out;
}

const arrays = {
  float32: Float32Array, float64: Float64Array, float16: Uint16Array, bfloat16: Uint16Array, int8: Int8Array, int16: Int16Array,
  int32: Int32Array, int64: BigInt64Array, uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array, uint64: BigUint64Array, bool: Uint8Array,
};

async function run() {
  const { tensor } = await import("../wavelane/onnx.js");
  const inputs = {};
  for (const v of session.inputs) {
    if (v.optional) continue;
    const shape = shapeOf(v);
    const n = shape.reduce((n, d) => n * d, 1);
    if (!shape.every(Number.isSafeInteger) || !(n >= 0 && n <= 1 << 28)) throw new Error(`${v.name}: [${shape}] is no shape, or too large`);
    let data = v.type === "string" ? Array(n).fill("") : new (arrays[v.type] ?? Float32Array)(n);
    if (v.type.startsWith("float") && data instanceof Float32Array) data = picture && v === planes() ? pixelsOf(shape) : noise(n);
    inputs[v.name] = tensor(data, shape, { type: v.type });
  }
  say($("models-status"), "Compiling …");
  const start = performance.now();
  let results = await session.run(inputs);
  const first = performance.now() - start;
  const times = [];
  for (let i = 0; i < repeats; i++) {
    const start = performance.now();
    results = await session.run(inputs);
    times.push(performance.now() - start);
  }
  show(results);
  say($("models-status"), `Run on ${picture && planes() ? "the picture" : "noise"}: ${milliseconds(median(times))} (median of ${repeats}), ` +
    `the first ${milliseconds(first)} with compilation.`, "good");
}

function show(results) {
  $("models-results").replaceChildren(...Object.entries(results).map(([name, { type, shape, data }]) => {
    const values = Array.from(data.slice(0, 6), (x) => (typeof x === "number" ? figure(x) : String(x))).join(", ");
    return make("tr", {}, ...[name, type, `[${shape.join(", ")}]`, values + (data.length > 6 ? ", …" : "")].map((text) => make("td", {}, text)));
  }));
  const scores = Object.values(results).find(({ type, shape, data }) => type === "float32" && data.length > 1 && data.length === shape.at(-1));
  $("models-bars").replaceChildren();
  if (!scores) return;
  const best = [...scores.data.keys()].sort((a, b) => scores.data[b] - scores.data[a]).slice(0, mostBars);
  const [low, high] = [Math.min(...best.map((i) => scores.data[i]), 0), scores.data[best[0]]];
  for (const i of best) {
    const fill = make("span", { class: "fill ours" });
    fill.style.width = `${(100 * (scores.data[i] - low)) / (high - low || 1)}%`;
    $("models-bars").append(make("li", { class: "bar" }, make("span", { class: "name" }, String(i)), make("span", { class: "track" }, fill),
      make("span", { class: "value" }, figure(scores.data[i]))));
  }
}
