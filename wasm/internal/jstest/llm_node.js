// node llm_node.js <address of the models> <folder of the package>: tests wavelane/llm on the CPU device and prints a report.

import { pathToFileURL } from "node:url";
import { run } from "./llm.js";

const [base, folder] = process.argv.slice(2);
const llm = await import(pathToFileURL(`${folder}/llm.js`));
console.log(JSON.stringify(await run(llm, { device: "cpu" }, base)));
