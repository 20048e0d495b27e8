// A small network on a drawing pad.

import { tensor } from "../wavelane/wavelane.js";
import { onDevice } from "../devices.js";
import { $, explain, make, milliseconds, say } from "../ui.js";
import { digitise } from "./strokes.js";

const side = 8;
const full = 16; // a wholly black block

export function init() {
  new Recogniser();
}

class Recogniser {
  samples = [];
  strokes = [];
  pen = null; // the pointer that draws
  shown = null; // the picture of 8 × 8 that was last asked about
  network = null; // a promise of {plan, input} on the current device
  working = false;

  constructor() {
    this.status = $("digits-status");
    this.pad = $("digits-pad");
    this.context = this.pad.getContext("2d");
    this.makeBars();
    this.model = this.load();
    this.acceptStrokes();
    $("digits-clear").addEventListener("click", () => this.clear());
    document.addEventListener("theme", () => this.redrawAll()); // canvases do not follow the style sheet by themselves
    onDevice((device) => {
      this.network?.then(({ plan }) => plan.close(), () => {});
      this.network = device && this.model.then((model) => compile(device, model));
      this.network?.catch(() => {}); // said when it is needed
      if (device && this.shown) this.recognise(this.shown);
    });
    this.redrawAll();
    this.showBars(null);
  }

  async load() {
    try {
      const response = await fetch("digits.json");
      if (!response.ok) throw new Error(`digits.json: ${response.status} ${response.statusText}`);
      const model = await response.json();
      $("digits-accuracy").textContent = `${(100 * model.accuracy).toFixed(1)} %`;
      $("digits-shape").textContent = model.widths.join(" → ");
      this.samples = model.samples.map(({ label, picture }) => {
        const canvas = make("canvas", { width: 32, height: 32, "aria-hidden": "true" });
        const click = () => this.sample(Float32Array.from(picture));
        $("digits-samples").append(make("button", { type: "button", "aria-label": `Sample of a ${label}`, click }, canvas));
        return { canvas, picture };
      });
      this.redrawAll();
      return model;
    } catch (error) {
      say(this.status, `The weights could not be loaded: ${error.message}`, "bad");
      throw error;
    }
  }

  acceptStrokes() {
    const { pad } = this;
    const at = (event) => {
      const box = pad.getBoundingClientRect();
      return [((event.clientX - box.left) / box.width) * pad.width, ((event.clientY - box.top) / box.height) * pad.height];
    };
    pad.addEventListener("pointerdown", (event) => {
      if (this.pen !== null || event.button !== 0) return;
      this.pen = event.pointerId;
      pad.setPointerCapture(event.pointerId);
      if (this.strokes.length === 0) this.clear();
      this.strokes.push([at(event)]);
      this.redraw();
      event.preventDefault();
    });
    pad.addEventListener("pointermove", (event) => {
      if (event.pointerId !== this.pen) return;
      for (const e of event.getCoalescedEvents?.() ?? [event]) this.strokes.at(-1).push(at(e));
      this.redraw();
    });
    const end = (event) => {
      if (event.pointerId !== this.pen) return;
      this.pen = null;
      this.recognise(digitise(this.strokes));
    };
    pad.addEventListener("pointerup", end);
    pad.addEventListener("pointercancel", end);
  }

  clear() {
    this.strokes = [];
    this.shown = null;
    this.redrawAll();
    this.showBars(null);
    say(this.status, "Draw a digit.");
  }

  sample(picture) {
    this.strokes = [];
    this.recognise(picture);
    this.redraw();
  }

  /** Asks the network; while it is at work, only the latest picture waits. */
  async recognise(picture) {
    this.shown = picture;
    drawPicture($("digits-seen"), picture);
    if (this.working) return;
    this.working = true;
    try {
      for (let done = null; this.shown && this.shown !== done;) {
        done = this.shown;
        const network = this.network;
        if (!network) {
          say(this.status, "No device is open yet.");
          break;
        }
        try {
          const { plan, input } = await network;
          const start = performance.now();
          plan.setInput(input, done);
          const [probabilities] = await plan.run();
          if (this.shown === done) this.show(probabilities, performance.now() - start);
        } catch (error) {
          if (network === this.network) throw error;
          done = null; // another device was opened meanwhile: ask that
        }
      }
    } catch (error) {
      say(this.status, explain(error), "bad");
    } finally {
      this.working = false;
    }
  }

  show(probabilities, time) {
    const best = probabilities.indexOf(Math.max(...probabilities));
    this.showBars(probabilities, best);
    say(this.status, `This is a ${best}, with ${percent(probabilities[best])} (${milliseconds(time)}).`, "good");
    this.status.dataset.digit = best;
  }

  makeBars() {
    this.bars = Array.from({ length: 10 }, (_, digit) => {
      const fill = make("span", { class: "fill ours" });
      const value = make("span", { class: "value" }, "–");
      const item = make("li", { class: "bar" }, make("span", { class: "name" }, String(digit)), make("span", { class: "track", "aria-hidden": "true" }, fill), value);
      $("digits-bars").append(item);
      return { item, fill, value };
    });
  }

  showBars(probabilities, best) {
    this.bars.forEach(({ item, fill, value }, digit) => {
      fill.style.width = probabilities ? `${100 * probabilities[digit]}%` : "0";
      value.textContent = probabilities ? percent(probabilities[digit]) : "–";
      item.classList.toggle("best", digit === best);
    });
    if (!probabilities) delete this.status.dataset.digit;
  }

  /** Draws the strokes on the pad or, without any, the sample. */
  redraw() {
    const { context: c, pad } = this;
    drawPicture(pad, this.strokes.length ? [] : (this.shown ?? []));
    Object.assign(c, { lineWidth: 40, lineCap: "round", lineJoin: "round", strokeStyle: getComputedStyle(pad).color });
    for (const [first, ...rest] of this.strokes) {
      c.beginPath();
      c.moveTo(...first);
      c.lineTo(...first);
      for (const p of rest) c.lineTo(...p);
      c.stroke();
    }
  }

  redrawAll() {
    this.redraw();
    drawPicture($("digits-seen"), this.shown ?? []);
    for (const { canvas, picture } of this.samples) drawPicture(canvas, picture);
  }
}

const percent = (p) => `${(100 * p).toFixed(p > 0.9995 || p < 0.0005 ? 0 : 1)} %`;

/** Draws 8 × 8 numbers as blocks of the text's colour. */
function drawPicture(canvas, picture) {
  const c = canvas.getContext("2d");
  const block = canvas.width / side;
  c.clearRect(0, 0, canvas.width, canvas.height);
  c.fillStyle = getComputedStyle(canvas).color;
  picture.forEach((v, i) => {
    c.globalAlpha = v / full;
    c.fillRect((i % side) * block, Math.floor(i / side) * block, block, block);
  });
  c.globalAlpha = 1;
}

/** Puts the network on a device: its weights stay there, the plan takes a picture. */
async function compile(device, { widths, weights }) {
  const halves = new Uint16Array(Uint8Array.from(atob(weights), (c) => c.charCodeAt(0)).buffer); // little endian, as all engines are
  const b = device.batch();
  const input = b.input([1, side * side]);
  let x = b.scale(input, 1 / full);
  let offset = 0;
  const take = (shape) => {
    const n = shape.reduce((n, d) => n * d, 1);
    return device.cast(tensor(halves.slice(offset, (offset += n)), shape), { to: "f32", keep: true });
  };
  for (let i = 0; i + 1 < widths.length; i++) {
    const matrix = await take([widths[i], widths[i + 1]]);
    const bias = await take([widths[i + 1]]);
    x = b.matmul(x, matrix, { bias, act: i + 2 < widths.length ? "relu" : "none" });
  }
  b.read(b.softmax(x));
  return { plan: await b.compile(), input };
}
