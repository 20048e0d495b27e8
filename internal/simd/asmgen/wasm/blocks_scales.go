package wasm

// scaler writes code that computes the scales of blocks, and their minima.
type scaler struct {
	*blocks
	first, second, third local                        // planes
	take                 func(v local, at, count int) // code for scales in a vector, 4 or 1 of them, or minima: from callB on
	most                 local                        // what they have most of in bits, if not 0: see finite
}

// scalesFunction writes the scales of n blocks to callA, and minima to callB: typeBlocks.
func scalesFunction(l *layout) function {
	b := &blocks{&assembler{params: 6}, blocksCall}
	to := b.let(b.c)
	s := &scaler{blocks: b, first: blocksFirst, second: blocksSecond, third: blocksThird, take: func(v local, at, count int) {
		b.get(to, v)
		if count == 1 {
			b.laneMemory(vStore32Lane, at, 0)
		} else {
			b.vmemory(vStore, at)
		}
	}}
	b.counted(blocksN, l.atATime(), func(count int) {
		l.scales(s, count)
		for p, size := range l.sizes {
			if size > 0 {
				b.add(blocksFirst+local(p), size*count)
			}
		}
		b.add(to, 4*count*l.values/l.width)
	})
	return b.function(typeBlocks)
}

// atATime is how many blocks have their scales computed together: most, and then those that are left.
func (l *layout) atATime() []int {
	if l.values == 32 {
		return []int{4, 1}
	}
	return []int{1}
}

// widen pushes the halves in the lower parts of lanes as float32. Exponents count from 112 less: f is right but for subnormal
// halves, which have no leading one. Then 2f − 2⁻¹⁴, which is greater for others, is. Instructions on subnormal float32 would
// take processors a hundred cycles, and scales of blocks of blocks often are subnormal halves. Inf and NaN stay what they are.
func (b *blocks) widen(v local) {
	bits := b.local(v128)
	b.get(v)
	b.splat(0x7fff)
	b.simd(vAnd)
	b.shift(i32x4Shl, 13)
	b.tee(bits)
	b.rebias()
	b.get(bits)
	b.splat(0x0f7fffff)
	b.simd(i32x4GtS)
	b.splat(0x7f800000)
	b.simd(vAnd, vOr)
	b.get(v)
	b.shift(i32x4Shl, 16)
	b.splat(1 << 31)
	b.simd(vAnd, vOr)
}

// rebias replaces the magnitudes of finite halves, 13 bits further up, by those of float32.
func (b *blocks) rebias() {
	f := b.local(v128)
	b.splat(112 << 23)
	b.simd(i32x4Add)
	b.tee(f)
	b.get(f, f)
	b.simd(f32x4Add)
	b.splat(113 << 23)
	b.simd(f32x4Sub, f32x4PMin)
}

func (b *blocks) splat(v uint32) { b.vector([4]uint32{v, v, v, v}) }

// finite pushes halves, of which the lower bits of lanes have the magnitude and the upper ones the sign, as float32. What is pushed
// instead of Inf and NaN is finite: their bits, which most keeps the greatest of, are beyond infinite.
func (s *scaler) finite(bits, sign func()) {
	b := s.local(v128)
	bits()
	s.splat(0x7fff << 13)
	s.simd(vAnd)
	s.tee(b)
	s.get(s.most)
	s.simd(i32x4MaxS)
	s.set(s.most)
	s.get(b)
	s.rebias()
	sign()
	s.splat(1 << 31)
	s.simd(vAnd, vOr)
}

const infinite = 0x7c00 << 13

// halves is for blocks with a half each, in plane 2.
func halves(s *scaler, count int) {
	v := s.local(v128)
	s.get(s.third)
	if s.most != 0 {
		s.loadBytes(vLoad16x4S, 0)
		s.set(v)
		s.finite(func() {
			s.get(v)
			s.shift(i32x4Shl, 13)
		}, func() { s.get(v) })
	} else {
		s.loadBytes(map[int]int{4: vLoad16x4U, 1: vLoad16Splat}[count], 0)
		s.set(v)
		s.widen(v)
	}
	s.set(v)
	s.take(v, callA, count)
}

// pairs is for blocks with a half and one that is added, in plane 2.
func pairs(s *scaler, count int) {
	v, d := s.local(v128), s.local(v128)
	s.get(s.third)
	s.loadBytes(map[int]int{4: vLoad, 1: vLoad32Zero}[count], 0)
	s.set(v)
	if s.most != 0 {
		s.finite(func() {
			s.get(v)
			s.shift(i32x4Shl, 13)
		}, func() {
			s.get(v)
			s.shift(i32x4Shl, 16)
		})
	} else {
		s.widen(v)
	}
	s.set(d)
	s.take(d, callA, count)
	s.get(v)
	s.splat(1 << 31) // what is subtracted
	s.simd(vXor)
	s.set(v)
	if s.most != 0 {
		s.finite(func() {
			s.get(v)
			s.shift(i32x4ShrU, 3)
		}, func() { s.get(v) })
	} else {
		s.get(v)
		s.shift(i32x4ShrU, 16)
		s.set(v)
		s.widen(v)
	}
	s.set(v)
	s.take(v, callB, count)
}

// half is a new variable with the half at an address in all lanes.
func (s *scaler) half(plane local, at int) local {
	v := s.local(v128)
	s.get(plane)
	s.loadBytes(vLoad16Splat, at)
	s.set(v)
	s.widen(v)
	s.set(v)
	return v
}

// scaled writes eight bytes of a vector, those that an instruction extends, times d.
func (s *scaler) scaled(bytes local, extend int, d local, at int) {
	wide, v := s.local(v128), s.local(v128)
	s.get(bytes)
	s.simd(extend)
	s.set(wide)
	for k, op := range []int{i32x4ExtendLow, i32x4ExtendHigh} {
		s.get(wide)
		s.simd(op, f32x4Convert)
		s.get(d)
		s.simd(f32x4Mul)
		s.set(v)
		s.take(v, at+16*k, 4)
	}
}

// allScaled writes all bytes of a vector, times d.
func (s *scaler) allScaled(bytes, d local, signed bool, at int) {
	low, high := i16x8ExtendLowU, i16x8ExtendHighU
	if signed {
		low, high = i16x8ExtendLow, i16x8ExtendHigh
	}
	s.scaled(bytes, low, d, at)
	s.scaled(bytes, high, d, at+32)
}

func scalesQ2K(s *scaler, _ int) {
	both, part := s.local(v128), s.local(v128)
	s.get(s.first)
	s.loadBytes(vLoad, 0)
	s.tee(both)
	s.splat(0x0f0f0f0f)
	s.simd(vAnd)
	s.set(part)
	s.allScaled(part, s.half(s.third, 0), false, callA)
	s.get(both)
	s.shift(i16x8ShrU, 4)
	s.splat(0x0f0f0f0f)
	s.simd(vAnd)
	s.set(part)
	s.allScaled(part, s.half(s.third, 2), false, callB)
}

// scalesQ3K: see quant.UnpackScalesQ3K.
func scalesQ3K(s *scaler, _ int) {
	v := s.local(v128)
	s.get(s.second)
	s.loadBytes(vLoad64Splat, 0)
	s.tee(v)
	s.get(v)
	s.shift(i16x8ShrU, 4)
	s.shuffle(0, 1, 4, 5)
	s.splat(0x0f0f0f0f)
	s.simd(vAnd)
	s.get(s.second)
	s.loadBytes(vLoad32Splat, 8) // of its bits, lanes need those from 0, 2, 4 and 6 on, at 4
	s.vector([4]uint32{64, 16, 4, 1})
	s.simd(i32x4Mul)
	s.shift(i32x4ShrU, 2)
	s.splat(0x30303030)
	s.simd(vAnd, vOr)
	s.splat(0x20202020)
	s.simd(i8x16Sub)
	s.set(v)
	s.allScaled(v, s.half(s.third, 0), true, callA)
}

// scalesK4 is for Q4_K and Q5_K. The words s0 s1 s2 become those of scales 0 to 3, minima 0 to 3, and the upper ones of both;
// see quant.UnpackScalesK4.
func scalesK4(s *scaler, _ int) {
	v, low := s.local(v128), s.local(v128)
	s.get(s.first)
	s.loadBytes(vLoad64Zero, 4)
	s.tee(v)
	s.splat(0x3f3f3f3f)
	s.simd(vAnd)
	s.get(s.first)
	s.loadBytes(vLoad32Splat, 12)
	s.tee(low)
	s.get(low)
	s.shift(i32x4ShrU, 4)
	s.shuffle(0, 4, 0, 4)
	s.splat(0x0f0f0f0f)
	s.simd(vAnd)
	s.get(v)
	s.shift(i32x4ShrU, 2)
	s.splat(0x30303030)
	s.simd(vAnd, vOr)
	s.shuffle(0, 4, 1, 5) // scales, then minima
	s.set(v)
	d, least := s.local(v128), s.local(v128)
	s.get(s.first)
	s.loadBytes(vLoad16x4U, 0) // both and what follows
	s.set(d)
	s.widen(d)
	s.tee(d)
	s.get(d)
	s.shuffle(1, 1, 1, 1)
	s.set(least)
	s.get(d, d)
	s.shuffle(0, 0, 0, 0)
	s.set(d)
	s.scaled(v, i16x8ExtendLowU, d, callA)
	s.scaled(v, i16x8ExtendHighU, least, callB)
}

func scalesQ6K(s *scaler, _ int) {
	v := s.local(v128)
	s.get(s.first)
	s.loadBytes(vLoad, 192)
	s.set(v)
	s.allScaled(v, s.half(s.third, 0), true, callA)
}
