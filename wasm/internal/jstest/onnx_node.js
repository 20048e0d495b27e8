// node onnx_node.js <folder of the package>: tests wavelane/onnx on the CPU device and prints a report.

import { pathToFileURL } from "node:url";
import { run } from "./onnx.js";

const [folder] = process.argv.slice(2);
const onnx = await import(pathToFileURL(`${folder}/onnx.js`));
console.log(JSON.stringify(await run(onnx, { device: "cpu" })));
