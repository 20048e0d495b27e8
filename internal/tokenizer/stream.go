package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// Stream turns tokens into text one by one, and gives text out as soon as its characters are complete: a token may be part of
// one.
type Stream struct {
	tokenizer *Tokenizer
	pending   []byte
}

// NewStream returns a stream of what comes after a prompt.
func (t *Tokenizer) NewStream() *Stream { return &Stream{tokenizer: t} }

// Next returns the text that a token completes, which may be none.
func (s *Stream) Next(token int32) string {
	s.pending = s.tokenizer.spell(s.pending, token)
	n := len(s.pending) - unfinished(s.pending)
	text := strings.ToValidUTF8(string(s.pending[:n]), "\uFFFD")
	s.pending = append(s.pending[:0], s.pending[n:]...)
	return text
}

// End returns what is left: nothing, or U+FFFD for a character that has stayed incomplete.
func (s *Stream) End() string {
	text := strings.ToValidUTF8(string(s.pending), "\uFFFD")
	s.pending = s.pending[:0]
	return text
}

// unfinished is how many bytes at the end are the beginning of a character.
func unfinished(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if tail := text[len(text)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}
