package ptx_test

import "github.com/wavelane/wavelane/ptx"

func init() {
	covers = append(covers,
		cover{"integers", "sm_50", "4.3", func(k *kernel) {
			integers[int16](k)
			integers[uint16](k)
			integers[int32](k)
			integers[uint32](k)
			integers[int64](k)
			integers[uint64](k)
			words[int32](k)
			words[uint32](k)
			words[int64](k)
			words[uint64](k)
			keep(k, ptx.Add(k.Kernel, get[int32](k), get[int32](k), ptx.Sat), ptx.MadHi(k.Kernel, get[int32](k), get[int32](k),
				get[int32](k), ptx.Sat))
		}},
		cover{"signs", "sm_50", "6.0", func(k *kernel) {
			signed[int16](k)
			signed[int32](k)
			signed[int64](k)
			keep(k, ptx.MulWideU32(k.Kernel, get[uint32](k), get[uint32](k)),
				ptx.MadWideU32(k.Kernel, get[uint32](k), get[uint32](k), get[uint64](k)))
			keep(k, ptx.MulWideS32(k.Kernel, get[int32](k), get[int32](k)),
				ptx.MadWideS32(k.Kernel, get[int32](k), get[int32](k), get[int64](k)))
			keep(k, ptx.MulWideU16(k.Kernel, get[uint16](k), get[uint16](k)),
				ptx.MadWideU16(k.Kernel, get[uint16](k), get[uint16](k), get[uint32](k)))
			keep(k, ptx.MulWideS16(k.Kernel, get[int16](k), get[int16](k)),
				ptx.MadWideS16(k.Kernel, get[int16](k), get[int16](k), get[int32](k)))
			x, y := get[uint32](k), get[uint32](k)
			keep(k, ptx.ShfL(k.Kernel, x, y, ptx.Imm[uint32](3), true), ptx.ShfR(k.Kernel, x, y, get[uint32](k), false))
			keep(k, ptx.Lop3(k.Kernel, x, y, get[uint32](k), ptx.LUT(func(a, b, c uint8) uint8 { return a&b | ^c })))
			keep(k, ptx.Prmt(k.Kernel, x, y, ptx.Imm[uint32](0x3210)), ptx.Fns(k.Kernel, x, y, get[int32](k)))
		}},
		cover{"dp4a", "sm_61", "5.0", func(k *kernel) {
			keep(k, ptx.Dp4a(k.Kernel, get[ptx.S8x4](k), get[ptx.U8x4](k), get[int32](k)))
			keep(k, ptx.Dp4a(k.Kernel, get[ptx.U8x4](k), ptx.Imm[ptx.U8x4](0x01010101), get[uint32](k)))
		}},
		cover{"f32", "sm_50", "4.0", func(k *kernel) {
			floats[float32](k, ptx.FTZ)
			x, y, z := get[float32](k), get[float32](k), get[float32](k)
			keep(k, ptx.Add(k.Kernel, x, y, ptx.FTZ, ptx.RZ, ptx.Sat), ptx.Sub(k.Kernel, x, ptx.Imm[float32](1.5), ptx.RM),
				ptx.Mul(k.Kernel, x, y, ptx.RP), ptx.Fma(k.Kernel, x, y, z, ptx.RN, ptx.Sat))
			keep(k, ptx.Div(k.Kernel, x, y), ptx.Div(k.Kernel, x, y, ptx.Approx, ptx.FTZ), ptx.Div(k.Kernel, x, y, ptx.Full))
			keep(k, ptx.Sqrt(k.Kernel, x), ptx.Sqrt(k.Kernel, x, ptx.Approx), ptx.Rcp(k.Kernel, x, ptx.Approx, ptx.FTZ),
				ptx.Rcp(k.Kernel, x), ptx.Rsqrt(k.Kernel, x), ptx.Sin(k.Kernel, x), ptx.Cos(k.Kernel, x), ptx.Lg2(k.Kernel, x),
				ptx.Ex2(k.Kernel, x, ptx.FTZ), ptx.Copysign(k.Kernel, x, y))
			keepP(k, ptx.TestP(k.Kernel, ptx.Finite, x), ptx.TestP(k.Kernel, ptx.Infinite, x), ptx.TestP(k.Kernel, ptx.IsNumber, x),
				ptx.TestP(k.Kernel, ptx.NotNumber, x), ptx.TestP(k.Kernel, ptx.Normal, x), ptx.TestP(k.Kernel, ptx.Subnormal, x))
		}},
		cover{"f32_80", "sm_80", "7.0", func(k *kernel) {
			x, y := get[float32](k), get[float32](k)
			keep(k, ptx.Min(k.Kernel, x, y, ptx.NaN), ptx.Max(k.Kernel, x, y, ptx.FTZ, ptx.NaN), ptx.Tanh(k.Kernel, x))
		}},
		cover{"f32_86", "sm_86", "7.2", func(k *kernel) {
			keep(k, ptx.Min(k.Kernel, get[float32](k), get[float32](k), ptx.NaN, ptx.XorSignAbs))
		}},
		cover{"f64", "sm_50", "4.0", func(k *kernel) {
			floats[float64](k)
			x, y := get[float64](k), get[float64](k)
			keep(k, ptx.Div(k.Kernel, x, y), ptx.Sqrt(k.Kernel, x, ptx.RZ), ptx.Rcp(k.Kernel, x), ptx.Rsqrt(k.Kernel, x),
				ptx.Copysign(k.Kernel, x, y), ptx.Add(k.Kernel, x, ptx.Imm(0.1)))
			keepP(k, ptx.TestP(k.Kernel, ptx.Subnormal, x))
		}},
		cover{"f16", "sm_80", "7.0", func(k *kernel) {
			halves[ptx.F16](k)
			halves[ptx.F16x2](k)
			keep(k, ptx.Ex2(k.Kernel, get[ptx.F16](k)), ptx.Tanh(k.Kernel, get[ptx.F16](k)))
			keep(k, ptx.Ex2(k.Kernel, get[ptx.F16x2](k)), ptx.Tanh(k.Kernel, get[ptx.F16x2](k)))
			keep(k, ptx.Add(k.Kernel, get[ptx.F16](k), ptx.Imm(ptx.F16Of(1)), ptx.FTZ, ptx.Sat))
			keep(k, ptx.Fma(k.Kernel, get[ptx.F16x2](k), ptx.Imm(ptx.PairF16(1, 2)), get[ptx.F16x2](k), ptx.Relu))
			lo, hi := ptx.SetP2(k.Kernel, ptx.LT, get[ptx.F16x2](k), get[ptx.F16x2](k))
			keepP(k, lo, hi)
		}},
		cover{"bf16", "sm_90", "7.8", func(k *kernel) {
			halves[ptx.BF16](k)
			halves[ptx.BF16x2](k)
			keep(k, ptx.Ex2(k.Kernel, get[ptx.BF16](k), ptx.FTZ), ptx.Tanh(k.Kernel, get[ptx.BF16](k)), ptx.Imm(ptx.BF16Of(2)))
			keep(k, ptx.Ex2(k.Kernel, get[ptx.BF16x2](k), ptx.FTZ), ptx.Tanh(k.Kernel, get[ptx.BF16x2](k)),
				ptx.Imm(ptx.PairBF16(1, 2)))
			lo, hi := ptx.SetP2(k.Kernel, ptx.GE, get[ptx.BF16x2](k), get[ptx.BF16x2](k))
			keepP(k, lo, hi)
		}},
		cover{"comparisons", "sm_53", "4.2", func(k *kernel) {
			compares[int16](k)
			compares[uint32](k)
			compares[int64](k)
			compares[float32](k, ptx.EQU, ptx.NEU, ptx.LTU, ptx.LEU, ptx.GTU, ptx.GEU, ptx.Num, ptx.Nan)
			compares[float64](k, ptx.GEU, ptx.Num)
			compares[ptx.F16](k, ptx.LTU)
		}},
	)
}

func integers[T ptx.Integer](k *kernel) {
	x, y, z := get[T](k), get[T](k), get[T](k)
	n := get[uint32](k)
	kk := k.Kernel
	keep(k, ptx.Add(kk, x, y), ptx.Sub(kk, x, ptx.Imm[T](7)), ptx.Mul(kk, x, y), ptx.MulHi(kk, x, y), ptx.Mad(kk, x, y, z),
		ptx.MadHi(kk, x, y, z), ptx.Div(kk, x, y), ptx.Rem(kk, x, y), ptx.Min(kk, x, y), ptx.Max(kk, x, y), ptx.Sad(kk, x, y, z))
	keep(k, ptx.And(kk, x, y), ptx.Or(kk, x, y), ptx.Xor(kk, x, y), ptx.Not(kk, x), ptx.Cnot(kk, x),
		ptx.Shl(kk, x, n), ptx.Shr(kk, x, n))
	keep(k, ptx.Slct(kk, x, y, get[int32](k)), ptx.Copy(kk, x))
}

func words[T ptx.Index](k *kernel) {
	x, y, n, kk := get[T](k), get[T](k), get[uint32](k), k.Kernel
	keep(k, ptx.Popc(kk, x), ptx.Clz(kk, x), ptx.Bfind(kk, x), ptx.BfindShift(kk, x))
	keep(k, ptx.Bfe(kk, x, n, n), ptx.Bfi(kk, x, y, n, ptx.Imm[uint32](5)), ptx.Brev(kk, x))
	keep(k, ptx.AddWords(kk, []ptx.Reg[T]{x, y, x}, []ptx.Reg[T]{y, y, x})...)
	keep(k, ptx.SubWords(kk, []ptx.Reg[T]{x, y}, []ptx.Reg[T]{y, y})...)
}

func signed[T int16 | int32 | int64](k *kernel) {
	keep(k, ptx.Abs(k.Kernel, get[T](k)), ptx.Neg(k.Kernel, get[T](k)))
}

func floats[T float32 | float64](k *kernel, mods ...ptx.Mod) {
	x, y, z, kk := get[T](k), get[T](k), get[T](k), k.Kernel
	keep(k, ptx.Add(kk, x, y, mods...), ptx.Sub(kk, x, y, mods...), ptx.Mul(kk, x, y, mods...), ptx.Fma(kk, x, y, z, mods...),
		ptx.Min(kk, x, y, mods...), ptx.Max(kk, x, y, mods...), ptx.Abs(kk, x, mods...), ptx.Neg(kk, x, mods...))
}

func halves[T ptx.F16 | ptx.F16x2 | ptx.BF16 | ptx.BF16x2](k *kernel) {
	x, y, z, kk := get[T](k), get[T](k), get[T](k), k.Kernel
	keep(k, ptx.Add(kk, x, y), ptx.Sub(kk, x, y), ptx.Mul(kk, x, y), ptx.Fma(kk, x, y, z), ptx.Min(kk, x, y),
		ptx.Max(kk, x, y, ptx.NaN), ptx.Abs(kk, x), ptx.Neg(kk, x), ptx.Fma(kk, x, y, z, ptx.Relu))
}

func compares[T ptx.Scalar](k *kernel, more ...ptx.Cmp) {
	x, y, kk := get[T](k), get[T](k), k.Kernel
	keepP(k, ptx.Eq(kk, x, y), ptx.Ne(kk, x, y), ptx.Lt(kk, x, y), ptx.Le(kk, x, y), ptx.Gt(kk, x, y), ptx.Ge(kk, x, y))
	p := ptx.SetP(kk, ptx.EQ, x, y)
	for _, c := range append(more, ptx.NE, ptx.LT, ptx.LE, ptx.GT, ptx.GE) {
		p = ptx.SetPWith(kk, c, ptx.OpXor, x, y, p)
	}
	keepP(k, ptx.SetPWith(kk, ptx.GE, ptx.OpOr, x, y, ptx.Not(kk, p)))
	keep(k, ptx.Select(kk, p, x, y))
}
