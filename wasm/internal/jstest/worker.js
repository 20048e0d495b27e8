import { jobs } from "./page.js";

onmessage = async ({ data: { name, options } }) => {
  try {
    postMessage({ result: await jobs[name](options) });
  } catch (error) {
    postMessage({ error: String(error.stack ?? error) });
  }
};
