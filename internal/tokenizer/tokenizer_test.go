package tokenizer

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/quant/gguf"
)

//go:embed testdata/tokenizers.json
var goldenJSON []byte

// golden is what other implementations make of texts; testdata/golden.py writes it.
type golden struct {
	SentencePiece struct {
		Tokens []string
		Scores []float32
		Kinds  []int32
		Cases  []goldenCase
	}
	BytePairs struct {
		Tokens, Merges []string
		Cutters        map[string][]goldenCase
	}
	Unigram []goldenUnigram
	Raw     struct {
		Tokens, Merges []string
		Cases          []goldenCase
	}
}

type goldenUnigram struct {
	Tokens   []string
	Scores   []float32
	Kinds    []int32
	Charsmap []byte
	Merged   bool
	Cases    []goldenCase
}

type goldenCase struct {
	Text   string
	Words  []string
	Tokens []int32
}

func readGolden(t testing.TB) *golden {
	g := &golden{}
	require.NoError(t, json.Unmarshal(goldenJSON, g))
	return g
}

// metadataFile is a file without tensors.
func metadataFile(t testing.TB, pairs ...any) *gguf.File {
	var out bytes.Buffer
	w := gguf.NewWriter(&out)
	for i := 0; i < len(pairs); i += 2 {
		require.NoError(t, w.Set(pairs[i].(string), pairs[i+1]))
	}
	require.NoError(t, w.Close())
	f, err := gguf.New(bytes.NewReader(out.Bytes()), int64(out.Len()))
	require.NoError(t, err)
	return f
}

const ggml = "tokenizer.ggml."

func (g *golden) sentencePiece(t testing.TB, more ...any) *Tokenizer {
	s := &g.SentencePiece
	x, err := New(metadataFile(t, append([]any{ggml + "model", "llama", ggml + "tokens", s.Tokens, ggml + "scores", s.Scores,
		ggml + "token_type", s.Kinds}, more...)...))
	require.NoError(t, err)
	return x
}

func (g *golden) bytePairs(t testing.TB, pre string, more ...any) *Tokenizer {
	b := &g.BytePairs
	x, err := New(metadataFile(t, append([]any{ggml + "model", "gpt2", ggml + "tokens", b.Tokens, ggml + "merges", b.Merges,
		ggml + "pre", pre}, more...)...))
	require.NoError(t, err)
	return x
}

func (u *goldenUnigram) read(t testing.TB, charsmap any, more ...any) *Tokenizer {
	x, err := New(metadataFile(t, append([]any{ggml + "model", "t5", ggml + "tokens", u.Tokens, ggml + "scores", u.Scores, ggml + "token_type", u.Kinds,
		ggml + "precompiled_charsmap", charsmap, ggml + "remove_extra_whitespaces", u.Merged}, more...)...))
	require.NoError(t, err)
	return x
}

// TestUnigram compares with SentencePiece: a vocabulary with replacements, and one with bytes for what it does not have.
func TestUnigram(t *testing.T) {
	g := readGolden(t)
	require.Len(t, g.Unigram, 2)
	require.NotEmpty(t, g.Unigram[0].Charsmap)
	for _, u := range g.Unigram {
		x := u.read(t, u.Charsmap)
		for _, c := range u.Cases {
			if strings.Contains(c.Text, "<s>") {
				continue // where control tokens are read as such
			}
			require.Equal(t, c.Tokens, append([]int32{}, x.Encode(c.Text)...), "%q", c.Text)
			if !u.Merged {
				require.Equal(t, strings.ReplaceAll(c.Text, spaceMark, " "), x.Decode(c.Tokens))
			}
		}
		signed := make([]int8, len(u.Charsmap))
		for i, b := range u.Charsmap {
			signed[i] = int8(b)
		}
		x = u.read(t, signed, ggml+"bos_token_id", uint32(1), ggml+"eos_token_id", uint32(2), ggml+"add_bos_token", true)
		require.True(t, x.Wraps())
		require.Equal(t, append(append([]int32{1}, u.Cases[4].Tokens...), 2), x.Encode(u.Cases[4].Text))
		x = u.read(t, u.Charsmap, ggml+"eos_token_id", uint32(2), ggml+"add_eos_token", false)
		require.False(t, x.Wraps())
	}
	x := g.Unigram[0].read(t, g.Unigram[0].Charsmap)
	require.Equal(t, "the shells", x.Decode(x.Encode("  the \n shells\u3000")))
}

func (g *golden) raw(t testing.TB, more ...any) *Tokenizer {
	kinds := make([]int32, len(g.Raw.Tokens))
	for i, s := range g.Raw.Tokens {
		switch kinds[i] = normalToken; {
		case s == "<unk>" || s == "<bos>":
			kinds[i] = controlToken
		case strings.HasPrefix(s, "<0x"):
			kinds[i] = byteToken
		}
	}
	x, err := New(metadataFile(t, append([]any{ggml + "model", "gemma4", ggml + "tokens", g.Raw.Tokens, ggml + "token_type", kinds,
		ggml + "merges", g.Raw.Merges}, more...)...))
	require.NoError(t, err)
	return x
}

// TestCharacterPairs is about BPE of characters, as Gemma 4 has it.
func TestCharacterPairs(t *testing.T) {
	g := readGolden(t)
	x := g.raw(t)
	breaks := int32(slices.Index(g.Raw.Tokens, "\n\n"))
	require.Positive(t, breaks)
	for _, c := range g.Raw.Cases {
		if strings.Contains(c.Text, "<unk>") {
			continue // where control tokens are read as such
		}
		if got := append([]int32{}, x.Encode(c.Text)...); strings.Contains(c.Text, "\n\n") { // a token that no merge makes
			require.Contains(t, got, breaks)
		} else {
			require.Equal(t, c.Tokens, got, "%q", c.Text)
		}
		require.Equal(t, strings.ReplaceAll(c.Text, spaceMark, " "), x.Decode(x.Encode(c.Text)))
	}
	require.Equal(t, []int32{1, breaks}, g.raw(t, ggml+"bos_token_id", uint32(1)).Encode("\n\n"), "the model wants a beginning")
}

// FuzzCharsmap reads any table of replacements: an error, or replacements within the text.
func FuzzCharsmap(f *testing.F) {
	g := readGolden(f)
	for _, c := range g.Unigram[0].Cases {
		f.Add(g.Unigram[0].Charsmap, c.Text)
	}
	f.Add([]byte{4, 0, 0, 0, 1, 1, 0, 0, 'x'}, "a")
	f.Fuzz(func(t *testing.T, table []byte, text string) {
		m, err := newCharsmap(table)
		if err != nil {
			require.ErrorIs(t, err, compute.ErrArgument)
			return
		}
		for len(text) > 0 {
			s, n := m.next(text)
			require.LessOrEqual(t, len(s), longestReplacement)
			require.Positive(t, n)
			text = text[n:]
		}
	})
}

func TestSentencePiece(t *testing.T) {
	g := readGolden(t)
	x := g.sentencePiece(t)
	require.Len(t, g.SentencePiece.Tokens, x.Len())
	for _, c := range g.SentencePiece.Cases {
		if strings.Contains(c.Text, "<s>") {
			continue // where control tokens are read as such; see TestSpecial
		}
		require.Equal(t, c.Tokens, append([]int32{}, x.Encode(c.Text)...), "%q", c.Text)
		require.Equal(t, strings.ReplaceAll(c.Text, spaceMark, " "), x.Decode(c.Tokens), "a mark in the text is read as a space")
	}
}

func TestBytePairs(t *testing.T) {
	g := readGolden(t)
	require.Len(t, g.BytePairs.Cutters, 4)
	for pre, cases := range g.BytePairs.Cutters {
		x := g.bytePairs(t, pre)
		cut, ok := cutterOf(pre)
		require.True(t, ok)
		for _, c := range cases {
			words := []string{}
			cut.words()(c.Text, func(w string) { words = append(words, w) })
			require.Equal(t, c.Words, words, "%s %q", pre, c.Text)
			require.Equal(t, c.Tokens, append([]int32{}, x.Encode(c.Text)...), "%s %q", pre, c.Text)
			require.Equal(t, c.Text, x.Decode(c.Tokens))
		}
	}
}

func TestSpecial(t *testing.T) {
	g := readGolden(t)
	x := g.sentencePiece(t, ggml+"bos_token_id", uint32(1), ggml+"eos_token_id", uint32(2))
	require.Equal(t, []int32{1, 2, 1}, x.Encode("</s><s>"), "the model wants a beginning")
	require.Equal(t, []int32{1}, x.Encode("<s>")[:1])
	require.True(t, x.Ends(2))
	require.False(t, x.Ends(1))
	require.Empty(t, x.Decode([]int32{1, 2, -1, 9999}))
	x = g.sentencePiece(t, ggml+"bos_token_id", uint32(1), ggml+"add_bos_token", false, ggml+"add_space_prefix", false)
	require.Equal(t, "a", x.Decode(x.Encode("a")))
	require.Equal(t, " a", x.Decode(x.Encode(" a")))

	b := &g.BytePairs
	n := int32(len(b.Tokens))
	b.Tokens = append(b.Tokens, "<|im_end|>", "<|im_end|>longer", "User")
	kinds := make([]int32, len(b.Tokens))
	for i := range kinds {
		kinds[i] = normalToken
	}
	kinds[n], kinds[n+1], kinds[n+2] = controlToken, controlToken, userToken
	x = g.bytePairs(t, "qwen2", ggml+"token_type", kinds)
	require.Equal(t, []int32{n + 1, n}, x.Encode("<|im_end|>longer<|im_end|>"), "the longest first")
	require.Equal(t, "User", x.Decode(x.Encode("User<|im_end|>")))
	require.True(t, x.Ends(n))
}

func TestTokenizerErrors(t *testing.T) {
	one := []string{"a"}
	for _, c := range []struct {
		want error
		says string
		with []any
	}{
		{gguf.ErrMissing, "tokenizer.ggml.model", nil},
		{gguf.ErrMissing, "tokenizer.ggml.tokens", []any{"model", "llama"}},
		{gguf.ErrMissing, "tokenizer.ggml.scores", []any{"model", "llama", "tokens", one}},
		{gguf.ErrMissing, "tokenizer.ggml.pre", []any{"model", "gpt2", "tokens", one}},
		{gguf.ErrMissing, "tokenizer.ggml.merges", []any{"model", "gpt2", "tokens", one, "pre", "qwen2"}},
		{compute.ErrUnsupported, `"rwkv"`, []any{"model", "rwkv", "tokens", one}},
		{compute.ErrArgument, "unknown text", []any{"model", "t5", "tokens", one, "scores", []float32{1}}},
		{compute.ErrArgument, "NaN as number 0", []any{"model", "t5", "tokens", one, "scores", []float32{float32(math.NaN())}}},
		{compute.ErrArgument, "has 3 bytes", []any{"model", "t5", "tokens", one, "scores", []float32{1}, "precompiled_charsmap", []byte{1, 2, 3}}},
		{compute.ErrArgument, "a trie of 8 bytes of 4", []any{"model", "t5", "tokens", one, "scores", []float32{1}, "precompiled_charsmap",
			[]byte{8, 0, 0, 0, 1, 2, 3, 4}}},
		{compute.ErrArgument, "255 bytes", []any{"model", "t5", "tokens", one, "scores", []float32{1}, "precompiled_charsmap", []byte{0, 0, 0, 0, 1}}},
		{compute.ErrDType, "precompiled_charsmap", []any{"model", "t5", "tokens", one, "scores", []float32{1}, "precompiled_charsmap", "x"}},
		{compute.ErrDType, "remove_extra", []any{"model", "t5", "tokens", one, "scores", []float32{1}, "remove_extra_whitespaces", "x"}},
		{compute.ErrUnsupported, `"toaster", need one of`, []any{"model", "gpt2", "tokens", one, "pre", "toaster"}},
		{compute.ErrShape, "2 elements for 1 tokens", []any{"model", "llama", "tokens", one, "scores", []float32{1, 2}}},
		{compute.ErrShape, "token_type", []any{"model", "llama", "tokens", one, "token_type", []int32{}}},
		{compute.ErrDType, "token_type", []any{"model", "llama", "tokens", one, "token_type", "x"}},
		{compute.ErrArgument, `"ab", number 0, is no pair`, []any{"model", "gpt2", "tokens", one, "pre", "qwen2", "merges", []string{"ab"}}},
		{compute.ErrArgument, "eos_token_id", []any{"model", "llama", "tokens", one, "scores", []float32{1}, "eos_token_id", uint32(1)}},
		{compute.ErrDType, "add_bos_token", []any{"model", "llama", "tokens", one, "scores", []float32{1}, "add_bos_token", "yes"}},
		{compute.ErrDType, "add_space_prefix", []any{"model", "llama", "tokens", one, "scores", []float32{1}, "add_space_prefix", "yes"}},
	} {
		for i := 0; i < len(c.with); i += 2 {
			c.with[i] = ggml + c.with[i].(string)
		}
		_, err := New(metadataFile(t, c.with...))
		require.ErrorIs(t, err, c.want)
		require.ErrorContains(t, err, c.says)
	}
}

func TestStream(t *testing.T) {
	g := readGolden(t)
	x := g.bytePairs(t, "gpt-2")
	text := "naïve 人人 👍🏽 \xff\xe4\xba end"
	s, got := x.NewStream(), ""
	for _, token := range x.Encode(text) {
		piece := s.Next(token)
		require.True(t, utf8.ValidString(piece), "%q", piece)
		got += piece
	}
	require.Equal(t, strings.ToValidUTF8(text, "\uFFFD"), strings.ReplaceAll(got+s.End(), "\uFFFD\uFFFD", "\uFFFD"))
	require.Empty(t, s.End())
	for _, token := range x.Encode("\xe4\xba") {
		require.Empty(t, s.Next(token))
	}
	require.Equal(t, "\uFFFD", s.End())
}

// FuzzTokenizer checks with any text that no byte is lost, for each tokenizer, and that a stream says what Decode says.
func FuzzTokenizer(f *testing.F) {
	g := readGolden(f)
	for _, c := range g.SentencePiece.Cases {
		f.Add(c.Text)
	}
	f.Add("\xff\xfe 'S \xe4\xba")
	tokenizers := map[string]*Tokenizer{"sentencepiece": g.sentencePiece(f)}
	for pre := range g.BytePairs.Cutters {
		tokenizers[pre] = g.bytePairs(f, pre)
	}
	tokenizers["raw"] = g.raw(f)
	tokenizers["unigram"] = g.Unigram[1].read(f, []byte{})
	replacing := g.Unigram[0].read(f, g.Unigram[0].Charsmap)
	f.Fuzz(func(t *testing.T, text string) {
		replacing.Decode(replacing.Encode(text))
		for name, x := range tokenizers {
			tokens := x.Encode(text)
			want := strings.ToValidUTF8(text, "\uFFFD")
			if name == "sentencepiece" || name == "unigram" || name == "raw" {
				for _, control := range []string{"<unk>", "<s>", "</s>", "<bos>"} {
					if strings.Contains(text, control) {
						return
					}
				}
				want = strings.ToValidUTF8(strings.ReplaceAll(text, spaceMark, " "), "\uFFFD")
			}
			got := x.Decode(tokens)
			if name == "unigram" { // where each byte that is no UTF-8 is a character
				got, want = strings.ReplaceAll(got, "\uFFFD", ""), strings.ReplaceAll(want, "\uFFFD", "")
			}
			require.Equal(t, want, got, name)
			s, streamed := x.NewStream(), ""
			for _, token := range tokens {
				piece := s.Next(token)
				require.True(t, utf8.ValidString(piece))
				streamed += piece
			}
			if streamed += s.End(); name == "sentencepiece" || name == "unigram" {
				streamed = strings.TrimPrefix(streamed, " ")
			}
			require.Equal(t, strings.ReplaceAll(want, "\uFFFD", ""), strings.ReplaceAll(streamed, "\uFFFD", ""), name)
		}
	})
}

// TestWordPieces has cases of BERT's own tests (tokenization_test.py), and of what a text may have.
func TestWordPieces(t *testing.T) {
	pieces := []string{"[UNK]", "[CLS]", "[SEP]", "▁want", "want", "ed", "▁wa", "▁un", "▁runn", "ing", "▁,", "▁low", "▁lowest", "▁中", "▁国", "▁$", "▁i̇", "▁hello", "▁ss"}
	kinds := make([]int32, len(pieces))
	for i := range kinds {
		kinds[i] = normalToken
	}
	kinds[0], kinds[1], kinds[2] = unknownToken, controlToken, controlToken
	file := func(pairs ...any) *gguf.File {
		return metadataFile(t, append([]any{"tokenizer.ggml.model", "bert", "tokenizer.ggml.tokens", pieces, "tokenizer.ggml.token_type", kinds,
			"tokenizer.ggml.unknown_token_id", uint32(0)}, pairs...)...)
	}
	ends := []any{"tokenizer.ggml.cls_token_id", uint32(1), "tokenizer.ggml.seperator_token_id", uint32(2)}
	k, err := New(file(ends...))
	require.NoError(t, err)
	require.True(t, k.Wraps())
	for text, want := range map[string][]string{
		"UNwant\u00E9d,running":              {"▁un", "want", "ed", "▁,", "▁runn", "ing"},
		"unwanted running":                   {"▁un", "want", "ed", "▁runn", "ing"},
		"unwantedX running":                  {"[UNK]", "▁runn", "ing"},
		" \tHeLLo\u0000 \u200bhello\ufffd\n": {"▁hello", "▁hello"},
		"lowest low":                         {"▁lowest", "▁low"},
		"中国low$":                             {"▁中", "▁国", "▁low", "▁$"},
		"ü":                                  {"[UNK]"},
		"":                                   nil,
		"low[SEP]low":                        {"▁low", "[SEP]", "▁low"},
	} {
		var got []string
		tokens := k.Encode(text)
		require.EqualValues(t, 1, tokens[0], text)
		require.EqualValues(t, 2, tokens[len(tokens)-1], text)
		for _, id := range tokens[1 : len(tokens)-1] {
			got = append(got, pieces[id])
		}
		require.Equal(t, want, got, "%q", text)
	}
	require.Equal(t, "unwanted , low", k.Decode(k.Encode("Unwanted, low")))
	for _, f := range []*gguf.File{file(), file("tokenizer.ggml.cls_token_id", uint32(99))} {
		_, err = New(f)
		require.ErrorIs(t, err, compute.ErrArgument)
	}
	_, err = New(file("tokenizer.ggml.cls_token_id", "one"))
	require.Error(t, err)
}
