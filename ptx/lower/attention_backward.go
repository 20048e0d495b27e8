package lower

import (
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/ptx"
)

var attentionStats = register(Kernel{Family: "attention_backward", Name: "attention_stats", Block: [3]int{flashThreads, 1, 1},
	Doc: "What the gradients of attention need of each query, a warp for each: the logarithm of its sum to base 2, +Inf in place of " +
		"−Inf, and Σdy·y. Parameters: u32 total (queries of all heads), u32 width, u32 counts[] (divisors: n, heads), f32* y, " +
		"f32* dy, f32* lse, f32* stats.",
	build: func(k *ptx.Kernel) {
		total, width := ptx.Param[uint32](k, "total"), ptx.Param[uint32](k, "width")
		counts := ptx.ParamArray[uint32](k, "counts", 2*divisorWords)
		y, dy := ptx.PointerParam[float32](k, "y"), ptx.PointerParam[float32](k, "dy")
		lse, stats := ptx.PointerParam[float32](k, "lse"), ptx.PointerParam[float32](k, "stats", ptx.Align(8))
		c := calc{k}
		lane := ptx.And(k, k.Tid(ptx.X), u32(31))
		query := ptx.Mad(k, k.Ctaid(ptx.X), u32(flashThreads/32), ptx.Shr(k, k.Tid(ptx.X), u32(5))) // in order of lse
		k.ReturnIf(ptx.Ge(k, query, total))                                                         // whole warps
		n, heads := divisorAt(k, counts, 0), divisorAt(k, counts, divisorWords)
		rest, i := n.split(k, query)
		batch, head := heads.split(k, rest)
		row := ptx.Mad(k, ptx.Mad(k, batch, n.d, i), heads.d, head)
		at := ptx.MadWideU32(k, row, width, ptx.Convert[uint64](k, lane))
		y, dy = ptx.At(k, y, at), ptx.At(k, dy, at)
		sum := ptx.VarOf(k, num(0))
		ptx.For(k, lane, width, u32(32), func(e ptx.Reg[uint32]) {
			at := ptx.Sub(k, e, lane)
			sum.Set(c.fma(ptx.Load(k, ptx.At(k, y, at)), ptx.Load(k, ptx.At(k, dy, at)), sum.Get()))
		}, ptx.NoUnroll())
		for d := 16; d > 0; d /= 2 {
			sum.Set(c.add(sum.Get(), ptx.Shuffle(k, ptx.ShuffleXor, sum.Get(), u32(d), 32, ptx.FullWarp())))
		}
		k.If(ptx.Eq(k, lane, u32(0)), func() {
			log := ptx.Load(k, ptx.At(k, lse, query))
			log = c.where(ptx.Eq(k, log, num(math.Inf(-1))), num(math.Inf(1)), c.mul(log, num(math.Log2E)))
			ptx.Store2(k, ptx.At(k, stats, ptx.MulWideU32(k, query, u32(2))), [2]float{log, sum.Get()})
		})
	}})

func attentionBackward(s *step) error {
	d, err := catalogue.AttentionShape(s.in[0].Shape, s.in[1].Shape, s.in[2].Shape, s.Attr.Options.(compute.AttentionOptions))
	if err != nil {
		return err
	}
	if d.NK == 0 || d.N == 0 || d.Heads == 0 { // nobody sees anything
		for i, t := range s.outs {
			s.fillWords(resultAt(i), 0, t.Len())
		}
		return nil
	}
	lengths, queries := operand(0), d.Batch*d.Heads*d.N
	if len(s.in) > 6 {
		lengths = operand(6)
	}
	stats := s.scratch(8 * queries)
	counts := append(divisorOf(d.N), divisorOf(d.Heads)...)
	s.launch(attentionStats, [3]int{ceilDiv(queries, flashThreads/32), 1, 1}, queries, d.D, counts, operand(3), operand(5), operand(4), stats)
	scale, bend := d.Scale, d.SoftCap
	if bend > 0 {
		scale /= bend
		bend *= math.Log2E
	} else {
		scale *= math.Log2E
	}
	flag := func(b bool) int {
		if b {
			return 1
		}
		return 0
	}
	rows := d.N * d.Group()
	for _, shapes := range [][]backwardShape{backwardQueries, backwardKeys} {
		shape := shapes[0]
		for i := 1; shape.width < d.D; i++ {
			shape = shapes[i]
		}
		tiles := ceilDiv(rows, shape.rows)
		if shape.keys {
			tiles = ceilDiv(d.NK, shape.rows)
		}
		sizes := words(d.N, d.Heads, d.D, d.NK, rows, flag(d.Causal), d.Window, flag(len(s.in) > 6), 1, flag(d.D%4 == 0), 0, 0, 0, 0, 0, 0)
		for _, n := range []int{tiles, 1, d.KVHeads, d.Group(), 1} {
			sizes = append(sizes, divisorOf(n)...)
		}
		arguments := []any{sizes, scale, bend, d.Scale, operand(0), operand(1), operand(2), operand(5), stats, lengths}
		if shape.keys {
			arguments = append(arguments, resultAt(1), resultAt(2))
		} else {
			arguments = append(arguments, result)
		}
		s.launch(backwardKernels[shape], [3]int{d.Batch * d.KVHeads * tiles, 1, 1}, arguments...)
	}
	return nil
}
