// Kernels written in the page, with errors at their lines.

import { need, onDevice } from "../devices.js";
import { curve } from "../plot.js";
import { paint } from "../scene.js";
import { $, explain, figure, make, milliseconds, noise, say } from "../ui.js";
import { examples } from "./examples.js";

const shapes = { "1024 × 1": [1024, 1], "65536 × 1": [65536, 1], "256 × 256": [256, 256], "512 × 512": [512, 512] };

const inputs = {
  ramp: { name: "ramp from 0 to 1", make: (w, h) => Float32Array.from({ length: w * h }, (_, i) => i / (w * h)) },
  noise: { name: "noise from −1 to 1", make: (w, h) => noise(w * h) },
  picture: { name: "the built-in picture, grey", make: grey },
};

export function init() {
  const code = $("playground-code");
  const option = (value, text) => make("option", { value }, text);
  $("playground-example").append(...examples.map((e, i) => option(i, e.name)));
  $("playground-input").append(...Object.entries(inputs).map(([key, { name }]) => option(key, name)));
  $("playground-shape").append(...Object.keys(shapes).map((s) => option(s, s)));
  const load = () => {
    const { wgsl, input, shape } = examples[$("playground-example").value];
    code.value = wgsl;
    $("playground-input").value = input;
    $("playground-shape").value = shape;
    number([]);
  };
  $("playground-example").addEventListener("change", load);
  $("playground-run").addEventListener("click", run);
  code.addEventListener("input", () => number([]));
  code.addEventListener("scroll", () => ($("playground-gutter").scrollTop = code.scrollTop));
  code.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      run();
    }
  });
  onDevice((device) => {
    if (device && device.info.kind === "cpu") say($("playground-status"), "Kernels in WGSL need WebGPU: open it in the first panel.");
    else say($("playground-status"), "Not run yet.");
  });
  load();
}

/** Numbers the lines; those of errors are marked. */
function number(wrong) {
  const count = $("playground-code").value.split("\n").length;
  $("playground-gutter").replaceChildren(...Array.from({ length: count }, (_, i) => make("div", { class: wrong.includes(i + 1) ? "wrong" : false }, String(i + 1))));
  $("playground-gutter").scrollTop = $("playground-code").scrollTop;
}

let running = false;

async function run() {
  if (running) return;
  running = true;
  $("playground-run").disabled = true;
  const status = $("playground-status");
  const wgsl = $("playground-code").value;
  const [width, height] = shapes[$("playground-shape").value];
  number([]);
  $("playground-problems").replaceChildren();
  for (const id of ["canvas", "plot", "values"]) $(`playground-${id}`).hidden = true;
  try {
    const device = need();
    const workgroup = workgroupSize(wgsl);
    say(status, "Compiling …");
    const kernel = await device.kernel({ wgsl, operands: 1, uniform: 16, workgroup, label: "playground" });
    try {
      const grid = [Math.ceil(width / workgroup[0]), Math.ceil(height / (workgroup[1] ?? 1))];
      const data = inputs[$("playground-input").value].make(width, height);
      const start = performance.now();
      const result = await kernel.run([data], { grid, params: new Uint32Array([width, height, 0, 0]), shape: [height, width] });
      say(status, `Ran ${grid.join(" × ")} workgroups in ${milliseconds(performance.now() - start)}, upload and readback included.`, "good");
      show(result, width, height);
    } finally {
      kernel.close();
    }
  } catch (error) {
    if (error.name === "ShaderError") problems(error);
    else say(status, explain(error), "bad");
  } finally {
    running = false;
    $("playground-run").disabled = false;
    // A disabled button has lost the focus to the page.
    if (document.activeElement === document.body) $("playground-run").focus({ preventScroll: true });
  }
}

/** What @workgroup_size says, which the library wants to know too. */
function workgroupSize(wgsl) {
  const found = /@workgroup_size\s*\(([^)]*)\)/.exec(wgsl.replace(/\/\/.*|\/\*[\s\S]*?\*\//g, ""));
  const sizes = found?.[1].split(",").map((s) => s.trim()).filter(Boolean).map((s) => Number(s.replace(/[iu]$/, "")));
  if (!sizes?.length || !sizes.every((n) => Number.isInteger(n) && n > 0)) throw new Error("the kernel needs @workgroup_size(…) with plain numbers");
  return sizes;
}

/** Lists the compiler's errors; each leads to its place. */
function problems(error) {
  const { line, column, message } = error;
  say($("playground-status"), line ? `It does not compile: line ${line}, column ${column}.` : "It does not compile.", "bad");
  number([line]);
  const text = make("span", {}, message);
  const place = line && make("button", { type: "button", class: "place", click: () => jump(line, column) }, `Line ${line}, column ${column}`);
  $("playground-problems").replaceChildren(make("li", {}, ...(place ? [place, " "] : []), text));
}

/** Puts the cursor at a place of the source. */
function jump(line, column) {
  const code = $("playground-code");
  const before = code.value.split("\n").slice(0, line - 1).reduce((n, l) => n + l.length + 1, 0);
  code.focus();
  code.setSelectionRange(before + Math.max(0, column - 1), before + Math.max(0, column - 1));
  code.scrollTop = Math.max(0, (line - 6) * parseFloat(getComputedStyle(code).lineHeight));
}

function show(result, width, height) {
  const canvas = $("playground-canvas");
  const values = $("playground-values");
  canvas.hidden = height === 1;
  $("playground-plot").hidden = height > 1;
  if (height > 1) {
    Object.assign(canvas, { width, height });
    const image = new ImageData(width, height);
    result.forEach((v, i) => image.data.set([255 * v, 255 * v, 255 * v, 255], 4 * i)); // clamped and rounded
    canvas.getContext("2d").putImageData(image, 0, 0);
  } else {
    const every = Math.ceil(result.length / 2048);
    curve($("playground-plot"), Array.from(result).filter((_, i) => i % every === 0), "The result");
  }
  values.hidden = false;
  values.textContent = `${[...result.slice(0, 16)].map(figure).join("  ")} …`;
}

function grey(width, height) {
  const { data } = paint(width, height);
  return Float32Array.from({ length: width * height }, (_, i) => (0.299 * data[4 * i] + 0.587 * data[4 * i + 1] + 0.114 * data[4 * i + 2]) / 255);
}
