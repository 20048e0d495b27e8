/** The JavaScript API; wavelane.d.ts documents it. */

import { openOf } from "./core.js";

export { tensor } from "./core.js";
export * from "./errors.js";
export { version } from "./version.js";

export const open = (options) => openOf("wavelane", new URL("wavelane.wasm", import.meta.url), options);
