package ptx_test

import "github.com/wavelane/wavelane/ptx"

func init() {
	u := ptx.Imm[uint32]
	covers = append(covers,
		cover{"mma", "sm_75", "6.5", func(k *kernel) {
			kk := k.Kernel
			s := ptx.SharedArray[ptx.F16](kk, "tile", 1024, ptx.Align(16))
			mma[ptx.F16x2, ptx.F16x2, float32](k, ptx.M16N8K8)
			mma[ptx.F16x2, ptx.F16x2, ptx.F16x2](k, ptx.M16N8K8)
			for _, n := range []int{1, 2, 4} {
				keep(k, ptx.LdMatrix[ptx.F16x2](s, n)...)
				keep(k, ptx.LdMatrixTrans[ptx.BF16x2](s, n)...)
			}
		}},
		cover{"movmatrix", "sm_75", "7.8", func(k *kernel) { keep(k, ptx.MovMatrix(get[ptx.F16x2](k))) }},
		cover{"mma_80", "sm_80", "7.0", func(k *kernel) {
			mma[ptx.F16x2, ptx.F16x2, float32](k, ptx.M16N8K16)
			mma[ptx.F16x2, ptx.F16x2, ptx.F16x2](k, ptx.M16N8K16)
			mma[ptx.BF16x2, ptx.BF16x2, float32](k, ptx.M16N8K8)
			mma[ptx.BF16x2, ptx.BF16x2, float32](k, ptx.M16N8K16)
			mma[ptx.TF32, ptx.TF32, float32](k, ptx.M16N8K4)
			mma[ptx.TF32, ptx.TF32, float32](k, ptx.M16N8K8)
			mma[ptx.S8x4, ptx.S8x4, int32](k, ptx.M16N8K16, ptx.SatFinite)
			mma[ptx.S8x4, ptx.U8x4, int32](k, ptx.M16N8K32)
			mma[ptx.U8x4, ptx.S8x4, int32](k, ptx.M16N8K32)
			mma[float64, float64, float64](k, ptx.M8N8K4)
		}},
		cover{"mma_89", "sm_89", "8.4", func(k *kernel) {
			mma[ptx.E4M3x4, ptx.E5M2x4, float32](k, ptx.M16N8K32)
			mma[ptx.E4M3x4, ptx.E4M3x4, float32](k, ptx.M16N8K32)
		}},
		cover{"stmatrix", "sm_90", "7.8", func(k *kernel) {
			s := ptx.SharedArray[ptx.F16](k.Kernel, "tile", 1024, ptx.Align(16))
			for _, n := range []int{1, 2, 4} {
				ptx.StMatrix(s, gets[ptx.F16x2](k, n))
				ptx.StMatrixTrans(s, gets[ptx.BF16x2](k, n))
			}
		}},
		cover{"wmma_70", "sm_70", "6.3", func(k *kernel) {
			for _, s := range []ptx.Shape{ptx.M16N16K16, ptx.M32N8K16, ptx.M8N32K16} {
				wmma[ptx.F16x2, ptx.F16, float32, float32](k, s)
				wmma[ptx.F16x2, ptx.F16, ptx.F16x2, ptx.F16](k, s)
			}
		}},
		cover{"wmma_72", "sm_72", "6.3", func(k *kernel) {
			for _, s := range []ptx.Shape{ptx.M16N16K16, ptx.M32N8K16, ptx.M8N32K16} {
				wmma[ptx.S8x4, int8, int32, int32](k, s)
				wmma[ptx.U8x4, uint8, int32, int32](k, s, ptx.SatFinite)
			}
		}},
		cover{"wmma_80", "sm_80", "7.0", func(k *kernel) {
			for _, s := range []ptx.Shape{ptx.M16N16K16, ptx.M32N8K16, ptx.M8N32K16} {
				wmma[ptx.BF16x2, ptx.BF16, float32, float32](k, s)
			}
			wmma[ptx.TF32, float32, float32, float32](k, ptx.M16N16K8)
			wmma[float64, float64, float64, float64](k, ptx.M8N8K4)
		}},
		cover{"wgmma", "sm_90a", "8.4", func(k *kernel) {
			kk := k.Kernel
			k.MaxThreads(128, 1, 1)
			s := ptx.DynamicShared[uint8](kk, ptx.Align(1024))
			d := ptx.NewDescriptor(s, 16, 1024, ptx.Swizzle128)
			d64 := ptx.NewDescriptor(s.Bytes(4096), 0, 512, ptx.Swizzle64)
			plain := ptx.DescriptorOf(ptx.Imm(ptx.DescriptorBits(128, 256, ptx.NoSwizzle)))
			b := ptx.NewDescriptor(s.Bytes(8192), 0, 256, ptx.Swizzle32).Bytes(32)
			keep(k, d64.Bits())
			for n := 8; n <= 256; n += 8 {
				wgmma(k, ptx.Wgmma[ptx.F16x2, ptx.F16x2, float32]{N: n}, d, b, false)
			}
			p := k.Tid(ptx.X).Lt(u(5))
			wgmma(k, ptx.Wgmma[ptx.BF16x2, ptx.BF16x2, float32]{N: 64, TransA: true, NegateB: true}, d, d64, p)
			wgmma(k, ptx.Wgmma[ptx.F16x2, ptx.F16x2, ptx.F16x2]{N: 32, TransB: true, NegateA: true}, d, b, true)
			wgmma(k, ptx.Wgmma[ptx.TF32, ptx.TF32, float32]{N: 16}, d, plain, true)
			wgmma(k, ptx.Wgmma[ptx.E4M3x4, ptx.E5M2x4, float32]{N: 8}, d, b, true)
			wgmma(k, ptx.Wgmma[ptx.S8x4, ptx.U8x4, int32]{N: 16, SatFinite: true}, d, b, true)
			acc := zeros[float32](k, 4)
			a := gets[ptx.BF16x2](k, 4)
			k.WgmmaFence()
			ptx.Wgmma[ptx.BF16x2, ptx.BF16x2, float32]{N: 8}.MulAddReg(kk, acc, a, b)
			k.WgmmaCommit()
			k.WgmmaWait(0)
			keep(k, values(acc)...)
			k.SetMaxRegsDec(40)
			k.SetMaxRegsInc(232)
		}},
	)
}

func mma[A, B ptx.MatrixElem, C ptx.Accumulator](k *kernel, s ptx.Shape, mods ...ptx.Mod) {
	regs := func(elements, per int) int { return elements / 32 / per }
	a := gets[A](k, regs(s.M*s.K, perRegister[A]()))
	b := gets[B](k, regs(s.K*s.N, perRegister[B]()))
	c := gets[C](k, regs(s.M*s.N, perRegister[C]()))
	keep(k, ptx.Mma(k.Kernel, s, a, b, c, mods...)...)
}

func perRegister[T ptx.Type]() int {
	var x T
	switch any(x).(type) {
	case ptx.F16x2, ptx.BF16x2:
		return 2
	case ptx.S8x4, ptx.U8x4, ptx.E4M3x4, ptx.E5M2x4:
		return 4
	}
	return 1
}

func wmma[E ptx.MatrixElem, T ptx.Elem, C ptx.Accumulator, U ptx.Elem](k *kernel, s ptx.Shape, mods ...ptx.Mod) {
	kk := k.Kernel
	tile := ptx.Cast[T](ptx.DynamicShared[uint8](kk))
	const stride = 64
	w := ptx.Wmma[E, C]{s, ptx.RowMajor, ptx.ColMajor}
	a, b := w.LoadA(kk, tile, stride), w.LoadB(kk, ptx.ToGeneric(tile), stride)
	c := w.LoadC(kk, ptx.RowMajor, ptx.Cast[U](k.out), k.Ntid(ptx.X))
	w.Store(kk, ptx.RowMajor, ptx.Cast[U](k.out), w.MulAdd(kk, a, b, c, mods...), stride)
}

func zeros[C ptx.WgmmaAccumulator](k *kernel, n int) []*ptx.Var[C] {
	acc := make([]*ptx.Var[C], n)
	for i := range acc {
		acc[i] = ptx.VarOf(k.Kernel, ptx.Imm[C](0))
	}
	return acc
}

func values[C ptx.WgmmaAccumulator](acc []*ptx.Var[C]) []ptx.Reg[C] {
	r := make([]ptx.Reg[C], len(acc))
	for i := range r {
		r[i] = acc[i].Get()
	}
	return r
}

func wgmma[A, B ptx.WgmmaElem, C ptx.WgmmaAccumulator](k *kernel, w ptx.Wgmma[A, B, C], a, b ptx.Descriptor, add any) {
	acc := w.NewAccumulator(k.Kernel)
	for _, x := range acc {
		if add != false {
			x.Set(ptx.Imm[C](0))
		}
	}
	k.WgmmaFence()
	if add == true {
		w.MulAdd(k.Kernel, acc, a, b)
	} else {
		w.MulAddIf(k.Kernel, add, acc, a, b)
	}
	k.WgmmaCommit()
	k.WgmmaWait(0)
	keep(k, values(acc)...)
}
