package lower

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
)

// matmulStep lowers what the catalogue calls a product.
func matmulStep(s *step) error {
	p, err := catalogue.ProductOf(s.Entry, s.in, s.Attr)
	if err != nil {
		return err
	}
	m := matmul{step: s, MatMulDims: p.MatMulDims, transA: p.TransA, transB: p.TransB, a: operand(p.A), b: operand(p.B), c: result,
		typeA: s.in[p.A].DType, typeB: s.in[p.B].DType, typeC: s.out.DType, precision: p.Precision, act: activationCode(s.Attr)}
	if len(s.in) == 3 {
		m.bias, m.biasOf = operand(2), biasOfColumns
	}
	return m.lower()
}

// matmul lowers a batch of products; conv2d with filters of 1×1 comes here too.
type matmul struct {
	*step
	catalogue.MatMulDims
	transA, transB      bool
	a, b, bias, c       Buffer
	typeA, typeB, typeC compute.DType
	precision           compute.Precision
	biasOf              uint32 // biasOfColumns, biasOfRows, or 0 for none: the buffer is then never read
	act                 uint32
	tail                *tail
}

// variant is one way to compute a problem. Variants are named so that tests and the autotuner can ask for each.
type variant struct {
	name string
	cut  cut
	emit func(m *matmul, c, parts Buffer, cut cut) // writes c, and what is cut up to parts
	asIs bool                                      // writes results of any type; others write float32
}

const (
	// Up to so many multiplications in a product, small is the default: tiles would be mostly empty.
	smallWork = 1 << 12
	smallMost = 1 << 24 // multiplications from which small is no candidate
)

func (m *matmul) lower() error {
	var err error
	if m.tail, err = m.step.tail(m.Batch, m.M, m.N); err != nil {
		return err
	}
	vs := m.variants()
	names := make([]string, len(vs))
	for i, v := range vs {
		names[i] = v.name
	}
	v := vs[m.choose("matmul", m.problem(), names)]
	c, parts := m.c, m.c
	if v.cut.parts > 1 {
		parts = m.scratch(4 * v.cut.parts * v.cut.elements)
	} else if m.typeC != compute.Float32 && !v.asIs {
		c = m.scratch(4 * m.out.Len())
	}
	v.emit(m, c, parts, v.cut)
	if v.cut.parts > 1 {
		addUp(m.step, v.cut, m.biasOf|m.resultFlags(), m.act, m.tail, parts, m.bias, c)
	}
	if c != m.c {
		m.cast(c, compute.Float32, m.c, m.typeC, m.out.Len())
	}
	return nil
}

// problem names the choice of a variant: sizes, and what else changes code.
func (m *matmul) problem() string {
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
func (m *matmul) variants() []variant {
	preferred, others := m.newer()
	add := func(good bool, name string, blocks int, emit func(m *matmul, splits int, c Buffer)) {
		vs := m.withSplits(name, blocks, emit)
		if good {
			preferred = append(preferred, vs...)
		} else {
			others = append(others, vs...)
		}
	}
	small := m.K <= longestChain && m.M*m.N*m.K <= smallWork
	thin, isThin := m.thin()
	if isThin {
		// In columns, few rows leave most of a warp idle.
		add(!small || thin.along, thin.name(), thin.blocks(m), func(m *matmul, splits int, c Buffer) {
			thin.emit(m, splits, c)
		})
	}
	if m.K <= longestChain && m.M*m.N*m.K <= smallMost {
		v := variant{name: "small", emit: func(m *matmul, c, _ Buffer, _ cut) { m.emitSmall(c) }}
		if small {
			preferred = append(preferred, v)
		} else {
			others = append(others, v)
		}
	}
	for i, t := range gemms {
		blocks := m.Batch * ceilDiv(m.M, t.m) * ceilDiv(m.N, t.n)
		good := i == len(gemms)-1 || blocks >= m.caps.Multiprocessors
		add(good, fmt.Sprintf("tile%dx%d", t.m, t.n), blocks, func(m *matmul, splits int, c Buffer) { m.emitTiled(t, splits, c) })
	}
	return append(preferred, others...)
}

// withSplits is a variant of so many blocks and, before it, the same with the depth cut up, where that fills the GPU better. emit
// writes results of float32, as many as there are splits.
func (m *matmul) withSplits(name string, blocks int, emit func(m *matmul, splits int, c Buffer)) (vs []variant) {
	if n := splitsOf(m.step.caps.Multiprocessors, blocks, m.K, m.Batch*m.M*m.N); n > 1 {
		c := uniform(n, m.Batch, m.M, m.N)
		vs = append(vs, variant{name: name + c.name, cut: c, emit: func(m *matmul, _, parts Buffer, c cut) {
			bare := *m
			bare.biasOf, bare.act, bare.tail, bare.typeC = 0, 0, nil, compute.Float32
			emit(&bare, c.parts, parts)
		}})
	}
	return append(vs, variant{name: name, emit: func(m *matmul, c, _ Buffer, _ cut) { emit(m, 1, c) }})
}

func (m *matmul) emitTiled(t tiled, splits int, c Buffer) {
	lda, ldb := m.rowLengths()
	across := ceilDiv(m.N, t.n)
	tiles := across * ceilDiv(m.M, t.m)
	flags := m.biasOf | flagIf(alongA, !m.transA) | flagIf(alongB, m.transB) | flagIf(vectorA, lda%4 == 0) |
		flagIf(vectorB, ldb%4 == 0) | flagIf(vectorC, m.N%4 == 0)
	sizes := []uint32{uint32(m.M), uint32(m.N), uint32(m.K), uint32(depthOf(m.K, splits)), uint32(lda), uint32(ldb), flags, m.act}
	for _, d := range []int{across, tiles, m.Batch} {
		sizes = append(sizes, divisorOf(d)...)
	}
	m.launchTail(m.tail, false, t.Kernel, [3]int{tiles * m.Batch * splits, 1, 1}, sizes, uint64(m.StrideA), uint64(m.StrideB), m.inFloat32(m.a),
		m.inFloat32(m.b), m.bias, c)
}

func (m *matmul) emitSmall(c Buffer) {
	am, ak, bk, bn := m.K, 1, m.N, 1
	if m.transA {
		am, ak = 1, m.M
	}
	if m.transB {
		bk, bn = 1, m.K
	}
	total := m.Batch * m.M * m.N
	sizes := []uint32{uint32(total), uint32(m.K), uint32(am), uint32(ak), uint32(bk), uint32(bn), m.biasOf, m.act}
	sizes = append(append(sizes, divisorOf(m.M)...), divisorOf(m.N)...)
	m.launchTail(m.tail, false, matmulSmall, [3]int{ceilDiv(total, partThreads), 1, 1}, sizes, uint64(m.StrideA), uint64(m.StrideB), m.inFloat32(m.a),
		m.inFloat32(m.b), m.bias, c)
}
