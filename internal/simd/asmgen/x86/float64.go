package x86

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// doubleTier is a tier with kernels in float64.
type doubleTier struct {
	name  string
	lanes int // float64 in a vector
}

// float64Files are the kernels in float64, which the eigen-decomposition needs.
func float64Files() (map[string][]byte, error) {
	c := build.NewContext()
	tails := c.StaticGlobal("tails64")
	c.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range 8 { // from 8·(4−n) on: a mask of n lanes
		v := operand.U64(1<<64 - 1)
		if i >= 4 {
			v = 0
		}
		c.AddDatum(8*i, v)
	}
	for _, t := range []doubleTier{{"AVX2", 4}, {"AVX512", 8}} {
		d := &double{doubleTier: t, Context: c, tails: tails}
		d.dot()
		d.axpy()
		d.rank2()
		d.turn()
	}
	return assembled(c, "kernels", "float64")
}

// double emits the functions of a tier.
type double struct {
	doubleTier
	*build.Context
	tails operand.Mem
	tail  reg.Register // the mask of the last elements, while they are done
}

func (d *double) begin(name, signature, doc string) {
	d.Function(name + d.name)
	d.Pragma("noescape")
	d.SignatureExpr(signature)
	d.Doc(name + d.name + " " + doc)
}

func (d *double) end() {
	d.VZEROUPPER()
	d.RET()
}

func (d *double) vector() reg.VecVirtual {
	if d.lanes == 8 {
		return d.ZMM()
	}
	return d.YMM()
}

func (d *double) pointer(param string) reg.Register { return d.Load(d.Param(param), d.GP64()) }

func (d *double) broadcast(param string) reg.VecVirtual {
	v := d.vector()
	m, err := d.Param(param).Resolve()
	if err != nil {
		panic(err)
	}
	d.VBROADCASTSD(m.Addr, v)
	return v
}

func (d *double) at(p reg.Register, i int) operand.Mem {
	return operand.Mem{Base: p, Disp: 8 * d.lanes * i}
}

// load reads vector i from p on; lanes beyond the end are 0.
func (d *double) load(p reg.Register, i int) reg.VecVirtual {
	v := d.vector()
	switch {
	case d.tail == nil:
		d.VMOVUPD(d.at(p, i), v)
	case d.lanes == 8:
		d.VMOVUPD_Z(d.at(p, i), d.tail, v)
	default:
		d.VMASKMOVPD(d.at(p, i), d.tail, v)
	}
	return v
}

func (d *double) store(v reg.VecVirtual, p reg.Register, i int) {
	switch {
	case d.tail == nil:
		d.VMOVUPD(v, d.at(p, i))
	case d.lanes == 8:
		d.VMOVUPD(v, d.tail, d.at(p, i))
	default:
		d.VMASKMOVPD(v, d.tail, d.at(p, i))
	}
}

// loop emits a loop over n elements: body with several vectors, as long as there are as many, with single ones, and last
// with part of one.
func (d *double) loop(n reg.Register, unroll int, pointers []reg.Register, body func(vectors int)) {
	for _, vectors := range []int{unroll, 1} {
		label := fmt.Sprintf("by%d", vectors)
		d.Label(label)
		d.CMPQ(n, operand.U32(vectors*d.lanes))
		d.JL(operand.LabelRef(label + "end"))
		body(vectors)
		for _, p := range pointers {
			d.ADDQ(operand.U32(8*vectors*d.lanes), p)
		}
		d.SUBQ(operand.U32(vectors*d.lanes), n)
		d.JMP(operand.LabelRef(label))
		d.Label(label + "end")
	}
	d.TESTQ(n, n)
	d.JZ(operand.LabelRef("end"))
	if d.lanes == 8 {
		bits, k := d.GP64(), d.K()
		d.MOVQ(operand.I32(-1), bits)
		d.BZHIQ(n, bits, bits)
		d.KMOVB(bits.As32(), k)
		d.tail = k
	} else {
		table, mask := d.GP64(), d.YMM()
		d.LEAQ(d.tails.Offset(32), table)
		d.NEGQ(n)
		d.VMOVUPD(operand.Mem{Base: table, Index: n, Scale: 8}, mask)
		d.tail = mask
	}
	body(1)
	d.tail = nil
	d.Label("end")
}

func (d *double) dot() {
	d.begin("dot64", "func(x, y *float64, n int) float64", "returns Σ x[i]·y[i].")
	x, y, n := d.pointer("x"), d.pointer("y"), d.pointer("n")
	const copies = 4
	var sums [copies]reg.VecVirtual
	for i := range sums {
		sums[i] = d.vector()
		d.VXORPD(sums[i], sums[i], sums[i])
	}
	d.loop(n, copies, []reg.Register{x, y}, func(vectors int) {
		for i := range vectors {
			d.VFMADD231PD(d.load(x, i), d.load(y, i), sums[i])
		}
	})
	d.VADDPD(sums[1], sums[0], sums[0])
	d.VADDPD(sums[3], sums[2], sums[2])
	d.VADDPD(sums[2], sums[0], sums[0])
	if d.lanes == 8 {
		high := d.YMM()
		d.VEXTRACTF64X4(operand.U8(1), sums[0], high)
		d.VADDPD(high, sums[0].AsY(), sums[0].AsY())
	}
	low, high := sums[0].AsX(), d.XMM()
	d.VEXTRACTF128(operand.U8(1), sums[0].AsY(), high)
	d.VADDPD(high, low, low)
	d.VUNPCKHPD(low, low, high)
	d.VADDSD(high, low, low)
	d.Store(low, d.ReturnIndex(0))
	d.end()
}

func (d *double) axpy() {
	d.begin("axpy64", "func(y, x *float64, n int, f float64)", "adds f·x[i] to y[i].")
	y, x, n, f := d.pointer("y"), d.pointer("x"), d.pointer("n"), d.broadcast("f")
	d.loop(n, 4, []reg.Register{y, x}, func(vectors int) {
		for i := range vectors {
			v := d.load(y, i)
			d.VFMADD231PD(d.load(x, i), f, v)
			d.store(v, y, i)
		}
	})
	d.end()
}

func (d *double) rank2() {
	d.begin("rank2x64", "func(x, v, w *float64, n int, fv, fw float64)", "subtracts fv·w[i] + fw·v[i] from x[i].")
	x, v, w, n, fv, fw := d.pointer("x"), d.pointer("v"), d.pointer("w"), d.pointer("n"), d.broadcast("fv"), d.broadcast("fw")
	d.loop(n, 4, []reg.Register{x, v, w}, func(vectors int) {
		for i := range vectors {
			r := d.load(x, i)
			d.VFNMADD231PD(d.load(w, i), fv, r)
			d.VFNMADD231PD(d.load(v, i), fw, r)
			d.store(r, x, i)
		}
	})
	d.end()
}

// rotate keeps the row that two rotations share in registers.
func (d *double) turn() {
	const columns = 16
	vectors := columns / d.lanes
	d.begin("turn64", "func(z *float64, wide int, turns *float64, n int)",
		"rotates 16 columns of n pairs of neighbouring rows, the first pair z and the row before it.")
	z, wide, turns, n := d.pointer("z"), d.pointer("wide"), d.pointer("turns"), d.pointer("n")
	d.SHLQ(operand.U8(3), wide)
	high := make([]reg.VecVirtual, vectors)
	for i := range high {
		high[i] = d.load(z, i)
	}
	d.TESTQ(n, n)
	d.JZ(operand.LabelRef("end"))
	low := d.GP64()
	d.MOVQ(z, low)
	d.Label("pair")
	d.SUBQ(wide, low)
	c, s := d.vector(), d.vector()
	d.VBROADCASTSD(operand.Mem{Base: turns}, c)
	d.VBROADCASTSD(operand.Mem{Base: turns, Disp: 8}, s)
	for i := range high {
		v := d.load(low, i)
		to, next := d.vector(), d.vector()
		d.VMULPD(v, s, to)
		d.VMULPD(v, c, next)
		d.VFMADD231PD(high[i], c, to)
		d.VFNMADD231PD(high[i], s, next)
		d.store(to, z, i)
		d.VMOVAPD(next, high[i])
	}
	d.MOVQ(low, z)
	d.ADDQ(operand.U32(16), turns)
	d.DECQ(n)
	d.JNZ(operand.LabelRef("pair"))
	d.Label("end")
	for i := range high {
		d.store(high[i], z, i)
	}
	d.end()
}
