package wasm

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestJoinSegments joins two segments, the later one first, with a section on either side.
func TestJoinSegments(t *testing.T) {
	const header = "\x00asm\x01\x00\x00\x00"
	joined, err := joinSegments([]byte(header + "\x05\x03\x01\x00\x01" +
		"\x0b\x10\x02\x00\x41\xc5\x00\x0b\x01c\x00\x41\xc0\x00\x0b\x02ab" + "\x00\x02\x01x"))
	require.NoError(t, err)
	require.Equal(t, header+"\x05\x03\x01\x00\x01"+"\x0b\x0d\x01\x00\x41\xc0\x00\x0b\x06ab\x00\x00\x00c"+"\x00\x02\x01x", string(joined))
	for name, module := range map[string]string{
		"nothing":                "",
		"a section cut short":    header + "\x0b\x05\x00",
		"no segments":            header + "\x0b\x01\x00",
		"another memory":         header + "\x0b\x06\x01\x02\x41\x00\x0b\x00",
		"segments that overlap":  header + "\x0b\x0e\x02\x00\x41\x00\x0b\x02aa\x00\x41\x01\x0b\x01b",
		"a segment cut short":    header + "\x0b\x06\x01\x00\x41\x00\x0b\x05",
		"more than its segments": header + "\x0b\x07\x01\x00\x41\x00\x0b\x00x",
	} {
		_, err := joinSegments([]byte(module))
		require.Error(t, err, name)
	}
}
