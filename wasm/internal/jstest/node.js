// node node.js <folder of the package> <address>: answers calls with the CPU device.

import { pathToFileURL } from "node:url";
import { answer } from "./remote.js";

const [folder, base] = process.argv.slice(2);
const wavelane = await import(pathToFileURL(`${folder}/wavelane.js`));
const tables = await import(pathToFileURL(`${folder}/operations.js`));
const dev = await wavelane.open({ device: "cpu" });
await answer(wavelane, tables, dev, base);
const { inUse } = dev.memory();
if (inUse) throw new Error(`${inUse} bytes of tensors are left`);
dev.close();
