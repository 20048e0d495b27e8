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
			keep(k, get[int32](k).Add(get[int32](k), ptx.Sat), get[int32](k).MadHi(get[int32](k), get[int32](k), ptx.Sat))
		}},
		cover{"signs", "sm_50", "6.0", func(k *kernel) {
			signed[int16](k)
			signed[int32](k)
			signed[int64](k)
			keep(k, get[uint32](k).MulWide(get[uint32](k)),
				get[uint32](k).MadWide(get[uint32](k), get[uint64](k)))
			keep(k, ptx.WideProduct[int64](get[int32](k), get[int32](k)),
				ptx.WideSum[int64](get[int32](k), get[int32](k), get[int64](k)))
			keep(k, ptx.WideProduct[uint32](get[uint16](k), get[uint16](k)),
				ptx.WideSum[uint32](get[uint16](k), get[uint16](k), get[uint32](k)))
			keep(k, ptx.WideProduct[int32](get[int16](k), get[int16](k)),
				ptx.WideSum[int32](get[int16](k), get[int16](k), get[int32](k)))
			x, y := get[uint32](k), get[uint32](k)
			keep(k, x.ShfL(y, 3, true), x.ShfR(y, get[uint32](k), false))
			keep(k, x.Lop3(y, get[uint32](k), ptx.LUT(func(a, b, c uint8) uint8 { return a&b | ^c })))
			keep(k, x.Prmt(y, 0x3210), x.Fns(y, get[int32](k)))
		}},
		cover{"dp4a", "sm_61", "5.0", func(k *kernel) {
			keep(k, ptx.U32(3).Add(get[uint32](k)), ptx.ConstIn(k.Kernel, uint32(3)).Shl(4))
			keep(k, ptx.F32(3).Sub(get[float32](k)))
			keep(k, ptx.Dp4a(get[ptx.S8x4](k), get[ptx.U8x4](k), get[int32](k)))
			keep(k, ptx.Dp4a(get[ptx.U8x4](k), ptx.Imm[ptx.U8x4](0x01010101), get[uint32](k)))
		}},
		cover{"f32", "sm_50", "4.0", func(k *kernel) {
			floats[float32](k, ptx.FTZ)
			x, y, z := get[float32](k), get[float32](k), get[float32](k)
			keep(k, x.Add(y, ptx.FTZ, ptx.RZ, ptx.Sat), x.Sub(1.5, ptx.RM),
				x.Mul(y, ptx.RP), x.Fma(y, z, ptx.RN, ptx.Sat))
			keep(k, x.Div(y), x.Div(y, ptx.Approx, ptx.FTZ), x.Div(y, ptx.Full))
			keep(k, x.Sqrt(), x.Sqrt(ptx.Approx), x.Rcp(ptx.Approx, ptx.FTZ),
				x.Rcp(), x.Rsqrt(), x.Sin(), x.Cos(), x.Lg2(),
				x.Ex2(ptx.FTZ), x.Copysign(y))
			keepP(k, x.TestP(ptx.Finite), x.TestP(ptx.Infinite), x.TestP(ptx.IsNumber),
				x.TestP(ptx.NotNumber), x.TestP(ptx.Normal), x.TestP(ptx.Subnormal))
		}},
		cover{"f32_80", "sm_80", "7.0", func(k *kernel) {
			x, y := get[float32](k), get[float32](k)
			keep(k, x.Min(y, ptx.NaN), x.Max(y, ptx.FTZ, ptx.NaN), x.Tanh())
		}},
		cover{"f32_86", "sm_86", "7.2", func(k *kernel) {
			keep(k, get[float32](k).Min(get[float32](k), ptx.NaN, ptx.XorSignAbs))
		}},
		cover{"f64", "sm_50", "4.0", func(k *kernel) {
			floats[float64](k)
			x, y := get[float64](k), get[float64](k)
			keep(k, x.Div(y), x.Sqrt(ptx.RZ), x.Rcp(), x.Rsqrt(),
				x.Copysign(y), x.Add(0.1))
			keepP(k, x.TestP(ptx.Subnormal))
		}},
		cover{"f16", "sm_80", "7.0", func(k *kernel) {
			halves[ptx.F16](k)
			halves[ptx.F16x2](k)
			keep(k, get[ptx.F16](k).Ex2(), get[ptx.F16](k).Tanh())
			keep(k, get[ptx.F16x2](k).Ex2(), get[ptx.F16x2](k).Tanh())
			keep(k, get[ptx.F16](k).Add(ptx.F16Of(1), ptx.FTZ, ptx.Sat))
			keep(k, get[ptx.F16x2](k).Fma(ptx.PairF16(1, 2), get[ptx.F16x2](k), ptx.Relu))
			lo, hi := get[ptx.F16x2](k).SetP2(ptx.LT, get[ptx.F16x2](k))
			keepP(k, lo, hi)
		}},
		cover{"bf16", "sm_90", "7.8", func(k *kernel) {
			halves[ptx.BF16](k)
			halves[ptx.BF16x2](k)
			keep(k, get[ptx.BF16](k).Ex2(ptx.FTZ), get[ptx.BF16](k).Tanh(), ptx.Imm(ptx.BF16Of(2)))
			keep(k, get[ptx.BF16x2](k).Ex2(ptx.FTZ), get[ptx.BF16x2](k).Tanh(),
				ptx.Imm(ptx.PairBF16(1, 2)))
			lo, hi := get[ptx.BF16x2](k).SetP2(ptx.GE, get[ptx.BF16x2](k))
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
	keep(k, x.Add(y), x.Sub(ptx.Imm[T](7)), x.Mul(y), x.MulHi(y), x.Mad(y, z),
		x.MadHi(y, z), x.Div(y), x.Rem(y), x.Min(y), x.Max(y), x.Sad(y, z))
	keep(k, x.And(y), x.Or(y), x.Xor(y), x.Not(), x.Cnot(),
		x.Shl(n), x.Shr(n))
	keep(k, ptx.Slct(x, y, get[int32](k)), x.Copy())
}

func words[T ptx.Index](k *kernel) {
	x, y, n, kk := get[T](k), get[T](k), get[uint32](k), k.Kernel
	keep(k, x.Popc(), x.Clz(), x.Bfind(), x.BfindShift())
	keep(k, x.Bfe(n, n), x.Bfi(y, n, 5), x.Brev())
	keep(k, ptx.AddWords(kk, []ptx.Reg[T]{x, y, x}, []ptx.Reg[T]{y, y, x})...)
	keep(k, ptx.SubWords(kk, []ptx.Reg[T]{x, y}, []ptx.Reg[T]{y, y})...)
}

func signed[T int16 | int32 | int64](k *kernel) {
	keep(k, get[T](k).Abs(), get[T](k).Neg())
}

func floats[T float32 | float64](k *kernel, mods ...ptx.Mod) {
	x, y, z := get[T](k), get[T](k), get[T](k)
	keep(k, x.Add(y, mods...), x.Sub(y, mods...), x.Mul(y, mods...), x.Fma(y, z, mods...),
		x.Min(y, mods...), x.Max(y, mods...), x.Abs(mods...), x.Neg(mods...))
}

func halves[T ptx.F16 | ptx.F16x2 | ptx.BF16 | ptx.BF16x2](k *kernel) {
	x, y, z := get[T](k), get[T](k), get[T](k)
	keep(k, x.Add(y), x.Sub(y), x.Mul(y), x.Fma(y, z), x.Min(y),
		x.Max(y, ptx.NaN), x.Abs(), x.Neg(), x.Fma(y, z, ptx.Relu))
}

func compares[T ptx.Scalar](k *kernel, more ...ptx.Cmp) {
	x, y := get[T](k), get[T](k)
	keepP(k, x.Eq(y), x.Ne(y), x.Lt(y), x.Le(y), x.Gt(y), x.Ge(y))
	p := x.SetP(ptx.EQ, y)
	for _, c := range append(more, ptx.NE, ptx.LT, ptx.LE, ptx.GT, ptx.GE) {
		p = x.SetPWith(c, y, ptx.OpXor, p)
	}
	keepP(k, x.SetPWith(ptx.GE, y, ptx.OpOr, p.Not()))
	keep(k, ptx.Select(p, x, y))
}
