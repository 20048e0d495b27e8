package lz4_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cpu"
	_ "github.com/wavelane/wavelane/internal/testseed" // the seed of package rapid
	"github.com/wavelane/wavelane/lz4"
)

func Example() {
	d, err := cpu.Open(context.Background())
	if err != nil {
		panic(err)
	}
	defer d.Close()
	p, err := lz4.Compress(context.Background(), d, make([]byte, 10_000))
	if err != nil {
		panic(err)
	}
	data, err := lz4.Decompress(context.Background(), d, p)
	fmt.Println(p.Sizes, len(data), err)
	// Output: [26 26 26] 10000 <nil>
}

func TestRoundTrip(t *testing.T) {
	d, err := cpu.Open(context.Background())
	require.NoError(t, err)
	defer d.Close()
	ctx := context.Background()
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.SliceOfN(rapid.Byte(), 0, 50).Draw(t, "data")
		for range rapid.IntRange(0, 9).Draw(t, "doublings") {
			data = append(data, data...)
		}
		p, err := lz4.Compress(ctx, d, data)
		require.NoError(t, err)
		var blocks [][]byte
		for i := range p.Sizes {
			blocks = append(blocks, p.Block(i))
		}
		again, err := lz4.FromBlocks(blocks, len(data))
		require.NoError(t, err)
		require.Equal(t, p, again)
		back, err := lz4.Decompress(ctx, d, again)
		require.NoError(t, err)
		require.Equal(t, len(data), len(back))
		require.Equal(t, string(data), string(back))
	})
}

func TestErrors(t *testing.T) {
	d, err := cpu.Open(context.Background())
	require.NoError(t, err)
	defer d.Close()
	ctx := context.Background()
	good, err := lz4.Compress(ctx, d, make([]byte, lz4.PageSize))
	require.NoError(t, err)
	p, err := lz4.FromBlocks([][]byte{good.Block(0), {0x10, 1, 0, 0, 0}, {0x10, 7}, {0x10, 7}}, 3*lz4.PageSize+1)
	require.NoError(t, err)
	data, err := lz4.Decompress(ctx, d, p)
	require.ErrorIs(t, err, lz4.ErrMalformed)
	require.EqualError(t, err, "page 1: status -3: malformed LZ4 block\npage 2: 1 bytes of 4096: malformed LZ4 block")
	require.Len(t, data, 3*lz4.PageSize+1)
	require.Equal(t, byte(7), data[3*lz4.PageSize])
	_, err = lz4.FromBlocks([][]byte{make([]byte, 4097)}, 4096)
	require.ErrorIs(t, err, compute.ErrArgument)
	_, err = lz4.FromBlocks(nil, 1)
	require.ErrorIs(t, err, compute.ErrArgument)
	p.Sizes = p.Sizes[1:]
	_, err = lz4.Decompress(ctx, d, p)
	require.ErrorIs(t, err, compute.ErrArgument)
}
