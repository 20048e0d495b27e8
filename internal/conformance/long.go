package conformance

import (
	"fmt"
	"slices"
	"testing"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// longByName has cases of which one dimension is beyond 65,535 or a million, for entries whose kernels have loops over it. Mesa's
// software driver ends the loops of an invocation after 65,535 iterations, all together, without an error.
var longByName = map[*program.Entry]func(b *builder){
	catalogue.MatMul: func(b *builder) {
		for _, o := range []compute.MatMulOptions{{}, {TransA: true}, {TransB: true}, {TransA: true, TransB: true}} {
			for _, s := range [][3]int{{2, 1_000_003, 3}, {33, 70_001, 35}, {1, 70_001, 40}, {40, 70_001, 1}} {
				b.integers(program.Attr{Options: o}, matmulShapes(s, o, nil, nil)...)
			}
		}
	},
	catalogue.MatVec: func(b *builder) {
		for _, k := range []int{70_001, 1_000_003} {
			b.integers(program.Attr{}, []int{3, k}, []int{k})
		}
	},
	catalogue.VecMat: func(b *builder) {
		for _, k := range []int{70_001, 1_000_003} {
			b.integers(program.Attr{}, []int{k}, []int{k, 3})
		}
	},
	catalogue.Conv2D: func(b *builder) {
		o := program.Attr{Options: compute.Conv2DOptions{}}
		b.integers(o, []int{1, 70_001, 2, 2}, []int{2, 70_001, 1, 1})
		b.integers(o, []int{1, 1_000_003, 1, 1}, []int{1, 1_000_003, 1, 1})
		b.integers(o, []int{1, 1, 301, 303}, []int{1, 1, 300, 300})
		b.integers(o, []int{1, 1, 70_005, 1}, []int{1, 1, 70_001, 1})
		b.integers(o, []int{1, 1, 2, 59_005}, []int{1, 1, 2, 59_000})
	},
	catalogue.Conv1D: func(b *builder) {
		b.integers(program.Attr{Options: compute.Conv1DOptions{}}, []int{1, 70_001, 3}, []int{2, 70_001, 2})
		b.integers(program.Attr{Options: compute.Conv1DOptions{}}, []int{1, 2, 59_010}, []int{1, 2, 59_000})
	},
	catalogue.MaxPool2D: longPool, catalogue.AvgPool2D: longPool,
	catalogue.MatMulExperts: func(b *builder) {
		b.experts("", compute.ExpertOptions{}, 2, []int{2}, false, 3, 70_001)
		b.experts("", compute.ExpertOptions{}, 2, []int{2, 2}, true, 70_001, 3)
	},
	catalogue.TopK: func(b *builder) {
		b.random("", program.Attr{Options: compute.TopKOptions{K: 7}}, []int{1_000_003})
		b.random("", program.Attr{Options: compute.TopKOptions{K: 1024}}, []int{2, 70_001})
		b.random("", program.Attr{Options: compute.TopKOptions{K: 1}}, []int{70_001, 5})
	},
	catalogue.CumSum: func(b *builder) {
		b.integers(program.Attr{Options: compute.CumSumOptions{}}, []int{70_001, 2})
		b.integers(program.Attr{Options: compute.CumSumOptions{}}, []int{2, 1_000_003})
	},
	catalogue.CrossEntropy: longScores, catalogue.CrossEntropyBackward: longScores,
	catalogue.Attention: longAttention, catalogue.AttentionLSE: longAttention,
	catalogue.AttentionBackward: func(b *builder) {
		for _, s := range []attentionSizes{{1, 17, 70_001, 1, 1, 4}, {1, 70_001, 17, 1, 1, 3}, {1, 1, 1_000_003, 1, 1, 1}, {1, 300_001, 1, 2, 1, 4}, {1, 3, 12_001, 1, 1, 256}} {
			b.attendBack("", s, compute.AttentionOptions{})
		}
	},
	catalogue.PagedAttention: func(b *builder) {
		b.paged("", pagedSizes{1, 2, 1, 16, 16, 4400}, compute.AttentionOptions{}, attentionTypes{}, 70_001)
		b.paged("", pagedSizes{1, 280, 280, 1, 1000, 21}, compute.AttentionOptions{}, attentionTypes{}, 20_990)
	},
	catalogue.Rope: func(b *builder) {
		for _, n := range []int{70_001, 1_000_003} {
			b.rope("", compute.RopeOptions{}, 1000, false, 2, n, 2)
			b.rope("", compute.RopeOptions{Precise: true}, 1000, false, 2, n, 2)
		}
	},
	catalogue.Sum: longRows, catalogue.SumSquares: longRows, catalogue.Mean: longRows, catalogue.NormL1: longRows, catalogue.NormL2: longRows,
	catalogue.Max: longRows, catalogue.Min: longRows, catalogue.NormLInf: longRows, catalogue.ArgMax: longRows, catalogue.ArgMin: longRows,
	catalogue.Inspect: longRows, catalogue.DotProduct: longRows, catalogue.Softmax: longRows, catalogue.LogSoftmax: longRows,
	catalogue.L2Normalize: longRows, catalogue.RMSNorm: longNorms(1, 1), catalogue.LayerNorm: longNorms(1, 2),
	catalogue.ScatterAdd: longUpdates, catalogue.EmbeddingBackward: longUpdates,
	catalogue.RandomUniform: longRandom, catalogue.RandomNormal: longRandom,
	catalogue.Adam: func(b *builder) {
		for _, n := range []int{70_001, 1_000_003} {
			b.optimised("", compute.AdamOptions{}, 0, n)
		}
	},
	catalogue.RMSNormBackward: longNorms(1, 1), catalogue.LayerNormBackward: longNorms(1, 2),
	catalogue.GatedRMSNorm: longNorms(2, 1), catalogue.AddRMSNorm: longNorms(2, 1), catalogue.AddLayerNorm: longNorms(2, 2),
	catalogue.SoftmaxBackward: func(b *builder) {
		b.random("", program.Attr{}, []int{2, 1_000_003}, []int{2, 1_000_003})
		b.random("", program.Attr{}, []int{70_001, 3}, []int{70_001, 3})
	},
	catalogue.RMSNormMatVec: func(b *builder) {
		b.fused("", compute.Float32, false, 1, 70_004, 3)
		b.fused("", compute.Float32, false, 2, 1_000_004, 3)
		b.fused("", compute.Float16, false, 2, 1_000_001, 3)
	},
	catalogue.QKV:                 func(b *builder) { b.fused("", compute.Float32, true, 1, 1_000_004, 2, 3, 1) },
	catalogue.GateUpSwiGLU:        func(b *builder) { b.fused("", compute.Float32, false, 1, 1_000_004, 2, 2) },
	catalogue.QuantMatMulRowMajor: longQuantised(3), catalogue.QuantMatMulColMajor: longQuantised(256),
}

func longRows(b *builder) {
	a := attrs(b.Entry, nil)[0]
	if a.Options = b.Options; b.Class == program.Reduce {
		a.Options = compute.LastAxis
	}
	for _, s := range [][]int{{2, 70_001}, {2, 1_000_003}} {
		b.random("", a, slices.Repeat([][]int{s}, len(b.Inputs))...)
	}
}

func longUpdates(b *builder) {
	for _, n := range []int{70_001, 1_000_003} {
		b.updates(fmt.Sprint(n, " of one row"), n, 1, 3, func(*source) int { return 1 })
		b.updates(fmt.Sprint(n, " of one row"), n, 4, 3, func(*source) int { return 1 })
	}
}

func longRandom(b *builder) {
	for _, n := range []int{70_001, 1_000_003} {
		b.seeded("", 1, n)
	}
}

func longQuantised(n int) func(b *builder) {
	return func(b *builder) {
		for _, f := range []compute.BlockFormat{compute.Q4_K, compute.Q8_0} {
			b.quantised("", compute.QuantOptions{Format: f}, 1, 256*400, n)
			b.quantised("", compute.QuantOptions{Format: f}, 9, 256*300, n)
		}
	}
}

func longPool(b *builder) {
	for _, s := range [][4]int{{300, 301, 302, 303}, {1000, 1001, 1000, 1001}, {20_000, 1, 20_003, 2}, {1, 20_000, 2, 20_003}} {
		b.random("", program.Attr{Options: compute.PoolOptions{Size: [2]int{s[0], s[1]}, Stride: [2]int{1, 1}}}, []int{s[2], s[3]})
	}
}

func longScores(b *builder) {
	b.scores("", compute.CrossEntropyOptions{}, 2, 1_000_003)
	b.scores("", compute.CrossEntropyOptions{}, 70_001, 3)
}

func longAttention(b *builder) {
	for _, s := range []attentionSizes{
		{1, 17, 70_001, 1, 1, 4}, {1, 2, 1_000_003, 1, 1, 2}, {1, 17, 12_001, 1, 1, 256}, {1, 1, 20_001, 300, 300, 1},
	} {
		b.attend("", s, compute.AttentionOptions{}, attentionTypes{})
	}
}

func longNorms(matrices, vectors int) func(b *builder) {
	return func(b *builder) {
		for _, s := range [][]int{{70_001, 3}, {1_000_003, 2}, {2, 1_000_003}} {
			b.norm("", attrs(b.Entry, nil)[0], matrices, vectors, nil, s...)
		}
	}
}

// RunLong runs one in n of the long cases, other ones by each seed.
func RunLong(t *testing.T, name string, n int, dev program.Executor) {
	if testing.Short() {
		t.Logf("conformance: testing.Short leaves out the long cases on %s", name)
		return
	}
	d := newDevice(name, dev)
	t.Cleanup(func() { d.log(t) })
	for _, e := range catalogue.All() {
		if cases := longCases(e); len(cases) > 0 {
			t.Run(e.Name, func(t *testing.T) { d.cases(t, sample(cases, n)) })
		}
	}
}

// longCases returns the long cases of an entry, none if its kernels have no loops that are as long as data.
func longCases(e *program.Entry) []*testCase {
	fill := longByName[e]
	if fill == nil {
		return nil
	}
	b := &builder{Entry: e}
	fill(b)
	for i, c := range b.cases {
		c.number = 20000 + i // other random numbers than the other cases
	}
	return b.cases
}
