/** Sessions of ONNX models; onnx.d.ts documents them. Its program is another one than that of wavelane.js, with more in it. */

import { checkOptions } from "./arguments.js";
import { Device, Held, abortable, openKeys, openOf } from "./core.js";
import { ArgumentError, DTypeError, ForeignTensorError, ShapeError, UnavailableError } from "./errors.js";
import { checkSignal, located, waiting } from "./instance.js";
import { Message, bytesOf, checkInt, checkInts, describe } from "./message.js";

export * from "./errors.js";

const name = "wavelane-onnx";
const openModel = waiting.further, runModel = openModel + 1; // in the order of wasm/bridge/onnx_js.go

export const open = (options) => openOf(name, new URL("wavelane-onnx.wasm", import.meta.url), options);

// Element types by their names and numbers, with the arrays that hold them; those of one array only are what it is by itself.
const types = {
  float32: [1, Float32Array], uint8: [2, Uint8Array], int8: [3, Int8Array], uint16: [4, Uint16Array], int16: [5, Int16Array],
  int32: [6, Int32Array], int64: [7, BigInt64Array], string: [8, Array], bool: [9, Uint8Array], float16: [10, Uint16Array],
  float64: [11, Float64Array], uint32: [12, Uint32Array], uint64: [13, BigUint64Array], bfloat16: [16, Uint16Array],
};
const byNumber = new Map(Object.entries(types).map(([type, [number, array]]) => [number, { type, array }]));
const byTag = { Uint8ClampedArray: "uint8", Float16Array: "float16" };
for (const type in types) byTag[types[type][1].name] ??= type;

class ModelTensor {
  constructor(data, shape, type) {
    this.data = data;
    this.shape = Object.freeze([...shape]);
    this.type = type;
    Object.freeze(this);
  }
}

export function tensor(data, shape, options) {
  const { type } = checkOptions(options, ["type"], "tensor");
  const own = typeOf(data, "data");
  if (type !== undefined && !types[type]) throw new ArgumentError(`type ${describe(type)} is none of ${Object.keys(types).join(", ")}`);
  if (type !== undefined && type !== own && types[type][1] !== types[own][1]) {
    throw new DTypeError(`data is ${describe(data)}, which cannot be ${type}`);
  }
  checkInts(shape, "shape");
  if (shape.some((d) => d < 0) || size(shape) !== data.length) {
    throw new ShapeError(`${data.length} elements do not fill [${shape}]`, { operation: "tensor", shapes: [[...shape]] });
  }
  return new ModelTensor(data, shape, type ?? own);
}

const size = (shape) => shape.reduce((n, d) => n * d, 1);

function typeOf(data, what) {
  const type = Array.isArray(data) ? data.every((x) => typeof x === "string") && "string" : byTag[data?.[Symbol.toStringTag]];
  if (!type || !(ArrayBuffer.isView(data) || Array.isArray(data))) {
    throw new DTypeError(`${what} is ${describe(data)}, must be a typed array or an array of strings`);
  }
  return type;
}

export async function load(model, options) {
  const { shapes = 16, device, signal, ...rest } = checkOptions(options, [...openKeys, "shapes"], "load");
  checkInt(shapes, "load: shapes");
  checkSignal(signal);
  const given = device instanceof Device;
  if (given && device.program.name !== name) {
    throw new ForeignTensorError("load: the device is of another program, open it with wavelane/onnx", { operation: "load" });
  }
  const file = await abortable(bytesOfModel(model), signal);
  const dev = given ? device : await open({ ...rest, ...(device && { device }), ...(signal && { signal }) });
  try {
    const message = new Message(dev.handle("load"), shapes).bytes(file, "load: model");
    const [handle, inputs, outputs] = await dev.program.call(openModel, message, { signal, operation: "load", shapes: [] });
    return new Session(dev, handle, inputs, outputs, !given);
  } catch (error) {
    if (!given) dev.close();
    throw error;
  }
}

async function bytesOfModel(source) {
  source = await located(await source, globalThis.location?.href);
  if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) return bytesOf(source, "load: model");
  if (typeof source?.arrayBuffer !== "function") {
    throw new ArgumentError(`load: model is ${describe(source)}, must be an address, a response, a file or bytes`);
  }
  if (source.ok === false) throw new UnavailableError(`load: ${source.url}: ${source.status} ${source.statusText}`);
  return new Uint8Array(await source.arrayBuffer());
}

class Session extends Held {
  kind = "session";
  #own; // the device is closed with the session

  constructor(device, handle, inputs, outputs, own) {
    super(device, device.program, handle);
    this.#own = own;
    const freeze = (v) => Object.freeze({ ...v, shape: v.shape && Object.freeze(v.shape) });
    this.inputs = Object.freeze(inputs.map(freeze));
    this.outputs = Object.freeze(outputs.map(freeze));
  }

  async run(inputs, options) {
    const { signal } = checkOptions(options, ["signal"], "run");
    if (typeof inputs !== "object" || inputs === null || Array.isArray(inputs) || ArrayBuffer.isView(inputs)) {
      throw new ArgumentError(`run: inputs are ${describe(inputs)}, must be an object of arrays by the inputs' names`);
    }
    const message = new Message(this.handle("run"));
    const list = Object.entries(inputs).filter(([, x]) => x !== undefined).map(([input, x]) => [input, this.#tensorOf(input, x)]);
    message.add(list.length);
    for (const [input, { data, shape, type }] of list) {
      message.text(input).add(types[type][0]).ints(shape);
      if (type === "string") for (const s of data) message.text(s);
      else message.bytes(data, `run: input ${input}`);
    }
    const results = await this.program.call(runModel, message, {
      signal, operation: "run", shapes: list.map(([, x]) => x.shape),
    });
    return Object.fromEntries(results.map(([output, number, shape, data]) => {
      const { type, array } = byNumber.get(number) ?? { type: "uint8", array: Uint8Array };
      return [output, new ModelTensor(array === Array ? data : new array(data.buffer), shape, type)];
    }));
  }

  /** A tensor of an input; a plain array takes the type and the shape that the model says, if it can have them. */
  #tensorOf(input, x) {
    if (x instanceof ModelTensor) return x;
    const what = `run: input ${input}`;
    let type = typeOf(x, what), shape = [x.length];
    const says = this.inputs.find((v) => v.name === input);
    if (says && types[says.type]?.[1] === types[type][1]) type = says.type;
    const open = says?.shape?.filter((d) => typeof d !== "number").length;
    if (open <= 1) {
      const rest = size(says.shape.filter((d) => typeof d === "number"));
      shape = says.shape.map((d) => (typeof d === "number" ? d : x.length / rest));
      if (size(shape) !== x.length || !shape.every(Number.isSafeInteger)) {
        throw new ShapeError(`${what}: ${x.length} elements do not fill [${says.shape}]`, { operation: "run", shapes: [[x.length]] });
      }
    }
    return { data: x, shape, type };
  }

  close() {
    super.close();
    if (this.#own) this.device.close();
  }
}
