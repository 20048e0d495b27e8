/** Language models; llm.d.ts documents them. Their program is another one than that of wavelane.js, with more in it. */

import { checkOptions } from "./arguments.js";
import { abortable, openKeys } from "./core.js";
import * as errors from "./errors.js";
import { ArgumentError, ClosedError, InstanceError } from "./errors.js";
import { checkSignal, located } from "./instance.js";
import { Engine, kvFormats } from "./llm-engine.js";
import { collected, isBlob } from "./llm-source.js";
import { checkInt, checkNumber, describe } from "./message.js";

export * from "./errors.js";
export { cached, uncache } from "./llm-source.js";

export async function load(model, options) {
  const given = checkOptions(options, [...openKeys, "worker", "cache", "context", "chunk", "exact", "kvFormat", "progress"], "load");
  const {
    worker = "document" in globalThis && typeof Worker === "function" && !given.gpuDevice, cache = true, context = 0, chunk = 0, exact = false,
    kvFormat = "f16", progress = () => {}, signal, ...open
  } = given;
  checkInt(context, "load: context");
  checkInt(chunk, "load: chunk");
  checkSignal(signal);
  if (!Object.hasOwn(kvFormats, kvFormat)) throw new ArgumentError(`load: kvFormat is ${describe(kvFormat)}, must be "f16", "f32" or "q8_0"`);
  if (typeof progress !== "function") throw new ArgumentError(`load: progress is ${describe(progress)}, must be a function`);
  if (worker && open.gpuDevice) throw new ArgumentError("load: a worker cannot use the page's GPUDevice, give worker: false");
  const args = [await abortable(sent(await model, progress), signal), { cache, context, chunk, exact, kvFormat, open }];
  if (!worker) {
    const engine = await Engine.load(...args, { signal, progress });
    return new Model(new Local(engine), engine.facts);
  }
  if (open.wasm !== undefined) open.wasm = await abortable(sentProgram(open.wasm), signal);
  const remote = new Remote();
  try {
    return new Model(remote, await remote.call("load", args, { signal, progress }));
  } catch (error) {
    remote.close();
    throw error;
  }
}

/** A model's source as a worker can be given it: an absolute address, a blob, or bytes. */
async function sent(model, progress) {
  if (typeof model === "string" || model instanceof URL) {
    try {
      return new URL(model, globalThis.location?.href).href;
    } catch (error) {
      throw new ArgumentError(`load: ${describe(String(model))} is no address`, { cause: error });
    }
  }
  if (isBlob(model) || model instanceof ArrayBuffer || ArrayBuffer.isView(model)) return model;
  if (typeof model?.arrayBuffer === "function" && model.body) return collected(model, progress);
  throw new ArgumentError(`load: model is ${describe(model)}, must be an address, a response, a file or bytes`);
}

/** What OpenOptions.wasm is as a worker can be given it. */
async function sentProgram(source) {
  source = await located(await source, globalThis.location?.href);
  return typeof source?.arrayBuffer === "function" ? source.arrayBuffer() : source;
}

/** An engine in this thread. */
class Local {
  #engine;

  constructor(engine) {
    this.#engine = engine;
  }

  async call(method, args, options) {
    return this.#engine[method](args, options ?? {});
  }

  close() {
    this.#engine.close();
  }
}

/** An engine in a worker. */
class Remote {
  #worker = startWorker();
  #calls = new Map();
  #number = 0;

  constructor() {
    this.#worker.onmessage = ({ data: { call, progress, result, error } }) => {
      const c = this.#calls.get(call);
      if (!c) return; // it was aborted
      if (progress) return c.progress?.(progress);
      this.#settled(call, c);
      if (error) c.reject(revived(error));
      else c.resolve(result);
    };
    this.#worker.onerror = (event) => {
      event.preventDefault();
      this.#end(new InstanceError(`the worker failed: ${event.message ?? "it could not be loaded"}`));
    };
  }

  #settled(number, call) {
    this.#calls.delete(number);
    call.signal?.removeEventListener("abort", call.abort);
  }

  call(method, args, { signal, progress } = {}) {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const number = ++this.#number;
      const call = { resolve, reject, signal, progress };
      call.abort = () => {
        this.#calls.delete(number);
        this.#worker.postMessage({ abort: number });
        reject(signal.reason);
      };
      try {
        this.#worker.postMessage({ call: number, method, args });
      } catch (error) {
        throw new ArgumentError(`${method}: ${error.message}`, { cause: error });
      }
      this.#calls.set(number, call);
      signal?.addEventListener("abort", call.abort, { once: true });
    });
  }

  #end(error) {
    this.#worker.terminate();
    for (const [number, call] of this.#calls) {
      this.#settled(number, call);
      call.reject(error);
    }
  }

  close() {
    this.#end(new ClosedError("the model is closed"));
  }
}

function startWorker() {
  try {
    return new Worker(new URL("./llm-worker.js", import.meta.url), { type: "module" });
  } catch (error) {
    if (error.name !== "SecurityError") throw error;
    // The package is another origin's, whose modules a worker may import but not be.
    const text = `import ${JSON.stringify(new URL("./llm-worker.js", import.meta.url).href)};`;
    return new Worker(URL.createObjectURL(new Blob([text], { type: "text/javascript" })), { type: "module" });
  }
}

/** The error that a worker has described. */
function revived({ name, message, stack, ...context }) {
  if (errors[name]?.prototype instanceof Error) return new errors[name](message, context);
  return Object.assign(new Error(message, { cause: stack }), { name });
}

const forgotten = new FinalizationRegistry((where) => where.close());

const generateKeys = {
  temperature: checkNumber, topK: checkInt, topP: checkNumber, minP: checkNumber, repetitionPenalty: checkNumber, frequencyPenalty: checkNumber,
  presencePenalty: checkNumber, penaltyWindow: checkInt, seed: checkInt, maxTokens: checkInt, logProbs: checkInt, contextShift: checkInt,
  lookup: checkInt,
};

class Model {
  #where;
  #generations = 0;
  #closed = false;

  constructor(where, { info, context, device }) {
    this.#where = where;
    this.info = Object.freeze(info);
    this.context = context;
    this.device = Object.freeze(device);
    forgotten.register(this, where, this);
  }

  get closed() {
    return this.#closed;
  }

  #call(method, args, options) {
    if (this.#closed) throw new ClosedError(`${method}: the model is closed`, { operation: method });
    return this.#where.call(method, args, options);
  }

  generate(prompt, options) {
    if (typeof prompt !== "string") throw new ArgumentError(`generate: prompt is ${describe(prompt)}, must be a string`);
    return this.#tokens("generate", prompt, options);
  }

  chat(messages, options) {
    return this.#tokens("chat", checkMessages(messages, "chat"), options);
  }

  #tokens(what, input, options) {
    const { signal, ...rest } = checkOptions(options, ["signal", "stop", "ignoreEnd", "variables", "json", ...Object.keys(generateKeys)], what);
    for (const name in generateKeys) if (rest[name] !== undefined) generateKeys[name](rest[name], `${what}: ${name}`);
    checkSignal(signal);
    if (typeof rest.stop === "string") rest.stop = [rest.stop];
    if (rest.stop !== undefined && !(Array.isArray(rest.stop) && rest.stop.every((s) => typeof s === "string"))) {
      throw new ArgumentError(`${what}: stop is ${describe(rest.stop)}, must be strings`);
    }
    if (rest.json !== undefined) {
      if (rest.json !== true && (typeof rest.json !== "object" || rest.json === null)) {
        throw new ArgumentError(`${what}: json is ${describe(rest.json)}, must be true or a schema`);
      }
      rest.json = JSON.stringify(rest.json); // which keeps the order of properties
    }
    return this.#generation(input, rest, signal);
  }

  async *#generation(input, options, signal) {
    const id = ++this.#generations;
    try {
      await this.#call("begin", [id, input, options], { signal });
      for (;;) {
        const token = await this.#call("next", [id], { signal });
        yield token;
        if (token.finish) return;
      }
    } finally {
      if (!this.#closed) await this.#call("end", [id]);
    }
  }

  async tokenize(text) {
    if (typeof text !== "string") throw new ArgumentError(`tokenize: ${describe(text)} is no string`);
    return this.#call("tokenize", [text]);
  }

  async detokenize(tokens) {
    if (!Array.isArray(tokens) && !ArrayBuffer.isView(tokens)) throw new ArgumentError(`detokenize: ${describe(tokens)} are no tokens`);
    return this.#call("detokenize", [Int32Array.from(tokens)]);
  }

  async chatPrompt(messages, variables) {
    return this.#call("chatPrompt", [checkMessages(messages, "chatPrompt"), variables ?? {}]);
  }

  async embed(texts, options) {
    const { signal } = checkOptions(options, ["signal"], "embed");
    checkSignal(signal);
    if (!Array.isArray(texts) || !texts.every((t) => typeof t === "string")) {
      throw new ArgumentError(`embed: texts are ${describe(texts)}, must be an array of strings`);
    }
    return this.#call("embed", [texts], { signal });
  }

  close() {
    if (this.#closed) return;
    this.#closed = true;
    forgotten.unregister(this);
    this.#where.close();
  }
}

function checkMessages(messages, what) {
  if (!Array.isArray(messages) || !messages.every((m) => typeof m === "object" && m !== null)) {
    throw new ArgumentError(`${what}: messages are ${describe(messages)}, must be an array of objects with role and content`);
  }
  return messages;
}
