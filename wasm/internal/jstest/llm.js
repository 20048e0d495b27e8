// Tests of wavelane/llm that run in Node.js and in pages, on any device. The models are those of llm.go.

function check(ok, what) {
  if (!ok) throw new Error(what);
}

function equal(got, want, what = "result") {
  if (JSON.stringify(got) !== JSON.stringify(want)) throw new Error(`${what} is ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);
}

async function fails(name, f) {
  try {
    await f();
  } catch (error) {
    if (error.name !== name) throw new Error(`${f}: ${error.name}: ${error.message}, want ${name}`);
    return error;
  }
  throw new Error(`${f}: no error, want ${name}`);
}

async function collect(sequence) {
  const tokens = [];
  for await (const token of sequence) tokens.push(token);
  return { tokens, ids: tokens.map((t) => t.id), text: tokens.map((t) => t.text).join(""), last: tokens.at(-1) };
}

const exact = { exact: true, kvFormat: "f32", context: 128 };

/** Runs the tests and returns the report. Base is the address of the models, and options are of the device. */
export async function run(llm, options, base) {
  const report = {};
  const address = `${base}/models/small.gguf`;
  const want = await (await fetch(`${base}/models/small.json`)).json();
  const stages = new Set();
  let loaded = null;
  const model = await llm.load(address, {
    ...options, ...exact,
    progress(p) {
      check(p.done > 0 && (p.total === null || p.done <= p.total), JSON.stringify(p));
      stages.add(p.stage);
      if (p.stage === "load") loaded = p;
    },
  });
  const messages = [{ role: "user", content: "the thing" }];
  const tests = {
    async "what the model says"() {
      equal([model.info.architecture, model.info.blocks, model.info.vocabulary, model.info.context], ["llama", 2, 320, 128]);
      equal(model.context, 128);
      equal([loaded.done, loaded.total], [model.info.bytes, model.info.bytes]);
      if (options.device) equal(model.device.kind, options.device);
    },

    async "the same tokens as in Go"() {
      const { ids, text, last } = await collect(model.generate(want.prompt, { maxTokens: want.ids.length, ignoreEnd: true }));
      equal(ids, want.ids);
      equal(text, want.text);
      equal(last.finish, "limit");
      equal([last.stats.prompt, last.stats.known, last.stats.steps], [want.tokens.length, 0, want.ids.length - 1]);
      const again = await collect(model.generate(want.prompt, { maxTokens: 2, ignoreEnd: true }));
      equal(again.ids, want.ids.slice(0, 2));
      equal(again.last.stats.known, want.tokens.length - 1, "known tokens");
    },

    async "text and tokens"() {
      equal([...(await model.tokenize(want.prompt))], want.tokens);
      equal(await model.detokenize(want.tokens), want.prompt);
      equal(await model.detokenize(await model.tokenize("the thing")), "the thing");
    },

    async "embeddings"() {
      const vectors = await model.embed([want.prompt, "and"]);
      equal(vectors.map((v) => v.length), [64, 64]);
      vectors[0].forEach((x, i) => check(Math.abs(x - want.vector[i]) < 1e-4, `element ${i} is ${x}, want ${want.vector[i]}`));
      equal(await model.embed([]), []);
      const text = model.generate("and", { ignoreEnd: true });
      const { value } = await text.next();
      equal((await model.embed(["and"]))[0], vectors[1], "beside a text");
      await text.return();
      equal((await collect(model.generate("and", { maxTokens: 1, ignoreEnd: true }))).ids, [value.id]);
      await fails("ArgumentError", () => model.embed("and"));
      await fails("ArgumentError", () => model.embed([1]));
      await fails("TooLargeError", () => model.embed(["the ".repeat(200)]));
      await fails("AbortError", () => model.embed(["and"], { signal: AbortSignal.abort() }));
    },

    async "an encoder"() {
      const encoder = await llm.load(`${base}/models/encoder.gguf`, { ...options, ...exact, context: 64 });
      equal([encoder.info.encoder, model.info.encoder, encoder.context], [true, false, 64]);
      const [vector] = await encoder.embed([want.prompt]);
      vector.forEach((x, i) => check(Math.abs(x - want.encoded[i]) < 1e-4, `element ${i} is ${x}, want ${want.encoded[i]}`));
      await fails("UnsupportedError", () => collect(encoder.generate("the")));
      await fails("TooLargeError", () => encoder.embed(["the ".repeat(63)]));
      encoder.close();
    },

    async "chat"() {
      const prompt = await model.chatPrompt([{ role: "system", content: "a" }, ...messages], { tools: ["x", 1, true, null] });
      equal(prompt, "system: a\nuser: the thing\n[x 1 True None]assistant:");
      const { ids } = await collect(model.chat(messages, { maxTokens: 5, ignoreEnd: true }));
      equal(ids, (await collect(model.generate(await model.chatPrompt(messages), { maxTokens: 5, ignoreEnd: true }))).ids);
      const error = await fails("ArgumentError", () => collect(model.chat([{ role: "tool", content: "a" }])));
      check(error.message.includes("no tools"), error.message);
    },

    async "sampling, and probabilities"() {
      const hot = { temperature: 1.5, topK: 50, topP: 0.95, minP: 0.01, maxTokens: 12, ignoreEnd: true };
      const one = await collect(model.generate("the", { ...hot, seed: 1 }));
      equal((await collect(model.generate("the", { ...hot, seed: 1 }))).ids, one.ids);
      check(JSON.stringify((await collect(model.generate("the", { ...hot, seed: 2 }))).ids) !== JSON.stringify(one.ids), "seeds do not matter");
      const { tokens } = await collect(model.generate("the", { maxTokens: 3, logProbs: 2, ignoreEnd: true }));
      for (const t of tokens) {
        equal([t.top.length, t.top[0].id, t.top[0].logProb], [2, t.id, t.logProb]);
        check(t.logProb < 0 && t.top[1].logProb <= t.logProb, JSON.stringify(t));
      }
      const { text } = await collect(model.generate(want.prompt, { maxTokens: want.ids.length, ignoreEnd: true, stop: want.text.slice(3, 6) }));
      equal(text, want.text.slice(0, want.text.indexOf(want.text.slice(3, 6))));
    },

    async "JSON"() {
      const schema = { type: "object", properties: { b: { type: "string", maxLength: 4 }, a: { type: "boolean" } }, required: ["b", "a"] };
      const { text, last } = await collect(model.generate("the", { json: schema, temperature: 1, seed: 5 }));
      equal(Object.entries(JSON.parse(text)).map(([k, v]) => [k, typeof v]), [["b", "string"], ["a", "boolean"]], text);
      equal(last.finish, "end of text");
      await fails("UnsupportedError", () => collect(model.generate("the", { json: { pattern: "a" } })));
      await fails("ArgumentError", async () => model.generate("the", { json: "object" }));
    },

    async "the end of a text"() {
      const seen = [];
      for await (const token of model.generate("and", { ignoreEnd: true })) {
        seen.push(token.id);
        if (seen.length === 3) break;
      }
      equal((await collect(model.generate("and", { maxTokens: 3, ignoreEnd: true }))).ids, seen, "after a break");
      const controller = new AbortController();
      const aborted = [];
      await fails("AbortError", async () => {
        for await (const token of model.generate("and", { ignoreEnd: true, signal: controller.signal })) {
          aborted.push(token.id);
          if (aborted.length === 3) setTimeout(() => controller.abort());
          check(aborted.length < 120, "the abort came late");
          await new Promise((r) => setTimeout(r));
        }
      });
      equal(aborted.slice(0, 3), seen);
      await fails("AbortError", () => collect(model.generate("and", { signal: AbortSignal.abort() })));
      equal((await collect(model.generate("and", { maxTokens: 3, ignoreEnd: true }))).ids, seen, "after an abort");
      equal((await collect(model.generate("the ".repeat(60), { ignoreEnd: true }))).last.finish, "context full");
      const { ids, last } = await collect(model.generate("the ".repeat(60), { maxTokens: 80, contextShift: 2, lookup: 4, ignoreEnd: true }));
      equal([ids.length, last.finish], [80, "limit"]);
      await fails("ArgumentError", () => collect(model.generate("and", { contextShift: 128 })));
      await fails("ArgumentError", () => collect(model.generate("and", { lookup: 64 })));
    },

    async "one text at a time"() {
      const first = model.generate("and", { ignoreEnd: true });
      const { value } = await first.next();
      const error = await fails("InFlightError", () => collect(model.generate("the")));
      check(error instanceof llm.InFlightError && error instanceof llm.WavelaneError, "its class");
      equal((await first.next()).done, false);
      await first.return();
      equal((await collect(model.generate("and", { maxTokens: 1, ignoreEnd: true }))).ids, [value.id]);
    },

    async "sources"() {
      const bytes = new Uint8Array(await (await fetch(address)).arrayBuffer());
      const sources = {
        bytes: () => bytes, buffer: () => bytes.buffer, blob: () => new Blob([bytes]), response: () => fetch(address), URL: () => new URL(address),
        "without ranges": () => `${base}/models/small.gguf?plain`,
      };
      for (const [name, source] of Object.entries(sources)) {
        const other = await llm.load(source(), { device: "cpu", ...exact, cache: name !== "URL" });
        equal((await collect(other.generate(want.prompt, { maxTokens: 3, ignoreEnd: true }))).ids, want.ids.slice(0, 3), name);
        other.close();
      }
    },

    async "mistakes"() {
      await fails("ArgumentError", () => llm.load(7));
      await fails("ArgumentError", () => llm.load("http://"));
      await fails("ArgumentError", () => llm.load(address, { devise: "cpu" }));
      await fails("ArgumentError", () => llm.load(address, { device: "cpu", context: -1 }));
      await fails("ArgumentError", () => llm.load(address, { device: "cpu", kvFormat: "q4_0" }));
      await fails("UnsupportedError", () => llm.load(address, { device: "cpu", kvFormat: "q8_0" })); // heads of 16
      await fails("TooLargeError", () => llm.load(address, { device: "cpu", context: 129 }));
      await fails("ArgumentError", () => llm.load(new Uint8Array(100), { device: "cpu" }));
      await fails("ArgumentError", () => llm.load(new Blob([]), { device: "cpu" }));
      await fails("UnavailableError", () => llm.load(`${base}/models/none.gguf`, { device: "cpu" }));
      await fails("AbortError", () => llm.load(address, { device: "cpu", signal: AbortSignal.abort() }));
      await fails("AbortError", () => {
        const controller = new AbortController();
        return llm.load(address, { device: "cpu", cache: false, signal: controller.signal, progress: () => controller.abort() });
      });
      await fails("ArgumentError", async () => model.generate(7));
      await fails("ArgumentError", async () => model.generate("the", { topk: 1 }));
      await fails("ArgumentError", async () => model.generate("the", { topK: 1.5 }));
      await fails("ArgumentError", async () => model.generate("the", { stop: 1 }));
      await fails("ArgumentError", async () => model.chat("the"));
      await fails("ArgumentError", () => collect(model.generate("the", { maxTokens: 0 })));
      await fails("ArgumentError", () => collect(model.generate("the", { temperature: -1 })));
      await fails("ArgumentError", () => collect(model.generate("the", { stop: "" })));
      await fails("ArgumentError", () => collect(model.chat([{ content: "a" }])));
      await fails("ArgumentError", () => collect(model.chat([{ role: "user", content: () => 1 }])));
      await fails("ArgumentError", () => model.tokenize(7));
      await fails("TooLargeError", () => collect(model.generate("the ".repeat(200))));
      equal((await collect(model.generate(want.prompt, { maxTokens: 3, ignoreEnd: true }))).ids, want.ids.slice(0, 3));
    },

    async "the end"() {
      const other = await llm.load(address, { ...options, ...exact });
      const text = other.generate("the", { ignoreEnd: true });
      await text.next();
      other.close();
      other.close();
      await fails("ClosedError", () => text.next());
      await fails("ClosedError", () => other.tokenize("the"));
      await fails("ClosedError", () => collect(other.generate("the")));
      check(other.closed, "the model is open");
    },
  };
  for (const [name, f] of Object.entries(tests)) {
    try {
      await f();
      report[name] = { ok: true, note: "" };
    } catch (error) {
      report[name] = { ok: false, note: error.stack ?? String(error) };
    }
  }
  model.close();
  return report;
}

/** Tests what the browser keeps: in a page, whose workers write. */
export async function keeps(llm, base) {
  const address = `${base}/models/small.gguf`;
  const count = async () => (await (await fetch(`${base}/models/requests`)).json());
  const load = async (url, options) => {
    const before = await count();
    const model = await llm.load(url, { device: "cpu", ...exact, ...options });
    const { ids } = await collect(model.generate("the", { maxTokens: 2, ignoreEnd: true }));
    model.close();
    const after = await count();
    return { ids: String(ids), bodies: after.bodies - before.bodies, bytes: after.bytes - before.bytes };
  };
  const { size } = await count();
  for (const { url } of await llm.cached()) await llm.uncache(url);
  const first = await load(address);
  equal(first.bytes, size, "bytes of the first load");
  equal(await llm.cached(), [{ url: address, bytes: size, complete: true }]);
  equal(await load(address), { ids: first.ids, bodies: 0, bytes: 0 }, "the second load");
  await fetch(`${base}/models/touch`);
  equal(await load(address), { ids: first.ids, bodies: 1, bytes: size }, "a load of a changed file");
  await llm.uncache(address);
  equal(await llm.cached(), []);

  // A download that ends early goes on where it was, within a load and in the next one.
  const broken = `${base}/models/small.gguf?broken`;
  const pieces = await load(broken);
  equal(pieces.ids, first.ids, "a load in pieces");
  check(pieces.bodies > 1 && pieces.bytes < 1.5 * size, JSON.stringify(pieces)); // what is under way when a connection breaks may be lost
  await llm.uncache(broken);
  const controller = new AbortController();
  await fails("AbortError", () => llm.load(`${base}/models/small.gguf?slow`, {
    device: "cpu", signal: controller.signal, progress: ({ stage, done }) => stage === "download" && done > size / 4 && controller.abort(),
  }));
  const [part] = await llm.cached();
  equal(part.complete, false);
  check(part.bytes > size / 4 && part.bytes < size, part.bytes);
  const rest = await load(`${base}/models/small.gguf?slow`);
  equal(rest.ids, first.ids, "the rest");
  check(rest.bytes < 0.9 * size, `${rest.bytes} bytes after ${part.bytes} of ${size}`); // the last of the first download may be counted here
  await llm.uncache(`${base}/models/small.gguf?slow`);
  equal(await llm.cached(), []);
  return true;
}
