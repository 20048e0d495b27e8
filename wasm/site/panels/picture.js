// Pictures from a camera, a file or this page through a pipeline, one batch per frame.

import { current, onDevice } from "../devices.js";
import { paint } from "../scene.js";
import { $, explain, median, milliseconds, say } from "../ui.js";
import { compile, levels, toPixels, toPlanes } from "./pipeline.js";

const controls = ["brightness", "contrast", "blur", "edges", "binary", "threshold"];
const switches = ["blur", "edges", "binary"];

export function init() {
  new PictureFilter();
}

class PictureFilter {
  source = null; // {kind: "builtin" | "camera" | "file", image, width, height}
  compiled = null;
  key = ""; // of what is compiled
  times = [];
  working = false;
  again = false; // something has changed meanwhile
  phase = 0; // of the moving picture

  constructor() {
    this.status = $("picture-status");
    this.before = $("picture-source").getContext("2d", { willReadFrequently: true });
    this.after = $("picture-result").getContext("2d");
    for (const name of controls) $(`picture-${name}`).addEventListener("input", () => this.changed());
    $("picture-width").addEventListener("change", () => this.changed());
    $("picture-move").addEventListener("change", () => this.changed());
    $("picture-builtin").addEventListener("click", () => this.useBuiltin());
    $("picture-camera").addEventListener("click", () => this.useCamera());
    $("picture-file").addEventListener("change", (e) => this.useFile(e.target.files[0]));
    document.addEventListener("visibilitychange", () => this.changed());
    this.acceptDrops($("picture-drop"));
    onDevice(() => {
      this.forget();
      if (current()) this.changed();
    });
    this.showLevels();
    this.useBuiltin();
  }

  acceptDrops(zone) {
    zone.addEventListener("dragover", (e) => {
      e.preventDefault();
      zone.classList.add("over");
    });
    zone.addEventListener("dragleave", () => zone.classList.remove("over"));
    zone.addEventListener("drop", (e) => {
      e.preventDefault();
      zone.classList.remove("over");
      if (e.dataTransfer.files.length) this.useFile(e.dataTransfer.files[0]);
      else say(this.status, "What was dropped is no file.", "bad");
    });
  }

  use(source) {
    this.source?.stop?.();
    this.source = source;
    for (const kind of ["builtin", "camera"]) $(`picture-${kind}`).ariaPressed = String(source.kind === kind);
    $("picture-camera").textContent = source.kind === "camera" ? "Stop the camera" : "Camera";
    $("picture-move").disabled = source.kind === "camera"; // it moves by itself
    this.times = [];
    this.changed();
  }

  useBuiltin() {
    say(this.status, "");
    this.use({ kind: "builtin", width: 3, height: 2 });
  }

  async useCamera() {
    if (this.source.kind === "camera") {
      this.useBuiltin();
      return;
    }
    try {
      if (!navigator.mediaDevices) throw new Error("this browser gives pages a camera only over https or on localhost");
      say(this.status, "Waiting for the camera …");
      const stream = await navigator.mediaDevices.getUserMedia({ video: { width: { ideal: 1280 } } });
      const video = document.createElement("video");
      Object.assign(video, { srcObject: stream, muted: true, playsInline: true });
      await video.play();
      say(this.status, "");
      this.use({
        kind: "camera", image: video, width: video.videoWidth, height: video.videoHeight,
        stop: () => stream.getTracks().forEach((t) => t.stop()),
      });
      stream.getVideoTracks()[0].addEventListener("ended", () => this.source.image === video && this.useBuiltin());
    } catch (error) {
      say(this.status, explain(error), "bad");
    }
  }

  async useFile(file) {
    if (!file) return;
    try {
      const image = await createImageBitmap(file);
      say(this.status, `${file.name}, ${image.width} × ${image.height}`);
      this.use({ kind: "file", image, width: image.width, height: image.height, stop: () => image.close() });
    } catch {
      say(this.status, `${file.name} is no picture that this browser can read.`, "bad");
    }
    $("picture-file").value = ""; // the same file may be opened again
  }

  settings() {
    const s = {};
    for (const name of controls) {
      const e = $(`picture-${name}`);
      s[name] = e.type === "checkbox" ? e.checked : e.valueAsNumber;
    }
    return s;
  }

  showLevels() {
    for (const e of document.querySelectorAll("#picture input[type=range]")) e.parentElement.querySelector("output").value = e.valueAsNumber.toFixed(2);
    $("picture-threshold").disabled = !$("picture-binary").checked;
  }

  moving() {
    return this.source.kind === "camera" || $("picture-move").checked;
  }

  /** Computes a frame, and more while the picture moves. */
  async changed() {
    this.showLevels();
    this.again = true;
    if (this.working) return;
    this.working = true;
    try {
      while (this.again && current()) {
        this.again = false;
        const device = current();
        try {
          await this.frame(device);
        } catch (error) {
          if (device === current()) throw error; // else it was closed for another, which has its own turn
        }
        if (this.moving() && !document.hidden) {
          this.again = true;
          await new Promise((resolve) => requestAnimationFrame(resolve));
        }
      }
    } catch (error) {
      say(this.status, explain(error), "bad");
    } finally {
      this.working = false;
    }
    if (this.again && current()) this.changed();
  }

  async frame(device) {
    const settings = this.settings();
    const pixels = this.draw();
    const { width, height } = pixels;
    const key = [width, height, ...switches.map((s) => settings[s])].join();
    if (key !== this.key) {
      this.forget();
      const compiled = await compile(device, settings, width, height);
      if (device !== current()) {
        compiled.plan.close();
        return;
      }
      this.compiled = compiled;
      this.key = key;
    }
    const { plan, inputs, planes, margin, length } = this.compiled;

    const start = performance.now();
    plan.setInput(inputs.picture, toPlanes(pixels, margin));
    const values = levels(settings);
    for (const name in values) if (inputs[name]) plan.setInput(inputs[name], values[name]);
    const began = performance.now();
    const [result] = await plan.run();
    const ended = performance.now();
    resize(this.after.canvas, width, height);
    this.after.putImageData(toPixels(result, planes, width, height), 0, 0);
    const shown = performance.now();

    this.times = [...this.times.slice(-29), { all: shown - start, run: ended - began }];
    const all = median(this.times.map((t) => t.all));
    const run = median(this.times.map((t) => t.run));
    $("picture-time").textContent = `${width} × ${height}, ${length} operations in one batch: frame ${milliseconds(all)}, ` +
      `of which ${milliseconds(run)} the plan with its readback (median of ${this.times.length})`;
    this.after.canvas.ariaLabel = `The picture after the filter: ${describe(settings)}`;
  }

  /** Draws the source and returns its pixels. */
  draw() {
    const { kind, image } = this.source;
    const width = Number($("picture-width").value);
    const height = Math.max(1, Math.round((width * this.source.height) / this.source.width));
    resize(this.before.canvas, width, height);
    const picture = image ?? builtin();
    if (kind !== "camera" && $("picture-move").checked) {
      this.phase += 0.01;
      const zoom = 1.15; // room to move in
      const [x, y] = [width * Math.sin(this.phase), height * Math.sin(1.7 * this.phase)].map((v, i) => (zoom / 2 - 0.5) * (v - [width, height][i]));
      this.before.drawImage(picture, x, y, width * zoom, height * zoom);
    } else {
      this.before.drawImage(picture, 0, 0, width, height);
    }
    return this.before.getImageData(0, 0, width, height);
  }

  forget() {
    this.compiled?.plan.close();
    this.compiled = null;
    this.key = "";
    this.times = [];
  }
}

function resize(canvas, width, height) { // setting a size clears the canvas
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
}

function describe({ brightness, contrast, blur, edges, binary, threshold }) {
  const steps = [`brightness ${brightness}`, `contrast ${contrast}`];
  if (blur) steps.push("blur");
  if (edges) steps.push("edges");
  if (binary) steps.push(`threshold ${threshold}`);
  return steps.join(", ");
}

let painted = null;

/** The built-in picture, which is painted when it is first needed. */
function builtin() {
  if (!painted) {
    painted = new OffscreenCanvas(720, 480);
    painted.getContext("2d").putImageData(paint(720, 480), 0, 0);
  }
  return painted;
}
