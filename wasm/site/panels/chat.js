// Language models that a person opens, and a conversation with them. Their program is loaded with the first of them.

import { current } from "../devices.js";
import { $, explain, figure, make, say } from "../ui.js";

let model = null;
let messages = [];
let stop = null; // the AbortController of what is under way

export function init() {
  $("chat-file").addEventListener("change", (e) => {
    const [file] = e.target.files;
    if (file) busy((signal) => load(file, signal));
    e.target.value = ""; // the same file may be opened again
  });
  $("chat-form").addEventListener("submit", (e) => {
    e.preventDefault();
    const content = $("chat-message").value.trim();
    if (content) busy((signal) => answer(content, signal));
  });
  $("chat-stop").addEventListener("click", () => stop?.abort());
  $("chat-anew").addEventListener("click", () => {
    messages = [];
    $("chat-log").replaceChildren();
  });
  const zone = $("chat-drop");
  zone.addEventListener("dragover", (e) => {
    e.preventDefault();
    zone.classList.add("over");
  });
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", (e) => {
    e.preventDefault();
    zone.classList.remove("over");
    const [file] = e.dataTransfer.files;
    if (file && !stop) busy((signal) => load(file, signal));
  });
}

/** Does one thing at a time, and says what went wrong. */
async function busy(work) {
  stop = new AbortController();
  enable();
  try {
    await work(stop.signal);
  } catch (error) {
    say($("chat-status"), explain(error), error?.name === "AbortError" ? "" : "bad");
  } finally {
    stop = null;
    enable();
    if (model && document.activeElement === document.body) $("chat-message").focus(); // which a disabled element has lost
  }
}

function enable() {
  $("chat-file").disabled = stop !== null;
  $("chat-stop").disabled = stop === null;
  for (const id of ["chat-message", "chat-send", "chat-anew"]) $(id).disabled = stop !== null || !model;
}

async function load(file, signal) {
  const { load } = await import("../wavelane/llm.js");
  const progress = ({ done, total }) => say($("chat-status"), `Loading ${file.name}: ${Math.round((100 * done) / total)} %`);
  say($("chat-status"), `Loading ${file.name} …`);
  const next = await load(file, { device: current()?.info.kind ?? "auto", software: $("device-software").checked, signal, progress });
  model?.close();
  model = next;
  messages = [];
  $("chat-log").replaceChildren();
  const { name, architecture, parameters, bytes } = model.info;
  say($("chat-status"), `${name || file.name} (${architecture}, ${figure(parameters / 1e6)} million parameters in ${figure(bytes / 2 ** 20)} MiB) on ` +
    `${model.device.name || model.device.kind}.`);
}

async function answer(content, signal) {
  const start = performance.now();
  const said = make("p", { class: "model" });
  messages.push({ role: "user", content });
  $("chat-log").append(make("p", { class: "person" }, content), said);
  $("chat-message").value = "";
  say($("chat-status"), "Reading …");
  let text = "", first = null, last;
  try {
    for await (last of model.chat(messages, { temperature: $("chat-temperature").valueAsNumber || 0, topK: 40, seed: messages.length, signal })) {
      first ??= performance.now() - start;
      said.textContent = text += last.text;
      $("chat-log").scrollTop = $("chat-log").scrollHeight;
    }
  } catch (error) {
    if (!first) messages.pop(); // nothing was said to it
    throw error;
  } finally {
    if (first) messages.push({ role: "assistant", content: text });
  }
  const { steps, decoding, prompt, known } = last.stats;
  say($("chat-status"), `${prompt} tokens, ${known} of them known; the first of the answer after ${figure(first)} ms, then ` +
    `${figure((1000 * steps) / Math.max(decoding, 1e-3))} tokens per second (${last.finish}).`, "good");
}
