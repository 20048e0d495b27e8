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
qwen2 = ending + r"|" + first + r"\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + space
marked = r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|""" + space
contracted = first + upper + "*" + lower + "+" + ending + "?|" + first + upper + "+" + lower + "*" + ending
sentence = " ?[^(\\s|.,!?…。，、।۔،)]+"
expressions = {
    "qwen35": [ending + r"|" + first + r"[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|" + space],
    "falcon": [r"[\p{P}\$\+<=>\^~\|`]+", gpt2, r"[0-9][0-9][0-9]"],
    "deepseek-coder": [r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-\ud7ff]+", r"\p{N}"],
    "deepseek-v3": [r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+", marked],
    "tekken": [first + upper + "*" + lower + "+|" + first + upper + "+" + lower + r"*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + space],
    "gpt-4o": [contracted + r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + space],
    "default": [r"[\p{P}\$\+<=>\^~\|]+", gpt2, r"\p{N}+", r"[0-9][0-9][0-9]"],
    "laguna": [r"[^\n]+|[\n]+", qwen2],
    "minicpm5": [r"\p{N}{1,3}", qwen2.replace(r"\p{N}|", r"\p{N}+|")],
    "bailingmoe": [r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"],
    # The numbers of AFMoE, as llama.cpp cuts them.
    "afmoe": [r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))",
        "[一-鿿㐀-䶿豈-﫿぀-ゟ゠-ヿ･-ﾟ⼀-⿟เ-๿຀-໿ក-៿က-႟ꩠ-ꩿꧠ-꧿가-힯ᄀ-ᇿ]+", marked],
    "tiny_aya": [r"\d{1,3}(?=(?:\d{3})*\b)", contracted + r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + space],
    "youtu": ["[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+", contracted + r"?|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + space],
    "seed-coder": [ending + r"|" + first + r"\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|" + space],
    "ufakzeka": [first + r"\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + space],
    "exaone-moe": [ending + r"|" + first + r"(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"],
    "bloom": [sentence],
    "viking": [sentence, r"\p{N}"],
    "chameleon": [r"<sentinel:[0-9]+>", r"(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", r"([\t\n]|    |  )", r"\p{N}", r"[\p{P}!-/:-@\[-`{-~]", gpt2],
    "kimi-k2": [r"\p{Han}+|" + contracted.replace(upper, r"(?:(?!\p{Han})" + upper + ")").replace(lower, r"(?:(?!\p{Han})" + lower + ")") +
        r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + space],
    "gemma4": [r"[^\n]+|[\n]+"],
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
texts += ["McDonaldsHTTPServer's it'S fooBAR", "a\u0301b e\u0301", "日本語テキスト123かな", "\u0301x", "12345678 a_b/c\n\n/d", "x=1;y='2'\t\tz  ",
          "1 22 4444 55555 666666 7777777; 1234567, x12345 1234y 12345_ ٣٤٥٦", "a b cd e  f\u0301 g", "<sentinel:12>IMGIMGABCZ IMGIMGZ 〇々㐀𠀀x漢a字",
          "¿Qué? (sí)|no. क्या। ہاں، نہیں۔ 「はい」、「いいえ」…“x”ㄅㄆ"]
# The bytes of each word of each text.
words = {pre: [[len(w.encode()) for w in cut(list_, t)] for t in texts] for pre, list_ in expressions.items()}
with open(os.path.join(here, "words.json"), "w") as f:
    json.dump({"texts": texts, "words": words}, f, ensure_ascii=True, separators=(",", ":"))
    f.write("\n")
