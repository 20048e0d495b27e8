// node models_node.js <folder>: writes the models of model.js.

import { writeFileSync } from "node:fs";
import { layer, means } from "./model.js";

const [folder] = process.argv.slice(2);
for (const [name, data] of Object.entries({ layer, means })) writeFileSync(`${folder}/${name}.onnx`, data);
