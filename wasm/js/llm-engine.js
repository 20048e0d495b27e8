/** A language model in the thread that computes: what llm.js calls, by itself or through llm-worker.js. */

import { Held, openOf } from "./core.js";
import { waiting } from "./instance.js";
import { sourceOf } from "./llm-source.js";
import { Message, typedArray } from "./message.js";

// In the order of wasm/bridge/llm_js.go.
const [openModel, beginText, nextToken, tokenize, detokenize, chatPrompt, embed] = Array.from({ length: 7 }, (_, i) => waiting.further + i);

/** Formats of keys and values, by their numbers in GGUF files. */
export const kvFormats = { f32: 0, f16: 1, q8_0: 8 };

class Generation extends Held {
  kind = "text";
}

export class Engine extends Held {
  kind = "model";
  #generations = new Map();

  /** Loads what llm.js has checked. */
  static async load(model, { open, cache, context, chunk, exact, kvFormat }, { signal, progress }) {
    const device = await openOf("wavelane-llm", new URL("wavelane-llm.wasm", import.meta.url), { ...open, ...(signal && { signal }) });
    let source, failure;
    try {
      source = await sourceOf(model, { cache, signal, progress });
      const read = (at, n) => source.read(at, n).catch((error) => {
        failure = error; // which the program only passes on as text
        throw error;
      });
      const message = new Message(device.handle("load"), context, chunk, exact ? 1 : 0, kvFormats[kvFormat], source.size);
      const extra = { read, progress: (done, total) => progress({ stage: "load", done, total }) };
      const [handle, info, room] = await device.program.call(openModel, message, { signal, operation: "load", shapes: [], extra });
      return new Engine(device, handle, { info, context: room, device: device.info });
    } catch (error) {
      device.close();
      throw failure ?? error;
    } finally {
      await source?.close?.();
    }
  }

  constructor(device, handle, facts) {
    super(device, device.program, handle);
    this.facts = facts;
  }

  #call(what, operation, message, { signal, extra } = {}) {
    return this.program.call(what, message, { signal, operation, shapes: [], extra });
  }

  /** Begins a text; id is the caller's name for it. */
  async begin([id, input, options], { signal }) {
    const [handle] = await this.#call(beginText, "generate", new Message(this.handle("generate")), { signal, extra: [input, options] });
    this.#generations.set(id, new Generation(this.device, this.program, handle));
  }

  async next([id], { signal }) {
    const [token] = await this.#call(nextToken, "generate", new Message(this.#generations.get(id).handle("generate")), { signal });
    return token;
  }

  async end([id]) {
    this.#generations.get(id)?.close();
    this.#generations.delete(id);
  }

  async tokenize([text], { signal }) {
    const [ids] = await this.#call(tokenize, "tokenize", new Message(this.handle("tokenize")).text(text), { signal });
    return typedArray(ids);
  }

  async detokenize([ids], { signal }) {
    const message = new Message(this.handle("detokenize")).bytes(ids, "detokenize: tokens");
    const [text] = await this.#call(detokenize, "detokenize", message, { signal });
    return text;
  }

  async chatPrompt([messages, variables], { signal }) {
    const [text] = await this.#call(chatPrompt, "chatPrompt", new Message(this.handle("chatPrompt")), { signal, extra: [messages, variables] });
    return text;
  }

  async embed([texts], { signal }) {
    const message = new Message(this.handle("embed"), texts.length);
    for (const text of texts) message.text(text);
    return (await this.#call(embed, "embed", message, { signal })).map(typedArray);
  }

  close() {
    super.close();
    this.device.close();
  }
}
