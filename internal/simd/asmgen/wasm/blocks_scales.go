package wasm

// Scales of blocks: functions of typeBlocks that write those of n blocks to callA, and minima to callB, or what becomes of them
// in a product with one row of x.

type scaler struct {
	*blocks
	to         local // c, and what was written
	weighed    bool
	affine     bool
	scale, sum local // of x
	total      local
}

// scalesFunction writes a loop over blocks, several at a time; sizes are the bytes of a block in each plane and its number of
// scales.
func scalesFunction(weighed, affine bool, counts []int, sizes [3]int, scales int, do func(s *scaler, count int)) function {
	b := &blocks{&assembler{params: 6}, blocksCall}
	s := &scaler{blocks: b, weighed: weighed, affine: affine}
	pointers := []local{b.let(b.c)}
	s.to = pointers[0]
	if weighed {
		b.assign(s.to, b.c, member(callTo), plus)
		s.scale, s.sum, s.total = b.let(blocksX, member(callScale), plus), b.let(blocksX, member(callSum), plus), b.zero(v128)
		pointers = append(pointers, s.scale, s.sum)
	}
	b.counted(blocksN, counts, func(count int) {
		do(s, count)
		for p, size := range sizes {
			if size > 0 {
				b.add(blocksFirst+local(p), size*count)
			}
		}
		for _, p := range pointers {
			b.add(p, 4*scales*count)
		}
	})
	if weighed {
		b.sum(s.total)
	} else {
		b.f32(0)
	}
	return b.function(typeBlocks)
}

// widen pushes the halves in the lower parts of lanes as float32. Exponents count from 112 less: f is right but for subnormal
// halves, which have no leading one. Then 2f − 2⁻¹⁴, which is greater for others, is. Instructions on subnormal float32 would
// take processors a hundred cycles, and scales of blocks of blocks often are subnormal halves. Inf and NaN stay what they are.
func (b *blocks) widen(v local) {
	bits, f := b.local(v128), b.local(v128)
	b.get(v)
	b.splat(0x7fff)
	b.simd(vAnd)
	b.shift(i32x4Shl, 13)
	b.tee(bits)
	b.splat(112 << 23)
	b.simd(i32x4Add)
	b.tee(f)
	b.get(f, f)
	b.simd(f32x4Add)
	b.splat(113 << 23)
	b.simd(f32x4Sub, f32x4PMin)
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

func (b *blocks) splat(v uint32) { b.vector([4]uint32{v, v, v, v}) }

// store writes count lanes of a vector, 4 or 1, or weighs them.
func (s *scaler) store(v local, at, count int) {
	minima := at >= callB
	if !s.weighed {
		s.get(s.to, v)
		s.write(at, count)
		return
	}
	at -= callA
	if minima {
		at -= callB - callA
	} else {
		s.get(s.to, v)
		s.read(s.scale, at, count)
		s.simd(f32x4Mul)
		s.write(callS+at, count)
	}
	if minima == s.affine {
		s.get(s.total, v)
		s.read(s.sum, at, count)
		s.simd(f32x4Mul, f32x4Add)
		s.set(s.total)
	}
}

// write stores count lanes of the vector that is pushed.
func (s *scaler) write(at, count int) {
	if count == 1 {
		s.laneMemory(vStore32Lane, at, 0)
	} else {
		s.vmemory(vStore, at)
	}
}

// read pushes count float32.
func (s *scaler) read(from local, at, count int) {
	s.get(from)
	if count == 1 {
		s.vmemory(vLoad32Zero, at)
	} else {
		s.vmemory(vLoad, at)
	}
}

// halves is for blocks with a half each, in plane 2.
func halves(weighed bool) function {
	return scalesFunction(weighed, false, []int{8, 1}, [3]int{0, 0, 2}, 1, func(s *scaler, count int) {
		v := s.local(v128)
		for i := 0; i < count; i += 4 {
			s.get(blocksThird)
			s.loadBytes(map[int]int{8: vLoad16x4U, 1: vLoad16Splat}[count], 2*i)
			s.set(v)
			s.widen(v)
			s.set(v)
			s.store(v, callA+4*i, min(count, 4))
		}
	})
}

// pairs is for blocks with a half and one that is added, in plane 2.
func pairs(weighed bool) function {
	return scalesFunction(weighed, true, []int{4, 1}, [3]int{0, 0, 4}, 1, func(s *scaler, count int) {
		v := s.local(v128)
		s.get(blocksThird)
		s.loadBytes(map[int]int{4: vLoad, 1: vLoad32Zero}[count], 0)
		s.set(v)
		d := s.local(v128)
		s.widen(v)
		s.set(d)
		s.store(d, callA, count)
		s.get(v)
		s.shift(i32x4ShrU, 16)
		s.set(v)
		s.widen(v)
		s.simd(f32x4Neg)
		s.set(v)
		s.store(v, callB, count)
	})
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
		s.store(v, at+16*k, 4)
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

func scalesQ2K(weighed bool) function {
	return scalesFunction(weighed, true, []int{1}, [3]int{80, 0, 4}, 16, func(s *scaler, _ int) {
		both, part := s.local(v128), s.local(v128)
		s.get(blocksFirst)
		s.loadBytes(vLoad, 0)
		s.tee(both)
		s.splat(0x0f0f0f0f)
		s.simd(vAnd)
		s.set(part)
		s.allScaled(part, s.half(blocksThird, 0), false, callA)
		s.get(both)
		s.shift(i16x8ShrU, 4)
		s.splat(0x0f0f0f0f)
		s.simd(vAnd)
		s.set(part)
		s.allScaled(part, s.half(blocksThird, 2), false, callB)
	})
}

// scalesQ3K: see quant.UnpackScalesQ3K.
func scalesQ3K(weighed bool) function {
	return scalesFunction(weighed, false, []int{1}, [3]int{96, 12, 2}, 16, func(s *scaler, _ int) {
		v := s.local(v128)
		s.get(blocksSecond)
		s.loadBytes(vLoad64Splat, 0)
		s.tee(v)
		s.get(v)
		s.shift(i16x8ShrU, 4)
		s.shuffle(0, 1, 4, 5)
		s.splat(0x0f0f0f0f)
		s.simd(vAnd)
		s.get(blocksSecond)
		s.loadBytes(vLoad32Splat, 8) // of its bits, lanes need those from 0, 2, 4 and 6 on, at 4
		s.vector([4]uint32{64, 16, 4, 1})
		s.simd(i32x4Mul)
		s.shift(i32x4ShrU, 2)
		s.splat(0x30303030)
		s.simd(vAnd, vOr)
		s.splat(0x20202020)
		s.simd(i8x16Sub)
		s.set(v)
		s.allScaled(v, s.half(blocksThird, 0), true, callA)
	})
}

// scalesK4 is for Q4_K and Q5_K. The words s0 s1 s2 become those of scales 0 to 3, minima 0 to 3, and the upper ones of both;
// see quant.UnpackScalesK4.
func scalesK4(size int, weighed bool) function {
	return scalesFunction(weighed, true, []int{1}, [3]int{size, 0, 0}, 8, func(s *scaler, _ int) {
		v, low := s.local(v128), s.local(v128)
		s.get(blocksFirst)
		s.loadBytes(vLoad64Zero, 4)
		s.tee(v)
		s.splat(0x3f3f3f3f)
		s.simd(vAnd)
		s.get(blocksFirst)
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
		s.get(blocksFirst)
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
	})
}

func scalesQ6K(weighed bool) function {
	return scalesFunction(weighed, false, []int{1}, [3]int{208, 0, 2}, 16, func(s *scaler, _ int) {
		v := s.local(v128)
		s.get(blocksFirst)
		s.loadBytes(vLoad, 192)
		s.set(v)
		s.allScaled(v, s.half(blocksThird, 0), true, callA)
	})
}
