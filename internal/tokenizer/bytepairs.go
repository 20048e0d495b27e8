package tokenizer

import (
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/quant/gguf"
)

// bytePairs is byte-level BPE (Radford and others, "Language Models are Unsupervised Multitask Learners", 2019): a text is cut
// into words, and in each, bytes are joined in the order of a list of merges. Bytes are spelled as printable characters. That of Gemma 4
// joins characters, with marks for spaces, and has tokens of bytes for those that it does not have.
type bytePairs struct {
	*Tokenizer
	ranks map[[2]string]int
	cut   cutter
	words func(text string, f func(word string))
}

// byteLetters is how bytes are spelled.
type byteLetters struct {
	letters [256]string   // the character of each byte
	bytes   map[rune]byte // the byte of each such character
}

var spelling = sync.OnceValue(func() *byteLetters {
	s := &byteLetters{bytes: map[rune]byte{}}
	next := rune(256)
	for b := range s.letters {
		r := rune(b)
		if !('!' <= r && r <= '~' || '¡' <= r && r <= '¬' || '®' <= r && r <= 'ÿ') {
			r = next
			next++
		}
		s.letters[b], s.bytes[r] = string(r), byte(b)
	}
	return s
})

func newBytePairs(f *gguf.File, t *Tokenizer, model string) (alphabet, error) {
	name, err := gguf.Value[string](f, "tokenizer.ggml.pre")
	if model == "gemma4" {
		name = model
	} else if err != nil {
		return nil, err
	}
	cut, ok := cutterOf(name)
	if !ok {
		return nil, fmt.Errorf("metadata \"tokenizer.ggml.pre\" is %q, need one of %s: %w", name, cutterNames(), compute.ErrUnsupported)
	}
	b := &bytePairs{Tokenizer: t, cut: cut, words: cut.words(), ranks: map[[2]string]int{}}
	t.addBOS = cut.begin || model == "gemma4"
	merges, err := gguf.Values[string](f, "tokenizer.ggml.merges")
	if err != nil {
		return nil, err
	}
	for i, m := range merges {
		left, right, ok := strings.Cut(m, " ")
		if !ok || left == "" || right == "" {
			return nil, fmt.Errorf("metadata \"tokenizer.ggml.merges\": %q, number %d, is no pair: %w", m, i, compute.ErrArgument)
		}
		if _, twice := b.ranks[[2]string{left, right}]; !twice {
			b.ranks[[2]string{left, right}] = i
		}
	}
	return b, nil
}

func (b *bytePairs) encode(tokens []int32, text string) []int32 {
	if b.cut.raw {
		b.words(strings.ReplaceAll(text, " ", spaceMark), func(word string) { tokens = b.word(tokens, word) })
		return tokens
	}
	letters := &spelling().letters
	b.words(text, func(word string) {
		var spelled strings.Builder
		for i := range len(word) {
			spelled.WriteString(letters[word[i]])
		}
		tokens = b.word(tokens, spelled.String())
	})
	return tokens
}

// word appends the tokens of a word, which is spelled or raw.
func (b *bytePairs) word(tokens []int32, word string) []int32 {
	if id, ok := b.ids[word]; ok && (b.cut.whole || b.cut.raw && word[0] == '\n') {
		return append(tokens, id)
	}
	ends := merge(word, characters(word), func(left, right string) (float64, bool) {
		rank, ok := b.ranks[[2]string{left, right}]
		return float64(rank), ok
	})
	pieces(word, ends, func(piece string) {
		if id, ok := b.ids[piece]; ok {
			tokens = append(tokens, id)
			return
		}
		if b.cut.raw {
			for _, c := range []byte(piece) {
				if id, ok := b.ids[byteName(c)]; ok {
					tokens = append(tokens, id)
				}
			}
			return
		}
		for _, letter := range piece { // a merge that is no token
			if id, ok := b.ids[string(letter)]; ok {
				tokens = append(tokens, id)
			}
		}
	})
	return tokens
}

func (b *bytePairs) spell(text []byte, piece string, kind int32) []byte {
	if b.cut.raw {
		return spellMarked(text, piece, kind)
	}
	bytes := spelling().bytes
	for i, r := range piece {
		if c, ok := bytes[r]; ok {
			text = append(text, c)
			continue
		}
		_, n := utf8.DecodeRuneInString(piece[i:])
		text = append(text, piece[i:i+n]...)
	}
	return text
}

func (b *bytePairs) begins() string { return "" }
