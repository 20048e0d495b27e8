// Tests of wavelane/onnx with real models, which the page fetches with inputs and with what ONNX Runtime makes of them.

import { readTensor } from "./tensor.js";

export async function run(onnx, { models, ...options }) {
  const report = {};
  for (const name of models) {
    try {
      report[name] = { ok: true, note: await compare(onnx, options, `/real/${name}`) };
    } catch (error) {
      report[name] = { ok: false, note: error.stack ?? String(error) };
    }
  }
  return report;
}

/** Runs a model and compares its results, within 1e-4 and 1e-3 of the value. */
async function compare(onnx, options, folder) {
  const tensors = async (kind, n) => {
    const all = [];
    for (let i = 0; i < n; i++) {
      const response = await fetch(`${folder}/test_data_set_0/${kind}_${i}.pb`);
      all.push(response.ok ? readTensor(new Uint8Array(await response.arrayBuffer())) : null);
    }
    return all;
  };
  const session = await onnx.load(`${folder}/model.onnx`, options);
  try {
    const x = {};
    (await tensors("input", session.inputs.length)).forEach((t, i) => {
      if (t) x[session.inputs[i].name] = onnx.tensor(t.data, t.shape);
    });
    const start = performance.now();
    const y = await session.run(x);
    const took = performance.now() - start;
    let worst = 0;
    (await tensors("output", session.outputs.length)).forEach((want, i) => {
      const got = y[session.outputs[i].name];
      if (String(got.shape) !== String(want.shape)) throw new Error(`output ${i} is [${got.shape}], want [${want.shape}]`);
      want.data.forEach((w, k) => {
        const apart = Math.abs(Number(got.data[k]) - Number(w));
        worst = Math.max(worst, apart);
        if (!(apart <= 1e-4 + 1e-3 * Math.abs(Number(w)))) throw new Error(`output ${i}, element ${k} is ${got.data[k]}, want ${w}`);
      });
    });
    return `${took.toFixed(0)} ms for the first run; largest difference ${worst.toExponential(1)}`;
  } finally {
    session.close();
  }
}
