/** Calls fail, which ends the program: what waits is rejected, and the next open starts another. */
export async function ending(wavelane, fail) {
  try {
    const [a, b] = await Promise.all([wavelane.open({ device: "cpu" }), wavelane.open({ device: "cpu" })]);
    const t = await a.upload(new Float32Array(4));
    const waiting = a.matmul(new Float32Array(2 ** 22), new Float32Array(2 ** 22), 2048, 2048, 2048);
    fail();
    const failed = await Promise.allSettled([waiting, b.relu(new Float32Array(4)), t.read(), b.upload(new Float32Array(1))]);
    for (const f of failed) {
      if (f.reason?.name !== "InstanceError") throw new Error(`${f.reason?.stack ?? f.value}, want an InstanceError`);
    }
    try {
      a.batch();
      throw new Error("a batch of a program that has ended");
    } catch (error) {
      if (error.name !== "InstanceError") throw error;
    }
    for (const device of [a, b]) {
      const lost = await device.lost;
      if (lost.name !== "DeviceLostError") throw lost;
    }
    t.close();
    a.close();
    const c = await wavelane.open({ device: "cpu" });
    const y = await c.relu(new Float32Array([-1, 1]));
    if (y[0] !== 0 || y[1] !== 1) throw new Error(`relu gives ${y}`);
    c.close();
    return { ok: true, note: failed[0].reason.message.split("\n")[0] };
  } catch (error) {
    return { ok: false, note: String(error.stack ?? error) };
  }
}
