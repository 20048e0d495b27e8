package cpu

import "github.com/wavelane/wavelane/internal/catalogue"

// Estimated times for a page, in ns.
const (
	lz4CompressNS   = 12_000
	lz4DecompressNS = 3_000
)

// lz4Compress has a unit for each page. Memory is little-endian on all machines that there are kernels for, so that words are
// bytes in order.
func lz4Compress(c *call) work {
	return one(c.in[0].Shape[0], lz4CompressNS, func(a *args, lo, hi int) {
		pages, blocks, sizes := a.in[0].bytes(c.in[0].DType), a.outs[0].bytes(c.outs[0].DType), a.outs[1].i32()
		for i := lo; i < hi; i++ {
			sizes[i] = int32(catalogue.CompressLZ4(blocks[i*catalogue.LZ4Page:], pages[i*catalogue.LZ4Page:]))
		}
	})
}

func lz4Decompress(c *call) work {
	return one(c.in[0].Shape[0], lz4DecompressNS, func(a *args, lo, hi int) {
		blocks, sizes := a.in[0].bytes(c.in[0].DType), a.in[1].i32()
		pages, status := a.outs[0].bytes(c.outs[0].DType), a.outs[1].i32()
		for i := lo; i < hi; i++ {
			block := blocks[i*catalogue.LZ4Page:][:catalogue.LZ4Page]
			status[i] = int32(catalogue.DecompressLZ4(pages[i*catalogue.LZ4Page:], block, int(sizes[i])))
		}
	})
}
