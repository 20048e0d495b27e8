package blocks

import (
	"unsafe"

	"golang.org/x/sys/cpu"

	"github.com/wavelane/wavelane/internal/simd/kernels"
	"github.com/wavelane/wavelane/quant"
)

// Each says whether its tier has products of bytes: AVX-512, and AVX2.
var vnni, avxVNNI = cpu.X86.HasAVX512VNNI, cpu.X86.HasAVXVNNI

// avx2 says whether the active tier has these instructions.
func avx2() bool { return kernels.Active() == kernels.AVX2 || kernels.Active() == kernels.AVX512 }

func bytewise() bool {
	return vnni && kernels.Active() == kernels.AVX512 || avxVNNI && kernels.Active() == kernels.AVX2
}

func (w *row) unpackQuants(q []int8, block int) {
	if !avx2() {
		w.quants(q, w, block)
		return
	}
	to, from, n := &q[0], &w.planes[0][w.size[0]*block], len(q)/w.block
	switch w.Type {
	case quant.Q4_0, quant.Q4_1:
		quantsNibblesAVX2(to, from, n)
	case quant.Q5_0, quant.Q5_1:
		quantsFifthsAVX2(to, from, n, &w.planes[1][4*block])
	case quant.Q2_K:
		quantsQ2KAVX2(to, from, n)
	case quant.Q3_K:
		quantsQ3KAVX2(to, from, n)
	case quant.Q4_K:
		quantsQ4KAVX2(to, from, n)
	case quant.Q5_K:
		quantsQ5KAVX2(to, from, n)
	default:
		quantsQ6KAVX2(to, from, n)
	}
}

func (w *row) unpackScales(a, b []float32, block int) {
	if !avx2() {
		w.scales(a, b, w, block)
		return
	}
	from, n := &w.planes[0][w.size[0]*block], len(a)*w.width/w.block
	halves := func(plane int) *byte { return &w.planes[plane][w.size[plane]*block] }
	switch w.Type {
	case quant.Q4_1, quant.Q5_1:
		done := len(a) &^ 7
		if done > 0 {
			plane := 1
			if w.Type == quant.Q5_1 {
				plane = 2
			}
			pairScalesAVX2(&a[0], &b[0], halves(plane), done/8)
		}
		w.scales(a[done:], b[done:], w, block+done)
	case quant.Q2_K:
		scalesQ2KAVX2(&a[0], &b[0], from, halves(1), n)
	case quant.Q3_K:
		scalesQ3KAVX2(&a[0], &w.planes[1][12*block], halves(2), n)
	case quant.Q4_K:
		scalesQ4KAVX2(&a[0], &b[0], from, n)
	case quant.Q5_K:
		scalesQ5KAVX2(&a[0], &b[0], from, n)
	case quant.Q6_K:
		scalesQ6KAVX2(&a[0], from, halves(1), n)
	default:
		w.scales(a, b, w, block)
	}
}

var zeros [Piece / 16]float32

func (m *room) expand(y []float32, q []int8) {
	b, n := &m.b[0], len(y)/m.width
	if !m.affine {
		b = &zeros[0]
	}
	switch kernels.Active() {
	case kernels.AVX512:
		expandAVX512(&y[0], &q[0], &m.a[0], b, &m.offset, m.width, n)
	case kernels.AVX2:
		expandAVX2(&y[0], &q[0], &m.a[0], b, &m.offset, m.width, n)
	default:
		expandGo(y, q, m.a[:], m.b[:], m.format)
	}
}

// raised is what the integers stand above zero where they are in lanes.
func raised(f *format) float32 {
	if f.quants == nil && bytewise() {
		return 128
	}
	return f.offset
}

// rowFunctions are those for floats, with AVX2 and AVX-512, and those for integers, with AVX2, AVX-VNNI and AVX-512 VNNI.
var rowFunctions = map[quant.Type][5]rowFunction{
	quant.Q4_0: {rowsQ4_0FloatsAVX2, rowsQ4_0FloatsAVX512, rowsQ4_0AVX2, rowsQ4_0AVXVNNI, rowsQ4_0VNNI},
	quant.Q4_1: {rowsQ4_1FloatsAVX2, rowsQ4_1FloatsAVX512, rowsQ4_1AVX2, rowsQ4_1AVXVNNI, rowsQ4_1VNNI},
	quant.Q5_0: {rowsQ5_0FloatsAVX2, rowsQ5_0FloatsAVX512, rowsQ5_0AVX2, rowsQ5_0AVXVNNI, rowsQ5_0VNNI},
	quant.Q5_1: {rowsQ5_1FloatsAVX2, rowsQ5_1FloatsAVX512, rowsQ5_1AVX2, rowsQ5_1AVXVNNI, rowsQ5_1VNNI},
	quant.Q8_0: {rowsQ8_0FloatsAVX2, rowsQ8_0FloatsAVX512, rowsQ8_0AVX2, rowsQ8_0AVXVNNI, rowsQ8_0VNNI},
	quant.Q2_K: {rowsQ2KFloatsAVX2, rowsQ2KFloatsAVX512, rowsQ2KAVX2, rowsQ2KAVXVNNI, rowsQ2KVNNI},
	quant.Q3_K: {rowsQ3KFloatsAVX2, rowsQ3KFloatsAVX512, rowsQ3KAVX2, rowsQ3KAVXVNNI, rowsQ3KVNNI},
	quant.Q4_K: {rowsQ4KFloatsAVX2, rowsQ4KFloatsAVX512, rowsQ4KAVX2, rowsQ4KAVXVNNI, rowsQ4KVNNI},
	quant.Q5_K: {rowsQ5KFloatsAVX2, rowsQ5KFloatsAVX512, rowsQ5KAVX2, rowsQ5KAVXVNNI, rowsQ5KVNNI},
	quant.Q6_K: {rowsQ6KFloatsAVX2, rowsQ6KFloatsAVX512, rowsQ6KAVX2, rowsQ6KAVXVNNI, rowsQ6KVNNI},
}

// rowsFloats and rows8 set y to the products of rows of weights from lo on with one row of x, if there are instructions for it.

func (w *Weights) rowsFloats(y, x []float32, lo int) bool {
	if !avx2() || len(x) == 0 || len(y) == 0 {
		return false
	}
	if kernels.Active() == kernels.AVX512 {
		w.multiplyRows(rowFunctions[w.Type][1], y, bytesAt(x), nil, nil, lo)
	} else {
		w.multiplySummed(rowFunctions[w.Type][0], y, x, lo)
	}
	return true
}

func groupSums16(sum, x *float32, n int) { groupSums16AVX2(sum, x, n) }

func groupSums32(sum, x *float32, n int) { groupSums32AVX2(sum, x, n) }

func (w *Weights) rows8(y []float32, x *Rounded, lo int) bool {
	if !avx2() || len(x.Q) == 0 || len(y) == 0 {
		return false
	}
	f := 2
	switch {
	case bytewise() && kernels.Active() == kernels.AVX512:
		f = 4
	case bytewise():
		f = 3
	}
	scale, sum := x.groups(w.width, 0, len(x.Q)/w.width)
	w.multiplyRows(rowFunctions[w.Type][f], y, (*byte)(unsafe.Pointer(&x.Q[0])), &scale[0], &sum[0], lo)
	return true
}

// roundVectors rounds blocks from lo on and returns the first that is left. Integers for lanes are rounded in a row, a chunk at a time.
func (r *Rounded) roundVectors(x []float32, lo, hi int) int {
	if !avx2() || lo == hi {
		return lo
	}
	if !r.lanes {
		roundAVX2(&r.Q[32*lo], &x[32*lo], &r.scale[lo], &r.sum[lo], &r.scale16[2*lo], &r.sum16[2*lo], hi-lo)
		return hi
	}
	const groups = chunk / 32
	var (
		q           [chunk]int8
		scale, sums [2 * groups]float32
	)
	for ; lo%groups == 0 && lo+groups <= min(hi, groups*r.whole); lo += groups {
		roundAVX2(&q[0], &x[32*lo], &r.scale[lo], &r.sum[lo], &scale[0], &sums[0], groups)
		lanesStoredAVX2(&r.Q[32*lo], &q[0], 2, 0)
		to := r.sum16[2*lo:][:2*groups]
		for g := range groups {
			to[g], to[groups+g] = sums[2*g], sums[2*g+1]
		}
	}
	if lo == groups*r.whole && lo < hi {
		roundAVX2(&r.Q[32*lo], &x[32*lo], &r.scale[lo], &r.sum[lo], &scale[0], &sums[0], hi-lo)
		return hi
	}
	return lo
}
