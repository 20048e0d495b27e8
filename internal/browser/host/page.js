import { run } from "./run.js";

const emit = (message) => globalThis.wavelaneEmit(JSON.stringify(message)); // a binding of the debugging protocol
if (new URLSearchParams(location.search).has("worker")) {
  const worker = new Worker("worker.js", { type: "module" });
  worker.onmessage = (e) => emit(e.data);
  worker.onerror = (e) => emit({ exit: 2, error: `worker: ${e.message}` });
} else {
  await import("./wasm_exec.js");
  run(emit);
}
