package gemm

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/tiling"
)

// MatMul lowers what the catalogue calls a product.
func MatMul(s *kit.Step) error {
	p, err := catalogue.ProductOf(s.Entry, s.Operands, s.Attr)
	if err != nil {
		return err
	}
	m := Problem{Step: s, MatMulDims: p.MatMulDims, transA: p.TransA, transB: p.TransB, A: kit.In(p.A), B: kit.In(p.B), C: kit.Out,
		typeA: s.Operands[p.A].DType, typeB: s.Operands[p.B].DType, typeC: s.Result.DType, precision: p.Precision, Act: kit.ActivationCode(s.Attr)}
	if len(s.Operands) == 3 {
		m.Bias, m.BiasOf = kit.In(2), tiling.BiasOfColumns
	}
	return m.Lower()
}

// Problem lowers a batch of products; conv2d with filters of 1×1 comes here too.
type Problem struct {
	*kit.Step
	catalogue.MatMulDims
	transA, transB      bool
	A, B, Bias, C       kit.Buffer
	typeA, typeB, typeC compute.DType
	precision           compute.Precision
	BiasOf              uint32 // biasOfColumns, biasOfRows, or 0 for none: the buffer is then never read
	Act                 uint32
	tail                *kit.Epilogue
}

// variant is one way to compute a problem. Variants are named so that tests and the autotuner can ask for each.
type variant struct {
	name string
	cut  tiling.Schedule
	emit func(m *Problem, c, parts kit.Buffer, cut tiling.Schedule) // writes c, and what is cut up to parts
	asIs bool                                                       // writes results of any type; others write float32
}

const (
	// Up to so many multiplications in a product, small is the default: tiles would be mostly empty.
	smallWork = 1 << 12
	smallMost = 1 << 24 // multiplications from which small is no candidate
)

// Lower launches the variant that the step chooses, and what joins its parts and converts its result.
func (m *Problem) Lower() error {
	var err error
	if m.tail, err = m.Step.Epilogue(m.Batch, m.M, m.N); err != nil {
		return err
	}
	vs := m.variants()
	names := make([]string, len(vs))
	for i, v := range vs {
		names[i] = v.name
	}
	v := vs[m.Choose("matmul", m.problem(), names)]
	c, parts := m.C, m.C
	if v.cut.Parts > 1 {
		parts = m.NewScratch(4 * v.cut.Parts * v.cut.Elements)
	} else if m.typeC != compute.Float32 && !v.asIs {
		c = m.NewScratch(4 * m.Result.Len())
	}
	v.emit(m, c, parts, v.cut)
	if v.cut.Parts > 1 {
		tiling.AddPartials(m.Step, v.cut, m.BiasOf|m.resultFlags(), m.Act, m.tail, parts, m.Bias, c)
	}
	if c != m.C {
		m.Cast(c, compute.Float32, m.C, m.typeC, m.Result.Len())
	}
	return nil
}

// problem names the choice of a variant: sizes, and what else changes code.
func (m *Problem) problem() string {
	layout := map[bool]string{false: "n", true: "t"}
	types := ""
	if m.typeA != compute.Float32 || m.typeB != compute.Float32 || m.typeC != compute.Float32 {
		types = fmt.Sprintf(" %v*%v=%v", m.typeA, m.typeB, m.typeC)
	}
	if m.precision != compute.FullPrecision {
		types += fmt.Sprintf(" precision %d", m.precision)
	}
	return fmt.Sprintf("%d*%dx%dx%d%s%s%s", m.Batch, m.M, m.K, m.N, layout[m.transA], layout[m.transB], types)
}

// variants lists what can compute this problem, the default first.
func (m *Problem) variants() []variant {
	preferred, others := m.newer()
	add := func(good bool, name string, blocks int, emit func(m *Problem, splits int, c kit.Buffer)) {
		vs := m.withSplits(name, blocks, emit)
		if good {
			preferred = append(preferred, vs...)
		} else {
			others = append(others, vs...)
		}
	}
	small := m.K <= tiling.LongestChain && m.M*m.N*m.K <= smallWork
	thin, isThin := m.thin()
	if isThin {
		// In columns, few rows leave most of a warp idle.
		add(!small || thin.kMajor, thin.name(), thin.blocks(m), func(m *Problem, splits int, c kit.Buffer) {
			thin.emit(m, splits, c)
		})
	}
	if m.K <= tiling.LongestChain && m.M*m.N*m.K <= smallMost {
		v := variant{name: "small", emit: func(m *Problem, c, _ kit.Buffer, _ tiling.Schedule) { m.emitSmall(c) }}
		if small {
			preferred = append(preferred, v)
		} else {
			others = append(others, v)
		}
	}
	for i, t := range gemms {
		blocks := t.Blocks(m.M, m.N, m.Batch)
		good := i == len(gemms)-1 || blocks >= m.Caps.Multiprocessors
		add(good, fmt.Sprintf("tile%dx%d", t.M, t.N), blocks, func(m *Problem, splits int, c kit.Buffer) { m.emitTiled(t, splits, c) })
	}
	return append(preferred, others...)
}

// withSplits is a variant of so many blocks and, before it, the same with the depth cut up, where that fills the GPU better. emit
// writes results of float32, as many as there are splits.
func (m *Problem) withSplits(name string, blocks int, emit func(m *Problem, splits int, c kit.Buffer)) (vs []variant) {
	if n := tiling.Splits(m.Step.Caps.Multiprocessors, blocks, m.K, m.Batch*m.M*m.N); n > 1 {
		c := tiling.UniformSplit(n, m.Batch, m.M, m.N)
		vs = append(vs, variant{name: name + c.Name, cut: c, emit: func(m *Problem, _, parts kit.Buffer, c tiling.Schedule) {
			bare := *m
			bare.BiasOf, bare.Act, bare.tail, bare.typeC = 0, 0, nil, compute.Float32
			emit(&bare, c.Parts, parts)
		}})
	}
	return append(vs, variant{name: name, emit: func(m *Problem, c, _ kit.Buffer, _ tiling.Schedule) { emit(m, 1, c) }})
}

func (m *Problem) emitTiled(t tiling.Tiled, splits int, c kit.Buffer) {
	lda, ldb := m.rowLengths()
	sizes, grid := t.Sizes(m.M, m.N, m.K, tiling.DepthOf(m.K, splits), m.Batch)
	sizes.LDA, sizes.LDB, sizes.Act = lda, ldb, int(m.Act)
	sizes.Flags = int(m.BiasOf | kit.FlagIf(tiling.KMajorA, !m.transA) | kit.FlagIf(tiling.KMajorB, m.transB) | kit.FlagIf(tiling.VectorA, lda%4 == 0) |
		kit.FlagIf(tiling.VectorB, ldb%4 == 0) | kit.FlagIf(tiling.VectorC, m.N%4 == 0))
	m.LaunchEpilogue(m.tail, false, t.Kernel, grid, gemmParams{GemmSizes: sizes, StrideA: uint64(m.StrideA), StrideB: uint64(m.StrideB),
		A: m.InFloat32(m.A), B: m.InFloat32(m.B), Bias: m.Bias, C: c})
}

func (m *Problem) emitSmall(c kit.Buffer) {
	am, ak, bk, bn := m.K, 1, m.N, 1
	if m.transA {
		am, ak = 1, m.M
	}
	if m.transB {
		bk, bn = 1, m.K
	}
	total := m.Batch * m.M * m.N
	m.LaunchEpilogue(m.tail, false, matmulSmall, [3]int{kit.CeilDiv(total, tiling.PartThreads), 1, 1}, smallParams{
		Total: total, K: m.K, AM: am, AK: ak, BK: bk, BN: bn, Flags: int(m.BiasOf), Act: int(m.Act), M: scalar.Divide(m.M), N: scalar.Divide(m.N),
		StrideA: uint64(m.StrideA), StrideB: uint64(m.StrideB), A: m.InFloat32(m.A), B: m.InFloat32(m.B), Bias: m.Bias, C: c})
}
