package attention

import (
	"fmt"
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/tensormap"
)

// wgmmaShape is what a kernel is made for: heads up to a width, by warpgroups that multiply, keys of a tile, and stages of tiles of keys and
// of values.
//
// The kernels are as FlashAttention-3 (Shah et al., 2024): one warpgroup brings tiles by tensor copies (TMA), the others multiply, each for
// 64 queries of one head. They ask for the scores of the next tile before they weigh the values of this one, and take turns, so that the
// exponentials of one are computed while the tensor cores work for another.
type wgmmaShape struct {
	width, groups, keys, stages int
	producerRegs, consumerRegs  int // for each thread
}

func (s wgmmaShape) rows() int    { return 64 * s.groups }          // queries of a block
func (s wgmmaShape) threads() int { return 128 * (1 + s.groups) }   // of a block
func (s wgmmaShape) parts() int   { return s.width / 64 }           // of a row: what the swizzle spans
func (s wgmmaShape) sizeQ() int   { return 2 * s.rows() * s.width } // in bytes
func (s wgmmaShape) sizeK() int   { return 2 * s.keys * s.width }   // of a tile of keys or values

// shared is the bytes of dynamic shared memory: queries, the two rings, two barriers for each of their stages and two for queries.
func (s wgmmaShape) shared() int {
	return s.sizeQ() + 2*s.stages*s.sizeK() + 8*(2+4*s.stages)
}

// A thread that multiplies has half as many scores as there are keys in a tile, half as many registers for their weights, and half as
// many sums as a head is wide.
var wgmmaShapes = []wgmmaShape{{64, 3, 128, 4, 32, 160}, {128, 2, 128, 2, 40, 232}}

// wgmmaSet is the kernels for a type, by shape.
type wgmmaSet struct {
	typ     tensormap.DataType
	kernels []*kit.Kernel
}

// wgmmaSets are by the type of queries, keys and values: each a family.
var wgmmaSets = map[compute.DType]*wgmmaSet{
	compute.Float16: newWgmmaSet("f16", tensormap.F16, func(k *ptx.Kernel, s wgmmaShape) {
		newWgmmaBuilder[ptx.F16x2](k, s).Build()
	}),
	compute.BFloat16: newWgmmaSet("bf16", tensormap.BF16, func(k *ptx.Kernel, s wgmmaShape) {
		newWgmmaBuilder[ptx.BF16x2](k, s).Build()
	}),
}

func newWgmmaSet(name string, typ tensormap.DataType, build func(k *ptx.Kernel, s wgmmaShape)) *wgmmaSet {
	set := &wgmmaSet{typ: typ}
	for _, s := range wgmmaShapes {
		set.kernels = append(set.kernels, kit.Register(kit.Kernel{Family: "attention_wgmma_" + name,
			Name: fmt.Sprintf("attention_wgmma_%s_%d", name, s.width), Block: [3]int{s.threads(), 1, 1}, Shared: s.shared(),
			Doc: "Attention of queries of one head over all keys, by wgmma on tiles that TMA brings. Items are numbered " +
				"tile · heads + head within a section of heads, the last tile first.",
			Params: wgmmaParams{},
			Build:  func(k *ptx.Kernel) { build(k, s) }}))
	}
	return set
}

// wgmmaParams are those of an attention_wgmma.
type wgmmaParams struct {
	attentionSizes
	Items                  int           // tiles of queries in all
	SectionHeads, AllHeads int           // heads of queries of a section, and of all batches
	Section, ByHeads       scalar.Divide // items of a section; heads of a batch
	Scale                  float32
	Y                      kit.Buffer `of:"numbers"`
	LSE                    kit.Buffer // if it is wanted
	MapQ, MapK, MapV       kit.TensorMap
}

// wgmmaSetFor is that for an attention, or nil. Tensor maps want rows at multiples of 16 bytes; soft caps, and lengths that may begin in
// the middle of a ring, are for other kernels, and so are more tiles of queries than [scalar.Divide] numbers.
func wgmmaSetFor(s *kit.Step, c cacheOf) *wgmmaSet {
	t := s.Operands[c.q].DType
	widest := wgmmaShapes[len(wgmmaShapes)-1].width
	if t != s.Operands[c.k].DType || c.D%8 != 0 || c.D > widest || c.lengths > 0 || c.SoftCap > 0 ||
		!s.Caps.Target.Covers(ir.Target{SM: 90, Suffix: "a"}) || wgmmaBlocks(c) > math.MaxInt32 {
		return nil
	}
	return wgmmaSets[t]
}

// wgmmaShapeOf is the number of the shape for heads of such a width.
func wgmmaShapeOf(width int) (i int) {
	for wgmmaShapes[i].width < width {
		i++
	}
	return i
}

// wgmmaBlocks is how many tiles of queries an attention has: of blocks there is work for as many.
func wgmmaBlocks(c cacheOf) int {
	return c.Batch * c.Heads * kit.CeilDiv(c.N, wgmmaShapes[wgmmaShapeOf(c.D)].rows())
}

// attendWgmma is attention by wgmma. Blocks stay where tiles of queries see equally many keys: the next queries come while results are written. The logarithms of sums go to
// lse, if there is such a buffer.
func attendWgmma(s *kit.Step, set *wgmmaSet, c cacheOf, lse kit.Buffer) {
	i := wgmmaShapeOf(c.D)
	shape := wgmmaShapes[i]
	tiles := kit.CeilDiv(c.N, shape.rows())
	heads, section, blocks := c.Batch*c.Heads, 1, s.Caps.Multiprocessors
	if c.Causal {
		// Tiles of queries differ in how many keys they see: there is a block for each, the longest first.
		const cache = 32 << 20 // bytes of keys and values that stay in L2
		section, blocks = max(1, min(heads, cache/(4*c.NK*c.D)*c.Group())), heads*tiles
	}
	wanted := lse != kit.Buffer{}
	if !wanted {
		lse = kit.Out // is not touched
	}
	p := wgmmaParams{attentionSizes: c.sizes(tiles, 1), Items: heads * tiles, SectionHeads: section, AllHeads: heads,
		Section: scalar.Divide(section * tiles), ByHeads: scalar.Divide(c.Heads), Y: kit.Out, LSE: lse}
	p.Direct = int(kit.FlagIf(1, wanted))
	p.Scale, _ = c.scales()
	p.MapQ = set.tensorMap(c, kit.In(c.q), c.Heads, c.N, shape.rows())
	p.MapK = set.tensorMap(c, kit.In(c.k), c.KVHeads, c.NK, shape.keys)
	p.MapV = set.tensorMap(c, kit.In(c.v), c.KVHeads, c.NK, shape.keys)
	s.Launch(set.kernels[i], [3]int{min(blocks, heads*tiles), 1, 1}, p)
}

// tensorMap describes queries, keys or values, of which a tile has so many rows of one head. What is beyond heads and sequences is zeros.
func (set *wgmmaSet) tensorMap(c cacheOf, x kit.Buffer, heads, rows, box int) kit.TensorMap {
	d := tensormap.Map{Type: set.typ, Rank: 4, Swizzle: tensormap.Swizzle128, Promotion: tensormap.L2x256}
	d.Dims = [tensormap.MaxRank]uint64{uint64(c.D), uint64(heads), uint64(rows), uint64(c.Batch)}
	head := uint64(2 * c.D)
	d.Strides = [tensormap.MaxRank - 1]uint64{head, head * uint64(heads), head * uint64(heads) * uint64(rows)}
	d.Box = [tensormap.MaxRank]uint32{64, 1, uint32(box), 1}
	return kit.TensorMap{Buffer: x, Map: d}
}
