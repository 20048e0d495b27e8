/**
 * wavelane: GPU compute in the browser, through WebGPU, or on the CPU with WebAssembly SIMD where there is no WebGPU.
 *
 * ```js
 * import { open } from "wavelane";
 * const dev = await open();
 * const c = await dev.matmul(a, b, m, k, n);   // Float32Arrays in, a promise of a Float32Array out
 * ```
 *
 * Arrays that are passed in are copied before the call returns and may be changed at once. Results are new arrays. Work of a
 * device runs in the order of the calls. Promises are rejected with a {@link WavelaneError} or an AbortError.
 */

import type { BatchOperations, DeviceOperations, DType } from "./operations.js";
export * from "./operations.js";

/** The version of the package. */
export const version: string;

/**
 * Elements of type f32, i32, u32, u8 and f16 (its bits, or numbers where the engine has Float16Array); bits of bf16, if so
 * tagged.
 */
export type TypedArray = Float32Array | Int32Array | Uint32Array | Uint8Array | Uint8ClampedArray | Uint16Array | Float16Bits;

/** A Float16Array, where the engine and its types have it. */
export type Float16Bits = typeof globalThis extends { Float16Array: { prototype: infer T } } ? T : never;

/** Arrays of results: f16 and bf16 are their bits in a Uint16Array (on which new Float16Array(result.buffer) is a view). */
export type Result = Float32Array<ArrayBuffer> | Int32Array<ArrayBuffer> | Uint32Array<ArrayBuffer> | Uint8Array<ArrayBuffer> | Uint16Array<ArrayBuffer>;

/** The browser's WebGPU types, if TypeScript has them. */
export type GPUDeviceType = typeof globalThis extends { GPUDevice: { prototype: infer T } } ? T : any;
export type GPUBufferType = typeof globalThis extends { GPUBuffer: { prototype: infer T } } ? T : any;

/** An array with a shape and, for bf16, an element type: made by {@link tensor}. It refers to the array and copies nothing. */
export interface ShapedArray {
  readonly data: TypedArray;
  readonly shape: readonly number[];
  readonly dtype: DType;
}

/** An operand of a device's operation. A plain typed array is a vector. */
export type Operand = TypedArray | ShapedArray | Tensor;

/**
 * An operand of a batch's operation. Arrays are uploaded and tensors imported as if by {@link Batch.upload} and
 * {@link Batch.import}.
 */
export type BatchOperand = Value | Operand;

/** The result of an operand that is updated in place: itself if it is a resident tensor, else a new array. */
export type Updated<X extends Operand> = X extends Tensor ? X : Result;

/** Options of every call that waits. */
export interface CallOptions {
  /**
   * Ends the wait when it aborts: the promise is rejected with the signal's reason, an AbortError by default. Work that the
   * device has begun goes on; a call that has not begun does not run.
   */
  signal?: AbortSignal;
}

/** Leaves results on the device. */
export interface Keep {
  keep: true;
}

export interface DTypeOptions {
  /** The element type of the data: needed for bf16 only, which shares Uint16Array with f16. */
  dtype?: DType;
}

/**
 * Gives an array a shape, row-major.
 * @throws {DTypeError} for anything but a typed array of a known element type
 * @throws {ShapeError} if the lengths do not fit
 */
export function tensor(data: TypedArray, shape: readonly number[], options?: DTypeOptions): ShapedArray;

export interface OpenOptions extends CallOptions {
  /**
   * Which device to open. "auto", the default, takes WebGPU where there is a hardware adapter, else the CPU;
   * {@link Info.reason} says why. "webgpu" and "cpu" take that device or reject with {@link UnavailableError}.
   */
  device?: "auto" | "webgpu" | "cpu";
  /** An existing device, to share its buffers. The page keeps it: closing this package's device does not destroy it. Implies "webgpu". */
  gpuDevice?: GPUDeviceType;
  /** Which of several GPUs the browser should choose. Default: "high-performance". */
  powerPreference?: "high-performance" | "low-power";
  /** Accepts a software adapter, for tests: it is slower than the CPU device. */
  software?: boolean;
  /**
   * Where the program is: an address, a response, its bytes or a compiled module. Default: wavelane.wasm beside this file. All
   * devices share one instance of the program, so that this counts only for the first open.
   */
  wasm?: URL | string | Response | PromiseLike<Response> | BufferSource | WebAssembly.Module;
}

/**
 * Opens a device. The first call loads the program.
 * @throws {UnavailableError} if there is no such device here
 * @throws {InstanceError} if the program cannot be loaded
 */
export function open(options?: OpenOptions): Promise<Device>;

/** Describes a device. */
export interface Info {
  kind: "webgpu" | "cpu";
  /** of the adapter, as far as the browser tells */
  name: string;
  vendor: string;
  /** what drives it: "browser"; on the CPU "simd128", or "go" where the engine has no SIMD */
  backend: string;
  /** whether it is a GPU interface implemented on the CPU */
  software: boolean;
  /** WebGPU features in use, such as "shader-f16", "subgroups", "timestamp-query" */
  features: readonly string[];
  /** limits in use, such as maxBuffer in bytes; empty on the CPU */
  limits: Readonly<Record<string, number | readonly number[]>>;
  /** why this device was chosen, and preferred ones were not */
  reason: string;
}

/** Bytes of a device's memory: in use by tensors and work in flight, and kept for reuse. */
export interface Memory {
  inUse: number;
  cached: number;
}

/**
 * An open device. Methods named like operations of the catalogue run one of them; see {@link DeviceOperations}.
 *
 * Operations take operands, then numbers, then options:
 *
 * ```js
 * await dev.add(x, y);                                             // arrays are vectors
 * await dev.matmul(a, b, m, k, n, { act: "relu", bias });          // … or matrices, where sizes follow
 * await dev.conv2d(tensor(x, [1, 3, h, w]), weights, { pad: 1 });  // any operand may have a shape, or be resident
 * const y = await dev.softmax(x, rows, cols, { keep: true });      // a Tensor, which stays on the device
 * ```
 */
export interface Device extends DeviceOperations {
  readonly info: Info;
  /** The GPUDevice, for work of the page's own on the same buffers; null on the CPU. */
  readonly gpuDevice: GPUDeviceType | null;
  /** Whether {@link Device.close} was called. */
  readonly closed: boolean;
  /** Resolves with the error when the device is lost: it never rejects. After that, close it, open another, upload again. */
  readonly lost: Promise<DeviceLostError>;

  /** Copies an array to the device, where it stays until it is closed. Without a shape it is a vector. */
  upload(data: TypedArray | ShapedArray, shape?: readonly number[], options?: DTypeOptions & CallOptions): Promise<Tensor>;

  /**
   * Makes a tensor of a buffer of the page's, without copying: of {@link Device.gpuDevice}, with usage STORAGE, COPY_SRC and
   * COPY_DST. The buffer stays the page's, which must not destroy or map it before the tensor is closed.
   * @throws {UnsupportedError} on the CPU
   */
  adopt(buffer: GPUBufferType, shape: readonly number[], options?: DTypeOptions & { offset?: number }): Tensor;

  /** Begins a batch: nothing runs while it is recorded, one submission runs it, one readback returns. */
  batch(): Batch;

  /**
   * Compiles a kernel of your own.
   * @throws {ShaderError} for WGSL that does not compile, with line and column
   * @throws {UnsupportedError} on the CPU
   */
  kernel(descriptor: KernelDescriptor, options?: CallOptions): Promise<Kernel>;

  /** The use of device memory. */
  memory(): Memory;

  /**
   * Closes the device and its tensors, plans and kernels. Work in flight is finished first. Later use is a
   * {@link ClosedError}.
   */
  close(): void;
}

/** Data on a device. Forgotten tensors are freed eventually; close frees the memory at once. */
export interface Tensor {
  readonly device: Device;
  readonly shape: readonly number[];
  readonly dtype: DType;
  readonly closed: boolean;
  /** Copies the elements to a new array. */
  read(options?: CallOptions): Promise<Result>;
  /**
   * The memory of the elements: size bytes of buffer from offset on. The page may use them in its own work on
   * {@link Device.gpuDevice}, which the queue runs after all that was submitted before, until the tensor is closed.
   * @throws {UnsupportedError} on the CPU
   */
  gpuBuffer(): GPUBufferRange;
  /** Frees the memory once earlier calls no longer need it; there is no need to wait for them. */
  close(): void;
}

export interface GPUBufferRange {
  buffer: GPUBufferType;
  /** in bytes */
  offset: number;
  /** in bytes */
  size: number;
}

/** A value that a batch will compute. It belongs to its batch. */
export interface Value {
  readonly batch: Batch;
  readonly shape: readonly number[];
  readonly dtype: DType;
}

/**
 * A batch records operations on values. An invalid call throws at once; the batch then cannot run, and running it rejects
 * with the same error. A batch ends with {@link Batch.run}, {@link Batch.compile} or {@link Batch.close}.
 *
 * ```js
 * const b = dev.batch();
 * const x = b.upload(pixels, [h, w]);
 * b.read(b.scale(b.relu(b.conv2d(x, sobel)), 0.5));
 * const [out] = await b.run();
 * ```
 */
export interface Batch extends BatchOperations {
  readonly device: Device;
  /** Steps recorded. */
  readonly length: number;
  /** Makes a value of an array, which is copied now. Without a shape it is a vector. */
  upload(data: TypedArray | ShapedArray, shape?: readonly number[], options?: DTypeOptions): Value;
  /** Makes a value that is zero until {@link Plan.setInput} replaces it. */
  input(shape: readonly number[], options?: DTypeOptions): Value;
  /** Makes a value of shape [] that holds x. */
  scalar(x: number): Value;
  /** Makes a value of a tensor. Operations that update it in place change the tensor itself. */
  import(tensor: Tensor): Value;
  /** Runs a kernel of your own on values. */
  kernel(kernel: Kernel, operands: readonly BatchOperand[], launch: Launch): Value;
  /** Reads a value as an array: the next element of the array that run resolves to. */
  read(value: Value): void;
  /** Retains a value on the device as a tensor: likewise the next element of the array that run resolves to. */
  keep(value: Value): void;
  /** Runs everything recorded. Resolves to the values of read and keep, in their order. */
  run(options?: CallOptions): Promise<Array<Result | Tensor>>;
  /**
   * Compiles the batch for running it again and again. With tune, operations for which the device has several kernels are
   * measured first, which takes up to some seconds for each; the device then uses the fastest kernels for operations of that
   * kind and size, in other batches too, as long as it is open.
   */
  compile(options?: CallOptions & { tune?: boolean }): Promise<Plan>;
  /** Discards the recorded steps. */
  close(): void;
}

/** Times that {@link Batch.compile} has measured, of kernels that compute the same operation. */
export interface Measurement {
  /** The kind of operation. */
  readonly kind: string;
  /** Its sizes, rounded to powers of two. */
  readonly problem: string;
  readonly winner: string;
  /** The median time of each kernel that the device can run. */
  readonly milliseconds: Readonly<Record<string, number>>;
}

/** A compiled batch. Close it when it is no longer needed. */
export interface Plan {
  readonly device: Device;
  readonly closed: boolean;
  /** The measurements, if compiled with tune. */
  readonly measured: readonly Measurement[];
  /**
   * Replaces the data of a value made by {@link Batch.upload} or {@link Batch.input}, or the tensor of one made by
   * {@link Batch.import}, from the next run on. Its type and length must be the same.
   */
  setInput(value: Value, data: Operand): void;
  /** Runs the plan: resolves as {@link Batch.run} does, each time with new arrays and new tensors. Runs may overlap. */
  run(options?: CallOptions): Promise<Array<Result | Tensor>>;
  close(): void;
}

/**
 * A kernel: storage buffers are bindings 0, 1, … of group 0, operands first and the result last, then a uniform if there is
 * one.
 */
export interface KernelDescriptor {
  wgsl: string;
  /** Name of the entry point; default "main". */
  entry?: string;
  /** For errors. */
  label?: string;
  /** Number of operands. */
  operands: number;
  /** Bytes of the uniform, a multiple of 16 up to 256; default 0, for none. */
  uniform?: number;
  /** As in @workgroup_size; what is left out is 1. */
  workgroup: readonly [number] | readonly [number, number] | readonly [number, number, number];
  /** Bytes of var<workgroup>, to be checked against the device's limit. */
  shared?: number;
}

/** The grid, parameters and result of a kernel's run. */
export interface Launch extends DTypeOptions {
  /** Workgroups; what is left out is 1. */
  grid: readonly [number] | readonly [number, number] | readonly [number, number, number];
  /** Contents of the uniform, a multiple of 4 bytes; the rest is zero. */
  params?: ArrayBuffer | ArrayBufferView;
  /** Shape of the result, whose element type is f32 by default. */
  shape: readonly number[];
}

/** A compiled kernel of one device. */
export interface Kernel {
  readonly device: Device;
  readonly label: string;
  run(operands: readonly Operand[], launch: Launch & CallOptions & Keep): Promise<Tensor>;
  run(operands: readonly Operand[], launch: Launch & CallOptions): Promise<Result>;
  readonly closed: boolean;
  close(): void;
}

/** The base of all errors of this package. */
export class WavelaneError extends Error {
  /** Name of the operation, such as "matmul"; empty where there is none. */
  readonly operation: string;
  /** Shapes of its operands, as far as they are known. */
  readonly shapes: ReadonlyArray<readonly number[]>;
}

/** Shapes or lengths that do not fit each other or the operation. */
export class ShapeError extends WavelaneError {}
/** An element type that the operation does not take. */
export class DTypeError extends WavelaneError {}
/** An option or argument outside its range or of a wrong kind. */
export class ArgumentError extends WavelaneError {}
/** The requested device does not exist here. */
export class UnavailableError extends WavelaneError {}
/** The device does not support the request; the message says what to do instead. */
export class UnsupportedError extends WavelaneError {}
/** The device failed, and all that was resident on it is gone. Close it, open another, upload again. */
export class DeviceLostError extends WavelaneError {}
/** No room for a buffer, on the device or in the 4 GiB that WebAssembly can address. */
export class OutOfMemoryError extends WavelaneError {}
/** A buffer, binding or dispatch beyond what the adapter allows at all, however much memory is free. */
export class TooLargeError extends WavelaneError {}
/** Use after close. */
export class ClosedError extends WavelaneError {}
/** A tensor, value or kernel of another device or another batch. */
export class ForeignTensorError extends WavelaneError {}
/** Something that does one thing at a time was called beside a call under way. */
export class InFlightError extends WavelaneError {}
/** A result was used before its batch ran. */
export class NotRunError extends WavelaneError {}
/** WGSL that does not compile, or does not fit what was declared for it. */
export class ShaderError extends ArgumentError {
  /** From 1; 0 if the compiler did not say. */
  readonly line: number;
  /** From 1; 0 if the compiler did not say. */
  readonly column: number;
  /** The compiler's whole report. */
  readonly details: string;
}
/** The program could not be loaded, or has ended: all its devices are gone, and the next open starts it anew. */
export class InstanceError extends WavelaneError {}
