/** The worker that llm.js starts: an engine, called by messages. */

import { Engine } from "./llm-engine.js";

let engine;
const controllers = new Map(); // of calls under way, by their number

onmessage = async ({ data: { call, method, args, abort } }) => {
  if (abort !== undefined) {
    controllers.get(abort)?.abort();
    return;
  }
  const controller = new AbortController();
  controllers.set(call, controller);
  const options = { signal: controller.signal, progress: (progress) => postMessage({ call, progress }) };
  try {
    let result;
    if (method === "load") {
      engine = await Engine.load(...args, options);
      result = engine.facts;
    } else {
      result = await engine[method](args, options);
    }
    postMessage({ call, result });
  } catch (error) {
    const { name, message, operation, shapes, stack } = error;
    postMessage({ call, error: { name, message: message ?? String(error), operation, shapes, stack } });
  } finally {
    controllers.delete(call);
  }
};
