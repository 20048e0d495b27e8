"""Writes the words that texts are cut into by the regular expressions of models, as package regex applies them one after the other.

    pip install regex==2026.11.19
    python3 words.py
"""
import json, os
import regex

here = os.path.dirname(os.path.abspath(__file__))
space = r"\s*[\r\n]+|\s+(?!\S)|\s+"
ending = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
upper, lower = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
first = r"[^\r\n\p{L}\p{N}]?"
gpt2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
expressions = {
    "qwen35": [ending + r"|" + first + r"[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|" + space],
    "falcon": [r"[\p{P}\$\+<=>\^~\|`]+", gpt2, r"[0-9][0-9][0-9]"],
    "deepseek-coder": [r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-\ud7ff]+", r"\p{N}"],
    "deepseek-v3": [r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
        r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|""" + space],
    "tekken": [first + upper + "*" + lower + "+|" + first + upper + "+" + lower + r"*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + space],
    "gpt-4o": [first + upper + "*" + lower + "+" + ending + "?|" + first + upper + "+" + lower + "*" + ending + r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + space],
}


def cut(expressions, text):
    pieces = [text]
    for e in expressions:
        found = regex.compile(e, regex.V0)
        next_pieces = []
        for p in pieces:
            at = 0
            for m in found.finditer(p):
                next_pieces += [p[at : m.start()], m.group()]
                at = m.end()
            next_pieces.append(p[at:])
        pieces = [p for p in next_pieces if p]
    return pieces


with open(os.path.join(here, "vocabularies.json")) as f:
    texts = [c["text"] for c in json.load(f)["gpt-2"]["cases"]["gpt-2"]]
texts += ["McDonaldsHTTPServer's it'S fooBAR", "a\u0301b e\u0301", "日本語テキスト123かな", "\u0301x", "12345678 a_b/c\n\n/d", "x=1;y='2'\t\tz  "]
words = {pre: [{"text": t, "words": cut(list_, t)} for t in texts] for pre, list_ in expressions.items()}
with open(os.path.join(here, "words.json"), "w") as f:
    json.dump(words, f, ensure_ascii=True, separators=(",", ":"))
    f.write("\n")
