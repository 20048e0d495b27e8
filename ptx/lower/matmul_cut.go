package lower

import (
	"cmp"
	"math"
	"slices"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/ptx"
)

// cut is how the depths of products are shared out among blocks: whole, in equal parts (split-K), or so that every block has as
// much to do, whichever tiles of the result that is of (stream-K: Osama, Merrill, Cecka, Garland and Owens, "Stream-K: Work-centric
// Parallel Decomposition for Dense Matrix-Matrix Multiplication on the GPU", 2023; this is its hybrid with whole tiles).
//
// The depths of the first tiles lie end to end in one line. Of that line each block has a share: the end of one tile, maybe whole
// ones, the beginning of another. Split-K is a line in which a tile is as long as so many shares. Each of the other tiles has a
// block of its own. What a block has of only a part of a tile's depth goes to scratch memory, [part][result]; when all blocks are
// done, matmul_sum adds the parts up in the order of their depths. So no block waits for another, and sums are the same each time.
type cut struct {
	name     string // behind that of a variant
	parts    int    // of a tile at most; 1 if none is cut up
	tiles    int    // in the line
	blocks   int    // that share the line
	length   int    // of a tile, in units of depthUnit
	share    int    // of a block
	elements int    // of the result, up to the last that belongs to the line
	tiling   tiling
	time     int // by the model of cuts
}

const (
	splitDepth = 256     // least depth of a part when it is split
	splitMost  = 64      // parts at most
	splitWords = 1 << 26 // of all parts at most
	depthUnit  = 64      // a multiple of every tile's depth

	// What a block takes to fill its pipeline and to write a tile, and what another kernel takes that adds up parts: as long as
	// so many units of depth, which are half a microsecond to a microsecond each. Estimated, not measured.
	tileUnits = 2
	sumUnits  = 8
)

// tiling is how results of rows × cols are numbered as tiles of m × n, both powers of two: product after product, in groups of
// rows of tiles, and in a group column after column.
type tiling struct {
	m, n              int
	group             int // a power of two; with 1, tiles are numbered row after row
	across, down      int
	batch, rows, cols int
}

// tilingOf is that of the result of products in tiles of tileM × tileN.
func tilingOf(d catalogue.MatMulDims, tileM, tileN, group int) tiling {
	return tiling{m: tileM, n: tileN, group: group, across: ceilDiv(d.N, tileN), down: ceilDiv(d.M, tileM),
		batch: d.Batch, rows: d.M, cols: d.N}
}

// tiles of a product.
func (t tiling) tiles() int { return t.across * t.down }

// upTo is how many elements there are up to the end of the group that the last of so many tiles belongs to.
func (t tiling) upTo(tiles int) int {
	z, in := (tiles-1)/t.tiles(), (tiles-1)%t.tiles()
	groups := in/(t.group*t.across) + 1
	return (z*t.rows + min(groups*t.group*t.m, t.rows)) * t.cols
}

// uniform is split-K for kernels that take it as a number of parts, of whole products.
func uniform(splits, products, rows, cols int) cut {
	return cut{name: "/splitk", parts: splits, tiles: products, length: splits, share: 1, elements: products * rows * cols,
		tiling: tiling{m: 1 << 31, n: 1 << 31, group: 1, across: 1, down: 1, batch: products, rows: rows, cols: cols}}
}

// cuts lists the ways to share out products of that depth in tiles, the best first by this model: blocks take as long as the depth that they go
// over, and tileUnits for each tile that they touch. The GPU has room for some blocks at a time, whose waves add up. When whole
// tiles leave most of a last wave idle, stream-K has that wave, and the one before it, do what is left over in equal shares.
func (t tiling) cuts(multiprocessors, depth, resident int) []cut {
	tiles, length := t.tiles()*t.batch, max(1, ceilDiv(depth, depthUnit)) // of depth 0 the tiles are written all the same
	room := multiprocessors * resident
	cuts := []cut{{parts: 1, length: length, share: 1, tiling: t, time: ceilDiv(tiles, room) * (length + tileUnits)}}
	if n := splitsOf(multiprocessors, tiles, depth, t.batch*t.rows*t.cols); n > 1 {
		share := depthOf(depth, n) / depthUnit
		cuts = t.cut(cuts, "/splitk", tiles, n*share, share, ceilDiv(tiles*n, room)*(share+tileUnits))
	}
	waves := max(tiles/room-1, 0) // of whole tiles
	rest := tiles - waves*room
	share := max(ceilDiv(rest*length, room), splitDepth/depthUnit)
	cuts = t.cut(cuts, "/streamk", rest, length, share, waves*(length+tileUnits)+share+(1+ceilDiv(share-1, length))*tileUnits)
	slices.SortStableFunc(cuts, func(a, b cut) int { return cmp.Compare(a.time, b.time) })
	return cuts
}

// cut appends one of so many tiles of a length in shares, unless no tile is cut up by that, or too many are.
func (t tiling) cut(cuts []cut, name string, tiles, length, share, time int) []cut {
	if tiles*length > math.MaxInt32 {
		return cuts
	}
	c := cut{name: name, tiles: tiles, blocks: ceilDiv(tiles*length, share), length: length, share: share, elements: t.upTo(tiles),
		tiling: t, time: time + sumUnits}
	for i := range tiles {
		c.parts = max(c.parts, ((i+1)*length-1)/share-i*length/share+1)
	}
	if c.parts == 1 || c.parts > splitMost || c.parts*c.elements > splitWords {
		return cuts
	}
	return append(cuts, c)
}

// items are what there is to do for blocks: shares of the line, then other tiles.
func (c cut) items() int { return c.blocks + c.tiling.tiles()*c.tiling.batch - c.tiles }

// Arguments about a cut, from an element of an array on.
const (
	cutTiles = iota
	cutBlocks
	cutElements
	cutLength                            // a divisor
	cutShare  = cutLength + divisorWords // a divisor
	cutWords  = cutShare + divisorWords
	cutInDoc  = "tiles that are cut up, blocks that share these, elements of their results, as divisors units of depth of a tile " +
		"and of a share"
)

func (c cut) args() []uint32 {
	sizes := append([]uint32{uint32(c.tiles), uint32(c.blocks), uint32(c.elements)}, divisorOf(c.length)...)
	return append(sizes, divisorOf(c.share)...)
}

// segment is what a block has of a tile.
type segment struct {
	tile         ptx.Reg[uint32]
	first, depth ptx.Reg[uint32]        // where in the depth it begins, and how much it is
	whole        func() ptx.Reg[bool]   // all of the tile's depth
	before       func() ptx.Reg[uint64] // elements in scratch memory before those of this part
}

// eachSegment goes over what belongs to an item, by the arguments from sizes[at] on. The depth is that of the products.
func eachSegment(k *ptx.Kernel, sizes ptx.Array[uint32], at int, item, depth ptx.Reg[uint32], f func(s segment)) {
	size := func(i int) ptx.Reg[uint32] { return sizes.At(k, at+i) }
	length, share := divisorAt(k, sizes, at+cutLength), size(cutShare)
	inLine := ptx.Lt(k, item, size(cutBlocks))
	begin := ptx.Mul(k, item, share)
	of, offset := length.split(k, begin)
	rest := ptx.Min(k, share, ptx.Sub(k, ptx.Mul(k, size(cutTiles), length.d), begin))
	other := ptx.Add(k, size(cutTiles), ptx.Sub(k, item, size(cutBlocks)))
	tile := ptx.VarOf(k, ptx.Select(k, inLine, of, other))
	from := ptx.VarOf(k, ptx.Select(k, inLine, offset, u32(0)))
	left := ptx.VarOf(k, ptx.Select(k, inLine, rest, length.d))
	k.Loop(func() {
		units := ptx.Min(k, left.Get(), ptx.Sub(k, length.d, from.Get()))
		first := ptx.Mul(k, from.Get(), u32(depthUnit))
		s := segment{tile: tile.Get(), first: first, depth: ptx.Min(k, ptx.Sub(k, depth, first), ptx.Mul(k, units, u32(depthUnit)))}
		s.whole = func() ptx.Reg[bool] { return ptx.Eq(k, units, length.d) }
		s.before = func() ptx.Reg[uint64] {
			part := ptx.Sub(k, item, quotientAt(k, sizes, at+cutShare, ptx.Mul(k, tile.Get(), length.d)))
			return ptx.MulWideU32(k, part, size(cutElements))
		}
		left.Set(ptx.Sub(k, left.Get(), units))
		from.Set(u32(0))
		f(s)
		tile.Set(ptx.Add(k, tile.Get(), u32(1)))
		k.BreakIf(ptx.Eq(k, left.Get(), u32(0)))
	})
}

// splitsOf returns into how many parts to cut the depth of products when a kernel has so many blocks, and the result so many
// elements; 1 for none.
func splitsOf(multiprocessors, blocks, depth, total int) int {
	if blocks >= multiprocessors || depth < 2*splitDepth {
		return 1
	}
	n := min(depth/splitDepth, splitMost, ceilDiv(2*multiprocessors, blocks), splitWords/total)
	if n <= 1 {
		return 1
	}
	return ceilDiv(depth, depthOf(depth, n))
}

// depthOf each of so many parts but the last.
func depthOf(depth, splits int) int {
	return max(1, ceilDiv(ceilDiv(depth, splits), depthUnit)) * depthUnit
}
