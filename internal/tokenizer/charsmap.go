package tokenizer

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"unicode/utf8"

	"github.com/wavelane/wavelane/compute"
)

// charsmap is SentencePiece's table of what becomes of characters before they are cut: a double-array trie (Aoe, 1989) in Darts-clone's form of
// the texts that are replaced, and replacements.
type charsmap struct {
	units        []uint32
	replacements []byte // each followed by a 0
}

// longestReplacement bounds a replacement, so that a text grows by no more. The longest of Unicode's compatibility forms has 33 bytes.
const longestReplacement = 255

// newCharsmap reads a table: the size of the trie in bytes, the trie, and the replacements. No bytes are an empty table.
func newCharsmap(b []byte) (*charsmap, error) {
	if len(b) == 0 {
		return &charsmap{}, nil
	}
	if len(b) < 4 {
		return nil, fmt.Errorf("a table of characters has %d bytes: %w", len(b), compute.ErrArgument)
	}
	size := binary.LittleEndian.Uint32(b)
	if b = b[4:]; int64(size) > int64(len(b)) || size%4 != 0 {
		return nil, fmt.Errorf("a table of characters has a trie of %d bytes of %d: %w", size, len(b), compute.ErrArgument)
	}
	m := &charsmap{units: make([]uint32, size/4), replacements: b[size:]}
	for i := range m.units {
		m.units[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	for rest := m.replacements; len(rest) > 0; {
		n := bytes.IndexByte(rest, 0)
		if n < 0 || n > longestReplacement {
			return nil, fmt.Errorf("a table of characters has a replacement of more than %d bytes: %w", longestReplacement, compute.ErrArgument)
		}
		rest = rest[n+1:]
	}
	return m, nil
}

// next returns what the beginning of a text becomes, and its length: that of the longest entry that the text begins with, or else of
// a character. Bytes that are no UTF-8 become U+FFFD. The text is not empty.
func (m *charsmap) next(text string) (replacement string, n int) {
	if at, n := m.longest(text); n > 0 {
		rest := m.replacements[at:]
		return string(rest[:bytes.IndexByte(rest, 0)]), n
	}
	r, n := utf8.DecodeRuneInString(text)
	if r == utf8.RuneError && n == 1 {
		return "\uFFFD", 1
	}
	return text[:n], n
}

// longest returns where the replacement of the longest entry is that a text begins with, and its length, which is 0 if there is none. A link
// that leads out of the table ends the search.
func (m *charsmap) longest(text string) (at uint32, n int) {
	// The children of a node are at the exclusive or of its offset with their letters.
	offset := func(unit uint32) uint32 { return unit >> 10 << (unit >> 9 & 1 * 8) }
	if len(m.units) == 0 {
		return 0, 0
	}
	node := offset(m.units[0])
	for i := range len(text) {
		c := uint32(text[i])
		if node ^= c; c == 0 || int64(node) >= int64(len(m.units)) {
			break
		}
		unit := m.units[node]
		if unit&(1<<31|0xff) != c {
			break
		}
		node ^= offset(unit)
		if unit>>8&1 == 0 || int64(node) >= int64(len(m.units)) { // nothing ends here
			continue
		}
		if v := m.units[node] &^ (1 << 31); int64(v) < int64(len(m.replacements)) {
			at, n = v, i+1
		}
	}
	return at, n
}
