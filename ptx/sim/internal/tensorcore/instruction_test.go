package tensorcore

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestElementsAtTheEnd: what follows the last elements of 16 bytes need not be there.
func TestElementsAtTheEnd(t *testing.T) {
	for bits, want := range map[int]uint64{4: 0xf, 6: 0x3f, 8: 0xff} {
		e := Elements{Bits: bits, Per: 16}
		mem := make([]byte, 16+2*bits)
		for i := range mem {
			mem[i] = 0xff
		}
		d := Descriptor{start: 16, leading: 16}
		dst := make([]uint64, 16)
		e.Read(&d, mem, dst, 1, 16, false)
		for _, v := range dst {
			require.Equal(t, want, v)
		}
		e.Chunks(&d, 1, 16, false, func(addr uint32, bytes int) { require.Equal(t, len(mem), int(addr)+bytes) })
	}
}
