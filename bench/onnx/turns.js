// Sessions of one model in turns: of wavelane/onnx and of onnxruntime-web, in Node.js or in a page.

const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];

/** The median of some runs. */
async function timed(run, runs) {
  const times = [];
  for (let i = 0; i < runs; i++) {
    const start = performance.now();
    await run();
    times.push(performance.now() - start);
  }
  return median(times);
}

/** A line of the table: a model's bytes with the tensors of its inputs, null for those that it has itself. */
export async function compare(name, data, tensors, { onnx, options }, { ort, providers }, turns, runs) {
  const [a, b] = [await onnx.load(data, options), await ort.InferenceSession.create(data, { executionProviders: providers })];
  const [x, y] = [{}, {}];
  a.inputs.forEach((v, i) => {
    const t = tensors[i];
    if (!t) return;
    x[v.name] = onnx.tensor(t.data, t.shape);
    y[v.name] = new ort.Tensor(t.name, t.data, t.shape);
  });
  const [got, want] = [await a.run(x), await b.run(y)];
  let worst = 0;
  for (const output of Object.keys(want)) {
    const g = got[output].data, w = want[output].data;
    if (g.length !== w.length) throw new Error(`${name}: ${output} has ${g.length} elements, ${w.length} there`);
    for (let i = 0; i < w.length; i++) worst = Math.max(worst, Math.abs(Number(g[i]) - Number(w[i])));
  }
  const times = [];
  for (let i = 0; i < turns; i++) times.push([await timed(() => b.run(y), runs), await timed(() => a.run(x), runs)]);
  const [t, o, ratio] = [median(times.map(([t]) => t)), median(times.map(([, o]) => o)), median(times.map(([t, o]) => t / o))];
  a.close();
  await b.release();
  return `${name.padEnd(32)} ${t.toFixed(2).padStart(18)}  ${o.toFixed(2).padStart(11)}  ${ratio.toFixed(2).padStart(5)}  ${worst.toExponential(1).padStart(30)}`;
}
