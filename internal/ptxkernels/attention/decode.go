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
	parts := partsOf(s, shape, c.Batch*c.KVHeads*tiles, c.NK, tile)
	units := c.Batch * c.KVHeads * parts
	half := map[compute.DType]int{compute.Float32: 0, compute.Float16: 1, compute.BFloat16: 2}[s.Operands[c.q].DType]
	direct := parts == 1 && half == 0
	sizes := c.sizes(tiles, parts)
	sizes.Ring, sizes.Vector, sizes.Half, sizes.Direct = int(kit.FlagIf(1, c.table == 0)), int(kit.FlagIf(1, c.D*kind.Size()%16 == 0)), half, int(kit.FlagIf(1, direct))
	sizes.Log, sizes.Tile, sizes.Table, sizes.Pages, sizes.Page = log, tile, c.PerSequence, c.Pages, scalar.Divide(max(c.PageSize, 1))
	scale, softCap := c.scales()
	pairs, partial := kit.Out, kit.Out
	if !direct {
		pairs, partial = s.NewScratch(8*units*rows), s.NewScratch(4*units*rows*c.D)
	}
	s.Launch(decodeKernels[kind][of], [3]int{units * tiles, 1, 1}, decodeParams{sizes, scale, softCap, kit.In(c.q), kit.In(c.k), kit.In(c.v),
		kit.In(c.lengths), kit.In(c.table), kit.Out, pairs, partial})
	if !direct {
		all := c.Batch * c.N * c.Heads
		s.Launch(decodeCombine, [3]int{kit.CeilDiv(all, decodeWarps), 1, 1}, combineParams{sizes, uint32(all),
			scalar.Divide(c.Heads), scalar.Divide(c.N), kit.In(c.lengths), pairs, partial, kit.Out})
	}
}

// sizes are those for so many tiles of queries and parts of keys.
func (c cacheOf) sizes(tiles, parts int) attentionSizes {
	return attentionSizes{N: c.N, Heads: c.Heads, Width: c.D, Capacity: c.NK, Rows: c.N * c.Group(), Causal: int(kit.FlagIf(1, c.Causal)),
		Window: c.Window, Lengths: int(kit.FlagIf(1, c.lengths > 0)), Tiles: scalar.Divide(tiles), Parts: scalar.Divide(parts),
		KVHeads: scalar.Divide(max(c.KVHeads, 1)), Group: scalar.Divide(max(c.Group(), 1)), Page: 1}
}

// partsOf is into how many parts keys are split: as many as fill the GPU once, or twice where once would leave much of it idle, each of two
// tiles at least.
func partsOf(s *kit.Step, shape decodeShape, blocks, keys, tile int) int {
	const most = 128 // parts that are worth joining
	slots := shape.resident() * s.Caps.Multiprocessors
	blocks = max(blocks, 1)
	if blocks >= slots*4/5 {
		return 1
	}
	parts := slots / blocks
	if parts*blocks < slots*4/5 {
		parts = 2 * slots / blocks
	}
	return max(1, min(parts, kit.CeilDiv(keys, 2*tile), most))
}
