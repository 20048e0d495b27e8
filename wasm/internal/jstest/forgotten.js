// node --expose-gc forgotten.js <folder of the package>: tensors that only a waiting call knows survive the garbage
// collector, and what nobody knows is freed. Prints a report.

import { pathToFileURL } from "node:url";
import { occupy } from "./api.js";

const [folder] = process.argv.slice(2);
const wavelane = await import(pathToFileURL(`${folder}/wavelane.js`));
const dev = await wavelane.open({ device: "cpu" });
const x = new Float32Array([-1, 2]);
const temporary = () => dev.relu(x, { keep: true });

/** Collects garbage until what was finalised has been told so. */
async function collect() {
  let told = false;
  const registry = new FinalizationRegistry(() => { told = true; });
  (() => registry.register({}, 0))();
  while (!told) {
    await new Promise((resolve) => setTimeout(resolve));
    gc();
  }
}

async function batch(t) {
  const b = dev.batch();
  b.read(b.add(t, t));
  return b;
}

// Each prepares a call on a tensor that it alone knows, and says what that gives.
const ways = {
  read: [async (t) => () => t.read(), [0, 2]],
  operand: [async (t) => () => dev.add(t, x), [-1, 4]],
  batch: [async (t) => {
    const b = await batch(t);
    return async () => (await b.run())[0];
  }, [0, 4]],
  plan: [async (t) => {
    const plan = await (await batch(t)).compile();
    return async () => (await plan.run())[0];
  }, [0, 4]],
};

/** Makes all calls, and returns how often garbage was collected while the first waited. */
async function attempt(n) {
  const [runs, end] = await occupy(dev, n);
  const [ahead, calls] = await (async () => { // of which nothing stays on the stack
    const prepared = [];
    for (const [prepare] of Object.values(ways)) prepared.push(await prepare(await temporary()));
    return [runs(), prepared.map((call) => call())];
  })();
  const results = Promise.allSettled(calls);
  let settled = false;
  Promise.race(calls).catch(() => 0).finally(() => { settled = true; });
  let rounds = -1; // the last is too late
  for (; !settled; rounds++) await collect();
  for (const [i, { value, reason }] of (await results).entries()) {
    const [name, [, want]] = Object.entries(ways)[i];
    const ok = String(value) === String(want);
    report[name] = { ok, note: ok ? "" : String(reason?.stack ?? value) };
  }
  await Promise.all(ahead);
  end();
  return rounds;
}

const report = {};
let rounds = 0;
for (let n = 1024; rounds < 1 && n <= 4096; n *= 2) rounds = await attempt(n); // until they wait long enough, on any machine
report.collections = { ok: rounds > 0, note: `${rounds} while the calls waited` };
let inUse;
for (let i = 0; (inUse = dev.memory().inUse) && i < 100; i++) await collect();
report["nothing is kept"] = { ok: inUse === 0, note: `${inUse} bytes in use after collections` };
console.log(JSON.stringify(report));
