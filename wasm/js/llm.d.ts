/**
 * Language models from GGUF files, on WebGPU or on the CPU.
 *
 * ```js
 * import { load } from "wavelane/llm";
 * const model = await load("model.gguf", { progress: ({ stage, done, total }) => console.log(stage, done, total) });
 * for await (const token of model.chat([{ role: "user", content: "Why is the sky blue?" }])) console.log(token.text);
 * ```
 *
 * It is a program of its own, wavelane-llm.wasm, which is loaded with the first model. Which models it knows is in docs/llm.md of the
 * repository.
 */

import type { CallOptions, Info, OpenOptions } from "./wavelane.js";
export {
  WavelaneError, ShapeError, DTypeError, ArgumentError, UnavailableError, UnsupportedError, DeviceLostError, OutOfMemoryError,
  TooLargeError, ClosedError, ForeignTensorError, InFlightError, NotRunError, ShaderError, InstanceError,
} from "./wavelane.js";

/** A model's bytes, or where they are. */
export type ModelSource = string | URL | Response | Blob | ArrayBuffer | ArrayBufferView | Promise<Response>;

/** How far loading is: bytes that were fetched, or that are on the device; total is null where it is not known. */
export interface Progress {
  readonly stage: "download" | "load";
  readonly done: number;
  readonly total: number | null;
}

/** Options of {@link load}: those that open a device, and these. */
export interface LoadOptions extends OpenOptions {
  /**
   * Computes in a worker that load starts, so that the page is not held up. The default is true in pages, and false where there
   * is no document, in workers and in Node.js, and with gpuDevice, which a worker cannot use.
   */
  worker?: boolean;
  /**
   * Keeps what an address has given in the browser's storage (its origin private file system), from which the next load takes it if the
   * server has no other version; a download that ended early is continued. Only workers can write there. Otherwise the file is read
   * by ranges as it is needed, from servers that have them, and not kept. The default is true.
   */
  cache?: boolean;
  /** Tokens that a text has room for; default 4096, or as many as the model was trained on if these are fewer. */
  context?: number;
  /** Tokens of a prompt that are computed at once, 64 by default. */
  chunk?: number;
  /** Multiplies quantised weights with float32 rather than with activations of 8 bits. */
  exact?: boolean;
  /** Format of keys and values: float16 by default, or 8 bits in blocks of 32 with a scale, for heads of whole blocks. */
  kvFormat?: "f16" | "f32" | "q8_0";
  progress?: (progress: Progress) => void;
}

/**
 * Loads a model on a device of its own.
 * @throws {ArgumentError} for a file that is no model
 * @throws {UnsupportedError} for one with an architecture or a vocabulary that is not known here
 * @throws {UnavailableError} if the file cannot be had, or there is no such device
 */
export function load(model: ModelSource, options?: LoadOptions): Promise<Model>;

/** A file in the browser's storage. */
export interface Cached {
  readonly url: string;
  readonly bytes: number;
  readonly complete: boolean;
}

/** What {@link load} has kept of addresses. */
export function cached(): Promise<Cached[]>;

/** Removes what is kept of an address, if anything is. */
export function uncache(url: string | URL): Promise<void>;

/** What a file says of a model. */
export interface ModelInfo {
  readonly architecture: string;
  readonly name: string;
  readonly blocks: number;
  readonly width: number;
  readonly hidden: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headSize: number;
  readonly vocabulary: number;
  /** Tokens that it was trained on. */
  readonly context: number;
  readonly parameters: number;
  /** Of the weights in the file. */
  readonly bytes: number;
  /** It makes embeddings, and does not continue texts. */
  readonly encoder: boolean;
  /** May be empty. */
  readonly chatTemplate: string;
}

/** What somebody says in a conversation; further fields are for the model's chat template. */
export interface Message {
  role: string;
  content?: unknown;
  [field: string]: unknown;
}

/** How a text is continued. Without a temperature it is always the most likely token. */
export interface GenerateOptions extends CallOptions {
  /** Divides logits before a token is drawn. */
  temperature?: number;
  /** Draws from that many of the most likely tokens. */
  topK?: number;
  /** Draws from the most likely tokens that together have this probability. */
  topP?: number;
  /** Draws from tokens with at least this share of the probability of the most likely one. */
  minP?: number;
  repetitionPenalty?: number;
  frequencyPenalty?: number;
  presencePenalty?: number;
  /** How many of the last tokens the penalties look at, 64 by default. */
  penaltyWindow?: number;
  /** Of the draws; the same seed gives the same text. */
  seed?: number;
  /** Ends the text after so many tokens. */
  maxTokens?: number;
  /** Ends the text before one of these. */
  stop?: string | readonly string[];
  /** Has tokens tell their probability and those of so many likely ones. */
  logProbs?: number;
  /** Goes on where the model would end the text. */
  ignoreEnd?: boolean;
  /** Goes on where the context is full: so many first tokens stay, and the older half of the others is forgotten. */
  contextShift?: number;
  /** Computes so many tokens ahead where the latest ones have come before, 1 to 63. */
  lookup?: number;
  /**
   * Has the answer be JSON: any, or what a JSON schema allows, of which docs/llm.md says what is understood. Properties come in the order
   * of the schema.
   */
  json?: true | Readonly<Record<string, unknown>>;
  /** More variables of the chat template, such as enable_thinking. */
  variables?: Readonly<Record<string, unknown>>;
}

export interface Candidate {
  readonly id: number;
  readonly text: string;
  /** Natural logarithm of the probability. */
  readonly logProb: number;
}

export interface Token {
  readonly id: number;
  /** What can be said since the last token: nothing for a part of a character. The texts of all tokens are the answer. */
  readonly text: string;
  readonly logProb?: number;
  readonly top?: readonly Candidate[];
  /** Why the text has ended, for the last token. */
  readonly finish: "end of text" | "stop string" | "limit" | "context full" | null;
  /** What the text took, for the last token. */
  readonly stats?: Stats;
}

/** Tokens, and milliseconds. */
export interface Stats {
  readonly prompt: number;
  /** Of the prompt, what was computed before. */
  readonly known: number;
  readonly prefill: number;
  readonly steps: number;
  readonly decoding: number;
  /** Tokens that lookup expected, and of these the ones that were chosen. */
  readonly drafted: number;
  readonly accepted: number;
}

/**
 * A model on a device, with one text at a time: a second one beside a text that has not ended fails with an InFlightError. What a text has
 * in common with the one before is not computed again.
 */
export class Model {
  private constructor();
  readonly info: ModelInfo;
  /** Tokens that a text has room for. */
  readonly context: number;
  readonly device: Info;
  readonly closed: boolean;

  /**
   * Continues a prompt, token by token, as they are asked for. To leave the loop, or the signal's abort, ends the text; the model can be used
   * on.
   */
  generate(prompt: string, options?: GenerateOptions): AsyncGenerator<Token, void, undefined>;
  /** Answers the last message of a conversation, which is given as a whole. */
  chat(messages: readonly Message[], options?: GenerateOptions): AsyncGenerator<Token, void, undefined>;
  /** What the model's chat template makes of a conversation. */
  chatPrompt(messages: readonly Message[], variables?: Readonly<Record<string, unknown>>): Promise<string>;
  /** A vector of length 1 of each text, pooled as the file says, or the mean of its tokens'. Likeness of texts is the product of theirs. */
  embed(texts: readonly string[], options?: CallOptions): Promise<Array<Float32Array<ArrayBuffer>>>;
  tokenize(text: string): Promise<Int32Array>;
  detokenize(tokens: ArrayLike<number>): Promise<string>;

  /** Frees the model and its device. Calls under way are rejected with a ClosedError. */
  close(): void;
}
