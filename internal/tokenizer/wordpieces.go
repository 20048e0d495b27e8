package tokenizer

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/quant/gguf"
)

// wordPieces is the alphabet of BERT (Devlin and others, 2019): words in lower case without accents, each cut into the longest pieces that
// there are, from its beginning on. In files, pieces that begin a word have a mark before them.
type wordPieces struct {
	*Tokenizer
	unknown int32
	longest int // bytes of a piece
}

// newWordPieces reads what texts are put between, too: those of BERT's own vocabulary if the file does not say.
func newWordPieces(f *gguf.File, t *Tokenizer) (alphabet, error) {
	a := &wordPieces{Tokenizer: t}
	for _, x := range []struct {
		to        *int32
		keys      []string
		otherwise int
	}{{&a.unknown, []string{"unknown"}, 100}, {&t.bos, []string{"cls", "bos"}, 101}, {&t.sep, []string{"seperator", "separator", "eos"}, 102}} {
		id := x.otherwise
		for _, key := range x.keys {
			got, err := f.Int("tokenizer.ggml." + key + "_token_id")
			if err == nil {
				id = got
				break
			}
			if !errors.Is(err, gguf.ErrMissing) {
				return nil, err
			}
		}
		if id < 0 || id >= len(t.pieces) {
			return nil, fmt.Errorf("the token %d of metadata \"tokenizer.ggml.%s_token_id\", and there are %d: %w", id, x.keys[0], len(t.pieces), compute.ErrArgument)
		}
		*x.to = int32(id)
	}
	for _, p := range t.pieces {
		a.longest = max(a.longest, len(p))
	}
	return a, nil
}

func (a *wordPieces) encode(tokens []int32, text string) []int32 {
	var word strings.Builder
	flush := func() {
		if word.Len() > 0 {
			tokens = a.cut(tokens, spaceMark+word.String())
			word.Reset()
		}
	}
	for _, r := range norm.NFD.String(text) {
		switch {
		case unicode.IsSpace(r):
			flush()
		case r == 0 || r == unicode.ReplacementChar || unicode.In(r, unicode.C, unicode.Mn):
		case unicode.IsPunct(r) || r < 0x7f && unicode.IsSymbol(r) || ideograph(r): // a word of its own
			flush()
			tokens = a.cut(tokens, spaceMark+string(unicode.ToLower(r)))
		default:
			word.WriteRune(unicode.ToLower(r))
		}
	}
	flush()
	return tokens
}

// cut appends the pieces of a word, or the unknown token if it cannot be cut.
func (a *wordPieces) cut(tokens []int32, word string) []int32 {
	n := len(tokens)
	for len(word) > 0 {
		end := min(len(word), a.longest)
		for ; end > 0; end-- {
			if id, ok := a.ids[word[:end]]; ok {
				tokens = append(tokens, id)
				break
			}
		}
		if end == 0 {
			return append(tokens[:n], a.unknown)
		}
		word = word[end:]
	}
	return tokens
}

// ideograph reports characters that are words: CJK ideographs, as BERT lists them.
func ideograph(r rune) bool {
	for _, x := range [][2]rune{{0x4e00, 0x9fff}, {0x3400, 0x4dbf}, {0x20000, 0x2a6df}, {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f}, {0x2b820, 0x2ceaf},
		{0xf900, 0xfaff}, {0x2f800, 0x2fa1f}} {
		if r >= x[0] && r <= x[1] {
			return true
		}
	}
	return false
}

func (a *wordPieces) spell(text []byte, piece string, _ int32) []byte {
	if rest, ok := strings.CutPrefix(piece, spaceMark); ok {
		return append(append(text, ' '), rest...)
	}
	return append(text, piece...)
}

func (a *wordPieces) begins() string { return " " }
