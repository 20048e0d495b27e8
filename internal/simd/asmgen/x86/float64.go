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
		d := &double{doubleTier: t, c: c, tails: tails}
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
	c     *build.Context
	tails operand.Mem
	tail  reg.Register // the mask of the last elements, while they are done
}

func (d *double) begin(name, signature, doc string) {
	d.c.Function(name + d.name)
	d.c.Pragma("noescape")
	d.c.SignatureExpr(signature)
	d.c.Doc(name + d.name + " " + doc)
}

func (d *double) end() {
	d.c.VZEROUPPER()
	d.c.RET()
}

func (d *double) vector() reg.VecVirtual {
	if d.lanes == 8 {
		return d.c.ZMM()
	}
	return d.c.YMM()
}

func (d *double) pointer(param string) reg.Register { return d.c.Load(d.c.Param(param), d.c.GP64()) }

func (d *double) broadcast(param string) reg.VecVirtual {
	v := d.vector()
	m, err := d.c.Param(param).Resolve()
	if err != nil {
		panic(err)
	}
	d.c.VBROADCASTSD(m.Addr, v)
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
		d.c.VMOVUPD(d.at(p, i), v)
	case d.lanes == 8:
		d.c.VMOVUPD_Z(d.at(p, i), d.tail, v)
	default:
		d.c.VMASKMOVPD(d.at(p, i), d.tail, v)
	}
	return v
}

func (d *double) store(v reg.VecVirtual, p reg.Register, i int) {
	switch {
	case d.tail == nil:
		d.c.VMOVUPD(v, d.at(p, i))
	case d.lanes == 8:
		d.c.VMOVUPD(v, d.tail, d.at(p, i))
	default:
		d.c.VMASKMOVPD(v, d.tail, d.at(p, i))
	}
}

// loop emits a loop over n elements: body with several vectors, as long as there are as many, with single ones, and last
// with part of one.
func (d *double) loop(n reg.Register, unroll int, pointers []reg.Register, body func(vectors int)) {
	for _, vectors := range []int{unroll, 1} {
		label := fmt.Sprintf("by%d", vectors)
		d.c.Label(label)
		d.c.CMPQ(n, operand.U32(vectors*d.lanes))
		d.c.JL(operand.LabelRef(label + "end"))
		body(vectors)
		for _, p := range pointers {
			d.c.ADDQ(operand.U32(8*vectors*d.lanes), p)
		}
		d.c.SUBQ(operand.U32(vectors*d.lanes), n)
		d.c.JMP(operand.LabelRef(label))
		d.c.Label(label + "end")
	}
	d.c.TESTQ(n, n)
	d.c.JZ(operand.LabelRef("end"))
	if d.lanes == 8 {
		bits, k := d.c.GP64(), d.c.K()
		d.c.MOVQ(operand.I32(-1), bits)
		d.c.BZHIQ(n, bits, bits)
		d.c.KMOVB(bits.As32(), k)
		d.tail = k
	} else {
		table, mask := d.c.GP64(), d.c.YMM()
		d.c.LEAQ(d.tails.Offset(32), table)
		d.c.NEGQ(n)
		d.c.VMOVUPD(operand.Mem{Base: table, Index: n, Scale: 8}, mask)
		d.tail = mask
	}
	body(1)
	d.tail = nil
	d.c.Label("end")
}

func (d *double) dot() {
	d.begin("dot64", "func(x, y *float64, n int) float64", "returns Σ x[i]·y[i].")
	x, y, n := d.pointer("x"), d.pointer("y"), d.pointer("n")
	const copies = 4
	var sums [copies]reg.VecVirtual
	for i := range sums {
		sums[i] = d.vector()
		d.c.VXORPD(sums[i], sums[i], sums[i])
	}
	d.loop(n, copies, []reg.Register{x, y}, func(vectors int) {
		for i := range vectors {
			d.c.VFMADD231PD(d.load(x, i), d.load(y, i), sums[i])
		}
	})
	d.c.VADDPD(sums[1], sums[0], sums[0])
	d.c.VADDPD(sums[3], sums[2], sums[2])
	d.c.VADDPD(sums[2], sums[0], sums[0])
	if d.lanes == 8 {
		high := d.c.YMM()
		d.c.VEXTRACTF64X4(operand.U8(1), sums[0], high)
		d.c.VADDPD(high, sums[0].AsY(), sums[0].AsY())
	}
	low, high := sums[0].AsX(), d.c.XMM()
	d.c.VEXTRACTF128(operand.U8(1), sums[0].AsY(), high)
	d.c.VADDPD(high, low, low)
	d.c.VUNPCKHPD(low, low, high)
	d.c.VADDSD(high, low, low)
	d.c.Store(low, d.c.ReturnIndex(0))
	d.end()
}

func (d *double) axpy() {
	d.begin("axpy64", "func(y, x *float64, n int, f float64)", "adds f·x[i] to y[i].")
	y, x, n, f := d.pointer("y"), d.pointer("x"), d.pointer("n"), d.broadcast("f")
	d.loop(n, 4, []reg.Register{y, x}, func(vectors int) {
		for i := range vectors {
			v := d.load(y, i)
			d.c.VFMADD231PD(d.load(x, i), f, v)
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
			d.c.VFNMADD231PD(d.load(w, i), fv, r)
			d.c.VFNMADD231PD(d.load(v, i), fw, r)
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
	d.c.SHLQ(operand.U8(3), wide)
	high := make([]reg.VecVirtual, vectors)
	for i := range high {
		high[i] = d.load(z, i)
	}
	d.c.TESTQ(n, n)
	d.c.JZ(operand.LabelRef("end"))
	low := d.c.GP64()
	d.c.MOVQ(z, low)
	d.c.Label("pair")
	d.c.SUBQ(wide, low)
	c, s := d.vector(), d.vector()
	d.c.VBROADCASTSD(operand.Mem{Base: turns}, c)
	d.c.VBROADCASTSD(operand.Mem{Base: turns, Disp: 8}, s)
	for i := range high {
		v := d.load(low, i)
		to, next := d.vector(), d.vector()
		d.c.VMULPD(v, s, to)
		d.c.VMULPD(v, c, next)
		d.c.VFMADD231PD(high[i], c, to)
		d.c.VFNMADD231PD(high[i], s, next)
		d.store(to, z, i)
		d.c.VMOVAPD(next, high[i])
	}
	d.c.MOVQ(low, z)
	d.c.ADDQ(operand.U32(16), turns)
	d.c.DECQ(n)
	d.c.JNZ(operand.LabelRef("pair"))
	d.c.Label("end")
	for i := range high {
		d.store(high[i], z, i)
	}
	d.end()
}
