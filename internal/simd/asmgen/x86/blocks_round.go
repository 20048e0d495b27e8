package x86

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// round writes the function that rounds activations to 8 bits, as Rounded.Round does: the largest value is found among bits, so that NaN
// is larger than Inf, and products with 127/largest have 64 bits until they are rounded.
func (b *blocks) round() {
	p := b.begin("roundAVX2", "func(q *int8, x, scale, sum, scale16, sum16 *float32, n int)",
		"rounds n ≥ 1 blocks of 32 values; see Rounded.", "q", "x", "scale", "sum", "scale16", "sum16", "n")
	q, x, scale, sum, scale16, sum16, n := p[0], p[1], p[2], p[3], p[4], p[5], p[6]
	ones := b.c.XMM()
	b.c.VPCMPEQW(ones, ones, ones)
	b.c.VPSRLW(operand.U8(15), ones, ones)
	least, bits := b.c.YMM(), b.c.GP32()
	b.c.VBROADCASTSS(b.repeatedFloat(1, 127), least)
	b.c.Label("block")
	largest := b.load(at(x, 0))
	mask := b.repeated(32, 0xff, 0xff, 0xff, 0x7f)
	b.c.VPAND(mask, largest, largest)
	for i := 1; i < 4; i++ {
		v := b.load(at(x, 32*i))
		b.c.VPAND(mask, v, v)
		b.c.VPMAXUD(v, largest, largest)
	}
	most, other := largest.AsX(), b.c.XMM()
	b.c.VEXTRACTI128(operand.U8(1), largest, other)
	b.c.VPMAXUD(other, most, most)
	for _, order := range []uint8{0b01001110, 0b10110001} {
		b.c.VPSHUFD(operand.U8(order), most, other)
		b.c.VPMAXUD(other, most, most)
	}
	b.c.VMOVD(most, bits)
	s, zero := b.c.XMM(), b.c.XMM()
	b.zero(zero)
	b.c.VDIVSS(least.AsX(), most, s)
	b.c.VBROADCASTSS(s, s)
	b.c.DECL(bits)
	b.c.CMPL(bits, operand.U32(0x7f800000-1))
	b.c.JAE(operand.LabelRef("special")) // zeros are the largest number now
	inverse, wide := b.c.YMM(), b.c.XMM()
	b.c.VCVTSS2SD(most, most, wide)
	b.c.VCVTSS2SD(least.AsX(), least.AsX(), inverse.AsX())
	b.c.VDIVSD(wide, inverse.AsX(), inverse.AsX())
	b.c.VBROADCASTSD(inverse.AsX(), inverse)
	var sums [2]reg.VecVirtual
	for half := range 2 {
		var words [2]reg.VecVirtual
		for i := range words {
			var d [2]reg.VecVirtual
			for j := range d {
				v := b.c.YMM()
				b.c.VCVTPS2PD(at(x, 64*half+32*i+16*j), v)
				b.c.VMULPD(inverse, v, v)
				d[j] = b.c.XMM()
				b.c.VCVTPD2DQY(v, d[j])
			}
			words[i] = b.c.XMM()
			b.c.VPACKSSDW(d[1], d[0], words[i])
		}
		bytes := b.c.XMM()
		b.c.VPACKSSWB(words[1], words[0], bytes)
		b.c.VMOVDQU(bytes, at(q, 16*half))
		sums[half] = words[0]
		b.c.VPADDW(words[1], words[0], sums[half])
		b.c.VPMADDWD(ones, sums[half], sums[half])
	}
	both, all := sums[0], sums[1]
	b.c.VPHADDD(sums[1], sums[0], both)
	b.c.VPHADDD(both, both, both)
	b.c.VCVTDQ2PS(both, both)
	b.c.VHADDPS(both, both, all) // exact
	b.c.Label("store")
	b.c.VMULPS(s, both, both)
	b.c.VMULPS(s, all, all)
	b.c.VMOVSS(s, at(scale, 0))
	b.c.VMOVSS(all, at(sum, 0))
	b.c.VMOVLPS(s, at(scale16, 0))
	b.c.VMOVLPS(both, at(sum16, 0))
	b.c.ADDQ(operand.U32(128), x)
	b.c.ADDQ(operand.U8(32), q)
	for _, r := range []reg.Register{scale, sum} {
		b.c.ADDQ(operand.U8(4), r)
	}
	for _, r := range []reg.Register{scale16, sum16} {
		b.c.ADDQ(operand.U8(8), r)
	}
	b.c.DECQ(n)
	b.c.JNE(operand.LabelRef("block"))
	b.end()
	b.c.Label("special")
	b.c.VMOVDQU(zero, at(q, 0))
	b.c.VMOVDQU(zero, at(q, 16))
	b.zero(both)
	b.zero(all)
	b.c.CMPL(bits, operand.I8(-1))
	b.c.JEQ(operand.LabelRef("store"))
	b.c.VBROADCASTSS(b.repeated(1, 0, 0, 0xc0, 0x7f), s) // NaN
	b.c.JMP(operand.LabelRef("store"))
}

// groupSums writes the function that adds up groups of values.
func (b *blocks) groupSums(width int) {
	name := map[int]string{16: "groupSums16AVX2", 32: "groupSums32AVX2"}[width]
	p := b.begin(name, "func(sum, x *float32, n int)", "adds up n ≥ 1 groups of values.", "sum", "x", "n")
	sum, x, n := p[0], p[1], p[2]
	group := func(i int) reg.VecVirtual {
		v := b.c.YMM()
		b.c.VMOVUPS(at(x, 4*width*i), v)
		for at4 := 32; at4 < 4*width; at4 += 32 {
			b.c.VADDPS(at(x, 4*width*i+at4), v, v)
		}
		return v
	}
	b.c.SUBQ(operand.U8(8), n)
	b.c.JL(operand.LabelRef("rest"))
	b.c.Label("many")
	var fours [2]reg.VecVirtual
	for k := range fours {
		var pairs [2]reg.VecVirtual
		for i := range pairs {
			v, w := group(4*k+2*i), group(4*k+2*i+1)
			b.c.VHADDPS(w, v, v)
			pairs[i] = v
		}
		b.c.VHADDPS(pairs[1], pairs[0], pairs[0])
		fours[k] = pairs[0]
	}
	low, high := b.c.YMM(), b.c.YMM()
	b.c.VPERM2F128(operand.U8(0x20), fours[1], fours[0], low)
	b.c.VPERM2F128(operand.U8(0x31), fours[1], fours[0], high)
	b.c.VADDPS(high, low, low)
	b.c.VMOVUPS(low, at(sum, 0))
	b.c.ADDQ(operand.U32(32*width), x)
	b.c.ADDQ(operand.U8(32), sum)
	b.c.SUBQ(operand.U8(8), n)
	b.c.JGE(operand.LabelRef("many"))
	b.c.Label("rest")
	b.c.ADDQ(operand.U8(8), n)
	b.c.JEQ(operand.LabelRef("done"))
	b.c.Label("one")
	b.c.VMOVSS(b.total(group(0)), at(sum, 0))
	b.c.ADDQ(operand.U32(4*width), x)
	b.c.ADDQ(operand.U8(4), sum)
	b.c.DECQ(n)
	b.c.JNE(operand.LabelRef("one"))
	b.c.Label("done")
	b.end()
}
