package attention

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
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
func attendSplit(s *kit.Step, c cacheOf) {
	rows := c.N * c.Group()
	of := decodeRows[0]
	for _, r := range decodeRows {
		if of < rows {
			of = r
		}
	}
	kind := s.Operands[c.k].DType
	shape := decodeShape{decodeElements[kind], of}
	log := 3
	for decodeSlice<<log < c.D {
		log++
	}
	tile := shape.tile(1 << log)
	tiles := kit.CeilDiv(rows, of)
	parts := partsOf(s, c.Batch*c.KVHeads*tiles, c.NK, tile)
	units := c.Batch * c.KVHeads * parts
	half := map[compute.DType]uint32{compute.Float32: 0, compute.Float16: 1, compute.BFloat16: 2}[s.Operands[c.q].DType]
	direct := parts == 1 && half == 0
	sizes := make([]uint32, 0, decodeSizes)
	sizes = append(sizes, kit.Words(c.N, c.Heads, c.D, c.NK, rows)...)
	sizes = append(sizes, kit.FlagIf(1, c.Causal), uint32(c.Window), kit.FlagIf(1, c.lengths > 0), kit.FlagIf(1, c.table == 0),
		kit.FlagIf(1, c.D*kind.Size()%16 == 0), half, kit.FlagIf(1, direct), uint32(log), uint32(tile))
	sizes = append(sizes, kit.Words(c.PerSequence, c.Pages)...)
	for _, d := range []int{tiles, parts, max(c.KVHeads, 1), max(c.Group(), 1), max(c.PageSize, 1)} {
		sizes = append(sizes, scalar.DivisorOf(d)...)
	}
	scale, softCap := c.scales()
	pairs, partial := kit.Out, kit.Out
	if !direct {
		pairs, partial = s.NewScratch(8*units*rows), s.NewScratch(4*units*rows*c.D)
	}
	s.Launch(decodeKernels[kind][of], [3]int{units * tiles, 1, 1}, sizes, scale, softCap, kit.In(c.q), kit.In(c.k), kit.In(c.v),
		kit.In(c.lengths), kit.In(c.table), kit.Out, pairs, partial)
	if !direct {
		all := c.Batch * c.N * c.Heads
		counts := append(scalar.DivisorOf(c.Heads), scalar.DivisorOf(c.N)...)
		s.Launch(decodeCombine, [3]int{kit.CeilDiv(all, decodeWarps), 1, 1}, sizes, all, counts, kit.In(c.lengths), pairs, partial, kit.Out)
	}
}

// partsOf is into how many parts keys are split: as many as fill the GPU, each of two tiles at least.
func partsOf(s *kit.Step, blocks, keys, tile int) int {
	const resident, most = 2, 128 // blocks of a multiprocessor; parts that are worth joining
	full := resident * s.Caps.Multiprocessors
	if blocks >= full*4/5 {
		return 1
	}
	return max(1, min(kit.CeilDiv(2*full, max(blocks, 1)), kit.CeilDiv(keys, 2*tile), most))
}
