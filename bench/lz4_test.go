package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/wavelane/wavelane/internal/testseed"

	peer "github.com/pierrec/lz4/v4"
	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/cpu"
	"github.com/wavelane/wavelane/lz4"
)

// lz4Corpora are pages of several kinds, 10,000 together.
func lz4Corpora(t *testing.T, rng *rand.Rand) map[string][]byte {
	const each = 1250 * lz4.PageSize
	noise := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		return b
	}
	fill := func(part func() []byte) (all []byte) {
		for len(all) < each {
			all = append(all, part()...)
		}
		return all[:each]
	}
	var text []byte
	require.NoError(t, filepath.WalkDir("..", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || len(text) > each || filepath.Ext(path) != ".go" && filepath.Ext(path) != ".md" {
			return err
		}
		b, err := os.ReadFile(path)
		text = append(text, b...)
		return err
	}))
	self, err := os.Executable()
	require.NoError(t, err)
	binaryFile, err := os.ReadFile(self)
	require.NoError(t, err)
	return map[string][]byte{
		"text":   fill(func() []byte { return text }),
		"binary": fill(func() []byte { return binaryFile }),
		"random": fill(func() []byte { return noise(each) }),
		"zero":   make([]byte, each),
		"repeated": fill(func() []byte {
			return bytes.Repeat(noise(1+rng.IntN(300)), lz4.PageSize)[:lz4.PageSize]
		}),
		"few words": fill(func() []byte {
			return binary.LittleEndian.AppendUint32(nil, rng.Uint32N(1000))
		}),
		"sparse": fill(func() []byte { return append(make([]byte, rng.IntN(100)), noise(rng.IntN(20))...) }),
		"mixed": fill(func() []byte {
			i := rng.IntN(len(text) - 200)
			return append(noise(rng.IntN(60)), text[i:i+rng.IntN(200)]...)
		}),
	}
}

// What one side compresses the other decompresses, and ours is not much larger.
func TestLZ4Peer(t *testing.T) {
	seed := testseed.Of(t)
	d, err := cpu.Open(context.Background())
	require.NoError(t, err)
	defer d.Close()
	ctx := context.Background()
	ours, theirs := 0, 0
	for name, data := range lz4Corpora(t, rand.New(rand.NewPCG(seed, 4))) {
		p, err := lz4.Compress(ctx, d, data)
		require.NoError(t, err)
		page := make([]byte, lz4.PageSize)
		var blocks [][]byte
		var c peer.Compressor
		size := 0
		for i := range p.Sizes {
			want := data[i*lz4.PageSize:][:lz4.PageSize]
			if block := p.Block(i); len(block) == lz4.PageSize {
				require.True(t, bytes.Equal(want, block), "%s: stored page %d", name, i)
			} else {
				n, err := peer.UncompressBlock(block, page)
				require.NoError(t, err, "%s: page %d", name, i)
				require.True(t, bytes.Equal(want, page[:n]), "%s: page %d", name, i)
			}
			block := make([]byte, peer.CompressBlockBound(lz4.PageSize))
			n, err := c.CompressBlock(want, block)
			require.NoError(t, err)
			if block = block[:n]; n == 0 || n >= lz4.PageSize {
				block = want
			}
			blocks, size = append(blocks, block), size+len(block)
		}
		theirPages, err := lz4.FromBlocks(blocks, len(data))
		require.NoError(t, err)
		back, err := lz4.Decompress(ctx, d, theirPages)
		require.NoError(t, err)
		require.True(t, bytes.Equal(data, back), "%s: their blocks", name)
		t.Logf("%s: %d bytes, ours %d, theirs %d: %.3f of their ratio", name, len(data), p.Size(), size, float64(size)/float64(p.Size()))
		require.LessOrEqual(t, 0.9*float64(p.Size()), float64(size), name)
		ours, theirs = ours+p.Size(), theirs+size
	}
	t.Logf("all: %.3f of their ratio", float64(theirs)/float64(ours))
}
