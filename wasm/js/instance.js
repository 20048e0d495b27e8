import { DeviceLostError, InstanceError, WavelaneError, ArgumentError, errorOf, isFailure } from "./errors.js";
import defineGo from "./go.js";

// Calls that wait, and calls that return; the order is that of wasm/bridge. A program for models has more of those that wait.
export const waiting = { open: 0, upload: 1, read: 2, apply: 3, run: 4, compile: 5, runPlan: 6, kernel: 7, runKernel: 8, further: 9 };
export const immediate = {
  cancel: 0, release: 1, batch: 2, uploadValue: 3, record: 4, recordKernel: 5, want: 6, describe: 7, setInput: 8,
  memory: 9, adopt: 10, gpuBuffer: 11, gpuDevice: 12,
};

const running = new Map(); // the instance, or the promise of it, by the program's name

/** The running program of a name, which all its devices share; it is started when there is none. */
export function instance(name, source) {
  if (!running.has(name)) {
    running.set(name, start(name, source).catch((error) => {
      running.delete(name);
      throw error instanceof WavelaneError ? error : new InstanceError(`the program could not be loaded: ${error.message}`, {
        cause: error,
      });
    }));
  }
  return running.get(name);
}

async function start(name, source) {
  const module = await compile(source);
  const crypto = globalThis.crypto ?? (await import(/* @vite-ignore */ /* webpackIgnore: true */ "node:crypto")).webcrypto;
  const program = new Instance(name);
  await program.start(module, crypto);
  return program;
}

/** Compiles what OpenOptions.wasm may be. */
async function compile(source) {
  source = await source;
  if (source instanceof WebAssembly.Module) return source;
  source = await located(source, import.meta.url);
  if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) return WebAssembly.compile(source);
  if (typeof source?.arrayBuffer !== "function") {
    throw new ArgumentError("wasm must be an address, a response, bytes or a compiled module");
  }
  if (!source.ok) throw new InstanceError(`${source.url}: ${source.status} ${source.statusText}`);
  // Static hosts that do not know the MIME type are common; streaming refuses anything else.
  const type = source.headers.get("content-type") ?? "";
  if (WebAssembly.compileStreaming && type.split(";")[0].trim() === "application/wasm") {
    return WebAssembly.compileStreaming(source);
  }
  return WebAssembly.compile(await source.arrayBuffer());
}

/** Gives the response, or the bytes of a file in Node.js, if the source is an address, else the source. */
export async function located(source, base) {
  if (typeof source !== "string" && !(source instanceof URL)) return source;
  const url = new URL(source, base);
  if (url.protocol !== "file:") return fetch(url);
  const { readFile } = await import(/* @vite-ignore */ /* webpackIgnore: true */ "node:fs/promises");
  return readFile(url);
}

/**
 * Gives globals other values while f runs, which must not wait, and puts them back as they were. Go's support file writes to
 * globals, and its runtime reads them when it starts; nobody else sees them.
 */
function withGlobals(values, f) {
  const before = Object.keys(values).map((name) => [name, Object.getOwnPropertyDescriptor(globalThis, name)]);
  try {
    for (const name in values) Object.defineProperty(globalThis, name, {
      value: values[name], configurable: true, writable: true, enumerable: false,
    });
    return f();
  } finally {
    for (const [name, descriptor] of before) {
      if (descriptor) Object.defineProperty(globalThis, name, descriptor);
      else delete globalThis[name];
    }
  }
}

/** One run of the program. */
class Instance {
  #calls = new Map(); // in flight: number → {resolve, reject, abort, signal, context}
  #number = 0;
  #output = "";
  #go;
  #begin;
  #now;
  #memory;
  /** Why the program has ended; null while it runs. */
  ended = null;
  /** Frees what was forgotten: a net under a missing close. */
  #forgotten = new FinalizationRegistry((handle) => this.release(handle));

  constructor(name) {
    this.name = name;
  }

  async start(module, crypto) {
    const decoder = new TextDecoder();
    const enosys = () => Object.assign(new Error("not implemented"), { code: "ENOSYS" });
    const refuse = (...args) => args.at(-1)(enosys());
    const calls = "chmod chown close fchmod fchown fstat ftruncate lchown link lstat mkdir open read readdir readlink rename " +
      "rmdir stat symlink truncate unlink utimes";
    const fs = {
      constants: { O_WRONLY: -1, O_RDWR: -1, O_CREAT: -1, O_TRUNC: -1, O_APPEND: -1, O_EXCL: -1, O_DIRECTORY: -1 },
      // What Go prints are its last words; they become part of the error.
      writeSync: (_, bytes) => {
        this.#output = (this.#output + decoder.decode(bytes)).slice(-8192);
        return bytes.length;
      },
      write(fd, bytes, offset, length, position, callback) {
        callback(null, this.writeSync(fd, bytes.subarray(offset, offset + length)));
      },
      fsync: (_, callback) => callback(null),
    };
    for (const name of calls.split(" ")) fs[name] = refuse;
    const none = () => -1;
    const fail = () => { throw enosys(); };
    const process = {
      getuid: none, getgid: none, geteuid: none, getegid: none, getgroups: fail, pid: -1, ppid: -1,
      umask: fail, cwd: fail, chdir: fail,
    };
    const globals = { fs, process, path: { resolve: (...parts) => parts.join("/") }, crypto };

    const Go = withGlobals({ Go: undefined, ...globals }, () => {
      defineGo(fs, process, globals.path, crypto);
      return globalThis.Go;
    });
    const go = new Go();
    this.#go = go;
    const resume = go._resume.bind(go);
    go._resume = () => { // all of JavaScript's ways into the program
      if (this.ended) return;
      try {
        resume();
      } catch (error) {
        this.#end(`the program failed: ${error.message}`, error);
      }
    };
    go.exit = (code) => this.#end(`the program ended with code ${code}`);

    const wasm = await WebAssembly.instantiate(module, go.importObject);
    this.#memory = wasm.exports.mem;
    const key = `wavelane-${Math.random().toString(36).slice(2)}`;
    const host = {
      ready: (begin, now) => {
        this.#begin = begin;
        this.#now = now;
      },
      settle: (number, failure, results) => this.#settle(number, failure, results),
    };
    go.argv = ["wavelane", key];
    go.env = {};
    withGlobals({ ...globals, [key]: host }, () => {
      go.run(wasm).catch((error) => this.#end(`the program could not start: ${error.message}`, error));
    });
    if (!this.#now && !this.ended) this.#end("the program did not start");
    if (this.ended) throw this.ended;
  }

  /** What to do when a device is lost, by its handle. */
  onLost = new Map();

  /** Bytes of WebAssembly memory, which never shrinks. */
  get memoryBytes() {
    return this.#memory.buffer.byteLength;
  }

  /** Begins a call and returns the promise of its results. */
  call(what, message, { signal, operation, shapes, extra = null } = {}) {
    checkSignal(signal);
    return new Promise((resolve, reject) => {
      if (this.ended) throw this.ended;
      signal?.throwIfAborted();
      const number = ++this.#number;
      const abort = signal && (() => {
        this.#calls.delete(number);
        reject(signal.reason);
        this.now(immediate.cancel, [number], []);
      });
      this.#calls.set(number, { resolve, reject, signal, abort, context: { operation, shapes } });
      signal?.addEventListener("abort", abort, { once: true });
      this.#begin(number, what, pack(message.numbers), message.arrays, extra);
    });
  }

  #settle(number, failure, results) {
    const call = this.#calls.get(number);
    if (!call) { // nobody waits any more
      for (const r of results ?? []) if (Array.isArray(r) && typeof r[1] === "number") this.release(r[1]);
      return;
    }
    this.#calls.delete(number);
    call.signal?.removeEventListener("abort", call.abort);
    if (failure) call.reject(errorOf(failure, call.context));
    else call.resolve(results);
  }

  /** Calls what returns at once. */
  now(what, numbers, arrays, context) {
    if (this.ended) throw this.ended;
    const result = this.#now(what, pack(numbers), arrays);
    if (this.ended) throw this.ended;
    if (isFailure(result)) throw errorOf(result, context);
    return result;
  }

  /** Ties a handle to an object: it is released when the object is forgotten. */
  own(object, handle) {
    this.#forgotten.register(object, handle, object);
  }

  /** Releases a handle, of the object if there is one. */
  release(handle, object) {
    if (object) this.#forgotten.unregister(object);
    if (!this.ended) this.#now(immediate.release, pack([handle]), []);
  }

  #end(reason, cause) {
    if (this.ended) return;
    const said = this.#output.trim();
    this.ended = new InstanceError(`${reason}; open devices anew${said ? `\n${said}` : ""}`, { cause });
    running.delete(this.name);
    for (const timeout of this.#go._scheduledTimeouts.values()) clearTimeout(timeout);
    this.#go._scheduledTimeouts.clear(); // Go's file insists on those that it has
    for (const call of this.#calls.values()) {
      call.signal?.removeEventListener("abort", call.abort);
      call.reject(this.ended);
    }
    this.#calls.clear();
    for (const lost of this.onLost.values()) lost(new DeviceLostError(this.ended.message, { cause: this.ended }));
  }
}

function pack(numbers) {
  return new Uint8Array(Float64Array.from(numbers).buffer);
}

export function checkSignal(signal) {
  if (signal === undefined || signal === null) return;
  if (typeof signal.addEventListener !== "function" || typeof signal.aborted !== "boolean") {
    throw new ArgumentError("signal is no AbortSignal");
  }
}
