"""Writes what llama.cpp makes of texts with vocabularies of real models.

    pip install llama-cpp-python==0.3.36 gguf==0.19.0 numpy
    pip download --no-deps --no-binary :all: llama-cpp-python==0.3.36     # its vendor/llama.cpp/models has the vocabularies
    python3 llamacpp.py vendor/llama.cpp/models

The vocabularies of GPT-2 (MIT), Qwen2 (Apache 2.0), Phi-3 (MIT; it is that of Llama 2) and BGE (MIT; it is that of BERT) are cut down to the tokens that texts
with the characters of these texts can have: what is left makes the same tokens of them, which is checked here.
"""
import json, os, sys, unicodedata
import gguf, llama_cpp

folder, = sys.argv[1:]
here = os.path.dirname(os.path.abspath(__file__))

texts = [
    "", " ", "  ", "   ", "\t", "\n", "\n\n", "\n \n\n  \n", "\r\n\r\n", "Hello world", " Hello world", "Hello World!", " Hello, world!  ",
    "The quick brown fox doesn't jump over 13 lazy dogs; they're asleep.", "We'll see: it's hers, I'd say. I'M SURE THEY'VE'S WE'LL",
    "''''''```````\"\"\"\"......!!!!!!?????? I've been 'told he's there", "3", "33", "333", "3333", "33333", "1234567890 3.14159 1,000,000",
    "In 1984, x² + y² = z²; ½ of Ⅷ and ٣٤٥ and ৪৫", "func main() {\n\tfor i := range 10 {\n\t\tfmt.Println(i, \"x\\n\")\n\t}\n}\n",
    "def f(x):\n    return x ** 2  # squared\n\n\nprint(f(3))", "<div class=\"a\">&nbsp;</div>", "https://example.com/a_b?c=d&e=%20f#g",
    "Würde und Freiheit; ÉGALITÉ, naïve e\u0301tude, ﬁn", "Все люди рождаются свободными и равными", "人人生而自由，在尊严和权利上一律平等。",
    "すべての人間は、生まれながらにして自由", "모든 인간은 태어날 때부터 자유로우며", "يولد جميع الناس أحرارًا", "सभी मनुष्यों को गौरव", "สวัสดีครับ",
    "🦙 👍🏽 👨‍👩‍👧 🚀 (normal) 😶‍🌫️ (zwj) ✅", "a\u00a0b\u2003c\u3000d\u2028e\u0085f", " tabs\tand   spaces  \t  mixed \n  next",
    "CamelCaseWords snake_case_words kebab-case SHOUTING", "w048 7tuijk dsdfhu", "!!!!!!", "!?.,;:-_=+*/\\|@#$%^&~`", "a" * 40, "=" * 40,
    "\u0000\u0001\u007f\ufeff\ufffd", "trailing space ", "trailing spaces    ", "    leading", "\n leading", "x\n", "x \n", "x\n ",
    "▁ ▁a a▁ ▁▁", "<0x41> <unk>?", "Cửa Việt", "nЀиЁn", "ied 4 ½ months", "⅓⅔ 1⁄2", "\u0e01\u0e33", "ffi ﬃ ß ẞ İ ı",
]
special = ["<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n", "<|endoftext|>", "a<|endoftext|> b", "<s>Hi</s> there</s>",
           "<|user|>\nHi <|end|>\n<|assistant|>", "<|im_start", "<unk>"]

# Names of tokenizer.ggml.pre, with vocabularies that they are tried with.
vocabularies = {"gpt-2": ["gpt-2", "smollm", "llama-bpe", "qwen2"], "qwen2": ["qwen2", "llama-bpe"], "phi-3": ["default"], "bert-bge": ["bert-bge"]}
more = {"bert-bge": ["[CLS] a[SEP]b [MASK]", "[cls]", "unaffable supercalifragilistic", "Ünïcödé İstanbul ΑΘΗΝΑ", "東京都 $5.00 a-b_c", "x\u00ad\u200by\tz\u3000w"]}
kept_kinds = {gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.USER_DEFINED, gguf.TokenType.BYTE}

# The characters that spell bytes in GPT-2's vocabulary and those made after it.
printable = [b for r in ("!~", "¡¬", "®ÿ") for b in range(ord(r[0]), ord(r[1]) + 1)]
letters = {b: chr(b) for b in printable}
for b in range(256):
    letters.setdefault(b, chr(256 + len(letters) - len(printable)))


class Vocabulary:
    """A tokenizer of llama.cpp."""

    def __init__(self, path, pre):
        # With its own name, Phi-3 would have spaces taken away behind special tokens, which Llama does not do.
        override = {"tokenizer.ggml.pre": pre, "general.name": "a vocabulary"}
        self.llama = llama_cpp.Llama(path, vocab_only=True, verbose=False, kv_overrides=override)

    def tokens(self, text):
        return self.llama.tokenize(text.encode(), add_bos=False, special=True)

    def ends(self, token):
        return llama_cpp.llama_vocab_is_eog(self.llama._model.vocab, token)


def reduced(reader, to, pieces):
    """Writes a vocabulary of the tokens that are among pieces, and returns its tokens as numbers of the whole one."""
    field = lambda name: reader.fields["tokenizer.ggml." + name].contents() if "tokenizer.ggml." + name in reader.fields else None
    tokens, kinds = field("tokens"), field("token_type")
    keep = [i for i, t in enumerate(tokens) if t in pieces or kinds[i] in kept_kinds]
    place = {old: new for new, old in enumerate(keep)}
    w = gguf.GGUFWriter(to, field_of(reader, "general.architecture"))
    for key, f in reader.fields.items():
        if key.startswith("GGUF.") or key == "general.architecture" or "chat_template" in key:
            continue
        value, kind = f.contents(), f.types[0]
        if kind == gguf.GGUFValueType.ARRAY:
            if key.endswith(".merges"):
                value = [m for m in value if m.replace(" ", "") in pieces]
            else:
                value = [value[i] for i in keep]
            w.add_array(key, value)
        else:
            w.add_key_value(key, place[value] if key.endswith("_token_id") else value, kind)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.close()
    return keep


def field_of(reader, key):
    return reader.fields[key].contents()


def pieces_of(texts, spell):
    found = set()
    for t in texts:
        t = spell(t)
        found |= {t[i:j] for i in range(len(t)) for j in range(i + 1, min(len(t), i + 48) + 1)}
    return found


def write_vocabularies():
    cases = {}
    for name, pres in vocabularies.items():
        path = os.path.join(folder, f"ggml-vocab-{name}.gguf")
        reader = gguf.GGUFReader(path)
        cased = texts + special + more.get(name, [])
        if field_of(reader, "tokenizer.ggml.model") == "bert":
            pieces = pieces_of(cased, lambda t: "".join(c for c in unicodedata.normalize("NFD", t).lower() if unicodedata.category(c) != "Mn"))
            pieces |= {"▁" + p for p in pieces}
        elif field_of(reader, "tokenizer.ggml.model") == "llama":
            # A space goes before the text, and before what comes after each special token.
            pieces = pieces_of(texts + special, lambda t: (" " + t.replace(">", "> ")).replace(" ", "▁"))
            pieces |= pieces_of(texts + special, lambda t: t.replace(" ", "▁"))
        else:
            pieces = pieces_of(texts + special, lambda t: "".join(letters[b] for b in t.encode()))
        to = os.path.join(here, f"vocabulary-{name}.gguf")
        keep = reduced(reader, to, pieces)
        cases[name] = {"cases": {}}
        for pre in pres:
            whole, cut = Vocabulary(path, pre), Vocabulary(to, pre)
            cases[name]["cases"][pre] = []
            for t in cased:
                if name == "bert-bge" and ("모든" in t or "सभी" in t):
                    continue  # of which llama.cpp's normal form is not Unicode's
                if "</s>" in t and pre != "default":
                    continue  # an end by its name, which is ordinary text in byte-level vocabularies that happen to have it
                ids = cut.tokens(t)
                assert [keep[i] for i in ids] == whole.tokens(t), (name, pre, t)
                cases[name]["cases"][pre].append({"text": t, "tokens": ids})
        print(name, len(keep), "tokens,", os.path.getsize(to), "bytes")
        if field_of(reader, "tokenizer.ggml.model") == "bert":
            continue  # nothing ends what encoders say
        cases[name]["ends"] = [i for i in range(len(keep)) if cut.ends(i)]
        assert [keep[i] for i in cases[name]["ends"]] == [i for i in range(whole.llama.n_vocab()) if whole.ends(i)]
    with open(os.path.join(here, "vocabularies.json"), "w") as f:
        json.dump(cases, f, ensure_ascii=True, separators=(",", ":"))
        f.write("\n")


write_vocabularies()
