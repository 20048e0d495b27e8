package ptx_test

import "github.com/wavelane/wavelane/ptx"

func init() {
	u := ptx.Imm[uint32]
	covers = append(covers,
		cover{"special", "sm_50", "4.1", func(k *kernel) {
			for _, d := range []ptx.Dim{ptx.X, ptx.Y, ptx.Z} {
				keep(k, k.Tid(d), k.Ntid(d), k.Ctaid(d), k.Nctaid(d), k.GlobalID(d))
			}
			keep(k, k.LaneID(), k.WarpID(), k.NWarpID(), k.SMID(), k.NSMID(), k.Clock(), k.DynamicSharedSize(), k.TotalSharedSize())
			keep(k, k.GridID(), k.Clock64(), k.GlobalTimer())
			for _, m := range []ptx.LaneMask{ptx.LanesEqual, ptx.LanesBelow, ptx.LanesUpTo, ptx.LanesAbove, ptx.LanesFromHere} {
				keep(k, k.Lanes(m))
			}
			k.MaxThreads(128, 1, 1)
			k.MinBlocks(2)
			k.MaxRegs(64)
		}},
		cover{"sync", "sm_50", "6.2", func(k *kernel) {
			p := k.Tid(ptx.X).Lt(u(5))
			k.Barrier()
			k.BarSync(u(1), u(64))
			k.BarArrive(u(2), k.Ntid(ptx.X))
			k.BarrierSync(u(3), u(128))
			keepP(k, k.BarrierAll(p), k.BarrierAny(p))
			keep(k, k.BarrierCount(p))
			k.WarpSync(ptx.FullWarp())
			full := ptx.FullWarp()
			for _, m := range []ptx.ShuffleMode{ptx.ShuffleUp, ptx.ShuffleDown, ptx.ShuffleXor, ptx.ShuffleIndex} {
				keep(k, get[float32](k).Shuffle(m, u(1), 32, full))
				y, in := k.LaneID().ShuffleInside(m, u(2), 8, full)
				keep(k, y)
				keepP(k, in)
			}
			keepP(k, k.VoteAll(p, full), k.VoteAny(p, full), k.VoteSame(p, full))
			keep(k, k.Ballot(p, full), k.ActiveMask())
		}},
		cover{"sync_70", "sm_70", "7.5", func(k *kernel) {
			keep(k, get[uint32](k).MatchAny(ptx.FullWarp()), get[int64](k).MatchAny(ptx.FullWarp()))
			m, same := get[uint32](k).MatchAll(ptx.FullWarp())
			keep(k, m)
			keepP(k, same)
			k.FenceAcqRel(ptx.ScopeGPU)
			k.FenceSC(ptx.ScopeSystem)
			k.Nanosleep(u(100))
			k.FenceProxyAlias()
		}},
		cover{"redux", "sm_80", "7.0", func(k *kernel) {
			for _, op := range []ptx.Op{ptx.OpAdd, ptx.OpMin, ptx.OpMax} {
				keep(k, get[int32](k).Redux(op, ptx.FullWarp()))
				keep(k, get[uint32](k).Redux(op, ptx.FullWarp()))
			}
			for _, op := range []ptx.Op{ptx.OpAnd, ptx.OpOr, ptx.OpXor} {
				keep(k, get[uint32](k).Redux(op, ptx.FullWarp()))
			}
		}},
		cover{"control", "sm_50", "4.0", func(k *kernel) {
			kk := k.Kernel
			n := ptx.Param[int32](kk, "n")
			sum := ptx.VarOf(kk, ptx.Imm[int32](0))
			last := ptx.NewVar[int32](kk)
			last.Set(n)
			bump := func(i ptx.Reg[int32]) { sum.Set(sum.Get().Add(i)) }
			step := ptx.Imm[int32](1)
			ptx.For(kk, 0, n, step, bump, ptx.Unroll(4))
			ptx.For(kk, 0, 8, step, bump, ptx.Unroll(4))
			ptx.For(kk, n, 0, -2, bump, ptx.NoUnroll())
			ptx.For(kk, 0, n, n, func(i ptx.Reg[int32]) {
				k.ContinueIf(i.Eq(3))
				k.If(i.Gt(90), func() { k.Break() }, func() { bump(i) })
			})
			k.While(func() ptx.Reg[bool] { return last.Get().Lt(50) }, func() {
				last.Set(last.Get().Mul(3))
				k.If(last.Get().Eq(n), func() { k.Continue() })
				last.Set(last.Get().Add(step))
			})
			k.Loop(func() {
				k.BreakUnless(last.Get().Lt(99))
				last.Set(last.Get().Add(step))
				k.BreakIf(last.Get().Eq(77))
			})
			k.When(n.Ne(0), func() { keep(k, last.Get()) })
			for i := range 3 {
				bump(ptx.Imm(int32(i)))
			}
			k.ReturnIf(n.Eq(7))
			k.TrapIf(n.Eq(8))
			keep(k, sum.Get())
			k.Pragma("nounroll")
			k.If(n.Eq(9), func() { k.Trap() })
			k.Return()
		}},
		cover{"cp_async", "sm_80", "7.0", func(k *kernel) {
			kk := k.Kernel
			s := ptx.SharedArray[float32](kk, "stage", 64, ptx.Align(16))
			g := ptx.Cast[float32](k.out)
			ptx.CpAsync(s, g, 16)
			ptx.CpAsync(s.At(4), g, 4)
			ptx.CpAsync(s.At(8), g, 16, ptx.CacheAll)
			ptx.CpAsyncZfill(s.At(12), g, 8, k.Tid(ptx.X))
			k.CpAsyncCommit()
			k.CpAsyncWait(1)
			k.CpAsyncWaitAll()
			b := ptx.NewMbarrier(kk, "barrier", 1)
			b.Init(128)
			b.ArriveCpAsync()
			b.ArriveCpAsyncNoInc()
			state := b.Arrive()
			keep(k, b.PendingCount(state))
			keepP(k, b.TestWait(state))
			b.Wait(b.ArriveNoComplete(1))
			b.ArriveDrop()
			b.Inval()
		}},
		cover{"cp_async_hints", "sm_80", "7.4", func(k *kernel) {
			s := ptx.SharedArray[float32](k.Kernel, "stage", 64, ptx.Align(16))
			policy := ptx.WithPolicy(k.CreatePolicy(ptx.EvictLast, ptx.Imm[float32](1)))
			ptx.CpAsync(s, k.out, 16, ptx.L2Prefetch128, policy)
			ptx.CpAsyncZfill(s, k.out, 16, u(8), policy)
			keepP(k, ptx.MbarrierAt(ptx.Cast[uint64](s)).TestWaitParity(1))
		}},
		cover{"bulk", "sm_90", "8.0", func(k *kernel) {
			kk := k.Kernel
			s := ptx.SharedArray[float32](kk, "stage", 1024, ptx.Align(1024))
			b := ptx.NewMbarrier(kk, "barrier", 2)
			g := ptx.Cast[float32](k.out)
			b.Init(1)
			k.FenceMbarrierInit()
			b.ArriveExpectTx(4096)
			b.ExpectTx(64)
			b.CompleteTx(64)
			b.ArriveN(2)
			policy := k.CreatePolicy(ptx.EvictFirst, ptx.Imm[float32](1))
			ptx.CopyBulk(s, g, 4096, b)
			ptx.CopyBulk(s, g, 4096, b, ptx.CopyPolicy(policy), ptx.Multicast(ptx.Imm[uint16](3)))
			ptx.CopyBulkCluster(ptx.MapShared(s, u(1)), s.At(4), 16, b.Map(u(1)))
			b.WaitParity(0)
			keepP(k, b.TryWaitParity(0), b.TryWaitParityCluster(0),
				b.TryWait(b.Arrive()))
			k.FenceProxyAsync()
			k.FenceProxyAsyncShared()
			k.FenceProxyAsyncGlobal()
			ptx.CopyBulkOut(g, s, 4096)
			ptx.ReduceBulk(ptx.OpAdd, g, s, 4096, ptx.CopyPolicy(policy))
			ptx.ReduceBulk(ptx.OpAdd, ptx.Cast[ptx.F16](g), ptx.Cast[ptx.F16](s), 4096)
			ptx.ReduceBulk(ptx.OpMax, ptx.Cast[int32](g), ptx.Cast[int32](s), 4096)
			ptx.PrefetchBulk(g, 4096)
			k.BulkCommit()
			k.BulkWait(1)
			k.BulkWaitRead(0)
		}},
		cover{"tensor", "sm_90", "8.0", func(k *kernel) {
			kk := k.Kernel
			m := ptx.TensorMapParam[ptx.BF16](kk, "map")
			s := ptx.SharedArray[ptx.BF16](kk, "stage", 1024, ptx.Align(1024))
			b := ptx.NewMbarrier(kk, "barrier", 1)
			b.Init(1)
			m.PrefetchDescriptor()
			i := ptx.Imm[int32]
			at := []ptx.Reg[int32]{i(0), ptx.Convert[int32](k.Ctaid(ptx.X)), i(2), i(3), i(4)}
			for rank := 1; rank <= 5; rank++ {
				m.Load(s, at[:rank], b)
				m.Store(at[:rank], s)
			}
			policy := k.CreatePolicy(ptx.EvictFirst, ptx.Imm[float32](1))
			m.Load(s, at[:2], b, ptx.Multicast(ptx.Imm[uint16](3)), ptx.CopyPolicy(policy))
			ptx.TensorMapAt[ptx.BF16](k.out).Store(at[:2], s, ptx.CopyPolicy(policy))
			m.Reduce(ptx.OpAdd, at[:3], s)
			m.Prefetch(at[:2])
		}},
		cover{"clusters", "sm_90", "8.1", func(k *kernel) {
			kk := k.Kernel
			k.RequireCluster(2, 1, 1)
			k.ExplicitCluster()
			s := ptx.SharedArray[float32](kk, "part", 128, ptx.Align(16))
			b := ptx.NewMbarrier(kk, "barrier", 1)
			b.Init(1)
			for _, d := range []ptx.Dim{ptx.X, ptx.Y, ptx.Z} {
				keep(k, k.ClusterID(d), k.NClusterID(d), k.ClusterCtaid(d), k.ClusterNctaid(d))
			}
			keep(k, k.ClusterRank(), k.ClusterSize())
			keepP(k, k.IsExplicitCluster())
			k.ClusterBarrier()
			k.ClusterArriveRelaxed()
			k.ClusterArrive()
			k.ClusterWait()
			other, ob := ptx.MapShared(s, u(1)), b.Map(u(1))
			keep(k, ptx.RankOf(other), ptx.RankOf(ptx.OwnShared(s)))
			keep(k, other.At(1).Load())
			other.Store(1)
			ob.Arrive()
			ob.ArriveExpectTx(20)
			ptx.StoreAsync(other, ptx.Imm[float32](1), ob)
			ptx.StoreAsync(ptx.Cast[int64](other), get[int64](k), ob)
			ptx.StoreAsync4(other, [4]ptx.Reg[float32](gets[float32](k, 4)), ob)
			ptx.ReduceAsync(ptx.OpAdd, ptx.Cast[uint32](other), u(1), ob)
			ptx.ReduceAsync(ptx.OpOr, ptx.Cast[uint32](other), u(1), ob)
			ptx.ReduceAsync(ptx.OpMin, ptx.Cast[int32](other), ptx.Imm[int32](1), ob)
			keepP(k, k.Elect(ptx.FullWarp()))
			k.WaitPrerequisites()
			k.LaunchDependents()
		}},
		cover{"cluster_rank", "sm_90", "7.8", func(k *kernel) {
			k.RequireThreads(64, 2, 1)
			k.MaxClusterBlocks(4)
			keep(k, k.ClusterRank())
		}},
	)
}
