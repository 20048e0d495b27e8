package attention

import (
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/threadgroup"
	"github.com/wavelane/wavelane/ptx"
)

// statsParams are those of attention_stats.
type statsParams struct {
	Total, Width      int           // queries of all heads
	N, Heads          scalar.Divide `array:"counts"`
	Y, DY, LSE, Stats kit.Buffer
}

var attentionStats = kit.Define(kit.Kernel{Family: "attention_backward", Name: "attention_stats", Block: [3]int{flashThreads, 1, 1},
	Doc: "What the gradients of attention need of each query, a warp for each: the logarithm of its sum to base 2, +Inf in place of " +
		"−Inf, and Σdy·y."},
	func(k *ptx.Kernel, p *kit.Params, of *statsParams) {
		total, width := p.U32(&of.Total), p.U32(&of.Width)
		y, dy := kit.Ptr[float32](p, &of.Y), kit.Ptr[float32](p, &of.DY)
		lse, stats := kit.Ptr[float32](p, &of.LSE), kit.Ptr[float32](p, &of.Stats, ptx.Align(8))
		c := scalar.Math{K: k}
		lane := k.Tid(ptx.X).And(31)
		query := k.Ctaid(ptx.X).Mad(flashThreads/32, k.Tid(ptx.X).Shr(5)) // in order of lse
		k.ReturnIf(query.Ge(total))                                       // whole warps
		n, heads := p.Divisor(&of.N), p.Divisor(&of.Heads)
		rest, i := n.Split(k, query)
		batch, head := heads.Split(k, rest)
		row := batch.Mad(n.D, i).Mad(heads.D, head)
		at := row.MadWide(width, ptx.Convert[uint64](lane))
		y, dy = y.At(at), dy.At(at)
		sum := ptx.VarOf(k, ptx.F32(0))
		ptx.For(k, lane, width, 32, func(e ptx.Reg[uint32]) {
			at := e.Sub(lane)
			sum.Set(y.At(at).Load().Fma(dy.At(at).Load(), sum.Get()))
		}, ptx.NoUnroll())
		all := threadgroup.WarpReduce(sum.Get(), 32, threadgroup.Plus)
		k.If(lane.Eq(0), func() {
			log := lse.At(query).Load()
			log = c.Where(log.Eq(math.Inf(-1)), ptx.F32(math.Inf(1)), log.Mul(math.Log2E))
			stats.At(query.MulWide(2)).Store2([2]scalar.Float{log, all})
		})
	})

// Backward lowers the gradients of attention: statistics of each query, then dq by tiles of queries, then dk and dv by tiles of keys.
func Backward(s *kit.Step) error {
	d, err := catalogue.AttentionShape(s.Operands[0].Shape, s.Operands[1].Shape, s.Operands[2].Shape, s.Attr.Options.(compute.AttentionOptions))
	if err != nil {
		return err
	}
	if d.NK == 0 || d.N == 0 || d.Heads == 0 { // no query sees a key
		for i, t := range s.Results {
			s.Fill(kit.OutAt(i), 0, t.Len())
		}
		return nil
	}
	c, queries := cacheOf{AttentionDims: d}, d.Batch*d.Heads*d.N
	if len(s.Operands) > 6 {
		c.lengths = 6
	}
	stats := s.NewScratch(8 * queries)
	s.Launch(attentionStats, [3]int{kit.CeilDiv(queries, flashThreads/32), 1, 1}, statsParams{queries, d.D, scalar.Divide(d.N), scalar.Divide(d.Heads),
		kit.In(3), kit.In(5), kit.In(4), stats})
	for _, shapes := range [][]backwardShape{backwardQueries, backwardKeys} {
		shape := shapes[0]
		for i := 1; shape.width < d.D; i++ {
			shape = shapes[i]
		}
		tiles := kit.CeilDiv(d.N*d.Group(), shape.rows)
		if shape.keys {
			tiles = kit.CeilDiv(d.NK, shape.rows)
		}
		f := c.flashParams(tiles, false)
		p := backwardParams{attentionSizes: f.attentionSizes, Scale: f.Scale, Cap: f.Cap, Gain: d.Scale, Q: kit.In(0), K: kit.In(1), V: kit.In(2),
			DY: kit.In(5), Stats: stats, Lengths: f.Lengths}
		if shape.keys {
			p.OfKeys = []kit.Buffer{kit.OutAt(1), kit.OutAt(2)}
		} else {
			p.OfQueries = []kit.Buffer{kit.Out}
		}
		s.Launch(backwardKernels[shape], [3]int{d.Batch * d.KVHeads * tiles, 1, 1}, p)
	}
	return nil
}
