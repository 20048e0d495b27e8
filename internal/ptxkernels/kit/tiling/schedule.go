package tiling

import (
	"cmp"
	"math"
	"slices"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
)

// Schedule is how the depths of products are shared out among blocks: whole, in equal parts (split-K), or so that every block has as
// much to do, whichever tiles of the result that is of (stream-K: Osama, Merrill, Cecka, Garland and Owens, "Stream-K: Work-centric
// Parallel Decomposition for Dense Matrix-Matrix Multiplication on the GPU", 2023; this is its hybrid with whole tiles).
//
// The depths of the first tiles lie end to end in one line. Of that line each block has a share: the end of one tile, maybe whole
// ones, the beginning of another. Split-K is a line in which a tile is as long as so many shares. Each of the other tiles has a
// block of its own. What a block has of only a part of a tile's depth goes to scratch memory, [part][result]; when all blocks are
// done, matmul_sum adds the parts up in the order of their depths. So no block waits for another, and sums are the same each time.
type Schedule struct {
	Name     string // after that of a variant
	Parts    int    // of a tile at most; 1 if none is cut up
	Tiles    int    // in the line
	blocks   int    // that share the line
	Length   int    // of a tile, in units of depthUnit
	Share    int    // of a block
	Elements int    // of the result, up to the last that belongs to the line
	Tiling   Grid
	time     int // by the model of cuts
}

const (
	SplitDepth = 256     // least depth of a part when it is split
	splitMost  = 64      // parts at most
	splitWords = 1 << 26 // of all parts at most
	DepthUnit  = 64      // a multiple of every tile's depth

	// What a block takes to fill its pipeline and to write a tile, and what another kernel takes that adds up parts: as long as
	// so many units of depth, which are half a microsecond to a microsecond each. Estimated, not measured.
	tileUnits = 2
	sumUnits  = 8
)

// Grid is how results of rows × cols are numbered as tiles of m × n, both powers of two: product after product, in groups of
// rows of tiles, and in a group column after column.
type Grid struct {
	m, n              int
	group             int // a power of two; with 1, tiles are numbered row after row
	Across, Down      int
	Batch, rows, cols int
}

// GridOf is that of the result of products in tiles of tileM × tileN.
func GridOf(d catalogue.MatMulDims, tileM, tileN, group int) Grid {
	return Grid{m: tileM, n: tileN, group: group, Across: kit.CeilDiv(d.N, tileN), Down: kit.CeilDiv(d.M, tileM),
		Batch: d.Batch, rows: d.M, cols: d.N}
}

// Tiles of a product.
func (t Grid) Tiles() int { return t.Across * t.Down }

// upTo is how many elements there are up to the end of the group that the last of so many tiles belongs to.
func (t Grid) upTo(tiles int) int {
	z, in := (tiles-1)/t.Tiles(), (tiles-1)%t.Tiles()
	groups := in/(t.group*t.Across) + 1
	return (z*t.rows + min(groups*t.group*t.m, t.rows)) * t.cols
}

// UniformSplit is split-K for kernels that take it as a number of parts, of whole products.
func UniformSplit(splits, products, rows, cols int) Schedule {
	return Schedule{Name: "/splitk", Parts: splits, Tiles: products, Length: splits, Share: 1, Elements: products * rows * cols,
		Tiling: Grid{m: 1 << 31, n: 1 << 31, group: 1, Across: 1, Down: 1, Batch: products, rows: rows, cols: cols}}
}

// Schedules lists the ways to share out products of that depth in tiles, the best first by this model: blocks take as long as the depth that they go
// over, and tileUnits for each tile that they touch. The GPU has room for some blocks at a time, whose waves add up. When whole
// tiles leave most of a last wave idle, stream-K has that wave, and the one before it, do what is left over in equal shares. To be first,
// a cut has to take less than whole tiles even if it takes gain times as long as the model says.
func (t Grid) Schedules(multiprocessors, depth, resident int, gain float64) []Schedule {
	tiles, length := t.Tiles()*t.Batch, max(1, kit.CeilDiv(depth, DepthUnit)) // of depth 0 the tiles are written all the same
	room := multiprocessors * resident
	cuts := []Schedule{{Parts: 1, Length: length, Share: 1, Tiling: t, time: kit.CeilDiv(tiles, room) * (length + tileUnits)}}
	if n := Splits(multiprocessors, tiles, depth, t.Batch*t.rows*t.cols); n > 1 {
		share := DepthOf(depth, n) / DepthUnit
		cuts = t.AppendSchedule(cuts, "/splitk", tiles, n*share, share, kit.CeilDiv(tiles*n, room)*(share+tileUnits))
	}
	waves := max(tiles/room-1, 0) // of whole tiles
	rest := tiles - waves*room
	share := max(kit.CeilDiv(rest*length, room), SplitDepth/DepthUnit)
	cuts = t.AppendSchedule(cuts, "/streamk", rest, length, share, waves*(length+tileUnits)+share+(1+kit.CeilDiv(share-1, length))*tileUnits)
	for i := range cuts[1:] {
		cuts[i+1].time = int(gain * float64(cuts[i+1].time))
	}
	slices.SortStableFunc(cuts, func(a, b Schedule) int { return cmp.Compare(a.time, b.time) })
	return cuts
}

// Schedule appends one of so many tiles of a length in shares, unless no tile is cut up by that, or too many are.
func (t Grid) AppendSchedule(cuts []Schedule, name string, tiles, length, share, time int) []Schedule {
	if tiles*length > math.MaxInt32 {
		return cuts
	}
	c := Schedule{Name: name, Tiles: tiles, blocks: kit.CeilDiv(tiles*length, share), Length: length, Share: share, Elements: t.upTo(tiles),
		Tiling: t, time: time + sumUnits}
	for i := range tiles {
		c.Parts = max(c.Parts, ((i+1)*length-1)/share-i*length/share+1)
	}
	if c.Parts == 1 || c.Parts > splitMost || c.Parts*c.Elements > splitWords {
		return cuts
	}
	return append(cuts, c)
}

// Items are what there is to do for blocks: shares of the line, then other tiles.
func (c Schedule) Items() int { return c.blocks + c.Tiling.Tiles()*c.Tiling.Batch - c.Tiles }

// ScheduleSizes are parameters from which [EachSegment] finds what a block has.
type ScheduleSizes struct {
	CutTiles, CutBlocks int           // tiles that are cut up, and blocks that share these
	CutElements         int           // of their results
	CutLength, CutShare scalar.Divide // units of depth of a tile and of a share
}

// Sizes are the parameters of the schedule.
func (c Schedule) Sizes() ScheduleSizes {
	return ScheduleSizes{c.Tiles, c.blocks, c.Elements, scalar.Divide(c.Length), scalar.Divide(c.Share)}
}

// Segment is what a block has of a tile.
type Segment struct {
	Tile         ptx.Reg[uint32]
	First, Depth ptx.Reg[uint32]        // where in the depth it begins, and how much it is
	whole        func() ptx.Reg[bool]   // all of the tile's depth
	before       func() ptx.Reg[uint64] // elements in scratch memory before those of this part
}

// EachSegment goes over what belongs to an item. The depth is that of the products.
func EachSegment(p *kit.Params, at *ScheduleSizes, item, depth ptx.Reg[uint32], f func(s Segment)) {
	k, length, share := p.Kernel, p.Divisor(&at.CutLength), p.Divided(&at.CutShare)
	inLine := item.Lt(p.U32(&at.CutBlocks))
	begin := item.Mul(share)
	of, offset := length.Split(k, begin)
	rest := share.Min(p.U32(&at.CutTiles).Mul(length.D).Sub(begin))
	other := p.U32(&at.CutTiles).Add(item.Sub(p.U32(&at.CutBlocks)))
	tile := ptx.VarOf(k, ptx.Select(inLine, of, other))
	from := ptx.VarOf(k, ptx.Select(inLine, offset, 0))
	left := ptx.VarOf(k, ptx.Select(inLine, rest, length.D))
	k.Loop(func() {
		units := left.Get().Min(length.D.Sub(from.Get()))
		first := from.Get().Mul(DepthUnit)
		s := Segment{Tile: tile.Get(), First: first, Depth: depth.Sub(first).Min(units.Mul(DepthUnit))}
		s.whole = func() ptx.Reg[bool] { return units.Eq(length.D) }
		s.before = func() ptx.Reg[uint64] {
			part := item.Sub(p.Quotient(&at.CutShare, tile.Get().Mul(length.D)))
			return part.MulWide(p.U32(&at.CutElements))
		}
		left.Set(left.Get().Sub(units))
		from.Set(0)
		f(s)
		tile.Set(tile.Get().Add(1))
		k.BreakIf(left.Get().Eq(0))
	})
}

// Splits returns into how many parts to cut the depth of products when a kernel has so many blocks, and the result so many
// elements; 1 for none.
func Splits(multiprocessors, blocks, depth, total int) int {
	if blocks >= multiprocessors || depth < 2*SplitDepth {
		return 1
	}
	n := min(depth/SplitDepth, splitMost, kit.CeilDiv(2*multiprocessors, blocks), splitWords/total)
	if n <= 1 {
		return 1
	}
	return kit.CeilDiv(depth, DepthOf(depth, n))
}

// DepthOf each of so many parts but the last.
func DepthOf(depth, splits int) int {
	return max(1, kit.CeilDiv(kit.CeilDiv(depth, splits), DepthUnit)) * DepthUnit
}
