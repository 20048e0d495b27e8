package attention

import (
	"fmt"
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/tiling"
	"github.com/wavelane/wavelane/ptx"
	"github.com/wavelane/wavelane/ptx/ir"
)

// Attention on tensor cores as in FlashAttention-2 (Dao, 2023): four warps have rows of queries each, and go over tiles of keys
// together. While products with keys are added up their values are on the way, and while these are weighed the next keys. Weights
// become operands of the second product where they are: the layouts of results and operands agree.
const attendThreads = 128

// attendShape is what a kernel is made for: heads up to a width, by rows of a warp and keys of a tile.
type attendShape struct {
	width, rows, keys int
	held              bool // whether queries stay in registers
}

func (s attendShape) tileRows() int { return s.rows * attendThreads / 32 } // rows
func (s attendShape) pitch() int    { return 2*s.width + 16 }              // bytes from row to row in shared memory
func (s attendShape) shared() int   { return (s.tileRows() + 2*s.keys) * s.pitch() }

// With 32 rows a warp reads half as much of shared memory for each product as with 16; of the widest heads registers have room for
// the results of 16, and of the others for so many keys.
var attendShapes = []attendShape{{64, 32, 64, true}, {128, 32, 48, false}, {256, 16, 64, false}}

// attendSet is the kernels for a type, by shape.
type attendSet struct {
	*tiling.MMAKind
	pack    func(k *ptx.Kernel, lo, hi scalar.Float) ptx.Reg[uint32]
	kernels []*kit.Kernel
}

// attendSets are by the type of queries, keys and values: each a family.
var attendSets = map[compute.DType]*attendSet{
	compute.Float16:  newAttendSet(&tiling.KindF16, packPair[ptx.F16x2]),
	compute.BFloat16: newAttendSet(&tiling.KindBF16, packPair[ptx.BF16x2]),
}

func packPair[T ptx.F16x2 | ptx.BF16x2](k *ptx.Kernel, lo, hi scalar.Float) ptx.Reg[uint32] {
	return ptx.Bitcast[uint32](ptx.ConvertPair[T](lo, hi))
}

func newAttendSet(kind *tiling.MMAKind, pack func(k *ptx.Kernel, lo, hi scalar.Float) ptx.Reg[uint32]) *attendSet {
	set := &attendSet{MMAKind: kind, pack: pack}
	for _, s := range attendShapes {
		set.kernels = append(set.kernels, kit.Register(kit.Kernel{Family: "attention_mma_" + kind.Name,
			Name: fmt.Sprintf("attention_mma_%s_%d", kind.Name, s.width), Block: [3]int{attendThreads, 1, 1}, Shared: s.shared(),
			Doc: "Attention of rows of queries over all keys of one head, by mma.sync on " + kind.Doc + "; rows of q, k and v begin at " +
				"multiples of 16 bytes. Block = (batch · heads of keys + head) · tiles + tile, the last tile first.",
			Params: flashParams{},
			Build:  func(k *ptx.Kernel) { newAttendBuilder(k, set, s).Build() }}))
	}
	return set
}

// attendSetFor is that for an attention, or nil: operands are of 16 bits and one type, and rows begin at multiples of 16 bytes.
func attendSetFor(s *kit.Step, c cacheOf) *attendSet {
	t := s.Operands[c.q].DType
	if t != s.Operands[c.k].DType || c.D%8 != 0 || !s.Caps.Target.Covers(ir.Target{SM: 80}) {
		return nil
	}
	return attendSets[t]
}

// attendMma is attention on tensor cores. The logarithms of sums go to lse, if there is such a buffer.
func attendMma(s *kit.Step, set *attendSet, c cacheOf, lse kit.Buffer) {
	i := 0
	for attendShapes[i].width < c.D {
		i++
	}
	tiles := kit.CeilDiv(c.N*c.Group(), attendShapes[i].tileRows())
	wanted := lse != kit.Buffer{}
	if !wanted {
		lse = kit.Out // is not touched
	}
	p := c.flashParams(tiles, wanted)
	p.Tile = 2 * c.KVHeads * c.D
	p.attentionSizes.Table = int(math.Float32bits(1))
	if p.Cap == 0 {
		p.attentionSizes.Table = int(math.Float32bits(p.Scale))
	}
	p.Q, p.K, p.V, p.Y, p.LSE = kit.In(c.q), kit.In(c.k), kit.In(c.v), kit.Out, lse
	s.Launch(set.kernels[i], [3]int{c.Batch * c.KVHeads * tiles, 1, 1}, p)
}

// flashParams is the parameters that say how much attention by tiles has to do.
func (c cacheOf) flashParams(tiles int, lse bool) flashParams {
	p := flashParams{attentionSizes: c.sizes(tiles, 1), Lengths: kit.In(c.lengths)}
	p.Ring, p.Vector, p.Direct = 1, int(kit.FlagIf(1, c.D%4 == 0)), int(kit.FlagIf(1, lse))
	p.Scale, p.Cap = c.scales()
	return p
}

// scales are what scores are multiplied by before and after tanh. The results are exponents of two.
func (c cacheOf) scales() (scale, softCap float32) {
	if c.SoftCap > 0 {
		return c.Scale / c.SoftCap, c.SoftCap * math.Log2E
	}
	return c.Scale * math.Log2E, 0
}
