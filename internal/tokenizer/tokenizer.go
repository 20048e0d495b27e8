package tokenizer

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/quant/gguf"
)

// Tokenizer turns text into tokens and back, as the file says. It does not change and may be used from many goroutines.
type Tokenizer struct {
	pieces   []string // by token, as the file has them
	kinds    []int32
	ids      map[string]int32
	special  map[byte][]int32 // tokens that stand for themselves in a text, by first byte, the longest first
	bos, eos int32            // −1 if there is none
	sep      int32            // that is put after every text, −1 for none
	addBOS   bool
	ends     map[int32]bool
	alphabet alphabet
}

// alphabet is how pieces spell text.
type alphabet interface {
	// encode appends the tokens of a text without special tokens in it.
	encode(tokens []int32, text string) []int32
	// spell appends the bytes that a piece stands for.
	spell(text []byte, piece string, kind int32) []byte
	// begins tells what encode puts before a text.
	begins() string
}

// Kinds of tokens, with the numbers of tokenizer.ggml.token_type.
const (
	normalToken  = 1
	unknownToken = 2
	controlToken = 3
	userToken    = 4
	unusedToken  = 5
	byteToken    = 6
)

// turnEnds are special tokens that end what a model says, or the file that it writes, by the names that models give them.
var turnEnds = []string{"</s>", "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|endoftext|>", "<|end|>",
	"<｜end▁of▁sentence｜>", "<end_of_utterance>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>"}

// New reads the tokenizer of a file, whose model is "llama" (SentencePiece), "gpt2" (byte-level BPE), "gemma4" (BPE of
// characters), "t5" (Unigram) or "bert" (WordPiece). Errors wrap
// gguf.ErrMissing, [compute.ErrUnsupported], [compute.ErrShape] and [compute.ErrArgument], and name the metadata.
func New(f *gguf.File) (*Tokenizer, error) {
	t, err := newTokenizer(f)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	return t, nil
}

func newTokenizer(f *gguf.File) (*Tokenizer, error) {
	model, err := gguf.Value[string](f, "tokenizer.ggml.model")
	if err != nil {
		return nil, err
	}
	t := &Tokenizer{ids: map[string]int32{}, special: map[byte][]int32{}, bos: -1, eos: -1, sep: -1, ends: map[int32]bool{}}
	if t.pieces, err = gguf.Values[string](f, "tokenizer.ggml.tokens"); err != nil {
		return nil, err
	}
	if t.kinds, err = perToken[int32](f, "token_type", len(t.pieces)); errors.Is(err, gguf.ErrMissing) {
		t.kinds = slices.Repeat([]int32{normalToken}, len(t.pieces))
	} else if err != nil {
		return nil, err
	}
	t.index()
	switch model {
	case "llama":
		t.addBOS = true
		t.alphabet, err = newSentencePiece(f, t)
	case "gpt2", "gemma4":
		t.alphabet, err = newBytePairs(f, t, model)
	case "t5":
		t.alphabet, err = newUnigram(f, t)
	case "bert":
		t.addBOS = true
		t.alphabet, err = newWordPieces(f, t)
	default:
		err = fmt.Errorf("metadata \"tokenizer.ggml.model\" is %q, need llama, gpt2, gemma4, t5 or bert: %w", model, compute.ErrUnsupported)
	}
	if err == nil {
		err = t.readEnds(f)
	}
	return t, err
}

// perToken is an array with an element for each token.
func perToken[T any](f *gguf.File, name string, tokens int) ([]T, error) {
	key := "tokenizer.ggml." + name
	x, err := gguf.Values[T](f, key)
	if err == nil && len(x) != tokens {
		err = fmt.Errorf("metadata %q has %d elements for %d tokens: %w", key, len(x), tokens, compute.ErrShape)
	}
	return x, err
}

func (t *Tokenizer) index() {
	for i, p := range t.pieces {
		if _, twice := t.ids[p]; !twice {
			t.ids[p] = int32(i)
		}
		if k := t.kinds[i]; p != "" && (k == controlToken || k == userToken || k == unknownToken) {
			t.special[p[0]] = append(t.special[p[0]], int32(i))
		}
	}
	for _, list := range t.special {
		slices.SortStableFunc(list, func(a, b int32) int { return cmp.Compare(len(t.pieces[b]), len(t.pieces[a])) })
	}
}

// readEnds finds where texts begin and end.
func (t *Tokenizer) readEnds(f *gguf.File) error {
	for _, key := range []string{"bos", "eos", "eot", "eom"} {
		key = "tokenizer.ggml." + key + "_token_id"
		id, err := f.Int(key)
		switch {
		case errors.Is(err, gguf.ErrMissing):
			continue
		case err != nil:
			return err
		case id < 0 || id >= len(t.pieces):
			return fmt.Errorf("metadata %q is %d, and there are %d tokens: %w", key, id, len(t.pieces), compute.ErrArgument)
		case strings.HasPrefix(key, "tokenizer.ggml.bos"):
			if t.bos < 0 {
				t.bos = int32(id)
			}
		default:
			t.ends[int32(id)] = true
			if key == "tokenizer.ggml.eos_token_id" {
				t.eos = int32(id)
			}
		}
	}
	for _, name := range turnEnds {
		if id, ok := t.ids[name]; ok && (t.kinds[id] == controlToken || t.kinds[id] == userToken) {
			t.ends[id] = true
		}
	}
	add := func(key string, to *bool) error {
		x, err := gguf.Value[bool](f, "tokenizer.ggml.add_"+key+"_token")
		if err == nil {
			*to = x
		} else if !errors.Is(err, gguf.ErrMissing) {
			return err
		}
		return nil
	}
	if _, ok := t.alphabet.(*unigram); ok {
		end := true
		if err := add("eos", &end); err != nil {
			return err
		}
		if end {
			t.sep = t.eos
		}
	}
	return add("bos", &t.addBOS)
}

// Len is the number of tokens.
func (t *Tokenizer) Len() int { return len(t.pieces) }

// Same reports whether tokens stand for the same in both, up to tokens at the end of the longer one that are never used.
func (t *Tokenizer) Same(o *Tokenizer) bool {
	if len(t.pieces) > len(o.pieces) {
		t, o = o, t
	}
	n := len(t.pieces)
	return slices.Equal(t.pieces, o.pieces[:n]) && !slices.ContainsFunc(o.kinds[n:], func(kind int32) bool { return kind != unusedToken })
}

// Wraps reports whether a token is put after every text.
func (t *Tokenizer) Wraps() bool { return t.sep >= 0 }

// Ends reports whether a token ends what the model says.
func (t *Tokenizer) Ends(token int32) bool { return t.ends[token] }

// BOS is how the file writes the token that begins a text, empty if there is none.
func (t *Tokenizer) BOS() string { return t.piece(t.bos) }

// EOS is how the file writes the token that ends a text, empty if there is none.
func (t *Tokenizer) EOS() string { return t.piece(t.eos) }

func (t *Tokenizer) piece(token int32) string {
	if token < 0 {
		return ""
	}
	return t.pieces[token]
}

// EncodeOnce is Encode for texts that may be written with the token that begins them, as those of chat templates are.
func (t *Tokenizer) EncodeOnce(text string) []int32 {
	tokens := t.Encode(text)
	if t.addBOS && t.bos >= 0 && len(tokens) > 1 && tokens[0] == t.bos && tokens[1] == t.bos {
		return tokens[1:]
	}
	return tokens
}

// Encode returns the tokens of a text, after the one that begins a text if the model wants that, and before the one that ends it if the
// vocabulary is BERT's or Unigram. Control tokens written in the text, such as <|im_start|>, are these tokens.
func (t *Tokenizer) Encode(text string) []int32 {
	var tokens []int32
	if t.addBOS && t.bos >= 0 {
		tokens = append(tokens, t.bos)
	}
	for plain := 0; ; {
		at, token := t.findSpecial(text, plain)
		if at > plain {
			tokens = t.alphabet.encode(tokens, text[plain:at])
		}
		if token < 0 {
			if t.sep >= 0 {
				tokens = append(tokens, t.sep)
			}
			return tokens
		}
		tokens = append(tokens, token)
		plain = at + len(t.pieces[token])
	}
}

// findSpecial returns where in a text the next special token is; the end of the text and −1 if there is none.
func (t *Tokenizer) findSpecial(text string, from int) (int, int32) {
	for i := from; i < len(text); i++ {
		for _, id := range t.special[text[i]] {
			if strings.HasPrefix(text[i:], t.pieces[id]) {
				return i, id
			}
		}
	}
	return len(text), -1
}

// Spell returns what a token stands for within a text: nothing for control tokens and for numbers that are no token.
func (t *Tokenizer) Spell(token int32) []byte { return t.spell(nil, token) }

// spell appends what Spell returns.
func (t *Tokenizer) spell(text []byte, token int32) []byte {
	switch {
	case token < 0 || int(token) >= len(t.pieces) || t.kinds[token] == controlToken:
		return text
	case t.kinds[token] == userToken:
		return append(text, t.pieces[token]...)
	}
	return t.alphabet.spell(text, t.pieces[token], t.kinds[token])
}

// Decode returns the text of tokens from a beginning: the inverse of Encode. Bytes that are no UTF-8 become U+FFFD.
func (t *Tokenizer) Decode(tokens []int32) string {
	var text []byte
	for _, id := range tokens {
		text = t.spell(text, id)
	}
	return strings.TrimPrefix(strings.ToValidUTF8(string(text), "\uFFFD"), t.alphabet.begins())
}
