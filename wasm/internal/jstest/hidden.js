// Work in a page that nobody sees, whose timers the browser holds back.

import * as wavelane from "/package/wavelane.js";
import { occupy } from "./api.js";

const f32 = (...x) => new Float32Array(x);

/** How long timers of 10 ms take. */
async function timer(n) {
  const start = performance.now();
  for (let i = 0; i < n; i++) await new Promise((resolve) => setTimeout(resolve, 10));
  return (performance.now() - start) / n;
}

/**
 * Keeps calls waiting as long as the page is seen, and makes more when it is hidden, where all must end. Resolves to how long
 * a timer took before and after, how many calls waited when the page was hidden, and what all calls gave, without
 * repetitions.
 */
export async function hidden(options) {
  const dev = await wavelane.open(options);
  const before = await timer(10);
  const [runs, end] = await occupy(dev, dev.info.kind === "cpu" ? 512 : 64);
  const t = await dev.upload(f32(-1, 2));
  const sets = []; // of calls after runs of a plan
  const work = (ahead) => {
    const b = dev.batch();
    const x = b.import(t);
    for (const y of [b.relu(x), b.neg(x), b.softmax(b.add(x, x))]) b.read(y);
    const set = { waits: true };
    set.results = Promise.all([b.run(), dev.relu(t), dev.add(t, f32(1, 1)), t.read(), ...ahead]).then(([batch, ...rest]) => {
      set.waits = false;
      return JSON.stringify([...batch, ...rest.slice(0, 3)].map((y) => [...y]));
    });
    sets.push(set);
    return set.results;
  };
  let waiting = 0;
  document.addEventListener("visibilitychange", () => { waiting = sets.filter((set) => set.waits).length; }, { once: true });
  work(runs());
  globalThis.working = document.visibilityState === "visible"; // the page may be hidden now
  while (document.visibilityState === "visible") {
    work(runs());
    await sets.at(-2).results;
  }
  const after = await timer(3);
  work([]);
  const results = new Set(await Promise.all(sets.map((set) => set.results)));
  const { visibilityState } = document;
  for (const x of [t, dev]) x.close();
  end();
  return { before, after, waiting, visibilityState, results: [...results] };
}
