package ptx_test

import "github.com/wavelane/wavelane/ptx"

func init() {
	covers = append(covers,
		cover{"conversions", "sm_50", "4.0", func(k *kernel) {
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
			keep(k, ptx.Convert[int32](get[float32](k), ptx.RNI), ptx.Convert[int32](get[float32](k), ptx.RMI, ptx.FTZ))
			keep(k, ptx.Convert[uint8](get[int32](k), ptx.Sat), ptx.Convert[uint8](get[float32](k), ptx.RPI, ptx.Sat))
			keep(k, get[float32](k).Round(ptx.RMI), get[float32](k).Round(ptx.RPI, ptx.FTZ, ptx.Sat))
			keep(k, get[float64](k).Round(ptx.RNI))
			keep(k, get[ptx.F16](k).Round(ptx.RZI))
			keep(k, ptx.Bitcast[uint32](get[float32](k)), ptx.Bitcast[uint32](get[ptx.S8x4](k)))
			keep(k, ptx.Bitcast[float64](get[uint64](k)), ptx.Bitcast[float64](ptx.Imm(uint64(7))))
			keep(k, ptx.Pack64(get[uint32](k), ptx.Imm[uint32](1)))
			keep(k, ptx.Pack32(get[uint16](k), get[uint16](k)))
			l32, h32 := ptx.Unpack64(get[uint64](k))
			keep(k, l32, h32)
			l16, h16 := ptx.Unpack32(get[uint32](k))
			keep(k, l16, h16)
			lo, hi := ptx.UnpackF16(get[ptx.F16x2](k))
			keep(k, ptx.PackF16(hi, lo))
			blo, bhi := ptx.UnpackBF16(get[ptx.BF16x2](k))
			keep(k, ptx.PackBF16(bhi, blo))
			flo, fhi := ptx.UnpackF32(get[ptx.F32x2](k))
			keep(k, ptx.PackF32(fhi, flo))
			keep(k, ptx.WidenBF16(get[ptx.BF16](k)))
		}},
		cover{"conversions_pack", "sm_72", "6.5", func(k *kernel) {
			x := gets[int32](k, 4)
			keep(k, ptx.PackS8(x[0], x[1], x[2], x[3]))
			keep(k, ptx.PackU8(x[0], x[1], x[2], x[3]))
		}},
		cover{"conversions_80", "sm_80", "7.0", func(k *kernel) {
			x, y := get[float32](k), get[float32](k)
			keep(k, ptx.Convert[ptx.BF16](x), ptx.Convert[ptx.BF16](x, ptx.RZ, ptx.Relu))
			keep(k, ptx.ConvertPair[ptx.F16x2](x, y), ptx.ConvertPair[ptx.F16x2](x, y, ptx.Relu))
			keep(k, ptx.ConvertPair[ptx.BF16x2](x, y))
			keep(k, ptx.ConvertTF32(x), ptx.ConvertTF32(x, ptx.RNA))
		}},
		cover{"conversions_90", "sm_90", "7.8", func(k *kernel) {
			keep(k, ptx.Convert[float32](get[ptx.BF16](k)))
			keep(k, ptx.Convert[int32](get[ptx.BF16](k)))
			keep(k, ptx.Convert[ptx.BF16](get[int32](k)), ptx.Convert[ptx.BF16](get[ptx.F16](k)))
			keep(k, ptx.ConvertTF32(get[float32](k), ptx.RN, ptx.Relu))
		}},
		cover{"fp8", "sm_89", "8.1", func(k *kernel) {
			x, y := get[float32](k), get[float32](k)
			keep(k, ptx.ConvertPairFP8[ptx.E4M3x2](x, y))
			keep(k, ptx.ConvertPairFP8[ptx.E5M2x2](x, y, ptx.Relu, ptx.SatFinite))
			keep(k, ptx.NarrowFP8[ptx.E4M3x2](get[ptx.F16x2](k)))
			keep(k, ptx.WidenFP8(get[ptx.E4M3x2](k)), ptx.WidenFP8(get[ptx.E5M2x2](k), ptx.Relu))
		}},
		cover{"pointers", "sm_50", "4.0", func(k *kernel) {
			kk := k.Kernel
			shared := ptx.SharedArray[float32](kk, "tile", 64, ptx.Align(16))
			local := ptx.LocalArray[uint16](kk, "scratch", 8)
			dynamic := ptx.DynamicShared[float32](kk, ptx.Align(256))
			table := ptx.ConstArray(k.m, "table", []int16{1, -2, 3}).In(kk)
			counters := ptx.GlobalArray(k.m, "counters", 4, uint64(9)).In(kk)
			i := ptx.Param[uint32](kk, "i")
			j := ptx.Param[int64](kk, "j")
			keep(k, shared.At(3).Load(), shared.At(i).At(2).Load(), dynamic.At(j).Load())
			keep(k, table.At(j).Load(), table.At(1).Load())
			keep(k, counters.Load(), counters.At(i).Load(), counters.At(1<<30).Load())
			keep(k, local.At(i).Load())
			keep(k, ptx.Cast[uint8](shared).Bytes(i).Bytes(1).Load(), k.out.Bytes(j).Load())
			g := ptx.ToGeneric(shared.At(1))
			keep(k, g.Load(), ptx.FromGeneric[ptx.Shared](g).Load())
			keep(k, ptx.FromGeneric[ptx.Global](ptx.ToGeneric(k.out)).Load(),
				ptx.Cast[uint8](ptx.ToGeneric(local)).Load())
			keepP(k, ptx.IsIn[ptx.Shared](g), ptx.IsIn[ptx.Global](g))
			keep(k, ptx.Address(counters), ptx.Address(ptx.FromGeneric[ptx.Generic](g)))
			keep(k, ptx.SharedAddress(dynamic))
			keep(k, ptx.PtrAt[ptx.Global, uint8](kk, ptx.Address(k.out)).Load())
			keep(k, ptx.SharedPtrAt[ptx.Shared, int32](kk, i).Load())
			p, q := ptx.PtrVarOf(k.out), ptx.PtrVarOf(shared)
			ptx.For(kk, 0, i, 1, func(ptx.Reg[uint32]) {
				p.Advance(4)
				q.Set(q.Get().At(i))
			})
			keep(k, p.Get().Load())
			keep(k, q.Get().Load())
		}},
		cover{"parameters", "sm_50", "4.0", func(k *kernel) {
			halves, doubles := ptx.ParamArray[uint16](k.Kernel, "halves", 3), ptx.ParamArray[float64](k.Kernel, "doubles", 2)
			for i := range halves.Len() {
				keep(k, halves.At(i))
			}
			keep(k, doubles.At(1), ptx.Param[float64](k.Kernel, "one"))
		}},
		cover{"loads", "sm_50", "4.0", func(k *kernel) {
			p := ptx.Cast[float32](k.out)
			for _, o := range []ptx.MemOption{ptx.Volatile, ptx.CacheAll, ptx.CacheL2, ptx.CacheStreaming, ptx.LastUse, ptx.DontCache,
				ptx.ReadOnly} {
				keep(k, p.Load(o))
			}
			for _, o := range []ptx.MemOption{ptx.Volatile, ptx.WriteBack, ptx.CacheL2, ptx.CacheStreaming, ptx.WriteThrough} {
				p.Store(1, o)
			}
			ok := k.Tid(ptx.X).Lt(9)
			keep(k, ptx.LoadIf(ok, p, -1, ptx.ReadOnly))
			ptx.StoreIf(ok, p, 2)
			v2 := ptx.Cast[float64](k.out).Load2()
			ptx.Cast[float64](k.out).Store2(v2)
			v4 := p.Load4(ptx.ReadOnly)
			p.Store4(v4, ptx.CacheStreaming)
			h4 := ptx.Cast[ptx.F16](k.out).Load4()
			ptx.Cast[ptx.F16](k.out).Store4(h4)
			b4 := k.out.Load4()
			k.out.Store4(b4)
		}},
		cover{"loads_70", "sm_70", "7.4", func(k *kernel) {
			p := ptx.Cast[uint32](k.out)
			x := p.Load(ptx.Acquire(ptx.ScopeGPU))
			p.Store(x, ptx.Release(ptx.ScopeSystem))
			p.Store(p.Load(ptx.Relaxed(ptx.ScopeBlock)), ptx.Relaxed(ptx.ScopeGPU))
			for _, o := range []ptx.MemOption{ptx.L1EvictFirst, ptx.L1EvictLast, ptx.L1EvictNormal, ptx.L1NoAllocate} {
				p.Store(p.Load(o), o)
			}
		}},
		cover{"loads_80", "sm_80", "7.4", func(k *kernel) {
			p := ptx.Cast[uint32](k.out)
			policy := k.CreatePolicy(ptx.EvictFirst, ptx.Imm[float32](0.5))
			span := ptx.CreatePolicyRange(k.out, ptx.EvictLast, ptx.EvictUnchanged, ptx.Imm[uint32](1<<20), ptx.Imm[uint32](1<<21))
			keep(k, p.Load(ptx.WithPolicy(policy), ptx.L2Prefetch64), p.Load(ptx.L2Prefetch128),
				p.Load(ptx.L2Prefetch256, ptx.WithPolicy(k.CreatePolicy(ptx.EvictNormal, ptx.Imm[float32](1)))))
			p.Store(3, ptx.WithPolicy(span))
			keep(k, p.Atomic(ptx.OpAdd, 3, ptx.WithPolicy(span)))
			p.Prefetch(ptx.L1)
			p.Prefetch(ptx.L2)
			p.Prefetch(ptx.L2EvictLast)
			p.Prefetch(ptx.L2EvictNormal)
			p.Discard()
			p.ApplyPriority()
		}},
		cover{"loads_100", "sm_100", "8.8", func(k *kernel) {
			v := ptx.Cast[float32](k.out).Load8()
			ptx.Cast[float32](k.out).Store8(v)
		}},
		cover{"atomics", "sm_60", "6.2", func(k *kernel) {
			kk := k.Kernel
			shared := ptx.SharedArray[uint32](kk, "counts", 4)
			atomics(k, shared)
			atomics(k, ptx.Cast[int32](k.out))
			atomics(k, ptx.Cast[uint64](k.out))
			atomics(k, ptx.Cast[int64](k.out))
			for _, op := range []ptx.Op{ptx.OpInc, ptx.OpDec} {
				keep(k, shared.Atomic(op, 5))
				shared.Reduce(op, 5)
			}
			add(k, ptx.Cast[float32](k.out))
			add(k, ptx.Cast[float64](k.out))
			add(k, ptx.Cast[ptx.F16x2](k.out))
			keep(k, ptx.Cast[float32](k.out).CompareAndSwap(get[float32](k), get[float32](k)))
			keep(k, ptx.ToGeneric(ptx.Cast[uint64](k.out)).CompareAndSwap(get[uint64](k), 1))
		}},
		cover{"atomics_70", "sm_70", "6.3", func(k *kernel) {
			p := ptx.Cast[uint32](k.out)
			keep(k, p.Atomic(ptx.OpAdd, 5, ptx.AcquireRelease(ptx.ScopeGPU)),
				p.Atomic(ptx.OpExch, 5, ptx.Release(ptx.ScopeSystem)))
			keep(k, ptx.Cast[uint16](k.out).CompareAndSwap(get[uint16](k), get[uint16](k), ptx.Acquire(ptx.ScopeBlock)))
			p.Reduce(ptx.OpMax, 5, ptx.Relaxed(ptx.ScopeBlock))
			add(k, ptx.Cast[ptx.F16](k.out))
		}},
		cover{"atomics_90", "sm_90", "8.1", func(k *kernel) {
			add(k, ptx.Cast[ptx.BF16](k.out))
			add(k, ptx.Cast[ptx.BF16x2](k.out))
			ptx.Cast[float32](k.out).ReduceVector(ptx.OpAdd, gets[float32](k, 4))
			ptx.Cast[ptx.F16](k.out).ReduceVector(ptx.OpAdd, gets[ptx.F16](k, 8))
			ptx.Cast[ptx.BF16x2](k.out).ReduceVector(ptx.OpMax, gets[ptx.BF16x2](k, 2))
			keep(k, ptx.Cast[uint32](k.out).Atomic(ptx.OpAdd, 5, ptx.Relaxed(ptx.ScopeCluster)))
		}},
	)
}

// convertAll converts to all number types but those that not every target has.
func convertAll[T ptx.Convertible](k *kernel) {
	x := get[T](k)
	keep(k, ptx.Convert[int8](x))
	keep(k, ptx.Convert[uint8](x))
	keep(k, ptx.Convert[int16](x))
	keep(k, ptx.Convert[uint16](x))
	keep(k, ptx.Convert[int32](x))
	keep(k, ptx.Convert[uint32](x))
	keep(k, ptx.Convert[int64](x))
	keep(k, ptx.Convert[uint64](x))
	keep(k, ptx.Convert[float32](x))
	keep(k, ptx.Convert[float64](x))
	keep(k, ptx.Convert[ptx.F16](x))
}

func atomics[S ptx.Space, T ptx.Index](k *kernel, p ptx.Ptr[S, T]) {
	for _, op := range []ptx.Op{ptx.OpAdd, ptx.OpMin, ptx.OpMax, ptx.OpAnd, ptx.OpOr, ptx.OpXor} {
		keep(k, p.Atomic(op, get[T](k)))
		p.Reduce(op, get[T](k))
	}
	keep(k, p.Atomic(ptx.OpExch, get[T](k)), p.CompareAndSwap(get[T](k), get[T](k)))
}

func add[S ptx.Space, T ptx.Float](k *kernel, p ptx.Ptr[S, T]) {
	keep(k, p.Atomic(ptx.OpAdd, get[T](k)))
	p.Reduce(ptx.OpAdd, get[T](k))
}

func init() {
	covers = append(covers, cover{"tiles", "sm_50", "4.0", func(k *kernel) {
		kk := k.Kernel
		pad := ptx.NewTile[float32](kk, "padded", ptx.TileLayout{Rows: 32, Cols: 32, Pad: 1}, 2)
		swizzled := ptx.NewTile[ptx.F16](kk, "swizzled", ptx.TileLayout{Rows: 8, Cols: 64, Swizzled: true}, 1)
		i, j := k.Tid(ptx.X), k.Ctaid(ptx.X)
		c := ptx.Imm[uint32](3)
		at := pad.Stage(i)
		keep(k, at.At(i, j).Load(), at.At(c, j).Load(), at.At(i, c).Load(),
			pad.At(c, c).Load())
		keep(k, swizzled.At(i, j).Load(), swizzled.At(c, j).Load(), swizzled.At(i, c).Load())
		keep(k, ptx.TileAt(kk, swizzled.Ptr(), swizzled.Layout).Ptr().Load())
	}})
}
