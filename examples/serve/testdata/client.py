import openai, json
c = openai.OpenAI(base_url="http://localhost:8080/v1", api_key="none")
print(openai.__version__, [m.id for m in c.models.list()])
m = [{"role": "user", "content": "Name one colour of the sky."}]
r = c.chat.completions.create(model="small", messages=m, temperature=0, max_tokens=16, logprobs=True, top_logprobs=2)
print(repr(r.choices[0].message.content), r.choices[0].finish_reason, r.usage.total_tokens, len(r.choices[0].logprobs.content))
t = ""
for x in c.chat.completions.create(model="small", messages=m, temperature=0, max_tokens=16, stream=True, stream_options={"include_usage": True}):
    if x.choices: t += x.choices[0].delta.content or ""
    else: print("usage", x.usage.completion_tokens)
print("same", t == r.choices[0].message.content)
print(repr(c.completions.create(model="small", prompt="The sea is", max_tokens=8, temperature=0).choices[0].text))
e = c.embeddings.create(model="small", input=["the sea", "the ocean", "a tax form"])
v = [d.embedding for d in e.data]; dot = lambda a, b: sum(x*y for x, y in zip(a, b))
print(len(v), len(v[0]), dot(v[0], v[0]), dot(v[0], v[1]), dot(v[0], v[2]))
s = {"type": "object", "properties": {"colour": {"type": "string", "maxLength": 20}, "warm": {"type": "boolean"}}, "required": ["colour", "warm"], "additionalProperties": False}
r = c.chat.completions.create(model="small", messages=m, temperature=0, max_tokens=60, response_format={"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": s}})
print(json.loads(r.choices[0].message.content), r.choices[0].finish_reason)
for f in (lambda: c.chat.completions.create(model="gpt", messages=m), lambda: c.chat.completions.create(model="small", messages=m, temperature=7)):
    try: f()
    except openai.APIStatusError as x: print(type(x).__name__, x.status_code, x.code, x.param)
