"""Calls a server with OpenAI's package, and prints what the test compares as JSON. Its argument is the address."""
import json, sys
import openai

c = openai.OpenAI(base_url=sys.argv[1] + "/v1", api_key="none")
messages = [{"role": "user", "content": "the thing"}]
schema = {"type": "object", "properties": {"colour": {"type": "string", "maxLength": 8}, "warm": {"type": "boolean"}}, "required": ["colour", "warm"],
          "additionalProperties": False}
whole = c.chat.completions.create(model="small", messages=messages, temperature=0, max_tokens=12, logprobs=True, top_logprobs=2)
stream = list(c.chat.completions.create(model="small", messages=messages, temperature=0, max_tokens=12, stream=True, stream_options={"include_usage": True}))
form = {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": schema}}
answer = json.loads(c.chat.completions.create(model="small", messages=messages, temperature=0, response_format=form).choices[0].message.content)
errors = []
for request in ({"model": "gpt"}, {"model": "small", "temperature": 7}):
    try:
        c.chat.completions.create(messages=messages, **request)
    except openai.APIStatusError as x:
        errors.append([type(x).__name__, x.status_code, x.code, x.param])
print(json.dumps({
    "models": [m.id for m in c.models.list()],
    "chat": whole.choices[0].message.content,
    "tokens": [whole.usage.completion_tokens, len(whole.choices[0].logprobs.content), stream[-1].usage.completion_tokens],
    "stream": "".join(x.choices[0].delta.content or "" for x in stream if x.choices),
    "completion": c.completions.create(model="small", prompt="the thing", temperature=0, max_tokens=12).choices[0].text,
    "embeddings": [len(d.embedding) for d in c.embeddings.create(model="small", input=["the", "thing"]).data],
    "keys": sorted(answer),
    "errors": errors,
}))
