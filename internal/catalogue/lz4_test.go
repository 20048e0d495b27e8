package catalogue

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/wavelane/wavelane/internal/testseed"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// lz4Text is a page of pieces that occurred before, with new bytes in between.
func lz4Text(rng *rand.Rand) []byte {
	page := make([]byte, 0, 2*LZ4Page)
	for len(page) < LZ4Page {
		if n := len(page); n > 0 && rng.IntN(3) > 0 {
			from, length := rng.IntN(n), 1+rng.IntN(1<<rng.IntN(11))
			for i := range length {
				page = append(page, page[from+i])
			}
		} else {
			for range 1 + rng.IntN(1<<rng.IntN(8)) {
				page = append(page, byte(rng.Uint32()))
			}
		}
	}
	return page[:LZ4Page]
}

func TestLZ4RoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		page := lz4Text(rng)
		if rng.IntN(4) == 0 { // a run up to somewhere near the end
			n := LZ4Page - rng.IntN(20)
			copy(page[:n], bytes.Repeat(page[:1+rng.IntN(20)], LZ4Page))
		}
		block, back := make([]byte, LZ4Page), bytes.Repeat([]byte{1}, LZ4Page)
		n := CompressLZ4(block, page)
		if n == LZ4Page {
			require.Equal(t, page, block)
		} else {
			require.Equal(t, make([]byte, LZ4Page-n), block[n:], "what follows the block")
		}
		require.Equal(t, LZ4Page, DecompressLZ4(back, block, n))
		require.True(t, bytes.Equal(page, back))
	})
}

func TestLZ4Sizes(t *testing.T) {
	block := make([]byte, LZ4Page)
	require.Equal(t, 26, CompressLZ4(block, make([]byte, LZ4Page)), "a page of zeros")
	r := testseed.Rand(t)
	random := make([]byte, LZ4Page)
	for i := range random {
		random[i] = byte(r.Uint32())
	}
	require.Equal(t, LZ4Page, CompressLZ4(block, random), "a page of noise")
}

func TestLZ4Malformed(t *testing.T) {
	for _, c := range []struct {
		name  string
		block []byte
		size  int
		want  int
	}{
		{"no block", nil, 0, LZ4BadSize},
		{"negative", nil, -5, LZ4BadSize},
		{"too long", nil, LZ4Page + 1, LZ4BadSize},
		{"nothing", []byte{0}, 1, 0},
		{"literals", []byte{0x30, 1, 2, 3}, 4, 3},
		{"literals missing", []byte{0x40, 1, 2, 3}, 4, LZ4Truncated},
		{"length missing", []byte{0xf0, 255, 255}, 3, LZ4Truncated},
		{"half an offset", []byte{0x10, 1, 1}, 3, LZ4Truncated},
		{"ends with a match", []byte{0x10, 1, 1, 0}, 4, LZ4Truncated},
		{"match", []byte{0x11, 7, 1, 0, 0x10, 9}, 6, 7},
		{"offset 0", []byte{0x10, 1, 0, 0, 0x10, 1}, 6, LZ4BadOffset},
		{"before the page", []byte{0x10, 1, 2, 0, 0x10, 1}, 6, LZ4BadOffset},
		{"match too long", append(append([]byte{0x1f, 1, 1, 0}, bytes.Repeat([]byte{255}, 17)...), 0, 0), 23, LZ4Overflow},
		{"match length missing", append([]byte{0x1f, 1, 1, 0}, bytes.Repeat([]byte{255}, 17)...), 21, LZ4Truncated},
	} {
		page, block := bytes.Repeat([]byte{1}, LZ4Page), make([]byte, LZ4Page)
		copy(block, c.block)
		require.Equal(t, c.want, DecompressLZ4(page, block, c.size), c.name)
		require.Equal(t, make([]byte, LZ4Page-max(0, c.want)), page[max(0, c.want):], c.name)
	}
}

func FuzzLZ4(f *testing.F) {
	block := make([]byte, LZ4Page)
	n := CompressLZ4(block, bytes.Repeat([]byte("some text "), 500)[:LZ4Page])
	f.Add(block[:n], n)
	f.Add([]byte{0x11, 7, 1, 0, 0x10, 9}, 6)
	f.Add([]byte{0x1f, 7, 1, 0, 255, 255, 3}, 7)
	f.Fuzz(func(t *testing.T, b []byte, size int) {
		block, page := make([]byte, LZ4Page), make([]byte, LZ4Page)
		copy(block, b)
		n := DecompressLZ4(page, block, size)
		require.GreaterOrEqual(t, n, LZ4Overflow)
		require.LessOrEqual(t, n, LZ4Page)
		back, again := make([]byte, LZ4Page), make([]byte, LZ4Page)
		require.Equal(t, LZ4Page, DecompressLZ4(again, back, CompressLZ4(back, page)))
		require.Equal(t, page, again)
	})
}
