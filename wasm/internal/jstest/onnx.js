// Tests of wavelane/onnx that run in Node.js and in pages, on any device.

import { layer, model, node, value } from "./model.js";

const f32 = (...x) => new Float32Array(x);

function check(ok, what) {
  if (!ok) throw new Error(what);
}

function equal(got, want, what = "result") {
  const text = (x) => JSON.stringify(x, (_, v) => (ArrayBuffer.isView(v) ? [v.constructor.name, ...Array.from(v, String)] : v));
  if (text(got) !== text(want)) throw new Error(`${what} is ${text(got)}, want ${text(want)}`);
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

const float = 1, int64 = 7, text = 8;

const broken = [new Uint8Array(0), layer.slice(0, 40), new Uint8Array(100).fill(255)];

/** Runs the tests and returns the report. Kind is of the device to load on. */
export async function run(onnx, options) {
  const report = {};
  const session = await onnx.load(layer, options);
  const tests = {
    async "what the model says"() {
      equal(session.inputs.map((v) => [v.name, v.type, v.shape, v.optional]), [["x", "float32", ["rows", 3], false]]);
      equal(session.outputs.map((v) => [v.name, v.type, v.shape]),
        [["y", "float32", ["rows", 2]], ["positive", "bool", ["rows", 2]], ["best", "int64", ["rows"]]]);
      if (options.device) equal(session.device.info.kind, options.device);
    },

    async "a run, by shapes"() {
      for (const rows of [1, 2, 5, 2]) {
        const x = Float32Array.from({ length: 3 * rows }, (_, i) => i);
        const sums = Array.from({ length: rows }, (_, i) => 3 * i * 6 + 8);
        const { y, positive, best } = await session.run({ x });
        equal(y.shape, [rows, 2]);
        equal([y.type, positive.type, best.type], ["float32", "bool", "int64"]);
        equal(y.data, f32(...sums.flatMap((s) => [s + 0.5, Math.max(0, 20 - s)])), "y");
        equal(positive.data, new Uint8Array(sums.flatMap((s) => [1, s < 20 ? 1 : 0])), "positive");
        equal(best.data, BigInt64Array.from(sums, (s) => BigInt(20 - s > s + 0.5 ? 1 : 0)), "best");
      }
    },

    async "arrays are copied, runs at once are told apart"() {
      const x = f32(0, 0, 0);
      const runs = Array.from({ length: 20 }, (_, i) => {
        x[0] = i;
        return session.run({ x });
      });
      (await Promise.all(runs)).forEach(({ y }, i) => equal(y.data, f32(i + 0.5, 20 - i)));
    },

    async "types"() {
      const cases = [
        [float, f32(1, -2)], [2, new Uint8Array([1, 255])], [3, new Int8Array([-1, 2])], [4, new Uint16Array([1, 65535])],
        [5, new Int16Array([-1, 2])], [6, new Int32Array([-1, 2])], [int64, new BigInt64Array([-1n, 1n << 40n])], [9, new Uint8Array([1, 0])],
        [10, new Uint16Array([0x3c00, 0xc000])], [11, new Float64Array([0.1, -2])], [12, new Uint32Array([1, 2 ** 32 - 1])],
        [13, new BigUint64Array([1n, 1n << 63n])], [16, new Uint16Array([0x3f80, 0xc000])], [text, ["a", "ä→"]],
      ];
      for (const [type, data] of cases) {
        const s = await onnx.load(model({
          nodes: [node("Identity", ["x"], ["y"])], inputs: [value("x", type, [2])], outputs: [value("y", type, [2])],
        }), { device: session.device });
        const { y } = await s.run({ x: data });
        equal(y.data, data, s.inputs[0].type);
        equal([y.type, y.shape], [s.inputs[0].type, [2]]);
        s.close();
      }
      check(!session.device.closed, "a session closes its own device only");
    },

    async "mistakes"() {
      await fails("ArgumentError", () => onnx.load(7));
      await fails("ArgumentError", () => onnx.load(layer, { shapes: 0, device: session.device }));
      await fails("ArgumentError", () => onnx.load(layer, { devise: "cpu" }));
      for (const file of broken) await fails("ArgumentError", () => onnx.load(file, { device: session.device }));
      const unknown = model({
        nodes: [node("Fortune", ["x"], ["y"])], inputs: [value("x", float, [1])], outputs: [value("y", float, [1])],
      });
      const error = await fails("UnsupportedError", () => onnx.load(unknown, { device: session.device }));
      check(error.message.includes("Fortune"), error.message);
      await fails("ArgumentError", () => session.run(f32(1, 2, 3)));
      await fails("ArgumentError", () => session.run({}));
      await fails("ArgumentError", () => session.run({ x: f32(1, 2, 3), z: f32(1) }));
      await fails("DTypeError", () => session.run({ x: [1, 2, 3] }));
      await fails("DTypeError", () => session.run({ x: new Int32Array(3) }));
      await fails("ShapeError", () => session.run({ x: f32(1, 2) }));
      await fails("ShapeError", () => session.run({ x: onnx.tensor(f32(1, 2, 3, 4), [2, 2]) }));
      await fails("ShapeError", async () => onnx.tensor(f32(1, 2, 3), [2, 2]));
      await fails("DTypeError", async () => onnx.tensor(f32(1), [1], { type: "int64" }));
      await fails("ArgumentError", async () => onnx.tensor(f32(1), [1], { type: "float" }));
      await fails("AbortError", () => session.run({ x: f32(1, 2, 3) }, { signal: AbortSignal.abort() }));
      await fails("AbortError", () => onnx.load(layer, { signal: AbortSignal.abort() }));
      equal((await session.run({ x: f32(0, 0, 0) })).y.data, f32(0.5, 20));
    },

    async "the end"() {
      const own = await onnx.load(Promise.resolve(new Response(layer)), options);
      const last = own.run({ x: f32(1, 0, 0) });
      own.close();
      equal((await last).y.data, f32(1.5, 19), "what was called before");
      await fails("ClosedError", () => own.run({ x: f32(1, 0, 0) }));
      check(own.device.closed, "the device is open");
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
  session.close();
  return report;
}
