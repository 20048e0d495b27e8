import { ArgumentError, DTypeError } from "./errors.js";
import { enums } from "./operations.js";

const byTag = { Float32Array: "f32", Int32Array: "i32", Uint32Array: "u32", Uint8Array: "u8", Uint8ClampedArray: "u8", Uint16Array: "f16", Float16Array: "f16" };
const resultTypes = [Float32Array, Int32Array, Uint32Array, Uint16Array, Uint16Array, Uint8Array]; // by the number of the element type

export const dtypeNames = Object.keys(enums.DType);

/** The element type that a typed array has by itself; undefined for what is none. Arrays of other windows count as well. */
export function dtypeOf(data) {
  return ArrayBuffer.isView(data) ? byTag[data[Symbol.toStringTag]] : undefined;
}

/** The element type of data, or the one that it is said to have. */
export function checkDType(data, dtype, what) {
  const own = dtypeOf(data);
  if (own === undefined) {
    const types = "Float32Array, Int32Array, Uint32Array, Uint8Array, Uint8ClampedArray, Uint16Array or Float16Array";
    throw new DTypeError(`${what} is ${describe(data)}, must be a ${types}`);
  }
  if (dtype === undefined || dtype === own) return own;
  if (enums.DType[dtype] === undefined) throw new ArgumentError(`dtype ${describe(dtype)} is none of ${dtypeNames.join(", ")}`);
  if (dtype === "bf16" && data[Symbol.toStringTag] === "Uint16Array") return dtype;
  throw new DTypeError(`${what} is a ${data[Symbol.toStringTag]}, which cannot be ${dtype}`);
}

/** Says in an error what something is. */
export function describe(x) {
  if (x === null || x === undefined || typeof x === "number" || typeof x === "boolean") return String(x);
  if (typeof x === "string") return JSON.stringify(x.slice(0, 40));
  if (typeof x !== "object") return `a ${typeof x}`;
  return `a ${x[Symbol.toStringTag] ?? x.constructor?.name ?? "object"}`;
}

/** Dimensions as they are sent: whole numbers. Whether they are possible is for the program to say. */
export function checkInts(list, what) {
  if (!Array.isArray(list)) throw new ArgumentError(`${what} is ${describe(list)}, must be an array of whole numbers`);
  for (let i = 0; i < list.length; i++) checkInt(list[i], `${what}[${i}]`);
  return list;
}

export function checkInt(x, what) {
  if (!Number.isSafeInteger(x)) throw new ArgumentError(`${what} is ${describe(x)}, must be a whole number`);
  return x;
}

export function checkNumber(x, what) {
  if (typeof x !== "number") throw new ArgumentError(`${what} is ${describe(x)}, must be a number`);
  return x;
}

/** The bytes of a typed array or buffer, without a copy. */
export function bytesOf(data, what) {
  const view = ArrayBuffer.isView(data);
  if (!view && !(data instanceof ArrayBuffer)) {
    throw new ArgumentError(`${what} is ${describe(data)}, must be an ArrayBuffer or a view of one`);
  }
  try {
    return view ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength) : new Uint8Array(data);
  } catch {
    throw new ArgumentError(`${what} is detached: its buffer was transferred`);
  }
}

const hostOperand = 0, tensorOperand = 1, valueOperand = 2;

/** A message to the program: numbers, and byte arrays that are copied when it is sent. */
export class Message {
  numbers = [];
  arrays = [];

  constructor(...numbers) {
    this.numbers = numbers;
  }

  add(...numbers) {
    this.numbers.push(...numbers);
    return this;
  }

  /** Null stands for no list, which is not an empty one. */
  ints(list) {
    if (list === null) return this.add(-1);
    return this.add(list.length, ...list);
  }

  text(s) {
    this.arrays.push(new TextEncoder().encode(s));
    return this;
  }

  bytes(data, what) {
    this.arrays.push(bytesOf(data, what));
    return this;
  }

  array(data, dtype, shape, what) {
    this.bytes(data, what);
    return this.add(hostOperand, enums.DType[dtype]).ints(shape);
  }

  tensor(handle) {
    return this.add(tensorOperand, handle);
  }

  value(index) {
    return this.add(valueOperand, index);
  }
}

/** A result of the program as a typed array on memory of its own. */
export function typedArray([dtype, bytes]) {
  return new resultTypes[dtype](bytes.buffer);
}
