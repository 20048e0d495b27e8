// What TypeScript must accept of the package's declarations, and what it must not. It is compiled, never run.

import * as w from "wavelane";
import * as llm from "wavelane/llm";
import * as onnx from "wavelane/onnx";
import { open, tensor, type Batch, type Device, type Plan, type Tensor, type Value } from "wavelane";

export async function accepted(canvas: GPUDevice, buffer: GPUBuffer, signal: AbortSignal): Promise<number> {
  const dev: Device = await open({ gpuDevice: canvas, signal });
  const x = new Float32Array(4);
  const y: w.Result = await dev.relu(x, { signal });
  const kept: Tensor = await dev.matmul(tensor(x, [2, 2]), kept0(dev), { act: "relu", keep: true });
  const sum: number = (await dev.sum(x))[0]!;
  const [values, indices] = await dev.topK(x, { k: 2 });
  const adopted: Tensor = dev.adopt(buffer, [2, 2]);
  const batch: Batch = dev.batch();
  const v: Value = batch.softmax(batch.scale(batch.upload(x, [2, 2]), 0.5));
  batch.read(batch.add(v, adopted));
  const plan: Plan = await batch.compile({ tune: true });
  for (const m of plan.measured) console.log(m.kind, m.problem, m.milliseconds[m.winner]!.toFixed(3));
  plan.setInput(v, x);
  const outputs: Array<w.Result | Tensor> = await plan.run({ signal });
  const kernel = await dev.kernel({ wgsl: "", operands: 1, workgroup: [64] });
  try {
    await kept.read();
  } catch (error) {
    if (error instanceof w.ShaderError) return error.line;
    if (error instanceof w.WavelaneError) console.log(error.operation, error.shapes);
  }
  const gpu: GPUBuffer = kept.gpuBuffer().buffer;
  for (const c of [kept, adopted, plan, kernel, dev]) c.close();
  return sum + y.length + values.length + indices.length + outputs.length + gpu.size;
}

export async function models(file: File, signal: AbortSignal): Promise<number> {
  const session: onnx.Session = await onnx.load(file, { device: "webgpu", shapes: 2, signal });
  const second = await onnx.load(fetch("b.onnx"), { device: session.device });
  const { y } = await session.run({ x: new Float32Array(4), n: onnx.tensor(new BigInt64Array(1), []) }, { signal });
  if (y?.data instanceof Float32Array) return y.data[0]! + y.shape[0]!;
  for (const v of second.inputs) console.log(v.name, v.type, v.shape?.length);
  second.close();
  return session.outputs.length;
}

export async function texts(file: File, signal: AbortSignal): Promise<string> {
  const model: llm.Model = await llm.load(file, {
    device: "webgpu", worker: false, context: 512, signal, progress: ({ stage, done, total }) => console.log(stage, done / (total ?? done)),
  });
  let text = "";
  for await (const token of model.chat([{ role: "user", content: "a", name: "b" }], { temperature: 1, stop: ["c"], signal })) {
    text += token.text;
    if (token.finish === "limit") console.log(token.stats!.steps, token.top?.[0]!.logProb);
  }
  for (const { url, complete } of await llm.cached()) if (!complete) await llm.uncache(url);
  const vectors: Float32Array[] = await model.embed([text], { signal });
  return text + vectors.length + (await model.detokenize(await model.tokenize(model.info.name)));
}

declare function kept0(dev: Device): Tensor;

export async function refused(dev: Device, x: Float32Array, batch: Batch): Promise<void> {
  // @ts-expect-error: numbers are no operand
  await dev.relu([1, 2, 3]);
  // @ts-expect-error: no such element type
  tensor(x, [1], { dtype: "f64" });
  // @ts-expect-error: no such activation
  await dev.matmul(x, x, 1, 2, 1, { act: "silu7" });
  // @ts-expect-error: a result is a promise
  (await dev.batch().run)[0].length;
  // @ts-expect-error: an array without keep, a tensor with it
  (await dev.relu(x)).close();
  // @ts-expect-error: what a batch gives are values
  (batch.relu(x)).length;
  // @ts-expect-error: no such operation
  dev.reluu(x);
  // @ts-expect-error: the elements of strings are strings
  onnx.tensor([1], [1]);
  // @ts-expect-error: no such element type
  onnx.tensor(x, [4], { type: "f32" });
  // @ts-expect-error: a prompt is a text
  (await llm.load("a")).generate(["a"]);
  // @ts-expect-error: misspelt
  (await llm.load("a")).chat([], { topk: 1 });
  // @ts-expect-error: misspelt
  await open({ devise: "cpu" });
}
