"""Writes tokenizers.json: small vocabularies, and what other implementations make of texts with them.

    pip install sentencepiece==0.2.3 protobuf==7.36.2 tokenizers==0.23.3 regex==2026.11.15
    python3 golden.py > tokenizers.json

SentencePiece is trained and applied by Google's library, byte-level BPE by Hugging Face's, and words are cut by the
regular expressions themselves, in a module that has look-aheads.
"""
import base64, io, json, tempfile, unicodedata
import regex, sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

corpus = """The quick brown fox jumps over the lazy dog, and the dog doesn't mind.
She sells sea shells by the sea shore; the shells that she sells are sea shells for sure.
In 1984 there were 12345 of them, in 2024 only 678. We'll see, they'd said: it's 3.14159!
Die Würde des Menschen ist unantastbar. Sie zu achten und zu schützen ist Verpflichtung.
Tous les êtres humains naissent libres et égaux en dignité et en droits.
Все люди рождаются свободными и равными в своём достоинстве и правах.
人人生而自由,在尊严和权利上一律平等。
func main() {\tfmt.Println("hello,  world")\n\n}\r\n    return x_1 + y[2];
""".splitlines(keepends=True)
corpus = corpus * 20

texts = [
    "", " ", "  ", "a", "Hello, world!", " Hello", "hello  world   ", "the shells that she sells",
    "It's we'LL they'd I'M 'tis don't'", "1234567 12 3.14159 ١٢٣ ⅷ", "a\nb\r\n\r\nc\n  d\n\n", "tab\tand\u00a0space \u3000wide",
    "x = y[2] + foo_bar(3);  // comment", "Würde ÉGALITÉ naïve e\u0301", "Все люди 人人生而自由 日本語", "👍🏽 family: 👨‍👩‍👧",
    "   leading", "trailing   ", "\n", "\n\n  \n x", "a  \n  b", "!!!???...---", " \u2028 x", "<s> </s> <unk> <0x41>", "▁ mark ▁▁x",
    "a" * 70, "dog " * 12, "\x00\x01\x7f",
]

model = io.BytesIO()
sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(corpus), model_writer=model, vocab_size=420, model_type="bpe",
    byte_fallback=True, normalization_rule_name="identity", remove_extra_whitespaces=False, minloglevel=2, character_coverage=0.98)
sp = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
kind = lambda i: 2 if sp.is_unknown(i) else 3 if sp.is_control(i) else 6 if sp.is_byte(i) else 1
out = {"sentencepiece": {
    "tokens": [sp.id_to_piece(i) for i in range(len(sp))], "scores": [sp.get_score(i) for i in range(len(sp))],
    "kinds": [kind(i) for i in range(len(sp))],
    "cases": [{"text": t, "tokens": sp.encode(t)} for t in texts]}}

# Replacements of characters and of sequences; the longest counts.
rules = {"\t": " ", "\n": " ", "\r": " ", "\u200b": " ", "\x01": "", "\x7f": "", "e\u0301": "é", "...": "…", "..": "‥"}
rules |= {c: unicodedata.normalize("NFKC", c) for t in texts + ["ﬁﬃ ½²ⅷ Ａｂｃ㎏ ﷺ ①"] for c in t if c not in rules and unicodedata.normalize("NFKC", c) != c}

def trained(**options):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(corpus), model_writer=model, model_type="unigram", hard_vocab_limit=False,
        minloglevel=2, **options)
    sp = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    proto = sentencepiece_model_pb2.ModelProto.FromString(model.getvalue())
    proto.trainer_spec.Clear()  # sizes and paths of the training
    proto.ClearField("denormalizer_spec")
    more = ["Würde\u3000ﬁn ﬃ ½² ⅷ Ａｂｃ㎏ ﷺ ①", "a.b..c...d....e", "  ١٢٣   x\u200by  ", "the…‥", "日本🦙🦙語 dog🦙"]
    return {"tokens": [sp.id_to_piece(i) for i in range(len(sp))], "scores": [sp.get_score(i) for i in range(len(sp))],
        "kinds": [2 if sp.is_unknown(i) else 3 if sp.is_control(i) else 6 if sp.is_byte(i) else 1 for i in range(len(sp))],
        "charsmap": base64.b64encode(proto.normalizer_spec.precompiled_charsmap).decode(), "merged": proto.normalizer_spec.remove_extra_whitespaces,
        "cases": [{"text": t, "tokens": sp.encode(t)} for t in texts + more]}

with tempfile.NamedTemporaryFile("w", suffix=".tsv") as tsv:
    for of, to in rules.items():
        tsv.write(" ".join(f"{ord(c):X}" for c in of) + "\t" + " ".join(f"{ord(c):X}" for c in to) + "\n")
    tsv.flush()
    out["unigram"] = [trained(vocab_size=300, character_coverage=0.99, normalization_rule_tsv=tsv.name),
        trained(vocab_size=500, byte_fallback=True, normalization_rule_name="identity", remove_extra_whitespaces=False)]

modern = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
old = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
cutters = {"gpt-2": [old], "smollm": [r"\p{N}", old], "llama-bpe": [modern % "{1,3}"], "qwen2": [modern % ""]}

def splits(patterns):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(p), "isolated") for p in patterns] +
        [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])

def words(patterns, text):
    parts = [text]
    for p in patterns:
        cut = []
        for part in parts:
            at = 0
            for m in regex.finditer(p, part):
                cut += [part[at:m.start()], m.group()]
                at = m.end()
            cut.append(part[at:])
        parts = [c for c in cut if c]
    return parts

bpe = Tokenizer(models.BPE())
bpe.pre_tokenizer = splits(cutters["gpt-2"])
bpe.train_from_iterator(corpus, trainers.BpeTrainer(vocab_size=420, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
state = json.loads(bpe.to_str())["model"]
vocabulary = sorted(state["vocab"], key=state["vocab"].get)
out["bytepairs"] = {"tokens": vocabulary, "merges": [m if isinstance(m, str) else " ".join(m) for m in state["merges"]], "cutters": {}}
for name, patterns in cutters.items():
    t = Tokenizer(models.BPE(vocab=state["vocab"], merges=[tuple(m.split(" ")) if isinstance(m, str) else tuple(m) for m in state["merges"]],
        ignore_merges=name == "llama-bpe"))
    t.pre_tokenizer = splits(patterns)
    out["bytepairs"]["cutters"][name] = [{"text": x, "words": words(patterns, x), "tokens": t.encode(x).ids} for x in texts]

# BPE of characters, as Gemma 4 has it: spaces are marks, only line breaks cut, and there are tokens of bytes.
raw = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>"))
raw.normalizer = normalizers.Replace(" ", "▁")
raw.pre_tokenizer = pre_tokenizers.Split(Regex(r"[^\n]+|\n+"), "isolated")
raw.train_from_iterator(corpus, trainers.BpeTrainer(vocab_size=560, limit_alphabet=80, show_progress=False,
    special_tokens=["<unk>", "<bos>", "\n\n"] + [f"<0x{b:02X}>" for b in range(256)]))
state = json.loads(raw.to_str())["model"]
raw = Tokenizer(models.BPE(vocab=state["vocab"], merges=[tuple(m) for m in state["merges"]], byte_fallback=True, unk_token="<unk>"))
raw.normalizer = normalizers.Replace(" ", "▁")
raw.pre_tokenizer = pre_tokenizers.Split(Regex(r"[^\n]+|\n+"), "isolated")
out["raw"] = {"tokens": sorted(state["vocab"], key=state["vocab"].get), "merges": [" ".join(m) for m in state["merges"]],
    "cases": [{"text": x, "tokens": raw.encode(x).ids} for x in texts]}
print(json.dumps(out, ensure_ascii=True))
