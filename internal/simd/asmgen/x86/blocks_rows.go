package x86

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// row is what a function needs that multiplies rows of weights with one row of x. Integers, scales and sums of products stay in
// registers from the bytes of a block to the end of the row, so that rows of a few blocks cost no more by the block than long ones.
// Only scales, which are computed eight at a time, pass through the stack, from where each is loaded into all lanes.
//
// Integers of x in 8 bits are multiplied with integers that are not negative: minima, and what a format's offset makes of scales, are
// subtracted as products with the sums of x.
type row struct {
	offset       float32
	affine       bool // has minima
	signed       bool // integers of any size
	wide         bool // 64 integers at a time
	y, w, rows   reg.GPVirtual
	scale, sum   reg.GPVirtual
	ones, pick   reg.VecVirtual
	above        reg.VecVirtual // the offset in all lanes
	sums         []reg.VecVirtual
	single       [2]reg.VecVirtual // scale and minimum of a block by itself
	alone        bool
	scales, mins operand.Mem
}

var tiers = map[use]string{bytesAVX2: "AVX2", bytesAVXVNNI: "AVXVNNI", bytesVNNI: "VNNI", floatsAVX2: "FloatsAVX2", floatsAVX512: "FloatsAVX512"}

// begin opens the function.
func (f *unpacked) begin(format string) {
	name := "rows" + format + tiers[f.use]
	x := "is *int8: scale and sum are those of its groups."
	switch {
	case f.summed():
		x = "is *float32: sum is those of its groups, and scale is not used."
	case f.floats():
		x = "is *float32; scale and sum are not used."
	}
	f.c.Function(name)
	f.c.Pragma("noescape")
	f.c.Attributes(attr.NOSPLIT)
	f.c.SignatureExpr("func(y *float32, x *byte, scale, sum *float32, w *byte, stride, plane1, plane2, n, rows int)")
	f.c.Doc(name + " multiplies rows ≥ 1 of n ≥ 1 blocks, stride bytes apart, whose other planes begin plane1 and plane2 bytes after w, with a row x that " + x)
	for _, r := range []*reg.GPVirtual{&f.y, &f.w, &f.rows, &f.from, &f.to, &f.n, &f.plane1, &f.plane2, &f.scale, &f.sum} {
		*r = f.c.GP64()
	}
	f.c.Load(f.c.Param("y"), f.y)
	f.c.Load(f.c.Param("w"), f.w)
	f.c.Load(f.c.Param("rows"), f.rows)
	f.scales = f.c.AllocLocal(128)
	f.mins = f.scales.Offset(64)
}

// prepare loads what is the same for all rows.
func (f *unpacked) prepare() {
	if f.use == bytesAVX2 {
		f.ones = f.c.YMM()
		f.c.VPCMPEQW(f.ones, f.ones, f.ones)
		f.c.VPSRLW(operand.U8(15), f.ones, f.ones)
	}
	switch {
	case f.wide:
		f.pick = f.c.ZMM()
		f.c.VMOVDQU32(f.picks(f.width), f.pick)
	case f.width == 16 && !f.floats():
		f.pick = f.c.YMM()
		f.c.VMOVDQU(f.halves(), f.pick)
	}
	if f.use == floatsAVX512 && f.offset != 0 {
		f.above = f.vector(f.lanes())
		f.c.VBROADCASTSS(f.repeatedFloat(8, f.offset), f.above)
	}
	lanes := f.lanes()
	count := 32 / lanes
	if f.wide {
		lanes = 16
	}
	for range count {
		f.sums = append(f.sums, f.vector(lanes))
	}
	if f.wide { // minima are of eight groups
		f.sums = append(f.sums, f.c.YMM())
	}
}

// eachRow writes the loops over rows and blocks.
func (f *unpacked) eachRow(p planes, values int, scales func(at [3]operand.Mem, put put), do func(from operand.Mem, group int)) {
	f.prepare()
	f.c.Label("row")
	f.c.Load(f.c.Param("x"), f.to)
	f.c.Load(f.c.Param("n"), f.n)
	f.c.MOVQ(f.w, f.from)
	for _, r := range []struct {
		name string
		size int
		reg  reg.GPVirtual
	}{{"plane1", p[1], f.plane1}, {"plane2", p[2], f.plane2}} {
		if r.size > 0 {
			f.c.Load(f.c.Param(r.name), r.reg)
			f.c.ADDQ(f.w, r.reg)
		}
	}
	var groups []reg.GPVirtual
	if !f.floats() {
		f.c.Load(f.c.Param("scale"), f.scale)
		groups = append(groups, f.scale)
	}
	if f.subtracts() {
		f.c.Load(f.c.Param("sum"), f.sum)
		groups = append(groups, f.sum)
	}
	for _, v := range f.sums {
		f.zero(v)
	}
	advance := func(blocks int) {
		for i, r := range []reg.GPVirtual{f.from, f.plane1, f.plane2} {
			if p[i] > 0 {
				f.c.ADDQ(operand.U32(p[i]*blocks), r)
			}
		}
		size := 1
		if f.floats() {
			size = 4
		}
		f.c.ADDQ(operand.U32(size*values*blocks), f.to)
		for _, r := range groups {
			f.c.ADDQ(operand.U32(4*values/f.width*blocks), r)
		}
	}
	where := [3]operand.Mem{at(f.from, 0)}
	if p[1] > 0 {
		where[1] = at(f.plane1, 0)
	}
	if p[2] > 0 {
		where[2] = at(f.plane2, 0)
	}
	if values == 32 {
		f.some(8, func() {
			f.prefetch(f.from, 8*p[0])
			scales(where, f.put)
			step := 1
			if f.wide {
				step = 2
			}
			for i := 0; i < 8; i += step {
				do(at(f.from, p[0]*i), i)
			}
			advance(8)
		})
		f.alone = true
	}
	f.c.Label("block")
	if f.alone {
		f.blockAlone(where, p)
	} else {
		f.prefetch(f.from, p[0])
		scales(where, f.put)
	}
	do(at(f.from, 0), 0)
	advance(1)
	f.c.DECQ(f.n)
	f.c.JNE(operand.LabelRef("block"))
	f.c.Label("done")
	total := f.sums
	if f.wide {
		half, minima := f.c.YMM(), f.sums[len(f.sums)-1]
		total = f.sums[:len(f.sums)-1]
		f.add(total)
		f.c.VEXTRACTF64X4(operand.U8(1), total[0], half)
		f.c.VADDPS(half, minima, minima)
		f.c.VADDPS(total[0].AsY(), minima, minima)
		total = []reg.VecVirtual{minima}
	}
	f.add(total)
	f.c.VMOVSS(f.total(total[0]), at(f.y, 0))
	f.c.ADDQ(operand.U8(4), f.y)
	stride, err := f.c.Param("stride").Resolve()
	if err != nil {
		panic(err)
	}
	f.c.ADDQ(stride.Addr, f.w)
	f.c.DECQ(f.rows)
	f.c.JNE(operand.LabelRef("row"))
	f.end()
}

// summed says whether products with floats are added up by group before its scale meets them, which takes fewer instructions
// but needs the sums of x. With AVX-512 each integer is multiplied with its scale.
func (f *unpacked) summed() bool { return f.use == floatsAVX2 }

// subtracts says whether minima, or offsets times scales, are subtracted as products with sums of x.
func (f *unpacked) subtracts() bool {
	return f.use != floatsAVX512 && (f.affine || f.offset != 0)
}

// put stores scales, times those of x, and subtracts minima, or stores them for AVX-512 if x has floats.
func (f *unpacked) put(least bool, i int, v reg.VecVirtual) {
	switch {
	case least && f.use == floatsAVX512:
		f.c.VMOVUPS(v, f.mins.Offset(32*i))
		return
	case least:
		f.c.VFNMADD231PS(at(f.sum, 32*i), v, f.minima())
		return
	case f.floats():
		f.c.VMOVUPS(v, f.scales.Offset(32*i))
	default:
		s := f.c.YMM()
		f.c.VMULPS(at(f.scale, 32*i), v, s)
		f.c.VMOVUPS(s, f.scales.Offset(32*i))
	}
	if f.subtracts() && f.offset != 0 {
		f.c.VMULPS(f.repeatedFloat(8, f.offset), v, v)
		f.c.VFNMADD231PS(at(f.sum, 32*i), v, f.minima())
	}
}

// minima is what minima are subtracted from.
func (f *unpacked) minima() reg.Register { return f.sums[len(f.sums)-1].AsY() }

func (b *blocks) repeatedFloat(times int, v float32) operand.Mem {
	bits := math.Float32bits(v)
	return b.repeated(times, byte(bits), byte(bits>>8), byte(bits>>16), byte(bits>>24))
}

// blockAlone is put for a block of 32 whose neighbours' scales may not be there.
func (f *unpacked) blockAlone(where [3]operand.Mem, p planes) {
	last := where[1]
	if p[2] > 0 {
		last = where[2]
	}
	r, d, least := f.c.GP32(), f.c.XMM(), f.c.XMM()
	if f.affine {
		f.c.MOVL(last, r)
	} else {
		f.c.MOVWLZX(last, r)
	}
	f.c.VMOVD(r, d)
	f.c.VCVTPH2PS(d, d)
	if f.affine {
		f.c.VMOVSHDUP(d, least)
		f.c.VXORPS(f.repeated(8, 0, 0, 0, 0x80), least, least)
	} else if f.offset != 0 {
		f.c.VMULPS(f.repeatedFloat(8, f.offset), d, least)
	}
	scale := f.vector(f.lanes())
	f.single[0] = scale
	if f.use == floatsAVX512 {
		f.c.VBROADCASTSS(d, scale)
		if f.affine || f.offset != 0 {
			f.single[1] = f.vector(f.lanes())
			f.c.VBROADCASTSS(least, f.single[1])
		}
		return
	}
	if f.subtracts() {
		// Lanes but the first are zero in what is loaded, and so in the products.
		sum := f.c.XMM()
		f.c.VMOVSS(at(f.sum, 0), sum)
		f.c.VFNMADD231PS(sum.AsY(), least.AsY(), f.minima())
	}
	if !f.floats() {
		f.c.VMULSS(at(f.scale, 0), d, d)
	}
	f.c.VBROADCASTSS(d, scale)
}

func (f *unpacked) lanes() int {
	if f.use == floatsAVX512 {
		return 16
	}
	return 8
}

// add adds vectors to the first.
func (b *blocks) add(v []reg.VecVirtual) {
	for _, w := range v[1:] {
		b.c.VADDPS(w, v[0], v[0])
	}
}

// multiply adds the products of the integers of group of 32 values i.
func (f *unpacked) multiply(i int, v reg.VecVirtual) {
	if f.floats() {
		f.multiplyFloats(i, f.parts(v), f.c.VPMOVZXBD)
		return
	}
	w := f.c.YMM()
	if f.dots() {
		f.zero(w)
		f.dotBytes(at(f.to, 32*i), v, w)
	} else {
		f.c.VPMADDUBSW(at(f.to, 32*i), v, w)
		f.c.VPMADDWD(f.ones, w, w)
	}
	f.weighted(i, w, f.sums[i%4])
}

// weighted adds integers times the scale of group i, or times the two of its halves.
func (f *unpacked) weighted(i int, w reg.VecVirtual, sum reg.Register) {
	f.c.VCVTDQ2PS(w, w)
	scale := f.single[0]
	if !f.alone {
		scale = f.c.YMM()
		if f.width == 16 {
			f.c.VBROADCASTSD(f.scales.Offset(8*i), scale)
			f.c.VPERMILPS(f.pick, scale, scale)
		} else {
			f.c.VBROADCASTSS(f.scales.Offset(4*i), scale)
		}
	}
	f.c.VFMADD231PS(scale, w, sum)
}

// parts are the bytes of v from each multiple of lanes on.
func (f *unpacked) parts(v reg.VecVirtual) func(at int) operand.Op {
	upper := f.c.XMM()
	return func(at int) operand.Op {
		switch at {
		case 0:
			return v.AsX()
		case 16:
			f.c.VEXTRACTI128(operand.U8(1), v, upper)
			return upper
		case 8:
			return f.upper(v.AsX())
		}
		return f.upper(upper)
	}
}

// multiplyFloats adds the products of 32 integers, of which from gives the bytes at multiples of lanes.
func (f *unpacked) multiplyFloats(i int, from func(at int) operand.Op, extend func(ops ...operand.Op)) {
	if f.summed() {
		f.sumFloats(i, from, extend)
		return
	}
	lanes := f.lanes()
	var scale, least reg.VecVirtual
	for j := 0; j < 32/lanes; j++ {
		group := i
		if f.width == 16 {
			group = 2*i + j*lanes/16
		}
		switch {
		case f.alone:
			scale, least = f.single[0], f.single[1]
		case j*lanes%f.width == 0:
			scale, least = f.vector(lanes), f.vector(lanes)
			f.c.VBROADCASTSS(f.scales.Offset(4*group), scale)
			switch {
			case f.affine:
				f.c.VBROADCASTSS(f.mins.Offset(4*group), least)
			case !f.signed:
				f.c.VMULPS(f.above, scale, least) // exact: offsets are powers of two
			}
		}
		v := f.vector(lanes)
		extend(from(j*lanes), v)
		f.c.VCVTDQ2PS(v, v)
		if f.signed {
			f.c.VMULPS(scale, v, v)
		} else {
			f.c.VFMSUB213PS(least, scale, v)
		}
		f.c.VFMADD231PS(at(f.to, 4*(32*i+j*lanes)), v, f.sums[(i*32/lanes+j)%len(f.sums)])
	}
}

// sumFloats is multiplyFloats with a scale for the sum of a group.
func (f *unpacked) sumFloats(i int, from func(at int) operand.Op, extend func(ops ...operand.Op)) {
	for j := 0; j < 32; j += f.width {
		var sum reg.VecVirtual
		for k := j; k < j+f.width; k += 8 {
			v := f.c.YMM()
			extend(from(k), v)
			f.c.VCVTDQ2PS(v, v)
			if x := at(f.to, 4*(32*i+k)); k == j {
				sum = v
				f.c.VMULPS(x, sum, sum)
			} else {
				f.c.VFMADD231PS(x, v, sum)
			}
		}
		scale := f.single[0]
		if !f.alone {
			scale = f.c.YMM()
			f.c.VBROADCASTSS(f.scales.Offset(4*(32*i+j)/f.width), scale)
		}
		f.c.VFMADD231PS(scale, sum, f.sums[(i*32+j)/f.width%4])
	}
}

// halves is the table for two scales.
func (b *blocks) halves() operand.Mem {
	var t []byte
	for i := range 8 {
		t = append(t, byte(i/4), 0, 0, 0)
	}
	return b.table("blocksHalves", t...)
}

// picks is the table that gives each of 16 lanes, of four values, the scale of its group.
func (b *blocks) picks(width int) operand.Mem {
	var t []byte
	for lane := range 16 {
		t = append(t, byte(lane*4/width), 0, 0, 0)
	}
	return b.table(fmt.Sprintf("blocksPick%d", width), t...)
}
