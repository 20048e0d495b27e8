package tiling

import (
	"math"

	"github.com/wavelane/wavelane/ptx"
)

// MMAKind is the numbers that tensor cores multiply, and how. Fragments are registers of 32 bits: pairs of halves, or a single
// number in single precision.
type MMAKind struct {
	Name, Doc string
	Size      int // bytes of an element in memory
	// products adds a[i]·b[j] to sum(i, j), for fragments of 16 and of 8 rows, 32 bytes deep.
	Products func(k *ptx.Kernel, a, b [][]ptx.Reg[uint32], sum func(i, j int) []*ptx.Var[float32])
}

var (
	KindF16  = MMAKind{"f16", "halves, added up in single precision", 2, pairProducts[ptx.F16x2]}
	KindBF16 = MMAKind{"bf16", "bfloat16, added up in single precision", 2, pairProducts[ptx.BF16x2]}
	KindTF32 = MMAKind{"tf32", "float32 rounded to 11 bits (TF32), added up in single precision", 4, tf32Products}
	// The error of a float32 as the sum of two TF32 is as small as its own. (Ootomo and Yokota, "Recovering single precision
	// accuracy from Tensor Cores while surpassing the FP32 theoretical peak performance", 2022.)
	KindTF32x3 = MMAKind{"tf32x3", "float32 as sums of two TF32: three products for one", 4, tf32x3Products}
)

func pairProducts[T ptx.F16x2 | ptx.BF16x2](k *ptx.Kernel, a, b [][]ptx.Reg[uint32], sum func(i, j int) []*ptx.Var[float32]) {
	for i := range a {
		for j := range b {
			add(sum(i, j), MMA[T](k, ptx.M16N8K16, a[i], b[j], values(sum(i, j))))
		}
	}
}

// MMA is ptx.Mma of fragments in words, added to float32.
func MMA[T ptx.F16x2 | ptx.BF16x2 | ptx.TF32](k *ptx.Kernel, s ptx.Shape, a, b []ptx.Reg[uint32],
	c []ptx.Reg[float32]) []ptx.Reg[float32] {
	return ptx.Mma(k, s, CastAll[T](k, a), CastAll[T](k, b), c)
}

// CastAll takes no instruction.
func CastAll[T, U ptx.Word32](k *ptx.Kernel, x []ptx.Reg[U]) []ptx.Reg[T] {
	y := make([]ptx.Reg[T], len(x))
	for i := range x {
		y[i] = ptx.Bitcast[T](x[i])
	}
	return y
}

func values(v []*ptx.Var[float32]) []ptx.Reg[float32] {
	x := make([]ptx.Reg[float32], len(v))
	for i := range v {
		x[i] = v[i].Get()
	}
	return x
}

// add sets the sums to x.
func add(sum []*ptx.Var[float32], x []ptx.Reg[float32]) {
	for i := range sum {
		sum[i].Set(x[i])
	}
}

func tf32Products(k *ptx.Kernel, a, b [][]ptx.Reg[uint32], sum func(i, j int) []*ptx.Var[float32]) {
	rounded := func(x [][]ptx.Reg[uint32]) (y [][]ptx.Reg[uint32]) {
		for _, f := range x {
			var r []ptx.Reg[uint32]
			for _, v := range f {
				r = append(r, ptx.Bitcast[uint32](ptx.ConvertTF32(ptx.Bitcast[float32](v))))
			}
			y = append(y, r)
		}
		return y
	}
	a, b = rounded(a), rounded(b)
	for i := range a {
		for j := range b {
			add(sum(i, j), MMA[ptx.TF32](k, ptx.M16N8K8, a[i], b[j], values(sum(i, j))))
		}
	}
}

// tf32x3Products: what tensor cores add up they do not round to nearest, so that sums of many products drift. Here each begins at
// zero, and is added to the sum by an ordinary instruction.
func tf32x3Products(k *ptx.Kernel, a, b [][]ptx.Reg[uint32], sum func(i, j int) []*ptx.Var[float32]) {
	highA, lowA := tf32Parts(k, a)
	highB, lowB := tf32Parts(k, b)
	zero := ptx.Imm(float32(0))
	for i := range a {
		for j := range b {
			d := MMA[ptx.TF32](k, ptx.M16N8K8, lowA[i], highB[j], []ptx.Reg[float32]{zero, zero, zero, zero})
			d = MMA[ptx.TF32](k, ptx.M16N8K8, highA[i], lowB[j], d)
			d = MMA[ptx.TF32](k, ptx.M16N8K8, highA[i], highB[j], d)
			for e, s := range sum(i, j) {
				s.Set(s.Get().Add(d[e]))
			}
		}
	}
}

func tf32Parts(k *ptx.Kernel, x [][]ptx.Reg[uint32]) (high, low [][]ptx.Reg[uint32]) {
	for _, f := range x {
		var h, l []ptx.Reg[uint32]
		for _, v := range f {
			up, rest := TF32Parts(ptx.Bitcast[float32](v))
			h, l = append(h, up), append(l, rest)
		}
		high, low = append(high, h), append(low, l)
	}
	return high, low
}

// TF32Parts cuts a number in two, as words: rounded to a TF32, and the rest cut off to one. Of its at most 12 bits one is lost, as it would
// be by rounding: there were only ties. Infinite numbers and NaN have no rest.
func TF32Parts(x ptx.Reg[float32]) (high, low ptx.Reg[uint32]) {
	high = ptx.Bitcast[uint32](ptx.ConvertTF32(x))
	up := ptx.Bitcast[float32](high)
	rest := ptx.Bitcast[uint32](x.Sub(up)).And(math.MaxUint32 >> 13 << 13)
	return high, ptx.Select(up.Abs().Lt(float32(math.Inf(1))), rest, 0)
}
