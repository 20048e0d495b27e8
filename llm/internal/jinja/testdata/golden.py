"""Writes what Jinja makes of templates, set up as Hugging Face's library has it. Without an argument it renders the cases of cases.json
into golden.json; with a folder of templates, those, with some conversations, into a file.

    pip install jinja2==3.1.6
    python3 golden.py
    python3 golden.py FOLDER OUT.json     # for go test ./llm/internal/jinja -templates OUT.json
"""
import glob, json, os, sys
import jinja2
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment


class Generation(Extension):
    tags = {"generation"}

    def parse(self, parser):
        next(parser.stream)
        return parser.parse_statements(["name:endgeneration"], drop_needle=True)


def fail(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
env.filters["tojson"] = tojson
env.globals["raise_exception"] = fail
env.globals["strftime_now"] = lambda format: "NOW"


def render(source, variables):
    """The text, or None where it is an error."""
    try:
        return env.from_string(source).render(**variables)
    except Exception as e:
        print(type(e).__name__, e, repr(source[:60]), file=sys.stderr)
        return None


here = os.path.dirname(os.path.abspath(__file__))

tool = {"type": "function", "function": {"name": "weather", "description": "What the weather is.", "parameters": {"type": "object",
    "properties": {"city": {"type": "string", "description": "Where"}, "days": {"type": "integer", "enum": [1, 2]}}, "required": ["city"]}}}
call = {"id": "call00001", "type": "function", "function": {"name": "weather", "arguments": {"city": "Köln", "days": 2}}}
conversations = {
    "plain": {"messages": [{"role": "user", "content": "Hi <there> & \"you\"\n"}], "add_generation_prompt": True},
    "several": {"messages": [{"role": "system", "content": " Be brief. "}, {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello"}, {"role": "user", "content": "人人"}], "add_generation_prompt": True},
    "no prompt": {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "<think>\nhm\n</think>\n\nHello"}]},
    "thinking": {"messages": [{"role": "user", "content": "Hi"}], "add_generation_prompt": True, "enable_thinking": False},
    "tools": {"messages": [{"role": "user", "content": "Weather?"}], "tools": [tool], "add_generation_prompt": True},
    "call": {"messages": [{"role": "user", "content": "Weather?"}, {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "name": "weather", "tool_call_id": "call00001", "content": "rain"}], "tools": [tool], "add_generation_prompt": True},
    "two systems": {"messages": [{"role": "system", "content": "a"}, {"role": "system", "content": "b"}]},
    "empty": {"messages": []},
    "parts": {"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}], "add_generation_prompt": True},
}

if len(sys.argv) > 1:
    out = []
    for path in sorted(glob.glob(os.path.join(sys.argv[1], "*.jinja"))):
        with open(path) as f:
            source = f.read()
        for name, variables in conversations.items():
            variables = {"bos_token": "<s>", "eos_token": "</s>", **variables}
            out.append({"name": os.path.basename(path) + " " + name, "template": source, "variables": variables,
                        "text": render(source, variables)})
    with open(sys.argv[2], "w") as f:
        json.dump(out, f)
else:
    with open(os.path.join(here, "cases.json")) as f:
        cases = json.load(f)
    for c in cases:
        c["text"] = render(c["template"], c.get("variables", {}))
    with open(os.path.join(here, "golden.json"), "w") as f:
        json.dump(cases, f, ensure_ascii=True, indent=0)
        f.write("\n")
