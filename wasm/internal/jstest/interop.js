// Tests of WebGPU devices and buffers that a page shares with the library.

function check(ok, what) {
  if (!ok) throw new Error(what);
}

const equal = (got, want) => check(JSON.stringify([...got]) === JSON.stringify([...want]), `${got}, want ${want}`);

async function device() {
  const adapter = await navigator.gpu.requestAdapter();
  return adapter.requestDevice();
}

async function readBuffer(gpu, { buffer, offset, size }) {
  const staging = gpu.createBuffer({ size, usage: GPUBufferUsage.COPY_DST | GPUBufferUsage.MAP_READ });
  const encoder = gpu.createCommandEncoder();
  encoder.copyBufferToBuffer(buffer, offset, staging, 0, size);
  gpu.queue.submit([encoder.finish()]);
  await staging.mapAsync(GPUMapMode.READ);
  const data = new Float32Array(staging.getMappedRange().slice(0));
  staging.destroy();
  return data;
}

const tests = {
  async "an adopted device"(w) {
    const gpu = await device();
    const dev = await w.open({ gpuDevice: gpu });
    check(dev.info.kind === "webgpu" && dev.gpuDevice === gpu, "the device");
    equal(await dev.relu(new Float32Array([-1, 2])), [0, 2]);
    // The page's buffer, in and out.
    const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
    const buffer = gpu.createBuffer({ size: 256, usage });
    gpu.queue.writeBuffer(buffer, 0, new Float32Array([1, 2, 3, 4, 5, 6, 7, 8]));
    const t = dev.adopt(buffer, [2, 4]);
    equal(await dev.sum(t, { axis: "last" }), [10, 26]);
    await dev.scatter(t, new Int32Array([0]), w.tensor(new Float32Array(4), [1, 4]));
    equal(await readBuffer(gpu, { buffer, offset: 0, size: 32 }), [0, 0, 0, 0, 5, 6, 7, 8]);
    t.close();
    for (const [name, f] of [["ArgumentError", () => dev.adopt({}, [1])], ["ShapeError", () => dev.adopt(buffer, [1000])], ["ArgumentError", () => dev.adopt(buffer, [1], { offset: 4 })]]) {
      let error = null;
      try { f(); } catch (e) { error = e; }
      check(error?.name === name, `${f}: ${error}`);
    }
    // A result, without a readback.
    const y = await dev.scale(new Float32Array([1, 2, 3]), 2, { keep: true });
    equal(await readBuffer(gpu, y.gpuBuffer()), [2, 4, 6]);
    y.close();
    dev.close();
    // The device is still the page's.
    equal(await readBuffer(gpu, { buffer, offset: 16, size: 16 }), [5, 6, 7, 8]);
    gpu.destroy();
  },

  async "a device that is lost"(w) {
    const gpu = await device();
    const dev = await w.open({ gpuDevice: gpu });
    const t = await dev.upload(new Float32Array(1 << 20));
    const pending = dev.matmul(new Float32Array(1 << 18), new Float32Array(1 << 18), 512, 512, 512).catch((e) => e);
    gpu.destroy();
    const lost = await dev.lost;
    check(lost instanceof w.DeviceLostError && lost.message !== "", String(lost));
    const e = await pending;
    check(e.name === "DeviceLostError" || e instanceof Float32Array, `a call in flight: ${e}`);
    for (const f of [() => dev.relu(new Float32Array(2)), () => t.read(), () => dev.upload(new Float32Array(2))]) {
      const error = await f().catch((e) => e);
      check(error.name === "DeviceLostError", `${f}: ${error}`);
    }
    t.close();
    dev.close();
    const next = await w.open({ device: "webgpu", software: true });
    equal(await next.relu(new Float32Array([-1, 2])), [0, 2]);
    next.close();
  },

  async "two devices"(w) {
    const a = await w.open({ device: "webgpu", software: true });
    const b = await w.open({ device: "webgpu", software: true });
    const c = await w.open({ device: "cpu" });
    const x = new Float32Array([-1, 2]);
    const results = await Promise.all([a, b, c].flatMap((d) => [d.relu(x), d.exp(x)]));
    for (let i = 0; i < 6; i += 2) equal(results[i], [0, 2]);
    const t = await a.upload(x);
    const error = await b.relu(t).catch((e) => e);
    check(error.name === "ForeignTensorError", String(error));
    a.close();
    equal(await b.relu(x), [0, 2]);
    for (const d of [b, c]) d.close();
  },
};

export async function interop(wavelane) {
  const report = {};
  for (const [name, test] of Object.entries(tests)) {
    try {
      await test(wavelane);
      report[name] = { ok: true, note: "" };
    } catch (error) {
      report[name] = { ok: false, note: String(error.stack ?? error) };
    }
  }
  return report;
}
