// Calls a server with OpenAI's package, and prints what the test compares as JSON. Its argument is the address.
import OpenAI from "openai";

const c = new OpenAI({ baseURL: `${process.argv[2]}/v1`, apiKey: "none" });
const request = { model: "small", messages: [{ role: "user", content: "the thing" }], temperature: 0, max_tokens: 12 };
const schema = {
  type: "object", properties: { colour: { type: "string", maxLength: 8 }, warm: { type: "boolean" } }, required: ["colour", "warm"], additionalProperties: false,
};
const whole = await c.chat.completions.create({ ...request, logprobs: true, top_logprobs: 2 });
const stream = [];
for await (const x of await c.chat.completions.create({ ...request, stream: true, stream_options: { include_usage: true } })) stream.push(x);
const form = { type: "json_schema", json_schema: { name: "x", strict: true, schema } };
const answer = JSON.parse((await c.chat.completions.create({ ...request, max_tokens: 200, response_format: form })).choices[0].message.content);
const errors = [];
for (const wrong of [{ model: "gpt" }, { temperature: 7 }]) {
  await c.chat.completions.create({ ...request, ...wrong }).catch((x) => errors.push([x.constructor.name, x.status, x.code, x.param]));
}
console.log(JSON.stringify({
  models: (await c.models.list()).data.map((m) => m.id),
  chat: whole.choices[0].message.content,
  tokens: [whole.usage.completion_tokens, whole.choices[0].logprobs.content.length, stream.at(-1).usage.completion_tokens],
  stream: stream.map((x) => x.choices[0]?.delta?.content ?? "").join(""),
  completion: (await c.completions.create({ model: "small", prompt: "the thing", temperature: 0, max_tokens: 12 })).choices[0].text,
  embeddings: (await c.embeddings.create({ model: "small", input: ["the", "thing"] })).data.map((d) => d.embedding.length),
  keys: Object.keys(answer).sort(),
  errors,
}));
