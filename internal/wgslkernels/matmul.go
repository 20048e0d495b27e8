package wgslkernels

import (
	"fmt"
	mathbits "math/bits"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/quant"
	"github.com/wavelane/wavelane/wgsl"
)

// matmulStep lowers what the catalogue calls a product.
func matmulStep(s *step) error {
	p, err := catalogue.ProductOf(s.Entry, s.Operands, s.Attr)
	if err != nil {
		return err
	}
	m := matmul{step: s, MatMulDims: p.MatMulDims, a: operand(p.A), b: operand(p.B), c: result,
		product: product{A: s.Operands[p.A].DType, B: s.Operands[p.B].DType, TransA: p.TransA, TransB: p.TransB}}
	if m.finish, err = s.finishing(s.biased(s.Operands[2:]...), 1); err != nil {
		return err
	}
	if len(s.Operands) == 2 && m.M == 1 && m.Batch == 1 && uint64(4*m.N) > s.caps.MaxBinding {
		// A single row that no binding holds is a column just as well, and columns are cut into pieces.
		m.a, m.b, m.M, m.N = m.b, m.a, m.N, 1
		m.A, m.B, m.TransA, m.TransB = m.B, m.A, !m.TransB, false
	}
	if s.Result.DType == compute.Float32 {
		return m.lower()
	}
	m.c = s.NewScratch(4 * s.Result.Len())
	if err := m.lower(); err != nil {
		return err
	}
	s.cast(m.c, compute.Float32, result, s.Result.DType, s.Result.Len())
	return nil
}

// matmul lowers a batch of products; conv2d with 1×1 filters comes here too.
type matmul struct {
	*step
	catalogue.MatMulDims
	product
	a, b, c Buffer
}

// variant is one way to compute a part of the problem. Variants are named so that tests and the autotuner can ask for each.
type variant struct {
	name  string
	split int // parts of the depth that are computed side by side and then added up
	emit  func(p piece, split int, dst Buffer, q product)
}

// tiles are the shapes that matmul.wgsl is tuned over. What wins where: registers alone on GPUs with strong caches and, with
// large tiles, on software adapters, where the loads dominate; tiles in workgroup memory elsewhere, larger ones for larger
// matrices on discrete GPUs; more and slimmer invocations where occupancy is short.
var tiles = []struct {
	name string
	tile
}{
	{"tile32", tile{8, 8, 4, 4, 32}},
	{"tile64", tile{16, 16, 4, 4, 16}},
	{"tile64x8", tile{8, 8, 8, 8, 16}},
	{"tile32x2", tile{8, 16, 2, 4, 32}},
	{"reg4x4", tile{8, 8, 4, 4, 0}},
	{"reg8x8", tile{8, 8, 8, 8, 0}},
	{"reg16x16", tile{8, 4, 16, 16, 0}},
}

// loopBudget bounds how often the loops of one invocation go round, all together: llvmpipe ends them silently after 65,535. Other
// devices have watchdogs for what takes long.
const loopBudget = 60000

const (
	mostDepth   = 1 << 15 // of one invocation's sums; less than loopBudget, for any tile
	splitDepth  = 256     // least depth of a part when it is split
	splitMost   = 64      // parts at most
	enoughTiles = 64      // workgroups from which splitting gains nothing
	naiveMost   = 1 << 30 // products from which naive is no candidate: it would take seconds
)

func (m *matmul) lower() error {
	m.Tail = m.K%4 != 0
	lda, ldb := m.K, m.N
	if m.TransA {
		lda = m.M
	}
	if m.TransB {
		ldb = m.K
	}
	m.VecA, m.VecB = lda%4 == 0, ldb%4 == 0
	if m.Format != 0 {
		w, err := quant.PackedWords(quant.Type(m.Format), ldb)
		if err != nil {
			return err
		}
		ldb = w / 4
		m.VecB = true
	}
	m.F16 = (m.A == compute.Float16 || m.B == compute.Float16) && m.nativeHalves(m.problem())
	groups, err := m.pieces(lda, ldb)
	if err != nil {
		return err
	}
	first := groups[0][0] // no other is larger
	least := 1
	if len(groups[0]) == 1 {
		least = m.sums()
	}
	vs := m.variants(len(groups) == 1 && len(groups[0]) == 1, least)
	names := make([]string, len(vs))
	for i, v := range vs {
		names[i] = v.name
	}
	v := vs[m.Choose("matmul", m.problem(), names)]
	// Whose depth is cut gets its epilogue when the parts are added.
	bare := m.product
	bare.finish = epilogue{}
	sums := max(v.split, len(groups[0]))
	var partial Buffer
	if sums > 1 {
		partial = m.NewScratch(4 * sums * first.batch * first.m * first.n)
	}
	for _, group := range groups {
		if sums == 1 {
			v.emit(group[0], 1, group[0].c, m.product)
			continue
		}
		for i, p := range group {
			p.offC, p.strideC, p.ldc = i*p.m*p.n, p.m*p.n, p.n
			v.emit(p, sums/len(group), partial, bare)
		}
		m.addUp(group[0], sums, partial)
	}
	return nil
}

// problem names the choice of a variant: sizes, and what else changes code.
func (m *matmul) problem() string {
	bare := m.product
	bare.finish = epilogue{}
	return fmt.Sprintf("%d*%dx%dx%d%s", m.Batch, m.M, m.K, m.N, bare.key())
}

func (m *matmul) fits(t tile, p product) bool {
	return uint32(t.Lanes()) <= m.caps.MaxInvocations && uint32(t.WX) <= m.caps.MaxWorkgroupSize[0] &&
		uint32(t.WY) <= m.caps.MaxWorkgroupSize[1] && uint32(t.shared(p)) <= m.caps.MaxShared && (!t.small() || !p.TransA)
}

// small: an invocation's rows do not fill a vector, so that they cannot be read as such.
func (t tile) small() bool { return t.TM < 4 }

// variants lists the kernels that can compute this problem in at least a number of sums, the safe default first. More than
// that many are for problems that are bound whole.
func (m *matmul) variants(whole bool, sums int) []variant {
	var preferred, others []variant
	add := func(good bool, v variant) {
		if good {
			preferred = append(preferred, v)
		} else {
			others = append(others, v)
		}
	}
	lanes := m.workgroup()
	addTile := func(name string, t tile, good bool) {
		if !m.fits(t, m.product) {
			return
		}
		groups := m.Batch * ceilDiv(m.M, t.BM()) * ceilDiv(m.N, t.BN())
		emit := func(p piece, split int, dst Buffer, q product) { m.emitTiled(t, p, split, dst, q) }
		if n := m.splits(groups, whole); n > sums {
			add(good, variant{name + "/splitk", n, emit})
		}
		add(good, variant{name, sums, emit})
	}
	packed := m.Format != 0 // kernels unpack weights once for a workgroup, not for each invocation
	if m.rowsForm() != 0 && !packed {
		addRows := func(name string, lanes int, subgroups, good bool) {
			if 16*lanes*m.vectors() > int(m.caps.MaxShared) {
				return
			}
			emit := func(p piece, split int, dst Buffer, q product) { m.emitRows(lanes, subgroups, p, split, dst, q) }
			if n := m.splits(m.Batch*ceilDiv(max(m.M, m.N), 4), whole); good && n > sums {
				add(good, variant{name + "/splitk", n, emit})
			}
			add(good, variant{name, sums, emit})
		}
		addRows("rows", min(lanes, 64), false, true)
		if lanes > 64 {
			addRows(fmt.Sprint("rows", lanes), lanes, false, false)
		}
		if m.caps.Subgroups {
			addRows("rows/subgroups", min(lanes, 64), true, false)
		}
	}
	if m.M <= 8 && !(packed && m.TransB) {
		t := tile{WX: 64, WY: 1, TM: 1 << mathbits.Len(uint(m.M-1)), TN: 4}
		switch {
		case m.TransA:
			t.TM = max(t.TM, 4)
		case packed && m.M > 1: // unpacking weights costs more than idle rows
			t.TM = 8
		}
		addTile("skinny", t, true)
	}
	best := tiles[0].name
	if m.caps.Software && !packed { // 3 to 9 times as fast on llvmpipe
		if best = "reg4x4"; m.M > 32 && m.N > 32 {
			best = "reg8x8"
		}
	}
	for i, t := range tiles {
		if i > 0 && (2*m.M <= t.BM() || 2*m.N <= t.BN()) { // more than half of every tile would be idle
			continue
		}
		if packed && (t.KT == 0 || i > 0 && (m.M < 2*t.BM() || m.N < 2*t.BN())) { // not worth ten more kernels
			continue
		}
		addTile(t.name, t.tile, t.name == best)
	}
	if !packed && m.Batch*m.M*m.N*m.K <= naiveMost || len(preferred)+len(others) == 0 {
		add(false, variant{"naive", sums, func(p piece, split int, dst Buffer, q product) { m.emitNaive(lanes, p, split, dst, q) }})
	}
	return append(preferred, others...)
}

// sums returns into how many parts every variant cuts a depth that is bound whole.
func (m *matmul) sums() int { return max(1, ceilDiv(m.K, mostDepth)) }

// splits returns into how many parts to cut the depth given a kernel's number of workgroups; 1 for none.
func (m *matmul) splits(groups int, whole bool) int {
	if !whole || groups >= enoughTiles || m.K < 2*splitDepth {
		return 1
	}
	n := min(m.K/splitDepth, splitMost, ceilDiv(2*enoughTiles, groups))
	for n > 1 && wgsl.BufferSize(4*n*m.Batch*m.M*m.N) > min(m.caps.MaxBinding, m.caps.MaxBuffer) {
		n--
	}
	return n
}

// rowsForm: whether few vectors meet a matrix and all lie along depth: 1 with the vectors in b, 2 with them in a, 0 if not.
func (m *matmul) rowsForm() int {
	const most = 8
	alongA := !m.TransA || m.M == 1 // a transposed vector lies in memory as the vector does
	alongB := m.TransB || m.N == 1
	switch {
	case !alongA || !alongB:
		return 0
	case m.N <= most && m.N <= m.M:
		return 1
	case m.M <= most:
		return 2
	}
	return 0
}

// vectors is the number of vectors that the rows kernel has room for.
func (m *matmul) vectors() int { return 1 << mathbits.Len(uint(min(m.M, m.N)-1)) }

// emit appends a kernel over groups workgroups per product.
func (m *matmul) emit(k *wgsl.Kernel, p piece, split, across, tiles int, dst Buffer, finish epilogue) {
	depth := p.k
	if split > 1 {
		depth = ceilDiv(ceilDiv(p.k, split), 32) * 32 // of every tile's depth
	}
	total := p.batch * split * tiles
	params := words(p.m, p.n, p.k, total, p.lda, p.ldb, p.ldc, tiles, p.offA, p.offB, p.offC, across, p.strideA, p.strideB, p.strideC,
		p.row0, split, depth, p.col0, infBits)
	bind := append([]Buffer{p.a, p.b}, finish.bindings(dst)...)
	m.dispatch(k, m.linear(total), append(params, finish.words()...), append(bind, dst)...)
}

func (m *matmul) emitTiled(t tile, p piece, split int, dst Buffer, q product) {
	across := ceilDiv(p.n, t.BN())
	m.emit(q.tiled(t), p, split, across, across*ceilDiv(p.m, t.BM()), dst, q.finish)
}

func (m *matmul) emitNaive(lanes int, p piece, split int, dst Buffer, q product) {
	m.emit(q.naive(lanes), p, split, 1, ceilDiv(p.m*p.n, lanes), dst, q.finish)
}

func (m *matmul) emitRows(lanes int, subgroups bool, p piece, split int, dst Buffer, q product) {
	// What lies along depth has rows of K, whatever its name for them.
	p.lda, p.ldb = m.K, m.K
	q.VecA, q.VecB = m.K%4 == 0, m.K%4 == 0
	swap := m.rowsForm() == 2
	if swap {
		p.a, p.b, p.offA, p.offB, p.strideA, p.strideB = p.b, p.a, p.offB, p.offA, p.strideB, p.strideA
		p.m, p.n = p.n, p.m
		q.A, q.B = q.B, q.A
	}
	m.emit(q.rows(lanes, m.vectors(), swap, subgroups), p, split, 1, ceilDiv(p.m, 4), dst, q.finish)
}

// addUp appends the second pass of a split depth.
func (m *matmul) addUp(p piece, split int, partial Buffer) {
	lanes := m.workgroup()
	total := p.batch * p.m * p.n
	params := words(p.m, p.n, 0, total, 0, 0, p.ldc, 0, 0, 0, p.offC, 0, 0, 0, p.strideC, p.row0, split, 0, p.col0, infBits)
	bind := append([]Buffer{partial}, m.finish.bindings(p.c)...)
	m.dispatch(m.product.sum(lanes), m.linear(ceilDiv(total, lanes)), append(params, m.finish.words()...), append(bind, p.c)...)
}
