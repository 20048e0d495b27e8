package lower

import (
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
)

// cacheOf says where attention finds keys and values beside the sizes of [catalogue.AttentionDims].
type cacheOf struct {
	q, k, v int // operands
	lengths int // 0 for none
	table   int // 0 for caches without pages
	catalogue.AttentionDims
	catalogue.Paging
}

// decodes reports whether so few queries share a head of keys that it is best to split their keys among blocks.
func decodes(d catalogue.AttentionDims) bool { return d.N*d.Group() <= 2*decodeRows[len(decodeRows)-1] }

// attendSplit is attention with the keys of each head split among blocks: for few queries, and correct for any number.
func attendSplit(s *step, c cacheOf) {
	rows := c.N * c.Group()
	of := decodeRows[0]
	for _, r := range decodeRows {
		if of < rows {
			of = r
		}
	}
	kind := s.in[c.k].DType
	shape := decodeShape{decodeElements[kind], of}
	log := 3
	for decodeSlice<<log < c.D {
		log++
	}
	tile := shape.tile(1 << log)
	tiles := ceilDiv(rows, of)
	parts := partsOf(s, c.Batch*c.KVHeads*tiles, c.NK, tile)
	units := c.Batch * c.KVHeads * parts
	flag := func(b bool) uint32 {
		if b {
			return 1
		}
		return 0
	}
	half := map[compute.DType]uint32{compute.Float32: 0, compute.Float16: 1, compute.BFloat16: 2}[s.in[c.q].DType]
	direct := parts == 1 && half == 0
	sizes := make([]uint32, 0, decodeSizes)
	sizes = append(sizes, words(c.N, c.Heads, c.D, c.NK, rows)...)
	sizes = append(sizes, flag(c.Causal), uint32(c.Window), flag(c.lengths > 0), flag(c.table == 0),
		flag(c.D*kind.Size()%16 == 0), half, flag(direct), uint32(log), uint32(tile))
	sizes = append(sizes, words(c.PerSequence, c.Pages)...)
	for _, d := range []int{tiles, parts, max(c.KVHeads, 1), max(c.Group(), 1), max(c.PageSize, 1)} {
		sizes = append(sizes, divisorOf(d)...)
	}
	scale, bend := c.Scale, c.SoftCap
	if bend > 0 {
		scale /= bend
		bend *= math.Log2E
	} else {
		scale *= math.Log2E
	}
	pairs, partial := result, result
	if !direct {
		pairs, partial = s.scratch(8*units*rows), s.scratch(4*units*rows*c.D)
	}
	s.launch(decodeKernels[kind][of], [3]int{units * tiles, 1, 1}, sizes, scale, bend, operand(c.q), operand(c.k), operand(c.v),
		operand(c.lengths), operand(c.table), result, pairs, partial)
	if !direct {
		all := c.Batch * c.N * c.Heads
		counts := append(divisorOf(c.Heads), divisorOf(c.N)...)
		s.launch(decodeCombine, [3]int{ceilDiv(all, decodeWarps), 1, 1}, sizes, all, counts, operand(c.lengths), pairs, partial, result)
	}
}

// partsOf is into how many parts keys are split: as many as fill the GPU, each of two tiles at least.
func partsOf(s *step, blocks, keys, tile int) int {
	const resident, most = 2, 128 // blocks of a multiprocessor; parts that are worth joining
	full := resident * s.caps.Multiprocessors
	if blocks >= full*4/5 {
		return 1
	}
	return max(1, min(ceilDiv(2*full, max(blocks, 1)), ceilDiv(keys, 2*tile), most))
}
