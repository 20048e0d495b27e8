import "./wasm_exec.js";
import { run } from "./run.js";

run((message) => postMessage(message));
