package ptx_test

import "github.com/wavelane/wavelane/ptx"

func init() {
	covers = append(covers,
		cover{"conversions", "sm_50", "4.0", func(k *kernel) {
			kk := k.Kernel
			convertAll[int8](k)
			convertAll[uint8](k)
			convertAll[int16](k)
			convertAll[uint16](k)
			convertAll[int32](k)
			convertAll[uint32](k)
			convertAll[int64](k)
			convertAll[uint64](k)
			convertAll[float32](k)
			convertAll[float64](k)
			convertAll[ptx.F16](k)
			keep(k, ptx.Convert[int32](kk, get[float32](k), ptx.RNI), ptx.Convert[int32](kk, get[float32](k), ptx.RMI, ptx.FTZ))
			keep(k, ptx.Convert[uint8](kk, get[int32](k), ptx.Sat), ptx.Convert[uint8](kk, get[float32](k), ptx.RPI, ptx.Sat))
			keep(k, ptx.Round(kk, get[float32](k), ptx.RMI), ptx.Round(kk, get[float32](k), ptx.RPI, ptx.FTZ, ptx.Sat))
			keep(k, ptx.Round(kk, get[float64](k), ptx.RNI))
			keep(k, ptx.Round(kk, get[ptx.F16](k), ptx.RZI))
			keep(k, ptx.Bitcast[uint32](kk, get[float32](k)), ptx.Bitcast[uint32](kk, get[ptx.S8x4](k)))
			keep(k, ptx.Bitcast[float64](kk, get[uint64](k)), ptx.Bitcast[float64](kk, ptx.Imm(uint64(7))))
			keep(k, ptx.Pack64(kk, get[uint32](k), ptx.Imm[uint32](1)))
			keep(k, ptx.Pack32(kk, get[uint16](k), get[uint16](k)))
			l32, h32 := ptx.Unpack64(kk, get[uint64](k))
			keep(k, l32, h32)
			l16, h16 := ptx.Unpack32(kk, get[uint32](k))
			keep(k, l16, h16)
			lo, hi := ptx.UnpackF16(kk, get[ptx.F16x2](k))
			keep(k, ptx.PackF16(kk, hi, lo))
			blo, bhi := ptx.UnpackBF16(kk, get[ptx.BF16x2](k))
			keep(k, ptx.PackBF16(kk, bhi, blo))
			flo, fhi := ptx.UnpackF32(kk, get[ptx.F32x2](k))
			keep(k, ptx.PackF32(kk, fhi, flo))
			keep(k, ptx.WidenBF16(kk, get[ptx.BF16](k)))
		}},
		cover{"conversions_pack", "sm_72", "6.5", func(k *kernel) {
			x := gets[int32](k, 4)
			keep(k, ptx.PackS8(k.Kernel, x[0], x[1], x[2], x[3]))
			keep(k, ptx.PackU8(k.Kernel, x[0], x[1], x[2], x[3]))
		}},
		cover{"conversions_80", "sm_80", "7.0", func(k *kernel) {
			x, y := get[float32](k), get[float32](k)
			keep(k, ptx.Convert[ptx.BF16](k.Kernel, x), ptx.Convert[ptx.BF16](k.Kernel, x, ptx.RZ, ptx.Relu))
			keep(k, ptx.ConvertPair[ptx.F16x2](k.Kernel, x, y), ptx.ConvertPair[ptx.F16x2](k.Kernel, x, y, ptx.Relu))
			keep(k, ptx.ConvertPair[ptx.BF16x2](k.Kernel, x, y))
			keep(k, ptx.ConvertTF32(k.Kernel, x), ptx.ConvertTF32(k.Kernel, x, ptx.RNA))
		}},
		cover{"conversions_90", "sm_90", "7.8", func(k *kernel) {
			keep(k, ptx.Convert[float32](k.Kernel, get[ptx.BF16](k)))
			keep(k, ptx.Convert[int32](k.Kernel, get[ptx.BF16](k)))
			keep(k, ptx.Convert[ptx.BF16](k.Kernel, get[int32](k)), ptx.Convert[ptx.BF16](k.Kernel, get[ptx.F16](k)))
			keep(k, ptx.ConvertTF32(k.Kernel, get[float32](k), ptx.RN, ptx.Relu))
		}},
		cover{"fp8", "sm_89", "8.1", func(k *kernel) {
			x, y := get[float32](k), get[float32](k)
			keep(k, ptx.ConvertPairFP8[ptx.E4M3x2](k.Kernel, x, y))
			keep(k, ptx.ConvertPairFP8[ptx.E5M2x2](k.Kernel, x, y, ptx.Relu, ptx.SatFinite))
			keep(k, ptx.NarrowFP8[ptx.E4M3x2](k.Kernel, get[ptx.F16x2](k)))
			keep(k, ptx.WidenFP8(k.Kernel, get[ptx.E4M3x2](k)), ptx.WidenFP8(k.Kernel, get[ptx.E5M2x2](k), ptx.Relu))
		}},
		cover{"pointers", "sm_50", "4.0", func(k *kernel) {
			kk := k.Kernel
			shared := ptx.SharedArray[float32](kk, "tile", 64, ptx.Align(16))
			local := ptx.LocalArray[uint16](kk, "scratch", 8)
			dynamic := ptx.DynamicShared[float32](kk, ptx.Align(256))
			table := ptx.ConstArray(k.m, "table", []int16{1, -2, 3})
			counters := ptx.GlobalArray(k.m, "counters", 4, uint64(9))
			i := ptx.Param[uint32](kk, "i")
			j := ptx.Param[int64](kk, "j")
			keep(k, ptx.Load(kk, shared.At(3)), ptx.Load(kk, ptx.At(kk, shared, i).At(2)), ptx.Load(kk, ptx.At(kk, dynamic, j)))
			keep(k, ptx.Load(kk, ptx.At(kk, table, j)), ptx.Load(kk, table.At(1)))
			keep(k, ptx.Load(kk, counters), ptx.Load(kk, ptx.At(kk, counters, i)), ptx.Load(kk, counters.At(1<<30)))
			keep(k, ptx.Load(kk, ptx.At(kk, local, i)))
			keep(k, ptx.Load(kk, ptx.AtByte(kk, ptx.Cast[uint8](shared), i).Bytes(1)), ptx.Load(kk, ptx.AtByte(kk, k.out, j)))
			g := ptx.ToGeneric(kk, shared.At(1))
			keep(k, ptx.Load(kk, g), ptx.Load(kk, ptx.FromGeneric[ptx.Shared](kk, g)))
			keep(k, ptx.Load(kk, ptx.FromGeneric[ptx.Global](kk, ptx.ToGeneric(kk, k.out))),
				ptx.Load(kk, ptx.Cast[uint8](ptx.ToGeneric(kk, local))))
			keepP(k, ptx.IsIn[ptx.Shared](kk, g), ptx.IsIn[ptx.Global](kk, g))
			keep(k, ptx.Address(kk, counters), ptx.Address(kk, ptx.FromGeneric[ptx.Generic](kk, g)))
			keep(k, ptx.SharedAddress(kk, dynamic))
			keep(k, ptx.Load(kk, ptx.PtrAt[ptx.Global, uint8](kk, ptx.Address(kk, k.out))))
			keep(k, ptx.Load(kk, ptx.SharedPtrAt[ptx.Shared, int32](kk, i)))
			p, q := ptx.PtrVarOf(kk, k.out), ptx.PtrVarOf(kk, shared)
			ptx.For(kk, ptx.Imm[uint32](0), i, ptx.Imm[uint32](1), func(ptx.Reg[uint32]) {
				p.Advance(4)
				q.Set(ptx.At(kk, q.Get(), i))
			})
			keep(k, ptx.Load(kk, p.Get()))
			keep(k, ptx.Load(kk, q.Get()))
		}},
		cover{"parameters", "sm_50", "4.0", func(k *kernel) {
			halves, doubles := ptx.ParamArray[uint16](k.Kernel, "halves", 3), ptx.ParamArray[float64](k.Kernel, "doubles", 2)
			for i := range halves.Len() {
				keep(k, halves.At(k.Kernel, i))
			}
			keep(k, doubles.At(k.Kernel, 1), ptx.Param[float64](k.Kernel, "one"))
		}},
		cover{"loads", "sm_50", "4.0", func(k *kernel) {
			kk := k.Kernel
			p := ptx.Cast[float32](k.out)
			for _, o := range []ptx.MemOption{ptx.Volatile, ptx.CacheAll, ptx.CacheL2, ptx.CacheStreaming, ptx.LastUse, ptx.DontCache,
				ptx.ReadOnly} {
				keep(k, ptx.Load(kk, p, o))
			}
			for _, o := range []ptx.MemOption{ptx.Volatile, ptx.WriteBack, ptx.CacheL2, ptx.CacheStreaming, ptx.WriteThrough} {
				ptx.Store(kk, p, ptx.Imm[float32](1), o)
			}
			ok := ptx.Lt(kk, k.Tid(ptx.X), ptx.Imm[uint32](9))
			keep(k, ptx.LoadIf(kk, ok, p, ptx.Imm[float32](-1), ptx.ReadOnly))
			ptx.StoreIf(kk, ok, p, ptx.Imm[float32](2))
			v2 := ptx.Load2(kk, ptx.Cast[float64](k.out))
			ptx.Store2(kk, ptx.Cast[float64](k.out), v2)
			v4 := ptx.Load4(kk, p, ptx.ReadOnly)
			ptx.Store4(kk, p, v4, ptx.CacheStreaming)
			h4 := ptx.Load4(kk, ptx.Cast[ptx.F16](k.out))
			ptx.Store4(kk, ptx.Cast[ptx.F16](k.out), h4)
			b4 := ptx.Load4(kk, k.out)
			ptx.Store4(kk, k.out, b4)
		}},
		cover{"loads_70", "sm_70", "7.4", func(k *kernel) {
			kk := k.Kernel
			p := ptx.Cast[uint32](k.out)
			x := ptx.Load(kk, p, ptx.Acquire(ptx.ScopeGPU))
			ptx.Store(kk, p, x, ptx.Release(ptx.ScopeSystem))
			ptx.Store(kk, p, ptx.Load(kk, p, ptx.Relaxed(ptx.ScopeBlock)), ptx.Relaxed(ptx.ScopeGPU))
			for _, o := range []ptx.MemOption{ptx.L1EvictFirst, ptx.L1EvictLast, ptx.L1EvictNormal, ptx.L1NoAllocate} {
				ptx.Store(kk, p, ptx.Load(kk, p, o), o)
			}
		}},
		cover{"loads_80", "sm_80", "7.4", func(k *kernel) {
			kk := k.Kernel
			p := ptx.Cast[uint32](k.out)
			policy := k.CreatePolicy(ptx.EvictFirst, ptx.Imm[float32](0.5))
			span := ptx.CreatePolicyRange(kk, k.out, ptx.EvictLast, ptx.EvictUnchanged, ptx.Imm[uint32](1<<20), ptx.Imm[uint32](1<<21))
			keep(k, ptx.Load(kk, p, ptx.WithPolicy(policy), ptx.L2Prefetch64), ptx.Load(kk, p, ptx.L2Prefetch128),
				ptx.Load(kk, p, ptx.L2Prefetch256, ptx.WithPolicy(k.CreatePolicy(ptx.EvictNormal, ptx.Imm[float32](1)))))
			ptx.Store(kk, p, ptx.Imm[uint32](3), ptx.WithPolicy(span))
			keep(k, ptx.Atomic(kk, ptx.OpAdd, p, ptx.Imm[uint32](3), ptx.WithPolicy(span)))
			ptx.Prefetch(kk, p, "L1")
			ptx.Prefetch(kk, p, "L2::evict_last")
			ptx.Discard(kk, p)
			ptx.ApplyPriority(kk, p)
		}},
		cover{"loads_100", "sm_100", "8.8", func(k *kernel) {
			v := ptx.Load8(k.Kernel, ptx.Cast[float32](k.out))
			ptx.Store8(k.Kernel, ptx.Cast[float32](k.out), v)
		}},
		cover{"atomics", "sm_60", "6.2", func(k *kernel) {
			kk := k.Kernel
			shared := ptx.SharedArray[uint32](kk, "counts", 4)
			atomics(k, shared)
			atomics(k, ptx.Cast[int32](k.out))
			atomics(k, ptx.Cast[uint64](k.out))
			atomics(k, ptx.Cast[int64](k.out))
			for _, op := range []ptx.Op{ptx.OpInc, ptx.OpDec} {
				keep(k, ptx.Atomic(kk, op, shared, ptx.Imm[uint32](5)))
				ptx.Reduce(kk, op, shared, ptx.Imm[uint32](5))
			}
			add(k, ptx.Cast[float32](k.out))
			add(k, ptx.Cast[float64](k.out))
			add(k, ptx.Cast[ptx.F16x2](k.out))
			keep(k, ptx.AtomicCAS(kk, ptx.Cast[float32](k.out), get[float32](k), get[float32](k)))
			keep(k, ptx.AtomicCAS(kk, ptx.ToGeneric(kk, ptx.Cast[uint64](k.out)), get[uint64](k), ptx.Imm[uint64](1)))
		}},
		cover{"atomics_70", "sm_70", "6.3", func(k *kernel) {
			kk := k.Kernel
			p := ptx.Cast[uint32](k.out)
			keep(k, ptx.Atomic(kk, ptx.OpAdd, p, ptx.Imm[uint32](5), ptx.AcquireRelease(ptx.ScopeGPU)),
				ptx.Atomic(kk, ptx.OpExch, p, ptx.Imm[uint32](5), ptx.Release(ptx.ScopeSystem)))
			keep(k, ptx.AtomicCAS(kk, ptx.Cast[uint16](k.out), get[uint16](k), get[uint16](k), ptx.Acquire(ptx.ScopeBlock)))
			ptx.Reduce(kk, ptx.OpMax, p, ptx.Imm[uint32](5), ptx.Relaxed(ptx.ScopeBlock))
			add(k, ptx.Cast[ptx.F16](k.out))
		}},
		cover{"atomics_90", "sm_90", "8.1", func(k *kernel) {
			add(k, ptx.Cast[ptx.BF16](k.out))
			add(k, ptx.Cast[ptx.BF16x2](k.out))
			ptx.ReduceVector(k.Kernel, ptx.OpAdd, ptx.Cast[float32](k.out), gets[float32](k, 4))
			ptx.ReduceVector(k.Kernel, ptx.OpAdd, ptx.Cast[ptx.F16](k.out), gets[ptx.F16](k, 8))
			ptx.ReduceVector(k.Kernel, ptx.OpMax, ptx.Cast[ptx.BF16x2](k.out), gets[ptx.BF16x2](k, 2))
			keep(k, ptx.Atomic(k.Kernel, ptx.OpAdd, ptx.Cast[uint32](k.out), ptx.Imm[uint32](5), ptx.Relaxed(ptx.ScopeCluster)))
		}},
	)
}

// convertAll converts to all number types but those that not every target has.
func convertAll[T ptx.Convertible](k *kernel) {
	x, kk := get[T](k), k.Kernel
	keep(k, ptx.Convert[int8](kk, x))
	keep(k, ptx.Convert[uint8](kk, x))
	keep(k, ptx.Convert[int16](kk, x))
	keep(k, ptx.Convert[uint16](kk, x))
	keep(k, ptx.Convert[int32](kk, x))
	keep(k, ptx.Convert[uint32](kk, x))
	keep(k, ptx.Convert[int64](kk, x))
	keep(k, ptx.Convert[uint64](kk, x))
	keep(k, ptx.Convert[float32](kk, x))
	keep(k, ptx.Convert[float64](kk, x))
	keep(k, ptx.Convert[ptx.F16](kk, x))
}

func atomics[S ptx.Space, T ptx.Index](k *kernel, p ptx.Ptr[S, T]) {
	for _, op := range []ptx.Op{ptx.OpAdd, ptx.OpMin, ptx.OpMax, ptx.OpAnd, ptx.OpOr, ptx.OpXor} {
		keep(k, ptx.Atomic(k.Kernel, op, p, get[T](k)))
		ptx.Reduce(k.Kernel, op, p, get[T](k))
	}
	keep(k, ptx.Atomic(k.Kernel, ptx.OpExch, p, get[T](k)), ptx.AtomicCAS(k.Kernel, p, get[T](k), get[T](k)))
}

func add[S ptx.Space, T ptx.Float](k *kernel, p ptx.Ptr[S, T]) {
	keep(k, ptx.Atomic(k.Kernel, ptx.OpAdd, p, get[T](k)))
	ptx.Reduce(k.Kernel, ptx.OpAdd, p, get[T](k))
}

func init() {
	covers = append(covers, cover{"tiles", "sm_50", "4.0", func(k *kernel) {
		kk := k.Kernel
		pad := ptx.NewTile[float32](kk, "padded", ptx.TileLayout{Rows: 32, Cols: 32, Pad: 1}, 2)
		swizzled := ptx.NewTile[ptx.F16](kk, "swizzled", ptx.TileLayout{Rows: 8, Cols: 64, Swizzled: true}, 1)
		i, j := k.Tid(ptx.X), k.Ctaid(ptx.X)
		c := ptx.Imm[uint32](3)
		at := pad.Stage(kk, i)
		keep(k, ptx.Load(kk, at.At(kk, i, j)), ptx.Load(kk, at.At(kk, c, j)), ptx.Load(kk, at.At(kk, i, c)),
			ptx.Load(kk, pad.At(kk, c, c)))
		keep(k, ptx.Load(kk, swizzled.At(kk, i, j)), ptx.Load(kk, swizzled.At(kk, c, j)), ptx.Load(kk, swizzled.At(kk, i, c)))
		keep(k, ptx.Load(kk, ptx.TileAt(kk, swizzled.Ptr(), swizzled.Layout).Ptr()))
	}})
}
