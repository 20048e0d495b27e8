package tokenizer

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/quant/gguf"
)

// unigram is SentencePiece in its other mode (Kudo, "Subword Regularization", 2018), that of T5 and XLM-RoBERTa: of all ways to cut a text into
// tokens, the one with the largest sum of scores. What no token spells is bytes if the vocabulary has them, or the unknown token.
type unigram struct {
	*sentencePiece
	chars    *charsmap
	merged   bool    // spaces at the ends of texts and all but one of several are left out
	sorted   []int32 // tokens that spell text, by their names
	unknown  int32
	fallback bool    // there are tokens of bytes
	penalty  float64 // the score of what no token spells
}

// unknownPenalty is how much below all tokens that is.
const unknownPenalty = 10

func newUnigram(f *gguf.File, t *Tokenizer) (alphabet, error) {
	s, err := newSentencePiece(f, t)
	if err != nil {
		return nil, err
	}
	u := &unigram{sentencePiece: s, unknown: -1}
	if u.chars, err = readCharsmap(f); err != nil {
		return nil, err
	}
	if u.merged, err = gguf.Value[bool](f, "tokenizer.ggml.remove_extra_whitespaces"); err != nil && !errors.Is(err, gguf.ErrMissing) {
		return nil, err
	}
	lowest := 0.0
	for i, kind := range t.kinds {
		switch score := float64(u.scores[i]); {
		case math.IsNaN(score) || math.IsInf(score, 0):
			return nil, fmt.Errorf("metadata \"tokenizer.ggml.scores\" has %v as number %d: %w", score, i, compute.ErrArgument)
		case kind == unknownToken && u.unknown < 0:
			u.unknown = int32(i)
		case kind == byteToken:
			u.fallback = true
		case kind == normalToken && t.pieces[i] != "" && t.ids[t.pieces[i]] == int32(i):
			u.sorted, lowest = append(u.sorted, int32(i)), min(lowest, score)
		}
	}
	if u.unknown < 0 {
		return nil, fmt.Errorf("metadata \"tokenizer.ggml.token_type\" has no token for unknown text: %w", compute.ErrArgument)
	}
	u.penalty = lowest - unknownPenalty
	slices.SortStableFunc(u.sorted, func(a, b int32) int { return cmp.Compare(t.pieces[a], t.pieces[b]) })
	return u, nil
}

// normal is a text as pieces spell it: with the replacements of the table, marks for spaces, and one before the text.
func (u *unigram) normal(text string) string {
	var b strings.Builder
	begun, spaces := false, 0
	if u.prefix {
		spaces = 1
	}
	for len(text) > 0 {
		s, n := u.chars.next(text)
		text = text[n:]
		for i := range len(s) {
			switch {
			case s[i] != ' ':
				b.WriteString(strings.Repeat(spaceMark, spaces))
				b.WriteByte(s[i])
				begun, spaces = true, 0
			case !u.merged:
				spaces++
			case begun:
				spaces = 1
			}
		}
	}
	if !u.merged {
		b.WriteString(strings.Repeat(spaceMark, spaces))
	}
	return b.String()
}

// readCharsmap reads the table of replacements, bytes that some files have as signed ones.
func readCharsmap(f *gguf.File) (*charsmap, error) {
	const key = "tokenizer.ggml.precompiled_charsmap"
	v, ok := f.Value(key)
	if !ok {
		return &charsmap{}, nil
	}
	var table []byte
	if a, ok := v.(*gguf.Array); ok {
		var err error
		if v, err = a.Values(); err != nil {
			return nil, err
		}
	}
	switch x := v.(type) {
	case []uint8:
		table = x
	case []int8:
		for _, b := range x {
			table = append(table, byte(b))
		}
	default:
		return nil, fmt.Errorf("metadata %q is %T, need bytes: %w", key, v, compute.ErrDType)
	}
	m, err := newCharsmap(table)
	if err != nil {
		return nil, fmt.Errorf("metadata %q: %w", key, err)
	}
	return m, nil
}

func (u *unigram) encode(tokens []int32, text string) []int32 {
	text = u.normal(text)
	// The best way to a place in the text: its score, and the token there, which begins at from.
	type way struct {
		score float64
		from  int
		token int32
	}
	best := make([]way, len(text)+1)
	for i := range best[1:] {
		best[i+1].score = math.Inf(-1)
	}
	for at := 0; at < len(text); {
		_, size := utf8.DecodeRuneInString(text[at:])
		reach := func(n int, token int32, score float64) {
			if score += best[at].score; score > best[at+n].score {
				best[at+n] = way{score, at, token}
			}
		}
		alone := false
		u.prefixes(text[at:], func(n int, token int32) {
			alone = alone || n == size
			reach(n, token, float64(u.scores[token]))
		})
		if !alone {
			reach(size, -1, u.penalty)
		}
		at += size
	}
	first := len(tokens)
	for at := len(text); at > 0; {
		w := best[at]
		if w.token >= 0 {
			tokens, at = append(tokens, w.token), w.from
			continue
		}
		for w.from > 0 && best[w.from].token < 0 { // together one unknown token
			w.from = best[w.from].from
		}
		tokens, at = u.unspelled(tokens, text[w.from:at]), w.from
	}
	slices.Reverse(tokens[first:])
	return tokens
}

// unspelled appends what stands for text that no token spells, the last token first.
func (u *unigram) unspelled(tokens []int32, text string) []int32 {
	if !u.fallback {
		return append(tokens, u.unknown)
	}
	for i := len(text) - 1; i >= 0; i-- {
		tokens = append(tokens, u.bytes[text[i]])
	}
	return tokens
}

// prefixes calls f for each token that a text begins with, the shortest first. It narrows the list of tokens byte by byte.
func (u *unigram) prefixes(text string, f func(n int, token int32)) {
	list := u.sorted
	for n := 1; n <= len(text) && len(list) > 0; n++ {
		c := text[n-1]
		letter := func(i int) int { // of a token, −1 after its end
			if p := u.pieces[list[i]]; len(p) >= n {
				return int(p[n-1])
			}
			return -1
		}
		lo := sort.Search(len(list), func(i int) bool { return letter(i) >= int(c) })
		list = list[lo:]
		hi := sort.Search(len(list), func(i int) bool { return letter(i) > int(c) })
		if list = list[:hi]; hi > 0 && len(u.pieces[list[0]]) == n {
			f(n, list[0])
		}
	}
}
