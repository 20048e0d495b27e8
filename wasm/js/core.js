/** What the package's modules share; wavelane.d.ts documents what they export of it. */

import { addOptions, checkOptions, layOut, parseArguments } from "./arguments.js";
import {
  ArgumentError, ClosedError, DeviceLostError, ForeignTensorError, ShaderError, ShapeError, WavelaneError,
} from "./errors.js";
import { checkSignal, immediate, instance, waiting } from "./instance.js";
import { Message, checkDType, checkInt, checkInts, describe, dtypeNames, dtypeOf, typedArray } from "./message.js";
import { enums, operations } from "./operations.js";

export class ShapedArray {
  constructor(data, shape, dtype) {
    this.data = data;
    this.shape = Object.freeze([...shape]);
    this.dtype = dtype;
    Object.freeze(this);
  }
}

export function tensor(data, shape, options) {
  const { dtype } = checkOptions(options, ["dtype"], "tensor");
  const type = checkDType(data, dtype, "data");
  checkInts(shape, "shape");
  const n = shape.reduce((n, d) => n * d, 1);
  if (shape.some((d) => d < 0) || n !== data.length) {
    throw new ShapeError(`${data.length} elements do not fill [${shape}]`, { operation: "tensor", shapes: [[...shape]] });
  }
  return new ShapedArray(data, shape, type);
}

export const openKeys = ["device", "gpuDevice", "powerPreference", "software", "wasm", "signal"];
const kinds = { auto: 0, webgpu: 1, cpu: 2 };

/** Opens a device of the program: its name, and where it is found unless the options say so. */
export async function openOf(name, address, options) {
  const {
    device, gpuDevice = null, powerPreference = "high-performance", software = false, wasm, signal,
  } = checkOptions(options, openKeys, "open");
  const kind = kinds[device ?? (gpuDevice ? "webgpu" : "auto")];
  if (kind === undefined) {
    throw new ArgumentError(`device is ${describe(device)}, must be one of ${Object.keys(kinds).join(", ")}`);
  }
  if (gpuDevice && kind === kinds.cpu) throw new ArgumentError("the CPU device cannot adopt a GPUDevice");
  if (!["high-performance", "low-power"].includes(powerPreference)) {
    throw new ArgumentError(`powerPreference is ${describe(powerPreference)}`);
  }
  checkSignal(signal);
  const program = await abortable(instance(name, wasm ?? address), signal);
  const message = new Message(kind, software ? 1 : 0, powerPreference === "low-power" ? 1 : 0);
  const [handle, info] = await program.call(waiting.open, message, { signal, operation: "open", shapes: [], extra: gpuDevice });
  return new Device(program, handle, info);
}

/** A promise that gives up when the signal aborts. */
export function abortable(promise, signal) {
  if (!signal) return promise;
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

/** What has a handle in the program. */
export class Held {
  #handle;
  #closed = false;

  constructor(device, program, handle) {
    this.device = device ?? this;
    this.program = program;
    this.#handle = handle;
    Object.defineProperties(this, { program: { enumerable: false }, device: { enumerable: false, writable: false } });
    program.own(this, handle);
  }

  get closed() {
    return this.#closed;
  }

  /** The handle, unless it was closed. */
  handle(operation) {
    if (this.#closed || this.device.closed) throw new ClosedError(`${operation}: the ${this.kind} is closed`, { operation });
    return this.#handle;
  }

  close() {
    if (this.#closed) return;
    this.#closed = true;
    this.program.release(this.#handle, this);
  }
}

export class Device extends Held {
  kind = "device";

  constructor(program, handle, info) {
    super(null, program, handle);
    this.info = Object.freeze({ ...info, features: Object.freeze(info.features), limits: Object.freeze(info.limits) });
    this.gpuDevice = program.now(immediate.gpuDevice, [handle], []);
    this.lost = new Promise((resolve) => {
      program.onLost.set(handle, resolve);
      this.gpuDevice?.lost.then(({ reason, message }) => {
        // To be destroyed is how a device of ours ends.
        if (!(this.closed && reason === "destroyed")) {
          resolve(new DeviceLostError(`device lost (${reason || "unknown"}): ${message}`));
        }
      });
    });
    Object.defineProperty(this, "gpuDevice", { enumerable: false, writable: false });
  }

  close() {
    if (!this.closed) this.program.onLost.delete(this.handle("close"));
    super.close();
  }

  async upload(data, shape, options) {
    const { dtype, signal } = checkOptions(options, ["dtype", "signal"], "upload");
    const message = new Message(this.handle("upload"));
    addArray(message, data, shape, dtype, "upload");
    const [t] = await this.program.call(waiting.upload, message, {
      signal, operation: "upload", shapes: [shape ?? [data.length]],
    });
    return tensorOf(this, t);
  }

  adopt(buffer, shape, options) {
    const { dtype = "f32", offset = 0 } = checkOptions(options, ["dtype", "offset"], "adopt");
    if (!Object.hasOwn(enums.DType, dtype)) {
      throw new ArgumentError(`dtype ${describe(dtype)} is none of ${dtypeNames.join(", ")}`);
    }
    const { numbers } = new Message(this.handle("adopt"), enums.DType[dtype], checkInt(offset, "adopt: offset"))
      .ints(checkInts(shape, "adopt: shape"));
    return tensorOf(this, this.program.now(immediate.adopt, numbers, [buffer], { operation: "adopt", shapes: [shape] }));
  }

  batch() {
    return new Batch(this, this.program, this.program.now(immediate.batch, [this.handle("batch")], []));
  }

  async kernel(descriptor, options) {
    const { signal } = checkOptions(options, ["signal"], "kernel");
    const keys = ["wgsl", "entry", "label", "operands", "uniform", "workgroup", "shared"];
    const {
      wgsl, entry = "main", label = "kernel", operands, uniform = 0, workgroup, shared = 0,
    } = checkOptions(descriptor, keys, "kernel");
    for (const [name, text] of Object.entries({ wgsl, entry, label })) {
      if (typeof text !== "string") throw new ArgumentError(`kernel: ${name} is ${describe(text)}, must be a string`);
    }
    const message = new Message(this.handle("kernel"), checkInt(operands, "kernel: operands"),
      checkInt(uniform, "kernel: uniform"), ...triple(workgroup, "kernel: workgroup"), checkInt(shared, "kernel: shared"))
      .text(wgsl).text(entry).text(label);
    try {
      const [handle] = await this.program.call(waiting.kernel, message, { signal, operation: label, shapes: [] });
      return new Kernel(this, this.program, handle, label);
    } catch (error) {
      if (error instanceof ShaderError && error.column) error.column = columnOf(wgsl.split("\n")[error.line - 1], error.column);
      throw error;
    }
  }

  memory() {
    return this.program.now(immediate.memory, [this.handle("memory")], []);
  }
}

class Tensor extends Held {
  kind = "tensor";

  constructor(device, handle, dtype, shape) {
    super(device, device.program, handle);
    this.dtype = dtype;
    this.shape = Object.freeze(shape);
  }

  async read(options) {
    const { signal } = checkOptions(options, ["signal"], "read");
    const context = { signal, operation: "read", shapes: [this.shape] };
    const [result] = await this.program.call(waiting.read, new Message(this.handle("read")), context);
    return typedArray(result);
  }

  gpuBuffer() {
    const [buffer, offset, size] = this.program.now(immediate.gpuBuffer, [this.handle("gpuBuffer")], [], {
      operation: "gpuBuffer", shapes: [this.shape],
    });
    return { buffer, offset, size };
  }
}

class Kernel extends Held {
  kind = "kernel";

  constructor(device, program, handle, label) {
    super(device, program, handle);
    this.label = label;
  }

  async run(operands, launch) {
    const { signal, keep } = checkOptions(launch, [...launchKeys, "signal", "keep"], this.label);
    const device = this.device;
    const message = new Message(device.handle(this.label), keep ? 1 : 0);
    addLaunch(message, this, launch);
    const shapes = addOperands(message, device, null, checkArray(operands, this.label), this.label);
    const [result] = await this.program.call(waiting.runKernel, message, { signal, operation: this.label, shapes });
    return resultOf(device, result);
  }
}

class Value {
  #type = null;

  constructor(batch, index) {
    this.batch = batch;
    this.index = index;
    Object.defineProperties(this, {
      batch: { enumerable: false, writable: false }, index: { enumerable: false, writable: false },
    });
  }

  /** Shapes are asked for when somebody wants to know. */
  type() {
    if (!this.#type) {
      const [dtype, ...shape] = this.batch.program.now(immediate.describe, [this.batch.handle("shape"), this.index], []);
      this.#type = { dtype: dtypeNames[dtype], shape: Object.freeze(shape) };
    }
    return this.#type;
  }

  get shape() {
    return this.type().shape;
  }

  get dtype() {
    return this.type().dtype;
  }
}

class Batch extends Held {
  kind = "batch";
  length = 0;
  #tensors = new Set();

  /** Keeps a tensor from being forgotten, and thus freed, as long as the batch or a plan of it may use it. */
  hold(tensor) {
    this.#tensors.add(tensor);
  }

  #record(what, message, context) {
    const { numbers, arrays } = message;
    return this.program.now(what, numbers, arrays, context);
  }

  /** Adds a step of count results. */
  step(what, message, count, context) {
    const first = this.#record(what, message, context);
    this.length++;
    return count === 1 ? new Value(this, first) : Array.from({ length: count }, (_, i) => new Value(this, first + i));
  }

  upload(data, shape, options) {
    const { dtype } = checkOptions(options, ["dtype"], "upload");
    const message = new Message(this.handle("upload"));
    addArray(message, data, shape, dtype, "upload");
    return new Value(this, this.#record(immediate.uploadValue, message, {
      operation: "upload", shapes: [shape ?? [data.length]],
    }));
  }

  input(shape, options) {
    const { dtype = "f32" } = checkOptions(options, ["dtype"], "input");
    checkInts(shape, "shape");
    const n = shape.reduce((n, d) => n * d, 1);
    if (!(n >= 0 && n < 2 ** 31) || shape.some((d) => d < 0)) {
      throw new ShapeError(`input: no array has the shape [${shape}]`, { operation: "input", shapes: [[...shape]] });
    }
    const types = { f32: Float32Array, i32: Int32Array, u32: Uint32Array, f16: Uint16Array, bf16: Uint16Array, u8: Uint8Array };
    if (!Object.hasOwn(types, dtype)) throw new ArgumentError(`dtype ${describe(dtype)} is none of ${dtypeNames.join(", ")}`);
    return this.upload(new types[dtype](n), shape, { dtype });
  }

  scalar(x) {
    return this.fill(x, { shape: [] });
  }

  import(t) {
    if (!(t instanceof Tensor)) throw new ArgumentError(`import of ${describe(t)}, must be a Tensor`);
    const message = new Message(this.handle("import"));
    const shapes = [addOperand(message, this.device, this, t, "import")];
    return new Value(this, this.#record(immediate.uploadValue, message, { operation: "import", shapes }));
  }

  kernel(kernel, operands, launch) {
    if (!(kernel instanceof Kernel)) throw new ArgumentError(`${describe(kernel)} is no Kernel`);
    checkOptions(launch, launchKeys, kernel.label);
    if (kernel.device !== this.device) {
      throw new ForeignTensorError(`${kernel.label}: the kernel is another device's`, { operation: kernel.label });
    }
    const message = new Message(this.handle(kernel.label));
    addLaunch(message, kernel, launch);
    const shapes = addOperands(message, this.device, this, checkArray(operands, kernel.label), kernel.label);
    return this.step(immediate.recordKernel, message, 1, { operation: kernel.label, shapes });
  }

  read(value) {
    this.#want(value, false, "read");
  }

  keep(value) {
    this.#want(value, true, "keep");
  }

  #want(value, keep, operation) {
    checkValue(value, this, operation);
    this.#record(immediate.want, new Message(this.handle(operation), value.index, keep ? 1 : 0), { operation, shapes: [] });
  }

  async run(options) {
    const { signal } = checkOptions(options, ["signal"], "run");
    const message = new Message(this.#finish("run"));
    const results = await this.program.call(waiting.run, message, { signal, operation: "run", shapes: [] });
    return results.map((r) => resultOf(this.device, r));
  }

  async compile(options) {
    const { signal, tune } = checkOptions(options, ["signal", "tune"], "compile");
    const message = new Message(this.#finish("compile"), tune ? 1 : 0);
    const [handle, measured] = await this.program.call(waiting.compile, message, { signal, operation: "compile", shapes: [] });
    return new Plan(this, handle, measured);
  }

  /** A batch ends when it is run or compiled: it holds copies of its inputs. */
  #finish(operation) {
    const handle = this.handle(operation);
    queueMicrotask(() => this.close());
    return handle;
  }
}

class Plan extends Held {
  kind = "plan";
  #batch; // holds the tensors that it was recorded with
  #tensors = new Map(); // set since, by the index of their value

  constructor(batch, handle, measured) {
    super(batch.device, batch.program, handle);
    this.#batch = batch;
    this.measured = Object.freeze(measured.map(Object.freeze));
  }

  setInput(value, data) {
    checkValue(value, this.#batch, "setInput");
    const message = new Message(this.handle("setInput"), value.index);
    const shapes = [addOperand(message, this.device, null, data, "setInput")];
    this.program.now(immediate.setInput, message.numbers, message.arrays, { operation: "setInput", shapes });
    if (data instanceof Tensor) this.#tensors.set(value.index, data);
  }

  async run(options) {
    const { signal } = checkOptions(options, ["signal"], "run");
    const results = await this.program.call(waiting.runPlan, new Message(this.handle("run")), {
      signal, operation: "run", shapes: [],
    });
    return results.map((r) => resultOf(this.device, r));
  }
}

/** A column of UTF-8 bytes as one of a string's characters. */
function columnOf(line, column) {
  return new TextDecoder().decode(new TextEncoder().encode(line).subarray(0, column - 1)).length + 1;
}

const launchKeys = ["grid", "params", "shape", "dtype"];

function addLaunch(message, kernel, { grid, params, shape, dtype = "f32" } = {}) {
  if (!Object.hasOwn(enums.DType, dtype)) {
    throw new ArgumentError(`${kernel.label}: dtype ${describe(dtype)} is none of ${dtypeNames.join(", ")}`);
  }
  message.add(kernel.handle(kernel.label), ...triple(grid, `${kernel.label}: grid`), enums.DType[dtype]);
  message.ints(checkInts(shape, `${kernel.label}: shape`)).bytes(params ?? new ArrayBuffer(0), `${kernel.label}: params`);
  if (message.arrays.at(-1).length % 4) {
    throw new ArgumentError(`${kernel.label}: params have ${message.arrays.at(-1).length} bytes, must be a multiple of 4`);
  }
}

function triple(list, what) {
  checkInts(list, what);
  if (list.length < 1 || list.length > 3) throw new ArgumentError(`${what} has ${list.length} numbers, must have 1 to 3`);
  return [...list, 1, 1].slice(0, 3);
}

function checkArray(list, what) {
  if (!Array.isArray(list)) throw new ArgumentError(`${what}: operands are ${describe(list)}, must be an array`);
  return list;
}

function checkValue(value, batch, operation) {
  if (!(value instanceof Value)) throw new ArgumentError(`${operation} of ${describe(value)}, must be a Value`, { operation });
  if (value.batch !== batch) {
    throw new ForeignTensorError(`${operation}: the value is another batch's`, { operation, shapes: [value.shape] });
  }
}

/** Adds an array that is uploaded as it is. */
function addArray(message, data, shape, dtype, what) {
  if (data instanceof ShapedArray) {
    if (shape !== undefined) throw new ArgumentError(`${what}: the array has a shape already`);
    message.array(data.data, data.dtype, data.shape, what);
    return;
  }
  const type = checkDType(data, dtype, what);
  message.array(data, type, checkInts(shape ?? [data.length], `${what}: shape`), what);
}

/** Adds an operand and returns its shape. Batch is where values may come from; shape that of a plain array. */
function addOperand(message, device, batch, x, what, shape) {
  if (x instanceof Value && batch) {
    checkValue(x, batch, what);
    message.value(x.index);
    return x;
  }
  if (x instanceof Tensor) {
    if (shape) throw new ArgumentError(`${what} has a shape: leave the sizes out`);
    if (x.device !== device) {
      throw new ForeignTensorError(`${what}: the tensor is another device's`, { operation: what, shapes: [x.shape] });
    }
    message.tensor(x.handle(what));
    batch?.hold(x);
    return x.shape;
  }
  if (x instanceof ShapedArray) {
    if (shape) throw new ArgumentError(`${what} has a shape: leave the sizes out`);
    message.array(x.data, x.dtype, x.shape, what);
    return x.shape;
  }
  const dtype = checkDType(x, undefined, what);
  const s = shape ?? [x.length];
  message.array(x, dtype, s, what);
  return s;
}

/** Adds a list of operands and returns their shapes. Those of values are found when an error needs them. */
function addOperands(message, device, batch, operands, what, names, shapes) {
  message.add(operands.length);
  return operands.map((x, i) => addOperand(message, device, batch, x, `${what}: ${names?.[i] ?? `operand ${i}`}`, shapes?.[i]));
}

function tensorOf(device, [dtype, handle, ...shape]) {
  return new Tensor(device, handle, dtypeNames[dtype], shape);
}

function resultOf(device, result) {
  return typeof result[1] === "number" ? tensorOf(device, result) : typedArray(result);
}

/** Makes the message of a call of an operation; batch is null for a device's. */
function messageOf(op, index, target, args, common) {
  const batch = target instanceof Batch ? target : null;
  let message;
  try {
    const { operands, names, numbers, dims, options } = parseArguments(op, args, common);
    message = new Message(target.handle(op.name), index);
    if (!batch) message.add(options.keep ? 1 : 0);
    const shapes = addOperands(message, target.device, batch, operands, op.name, names, dims && layOut(op, dims, options));
    message.add(numbers.length, ...numbers);
    addOptions(message, op, options);
    const context = {
      operation: op.name,
      get shapes() {
        return shapes.map((s) => (s instanceof Value ? s.shape : s));
      },
    };
    return { message, options, operands, context };
  } catch (error) {
    if (error instanceof WavelaneError && !error.operation) error.operation = op.name;
    throw error;
  }
}

operations.forEach((op, index) => {
  const methods = {
    device: async function (...args) {
      const { message, options, operands, context } = messageOf(op, index, this, args, ["signal", "keep"]);
      const results = await this.program.call(waiting.apply, message, { signal: options.signal, ...context });
      // What was updated in place is the tensor itself.
      const list = results.map((r, i) => (r === null ? operands[i] : resultOf(this, r)));
      return op.results === 1 ? list[0] : list;
    },
    batch: function (...args) {
      const { message, context } = messageOf(op, index, this, args, []);
      return this.step(immediate.record, message, op.results, context);
    },
  };
  for (const [type, method] of [[Device, methods.device], [Batch, methods.batch]]) {
    Object.defineProperty(method, "name", { value: op.name });
    Object.defineProperty(type.prototype, op.name, { value: method, writable: true, configurable: true });
  }
});
