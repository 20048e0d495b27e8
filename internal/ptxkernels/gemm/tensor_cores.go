package gemm

import (
	"fmt"
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/tiling"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/tensormap"
)

// newer lists the variants of this problem that need more than the oldest GPU: those to be preferred, and the others. Operands of 16
// bits always go to tensor cores, which take them as they are; float32 does so if its precision permits.
func (m *Problem) newer() (preferred, others []variant) {
	if !m.Caps.Target.Covers(ir.Target{SM: 80}) || m.K == 0 { // pipelines have nothing to fill themselves with
		return nil, nil
	}
	// Products with few vectors read a matrix once: that is what other kernels are for.
	found := min(m.M, m.N) <= FewVectors // a good one, or none is wanted
	add := func(blocks, enough int, vs []variant) {
		if !found && blocks >= enough {
			preferred, found = append(preferred, vs...), true
		} else {
			others = append(others, vs...)
		}
	}
	addCuts := func(name string, t tiling.Grid, resident, enough int, gain float64, emit func(m *Problem, c, parts kit.Buffer, cut tiling.Schedule)) {
		var vs []variant
		for _, c := range t.Schedules(m.Caps.Multiprocessors, m.K, resident, gain) {
			vs = append(vs, variant{name: name + c.Name, cut: c, emit: emit, asIs: true})
		}
		add(t.Batch*t.Tiles(), enough, vs)
	}
	if set := m.wgmmaSet(); set != nil {
		for i, t := range set.tiles {
			// Few blocks do with great depths cut up, unless most of the tile would be empty. (1024 × 1024 × 1024 halves on an H100, in
			// µs: 16 to 17 by wgmma_128x256, cut up or not, 9.0 by wgmma_128x128, 6.8 by wgmma_128x64, 11 by mma_64x64.)
			enough := m.Caps.Multiprocessors
			if i > 0 {
				enough = kit.CeilDiv(3*enough, 4)
			}
			if m.M > wgmmaM/2 && m.N > t.n/2 && m.K >= 16*tiling.SplitDepth {
				enough = kit.CeilDiv(enough, 8)
			}
			if m.preparesA(set) && m.N < preparedOften || m.preparesB(set) && m.M < preparedOften {
				enough = math.MaxInt
			}
			addCuts(fmt.Sprintf("wgmma_%dx%d", wgmmaM, t.n), tiling.GridOf(m.MatMulDims, wgmmaM, t.n, wgmmaGroup), 1, enough, wgmmaGain,
				func(m *Problem, c, parts kit.Buffer, cut tiling.Schedule) { m.emitWgmma(set, i, c, parts, cut) })
		}
	}
	if set := m.mmaSet(); set != nil {
		for i, t := range mmaTiles {
			enough := m.Caps.Multiprocessors
			switch {
			case set.Size == 4 && m.M*m.N*m.K <= smallWork: // others begin sooner
				enough = math.MaxInt
			case i == len(mmaTiles)-1:
				enough = 0
			}
			addCuts(t.name(), tiling.GridOf(m.MatMulDims, t.m, t.n, 1), t.resident(), enough, 1,
				func(m *Problem, c, parts kit.Buffer, cut tiling.Schedule) { m.emitMma(set, i, c, parts, cut) })
		}
	}
	if m.asyncFits() {
		enough := m.Caps.Multiprocessors
		if m.mmaSet() != nil {
			enough = math.MaxInt
		}
		blocks := tiling.Tiled{Shape: AsyncTile}.Blocks(m.M, m.N, m.Batch)
		add(blocks, enough, m.withSplits("async", blocks, func(m *Problem, splits int, c kit.Buffer) { m.emitAsync(splits, c) }))
	}
	return preferred, others
}

// wgmmaGain is how much longer than by the model wgmma may take where depths are cut up: blocks are at different depths then, and do not
// find in L2 what their neighbours read. (4096³ on an H100, in µs: of halves 310 instead of 196, of TF32 758 instead of 389.)
const wgmmaGain = 1.5

// preparedOften is how often elements have to be multiplied for it to be worth transposing them first, or cutting them in two.
const preparedOften = 512

// preparesA tells whether a has to be transposed for wgmma, or cut in two, preparesB so for b.
func (m *Problem) preparesA(set *wgmmaSet) bool {
	return set.parts() > 1 || set == wgmmaTF32 && m.transA
}
func (m *Problem) preparesB(set *wgmmaSet) bool {
	return set.parts() > 1 || set == wgmmaTF32 && !m.transB
}

// wgmmaSet is the kernels by wgmma that can read the operands, and are exact enough, or nil.
func (m *Problem) wgmmaSet() *wgmmaSet {
	switch {
	case m.typeA != m.typeB || m.K == 0 || !m.Caps.Target.Covers(ir.Target{SM: 90, Suffix: "a"}):
		return nil
	case m.typeA == compute.Float16 && m.aligned(8):
		return wgmmaF16
	case m.typeA == compute.BFloat16 && m.aligned(8):
		return wgmmaBF16
	case m.typeA == compute.Float32 && m.precision == compute.TF32 && (m.K%4 == 0 || m.transA && !m.transB):
		return wgmmaTF32
	case m.typeA == compute.Float32 && m.precision == compute.FP32Tensor:
		return wgmmaTF32x3
	}
	return nil
}

// aligned tells whether rows of the operands are multiples of so many elements, which tensor maps need: 16 bytes.
func (m *Problem) aligned(n int) bool {
	lda, ldb := m.rowLengths()
	return lda%n == 0 && ldb%n == 0
}

// mmaSet is the kernels by mma.sync that are exact enough, or nil.
func (m *Problem) mmaSet() *mmaSet {
	switch {
	case m.typeA != m.typeB:
		return nil
	case m.typeA == compute.Float16:
		return mmaF16
	case m.typeA == compute.BFloat16:
		return mmaBF16
	case m.precision == compute.TF32:
		return mmaTF32
	case m.precision == compute.FP32Tensor:
		return mmaTF32x3
	}
	return nil
}

// resultFlags are the type of the result as a flag.
func (m *Problem) resultFlags() uint32 {
	return kit.FlagIf(tiling.ResultF16, m.typeC == compute.Float16) | kit.FlagIf(tiling.ResultBF16, m.typeC == compute.BFloat16)
}

// rowLengths are the elements from row to row of a and b as they lie in memory.
func (m *Problem) rowLengths() (a, b int) {
	a, b = m.K, m.N
	if m.transA {
		a = m.M
	}
	if m.transB {
		b = m.K
	}
	return a, b
}

// major tells whether a and b are K-major, as indices.
func (m *Problem) major() (a, b int) { return index(!m.transA), index(m.transB) }

func index(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (t mmaTile) name() string { return fmt.Sprintf("mma_%dx%d", t.m, t.n) }

// emitMma is the product by mma.sync, in tiles of that number.
func (m *Problem) emitMma(set *mmaSet, tile int, c, parts kit.Buffer, cut tiling.Schedule) {
	chunk := 16 / set.Size
	lda, ldb := m.rowLengths()
	flags := m.BiasOf | m.resultFlags() | kit.FlagIf(tiling.VectorA, lda%chunk == 0) | kit.FlagIf(tiling.VectorB, ldb%chunk == 0) | kit.FlagIf(tiling.VectorC, m.N%4 == 0)
	kMajorA, kMajorB := m.major()
	m.LaunchEpilogue(m.tail, false, set.kernels[tile][kMajorA][kMajorB], [3]int{cut.Items(), 1, 1}, mmaParams{
		M: m.M, N: m.N, K: m.K, LDA: lda, LDB: ldb, Flags: int(flags), Act: int(m.Act),
		Across: scalar.Divide(cut.Tiling.Across), Tiles: scalar.Divide(cut.Tiling.Tiles()), ScheduleSizes: cut.Sizes(),
		StrideA: uint64(m.StrideA), StrideB: uint64(m.StrideB), A: m.A, B: m.B, Bias: m.Bias, C: c, Parts: parts})
}

// emitWgmma is the product by wgmma, in tiles of that number.
func (m *Problem) emitWgmma(set *wgmmaSet, tile int, c, parts kit.Buffer, cut tiling.Schedule) {
	n, t := set.tiles[tile].n, cut.Tiling
	items := cut.Items()
	mapA := m.tensorMap(set, m.A, m.M, wgmmaM, m.StrideA, !m.transA, m.preparesA(set))
	mapB := m.tensorMap(set, m.B, m.N, n, m.StrideB, m.transB, m.preparesB(set))
	kMajorA, kMajorB := m.major()
	if set.typ == tensormap.TF32 {
		kMajorA, kMajorB = 1, 1
	}
	m.LaunchEpilogue(m.tail, false, set.kernels[tile][kMajorA][kMajorB], [3]int{min(items, m.Caps.Multiprocessors), 1, 1}, wgmmaParams{
		M: m.M, N: m.N, K: m.K, Items: items, BatchA: index(m.StrideA > 0), BatchB: index(m.StrideB > 0),
		Flags: int(m.BiasOf | m.resultFlags() | kit.FlagIf(tiling.VectorC, m.N%4 == 0)), Act: int(m.Act), Down: t.Down,
		InGroup: scalar.Divide(wgmmaGroup * t.Across), Tiles: scalar.Divide(t.Tiles()), ScheduleSizes: cut.Sizes(), Bias: m.Bias, C: c, Parts: parts,
		MapA: mapA, MapB: mapB})
}

// tensorMap describes an operand with so many rows of the result's bound, of which a tile has box.
func (m *Problem) tensorMap(set *wgmmaSet, x kit.Buffer, rows, box, stride int, kMajor, prepare bool) kit.TensorMap {
	batch := 1
	if stride > 0 {
		batch = m.Batch
	}
	inner, outer, pitch := rows, m.K, rows
	if kMajor || prepare {
		inner, outer, pitch = m.K, rows, m.K
	}
	if prepare {
		x, pitch = m.toKMajor(x, rows, batch, set.parts(), kMajor)
		batch, kMajor = batch*set.parts(), true
	}
	d := tensormap.Map{Type: set.typ, Rank: 3, Swizzle: tensormap.Swizzle128, Promotion: tensormap.L2x256}
	d.Dims = [tensormap.MaxRank]uint64{uint64(inner), uint64(outer), uint64(batch)}
	d.Strides = [tensormap.MaxRank - 1]uint64{uint64(set.typ.Bytes() * pitch), uint64(set.typ.Bytes() * pitch * outer)}
	d.Box = [tensormap.MaxRank]uint32{uint32(set.depth()), uint32(set.depth()), 1}
	if kMajor {
		d.Box[1] = uint32(box)
	}
	return kit.TensorMap{Buffer: x, Map: d}
}

// asyncFits tells whether gemm_async can read the operands: what lies across has rows at multiples of 16 bytes.
func (m *Problem) asyncFits() bool { return (!m.transA || m.M%4 == 0) && (m.transB || m.N%4 == 0) }

func (m *Problem) emitAsync(splits int, c kit.Buffer) {
	kMajorA, kMajorB := m.major()
	m.emitTiled(tiling.Tiled{Shape: AsyncTile, Kernel: gemmsAsync[kMajorA][kMajorB]}, splits, c)
}
