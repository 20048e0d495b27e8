// Tests of the JavaScript API that run in Node.js, pages and workers alike, on any device. Each leaves the program alive.

const f32 = (...x) => new Float32Array(x);

function check(ok, what) {
  if (!ok) throw new Error(what);
}

function equal(got, want, what = "result") {
  const text = (x) => JSON.stringify(ArrayBuffer.isView(x) ? [x.constructor.name, ...x] : x);
  if (text(got) !== text(want)) throw new Error(`${what} is ${text(got)}, want ${text(want)}`);
}

/** Runs f, which must reject or throw an error of that class, and returns it. */
async function fails(name, f, context = "") {
  let result;
  try {
    result = await f();
  } catch (error) {
    if (error.name !== name) throw new Error(`${context} ${f}: ${error.name}: ${error.message}, want ${name}`);
    check(error instanceof Error, "no Error");
    return error;
  }
  throw new Error(`${context} ${f} gave ${result}, want ${name}`);
}

const detached = () => {
  const x = f32(1, 2, 3);
  structuredClone(x.buffer, { transfer: [x.buffer] });
  return x;
};

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * Makes a plan; each call of runs() keeps the device's queue waiting, as a run begins when the one before has delivered. On the CPU a run
 * must take long enough for events to be let through.
 */
export async function occupy(dev, n = dev.info.kind === "cpu" ? 1024 : 64) {
  const b = dev.batch();
  const x = b.fill(0.5, { shape: [n, n] });
  b.read(b.matmul(x, x));
  const plan = await b.compile();
  return [() => [plan.run(), plan.run(), plan.run()], () => plan.close()];
}

export const tests = {
  // The first, while there is no garbage of others.
  async "memory stays flat"(w, dev, { calls, wasmBytes }) {
    const x = new Float32Array(1000);
    const gamma = new Float32Array(100).fill(1);
    const round = async (n) => {
      for (let i = 0; i < n; i += 8) {
        const t = await dev.relu(x, { keep: true });
        const b = dev.batch();
        b.read(b.softmax(b.upload(x, [10, 100])));
        await Promise.all([dev.add(x, t), dev.rmsNorm(x, gamma, 10, 100, 1e-5), b.run(), t.read(), dev.relu(f32(1)),
          dev.add(x, f32(1, 2)).catch(() => 0), dev.relu(x, { signal: AbortSignal.abort() }).catch(() => 0)]);
        t.close();
      }
    };
    await round(calls);
    const before = wasmBytes();
    await round(calls);
    const after = wasmBytes();
    check(after <= before + 2 ** 22, `WebAssembly memory grew from ${before} to ${after} bytes`);
    for (let i = 0; dev.memory().inUse && i < 50; i++) await pause(20);
    equal(dev.memory().inUse, 0, "bytes in use");
    return `${calls} calls: ${(after / 2 ** 20).toFixed(1)} MiB of WebAssembly memory before and after`;
  },

  async "wrong types"(w, dev) {
    const t = await dev.upload(f32(1, 2));
    for (const bad of ["x", [1, 2], {}, null, undefined, 3, true, () => 1, new Float64Array(2), new Int8Array(8), new BigInt64Array(1), new ArrayBuffer(8), new DataView(new ArrayBuffer(8))]) {
      await fails("DTypeError", () => dev.relu(bad), String(bad));
      await fails("DTypeError", () => dev.add(t, bad), String(bad));
      await fails("DTypeError", () => dev.upload(bad), String(bad));
      await fails("DTypeError", () => w.tensor(bad, [2]), String(bad));
    }
    await fails("DTypeError", () => dev.relu(new Int32Array(3)));
    await fails("DTypeError", () => dev.relu(new Uint8Array(4)));
    await fails("DTypeError", () => dev.matmul(t, w.tensor(new Uint16Array(2), [2], { dtype: "f32" })));
    await fails("ArgumentError", () => w.tensor(f32(1), [1], { dtype: "f64" }));
    const e = await fails("DTypeError", () => dev.softmax(new Int32Array(6), 2, 3));
    equal([e.operation, e.shapes], ["softmax", [[2, 3]]]);
    check(e instanceof w.DTypeError && e instanceof w.WavelaneError && String(e).startsWith("DTypeError: "), String(e));
    t.close();
  },

  async "wrong shapes"(w, dev) {
    const x = f32(1, 2, 3, 4, 5, 6);
    const e = await fails("ShapeError", () => dev.matmul(x, x, 2, 3, 3));
    equal([e.operation, e.shapes], ["matmul", [[2, 3], [3, 3]]]);
    await fails("ShapeError", () => dev.matmul(w.tensor(x, [2, 3]), w.tensor(x, [2, 3])));
    await fails("ShapeError", () => w.tensor(x, [2, 2]));
    await fails("ShapeError", () => w.tensor(x, [-2, -3]));
    await fails("ShapeError", () => dev.upload(x, [7]));
    await fails("ShapeError", () => dev.upload(x, [-6]));
    await fails("ShapeError", () => dev.add(x, f32(1, 2)));
    await fails("ShapeError", () => dev.upload(x, [1, 1, 1, 1, 1, 1, 1, 1, 6]));
    await fails("ShapeError", () => dev.reshape(x, { shape: [4, -1] }));
    await fails("ShapeError", () => dev.fill(1, { shape: [2, -1] }));
    await fails("ShapeError", () => dev.max(new Float32Array(0)));
  },

  async "wrong numbers"(w, dev) {
    const x = new Float32Array(6);
    for (const bad of [NaN, Infinity, -Infinity, 1.5, "2", null, [], 2 ** 60, 2n]) {
      await fails("ArgumentError", () => dev.matmul(x, x, 2, bad, 2), String(bad));
      await fails("ArgumentError", () => dev.upload(x, [bad]), String(bad));
      await fails("ArgumentError", () => w.tensor(x, [2, bad]), String(bad));
      await fails("ArgumentError", () => dev.fill(1, { shape: [bad] }), String(bad));
    }
    await fails("ShapeError", () => dev.matmul(x, x, -2, -3, 2));
    await fails("ShapeError", () => dev.softmax(x, -2, -3));
    await fails("ArgumentError", () => dev.upload(x, 6));
    await fails("ArgumentError", () => dev.leakyRelu(x));
    await fails("ArgumentError", () => dev.leakyRelu(x, "0.1"));
    await fails("ArgumentError", () => dev.leakyRelu(x, 0.1, 0.2));
    await fails("ArgumentError", () => dev.rmsNorm(x, x, -1));
    equal(await dev.leakyRelu(f32(-1), NaN), f32(NaN));
  },

  async "wrong options"(w, dev) {
    const x = w.tensor(new Float32Array(16), [1, 1, 4, 4]);
    await fails("ArgumentError", () => dev.relu(x, { kep: true }));
    await fails("ArgumentError", () => dev.relu(x, []));
    await fails("ArgumentError", () => dev.relu(x, "keep"));
    await fails("ArgumentError", () => dev.conv2d(x, x, { stride: [1, 2, 3] }));
    await fails("ArgumentError", () => dev.conv2d(x, x, { stride: -1 }));
    await fails("ArgumentError", () => dev.conv2d(x, x, { stride: NaN }));
    await fails("ArgumentError", () => dev.conv2d(x, x, { act: "ReLU" }));
    await fails("ArgumentError", () => dev.conv2d(x, x, { act: "toString" }));
    await fails("ArgumentError", () => dev.maxPool2d(x));
    await fails("ArgumentError", () => dev.maxPool2d(x, { size: "2" }));
    await fails("ArgumentError", () => dev.sum(x, { axis: 1 }));
    await fails("ArgumentError", () => dev.attention(x, x, x, { causal: 1 }));
    await fails("ArgumentError", () => dev.crossEntropy(x, x, { ignoreIndex: 2 ** 40 }));
    await fails("ArgumentError", () => dev.qkv(x, x, x, x, { bk: x }));
    await fails("ArgumentError", () => dev.concat(x, { axis: 0 }));
    await fails("ArgumentError", () => dev.concat([], { axis: 0 }));
    await fails("ArgumentError", () => dev.relu(x, { signal: "now" }));
    await fails("ArgumentError", () => w.open({ divice: "cpu" }));
    await fails("ArgumentError", () => w.open({ device: "tpu" }));
    await fails("ArgumentError", () => w.open({ powerPreference: "most" }));
  },

  async "detached arrays"(w, dev) {
    await fails("ArgumentError", () => dev.relu(detached()));
    await fails("ArgumentError", () => dev.upload(detached()));
    await fails("ArgumentError", () => dev.matmul(detached(), f32(1), 1, 1, 1));
    const b = dev.batch();
    await fails("ArgumentError", () => b.upload(detached()));
    b.close();
    const x = f32(-1, 2);
    const t = w.tensor(x, [2]);
    structuredClone(x.buffer, { transfer: [x.buffer] });
    await fails("ArgumentError", () => dev.relu(t));
    equal(await dev.relu(new Float32Array(0)), f32());
  },

  async "sizes beyond everything"(w, dev) {
    for (const shape of [[2 ** 31], [2 ** 16, 2 ** 16], [2 ** 53 - 1], [2 ** 30, 2 ** 30, 2 ** 30]]) {
      await fails("TooLargeError", () => dev.fill(1, { shape }), shape);
    }
    for (const shape of [[2 ** 30], [2 ** 31 - 1], [15, 2 ** 26]]) {
      const name = await nameOf(() => dev.fill(1, { shape }));
      check(["OutOfMemoryError", "TooLargeError"].includes(name), `${shape}: ${name}`);
    }
    if (dev.info.limits.maxBuffer === 2 ** 30) { // within the limits; whether there is so much in one piece is the adapter's business
      let t = null;
      const name = await nameOf(async () => { t = await dev.fill(1, { shape: [2 ** 28], keep: true }); });
      check(t !== null || name === "OutOfMemoryError", name);
      t?.close();
      equal(await dev.fill(1, { shape: [2] }), f32(1, 1));
    }
    const b = dev.batch();
    const v = b.fill(1, { shape: [2 ** 30] });
    check(["OutOfMemoryError", "TooLargeError"].includes(await nameOf(async () => { b.keep(v); await b.run(); })), "keeping 4 GiB");
    await fails("ShapeError", () => dev.batch().input([2 ** 40]));
  },

  async "use after close"(w, dev) {
    const t = await dev.upload(f32(1, 2));
    t.close();
    t.close();
    check(t.closed, "closed");
    const e = await fails("ClosedError", () => t.read());
    equal(e.operation, "read");
    await fails("ClosedError", () => dev.relu(t));
    await fails("ClosedError", () => { dev.batch().import(t); });
    const b = dev.batch();
    const v = b.relu(f32(-1, 1));
    b.read(v);
    const plan = await b.compile();
    await fails("ClosedError", () => { b.relu(v); });
    await fails("ClosedError", () => b.run());
    plan.close();
    plan.close();
    await fails("ClosedError", () => plan.run());
    await fails("ClosedError", () => { plan.setInput(v, f32(1, 2)); });

    const other = await w.open({ device: "cpu" });
    const theirs = await other.upload(f32(1, 2));
    await fails("ForeignTensorError", () => dev.relu(theirs));
    await fails("ForeignTensorError", () => { dev.batch().import(theirs); });
    await fails("ForeignTensorError", () => { dev.batch().read(other.batch().upload(f32(1))); });
    const late = other.relu(f32(-1, 1)); // was called before
    other.close();
    other.close();
    equal(await late, f32(0, 1));
    check(other.closed, "closed");
    await fails("ClosedError", () => theirs.read());
    await fails("ClosedError", () => other.relu(f32(1)));
    await fails("ClosedError", () => { other.batch(); });
    await fails("ClosedError", () => { other.memory(); });
    theirs.close();
  },

  async "closing after calls that wait"(w, dev) {
    const [runs, end] = await occupy(dev);
    const t = await dev.upload(f32(-1, 2)), u = await dev.upload(f32(-1, 2));
    const b = dev.batch();
    b.read(b.neg(t));
    const c = dev.batch();
    c.read(c.neg(u));
    const plan = await c.compile();
    const more = [...runs(), t.read(), dev.relu(t), dev.add(f32(1, 1), t, { keep: true }), b.run(), plan.run()];
    for (const x of [t, u, plan]) x.close();
    await fails("ClosedError", () => t.read());
    const [read, relu, sum, [batch], [planned]] = (await Promise.all(more)).slice(-5);
    equal([read, relu, await sum.read(), batch, planned].map((x) => [...x]), [[-1, 2], [0, 2], [0, 3], [1, -2], [1, -2]]);
    sum.close();
    end();
  },

  async "recording throws and poisons the batch"(w, dev) {
    const b = dev.batch();
    const x = b.upload(f32(1, 2, 3, 4), [2, 2]);
    let e = null;
    try {
      b.matmul(x, f32(1, 2, 3));
    } catch (error) {
      e = error;
    }
    equal([e.name, e.operation, e.shapes], ["ShapeError", "matmul", [[2, 2], [3]]]);
    check(!e.message.includes(".go"), e.message);
    await fails("ShapeError", () => { b.relu(x); });
    await fails("ShapeError", () => b.run());
    await fails("ClosedError", () => b.run());
    // What is wrong before it reaches the program has no effect.
    const c = dev.batch();
    const z = c.upload(f32(-1, 1));
    await fails("DTypeError", () => { c.add(z, "x"); });
    c.read(c.relu(z));
    equal(await c.run(), [f32(0, 1)]);
  },

  async "batches"(w, dev) {
    const b = dev.batch();
    const x = b.upload(f32(1, -2, 3, -4, 5, -6), [2, 3]);
    const [values, indices] = b.topK(x, { k: 2 });
    equal([indices.dtype, indices.shape, b.length], ["i32", [2, 2], 1]);
    b.read(indices);
    b.keep(b.add(b.relu(x), b.scalar(0.5)));
    b.read(values);
    const [i, kept, v] = await b.run();
    equal(i, new Int32Array([2, 0, 1, 0]));
    equal(v, f32(3, 1, 5, -4));
    equal([kept.shape, kept.dtype], [[2, 3], "f32"]);
    equal(await kept.read(), f32(1.5, 0.5, 3.5, 0.5, 5.5, 0.5));
    equal(await dev.sum(kept, { axis: "last" }), f32(5.5, 6.5));
    kept.close();
    equal(await dev.batch().run(), []);
  },

  async "plans that are measured first"(w, dev) {
    const b = dev.batch();
    b.read(b.softmax(b.upload(new Float32Array(1024).fill(0.5), [2, 512])));
    const plan = await b.compile({ tune: true });
    for (const m of plan.measured) {
      check(m.kind && m.problem && m.milliseconds[m.winner] > 0, JSON.stringify(m));
    }
    equal(plan.measured.length > 0, dev.info.kind === "webgpu", "something was measured");
    equal(await plan.run(), [new Float32Array(1024).fill(1 / 512)]);
    plan.close();
  },

  async "plans, in order"(w, dev) {
    const b = dev.batch();
    const x = b.input([2]);
    const t = await dev.upload(f32(10, 20));
    const y = b.import(t);
    b.read(b.add(x, y));
    b.keep(b.neg(x));
    const plan = await b.compile();
    const runs = [plan.run()];
    for (let i = 1; i < 5; i++) {
      plan.setInput(x, f32(i, -i));
      runs.push(plan.run());
    }
    const results = await Promise.all(runs);
    for (const [i, [sum, kept]] of results.entries()) {
      equal(sum, f32(10 + i, 20 - i));
      equal(await kept.read(), f32(-i, i));
      kept.close();
    }
    const u = await dev.upload(f32(1, 1));
    plan.setInput(y, u);
    const [sum, kept] = await plan.run();
    equal(sum, f32(5, -3));
    kept.close();
    await fails("ShapeError", () => { plan.setInput(x, f32(1)); });
    await fails("DTypeError", () => { plan.setInput(x, new Int32Array(2)); });
    await fails("ArgumentError", () => { plan.setInput({}, f32(1, 2)); });
    for (const c of [plan, t, u]) c.close();
  },

  async "updates in place"(w, dev) {
    const x = await dev.upload(f32(1, 2, 3, 4), [2, 2]);
    const results = [];
    for (let i = 0; i < 20; i++) results.push(dev.scatterAdd(x, new Int32Array([i % 2]), w.tensor(f32(1, 0), [1, 2])));
    for (const r of await Promise.all(results)) check(r === x, "the tensor itself");
    equal(await x.read(), f32(11, 2, 13, 4));
    const host = f32(1, 2, 3, 4);
    const y = await dev.scatter(w.tensor(host, [2, 2]), new Int32Array([1]), w.tensor(f32(7, 8), [1, 2]));
    equal([[...y], [...host]], [[1, 2, 7, 8], [1, 2, 3, 4]]);
    const zero = () => w.tensor(new Float32Array(4), [2, 2]);
    const [p, m, v] = await dev.adam(x, zero(), zero(), zero(), { lr: 0.1, step: new Int32Array([3]) });
    check(p === x && m instanceof Float32Array && v.length === 4, "adam's results");
    const kept = await dev.adam(zero(), zero(), zero(), zero(), { step: 2, keep: true });
    equal(await kept[0].read(), new Float32Array(4));
    for (const t of [x, ...kept]) t.close();
  },

  async "element types"(w, dev) {
    const half = await dev.cast(f32(1, -2, 0.5), { to: "f16" });
    equal(half, new Uint16Array([0x3c00, 0xc000, 0x3800]));
    equal(await dev.cast(half, { to: "f32" }), f32(1, -2, 0.5));
    if (globalThis.Float16Array) equal(await dev.cast(Float16Array.of(1, -2, 0.5), { to: "f32" }), f32(1, -2, 0.5));
    const brain = await dev.cast(f32(1, -2, 0.5), { to: "bf16", keep: true });
    equal(brain.dtype, "bf16");
    const bits = await brain.read();
    equal(bits, new Uint16Array([0x3f80, 0xc000, 0x3f00]));
    equal(await dev.cast(w.tensor(bits, [3], { dtype: "bf16" }), { to: "f32" }), f32(1, -2, 0.5));
    const up = await dev.upload(bits, [3], { dtype: "bf16" });
    equal([up.dtype, await dev.cast(up, { to: "f32" })], ["bf16", f32(1, -2, 0.5)].map((x) => x));
    const bytes = dev.batch();
    const pixel = bytes.input([3], { dtype: "u8" });
    const brighter = bytes.cast(bytes.scale(bytes.cast(pixel, { to: "f32" }), 1.5), { to: "u8" });
    bytes.read(brighter);
    equal(brighter.dtype, "u8");
    const brighten = await bytes.compile();
    brighten.setInput(pixel, new Uint8ClampedArray([1, 100, 200])); // 1.5 rounds to even
    equal((await brighten.run())[0], new Uint8Array([2, 150, 255]));
    brighten.close();
    equal(await dev.copy(new Uint32Array([1, 2 ** 32 - 1])), new Uint32Array([1, 2 ** 32 - 1]));
    equal(await dev.argmax(f32(1, 3, 2)), new Int32Array([1]));
    const scalar = await dev.upload(f32(3), []);
    equal([scalar.shape, await dev.mul(scalar, f32(1, 2))], [[], f32(3, 6)]);
    for (const t of [brain, up, scalar]) t.close();
    // Parts of buffers.
    equal(await dev.neg(new Float32Array(f32(1, 2, 3, 4).buffer, 4, 2)), f32(-2, -3));
    const shared = globalThis.SharedArrayBuffer && new Float32Array(new SharedArrayBuffer(8));
    if (shared) equal(await dev.neg(shared.fill(2)), f32(-2, -2));
  },

  async "arrays are copied"(w, dev) {
    const x = f32(1, 2, 3);
    const y = dev.neg(x);
    const b = dev.batch();
    b.read(b.neg(b.upload(x)));
    x.fill(9);
    equal(await y, f32(-1, -2, -3));
    equal(await b.run(), [f32(-1, -2, -3)]);
  },

  async "signals"(w, dev) {
    const x = f32(1, 2);
    const aborted = AbortSignal.abort();
    const t = await dev.upload(x);
    const b = dev.batch();
    b.read(b.upload(x));
    for (const f of [() => dev.relu(x, { signal: aborted }), () => dev.upload(x, [2], { signal: aborted }), () => t.read({ signal: aborted }),
      () => b.run({ signal: aborted }), () => w.open({ signal: aborted })]) await fails("AbortError", f);
    const reason = new RangeError("mine");
    await fails("RangeError", () => dev.relu(x, { signal: AbortSignal.abort(reason) }));

    for (const after of [0, 30, 150]) {
      for (let n = 768; ; n *= 2) { // until it takes longer than the abort, on any machine
        check(n < 10_000, `nothing is aborted after ${after} ms`);
        const big = await dev.fill(0.5, { shape: [n, n], keep: true });
        const c = new AbortController();
        const y = dev.matmul(big, big, { signal: c.signal }).catch((e) => e);
        const kept = dev.matmul(big, big, { signal: c.signal, keep: true }).catch((e) => e);
        const next = dev.relu(x); // later calls lose nothing
        setTimeout(() => c.abort(), after);
        const [first, second] = [await y, await kept];
        equal(await next, x);
        big.close();
        second.close?.();
        if (first.name === "AbortError") break;
        equal(first[n], n / 4);
      }
    }
    await fails("TimeoutError", async () => {
      const signal = AbortSignal.timeout(20);
      while (!signal.aborted) await dev.matmul(new Float32Array(2 ** 18), new Float32Array(2 ** 18), 512, 512, 512, { signal });
      signal.throwIfAborted();
    });
    t.close();
    // Signals keep no calls alive.
    const many = new AbortController();
    for (let i = 0; i < 50; i++) await dev.relu(x, { signal: many.signal });
    many.abort();
    equal(await dev.relu(x), x);
  },

  async "many calls at once"(w, dev) {
    const results = await Promise.all(Array.from({ length: 300 }, (_, i) => dev.scale(f32(i), 2)));
    results.forEach((r, i) => equal(r, f32(2 * i)));
    const names = new Set((await Promise.allSettled(Array.from({ length: 30 }, (_, i) => (i % 2 ? dev.add(f32(1, 2), f32(1, 2, 3)) : dev.exp(f32(0)))))).map((r) => r.reason?.name ?? r.value[0]));
    equal([...names].sort(), [1, "ShapeError"]);
  },

  async "nothing is left behind"(w, dev, { globals }) {
    const before = new Set(globals);
    const after = Object.getOwnPropertyNames(globalThis).filter((name) => !before.has(name));
    equal(after, [], "new globals");
    const t = await dev.upload(new Float32Array(1000));
    check(dev.memory().inUse >= 4000, "memory in use");
    t.close();
    await dev.relu(f32(1));
    for (let i = 0; dev.memory().inUse && i < 50; i++) await pause(20);
    equal(dev.memory().inUse, 0, "bytes in use");
  },

  async "kernels"(w, dev) {
    const wgsl = `@group(0) @binding(0) var<storage, read> x: array<f32>;
      @group(0) @binding(1) var<storage, read_write> y: array<f32>;
      @group(0) @binding(2) var<uniform> p: vec4<f32>;
      @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        if (id.x < arrayLength(&x)) { y[id.x] = p.x * x[id.x] + p.y; }
      }`;
    const descriptor = { label: "affine", wgsl, operands: 1, uniform: 16, workgroup: [64] };
    if (dev.info.kind === "cpu") {
      const e = await fails("UnsupportedError", () => dev.kernel(descriptor));
      check(e.message.includes("WebGPU"), e.message);
      return;
    }
    const k = await dev.kernel(descriptor);
    const launch = { grid: [2], params: f32(2, 1), shape: [100] };
    const x = Float32Array.from({ length: 100 }, (_, i) => i);
    const want = x.map((v) => 2 * v + 1);
    equal(await k.run([x], launch), want);
    const t = await k.run([x], { ...launch, keep: true });
    equal(await t.read(), want);
    const b = dev.batch();
    b.read(b.neg(b.kernel(k, [t], { ...launch, params: f32(0, 5) })));
    equal(await b.run(), [new Float32Array(100).fill(-5)]);
    await fails("ArgumentError", () => k.run([x, x], launch));
    await fails("ArgumentError", () => k.run([x], { ...launch, grid: [0] }));
    await fails("ArgumentError", () => k.run([x], { ...launch, grid: [1, 1, 1, 1] }));
    await fails("ArgumentError", () => k.run([x], { ...launch, params: new Uint8Array(3) }));
    await fails("TooLargeError", () => k.run([x], { ...launch, grid: [70000] }));
    await fails("ArgumentError", () => k.run([x], { ...launch, shape: undefined }));
    await fails("ArgumentError", () => dev.kernel({ ...descriptor, wgsl: 7 }));
    await fails("ArgumentError", () => dev.kernel({ ...descriptor, operands: -1 }));
    const e = await fails("ShaderError", () => dev.kernel({ ...descriptor, wgsl: "// ä\nfn f() {\n  /* ü */ let y: i32 = 1.5;\n}" }));
    check(e instanceof w.ShaderError && e instanceof w.ArgumentError, "class");
    equal([e.line, e.operation], [3, "affine"]);
    equal(e.column, 24);
    check(e.details.length > 0, "details");
    k.close();
    await fails("ClosedError", () => k.run([x], launch));
    t.close();
  },
};

async function nameOf(f) {
  try {
    await f();
  } catch (error) {
    return error.name;
  }
  return "nothing";
}

/** Runs all tests and returns what each said: name → note, or an error. */
export async function run(wavelane, dev, context) {
  const report = {};
  for (const [name, test] of Object.entries(tests)) {
    try {
      const note = await test(wavelane, dev, context);
      equal(await dev.relu(f32(-1, 1)), f32(0, 1), "afterwards relu");
      report[name] = { ok: true, note: note ?? "" };
    } catch (error) {
      report[name] = { ok: false, note: String(error.stack ?? error) };
    }
  }
  return report;
}
