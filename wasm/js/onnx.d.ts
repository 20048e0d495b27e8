/**
 * ONNX models, on WebGPU or on the CPU.
 *
 * ```js
 * import { load } from "wavelane/onnx";
 * const session = await load("model.onnx");
 * const { scores } = await session.run({ image: pixels });   // a Float32Array
 * console.log(scores.shape, scores.data);
 * ```
 *
 * It is a program of its own, wavelane-onnx.wasm, which is loaded when the first device of this module is opened; it has all that
 * wavelane.wasm has. Which operators it knows is in docs/onnx-operators.md of the repository.
 */

import type { CallOptions, Device, OpenOptions } from "./wavelane.js";
export {
  WavelaneError, ShapeError, DTypeError, ArgumentError, UnavailableError, UnsupportedError, DeviceLostError, OutOfMemoryError,
  TooLargeError, ClosedError, ForeignTensorError, InFlightError, NotRunError, ShaderError, InstanceError,
} from "./wavelane.js";

/** Names of element types. */
export type ElementType =
  | "float32" | "uint8" | "int8" | "uint16" | "int16" | "int32" | "int64" | "string" | "bool" | "float16" | "float64" | "uint32" | "uint64"
  | "bfloat16";

/** Elements. Those of bool are 0 and 1 in a Uint8Array, of float16 and bfloat16 their bits in a Uint16Array. */
export type Elements =
  | Float32Array | Float64Array | Int8Array | Int16Array | Int32Array | BigInt64Array | Uint8Array | Uint8ClampedArray | Uint16Array
  | Uint32Array | BigUint64Array | readonly string[];

/** Elements in row-major order, with their shape and type. */
export interface ModelTensor {
  readonly data: Elements;
  readonly shape: readonly number[];
  readonly type: ElementType;
}

/** Gives an array a shape, and a type if it is another than the array's own. Nothing is copied. */
export function tensor(data: Elements, shape: readonly number[], options?: { type?: ElementType }): ModelTensor;

/** What a model says of an input or an output. */
export interface ValueInfo {
  readonly name: string;
  readonly type: string;
  /** Numbers, and names of dimensions that may have any size, "" where they have none; null if the model does not say. */
  readonly shape: readonly (number | string)[] | null;
  /** The model has a value for it. */
  readonly optional: boolean;
}

/** Options of {@link load}: those of {@link open}, and these. */
export interface LoadOptions extends Omit<OpenOptions, "device"> {
  /** A kind of device, or a device that {@link open} of this module, or another session, has opened. */
  device?: OpenOptions["device"] | Device;
  /** How many sets of input shapes are kept compiled, 16 by default. */
  shapes?: number;
}

/** A model's bytes, or where they are. */
export type ModelSource = string | URL | Response | Blob | ArrayBuffer | ArrayBufferView | Promise<Response>;

/**
 * Loads a model and prepares it for a device, which it opens unless the options give one. A model with external data is not possible. It
 * is rejected with an UnsupportedError that lists all that the model needs and there is not.
 */
export function load(model: ModelSource, options?: LoadOptions): Promise<Session>;

/** Opens a device of this module's program, for several sessions, and for operations on its own. */
export function open(options?: OpenOptions): Promise<Device>;

/** A model on a device. */
export class Session {
  private constructor();
  readonly device: Device;
  readonly inputs: readonly ValueInfo[];
  readonly outputs: readonly ValueInfo[];
  readonly closed: boolean;

  /**
   * Runs the model. Arrays are copied before the call returns. One without a shape gets that of the model, if at most one dimension of
   * that is open, else it is a vector. The first run with inputs of some shapes compiles the model for them. Runs come one after the other.
   */
  run(inputs: Readonly<Record<string, Elements | ModelTensor>>, options?: CallOptions): Promise<Record<string, ModelTensor>>;

  /** Frees what the session has on the device, after the calls that were made before, and the device if {@link load} has opened it. */
  close(): void;
}
