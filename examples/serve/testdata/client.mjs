import OpenAI from "openai";
const c = new OpenAI({ baseURL: "http://localhost:8080/v1", apiKey: "none" });
const messages = [{ role: "user", content: "Name one colour of the sky." }];
console.log((await c.models.list()).data.map((m) => m.id));
const r = await c.chat.completions.create({ model: "small", messages, temperature: 0, max_tokens: 16 });
let t = "";
for await (const x of await c.chat.completions.create({ model: "small", messages, temperature: 0, max_tokens: 16, stream: true })) t += x.choices[0]?.delta?.content ?? "";
console.log(t === r.choices[0].message.content, t, r.usage.total_tokens);
const e = await c.embeddings.create({ model: "small", input: ["the sea", "the ocean"] });
console.log(e.data.length, e.data[0].embedding.length);
try { await c.chat.completions.create({ model: "gpt", messages }); } catch (x) { console.log(x.constructor.name, x.status, x.code, x.param); }
