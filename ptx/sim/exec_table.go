package sim

import (
	"strings"
	"sync"

	"github.com/wavelane/wavelane/ptx/ir"
)

// handler compiles an instruction to the step that executes it.
type handler func(c *compiler, in *ir.Instr) (step, error)

// handlers are the handlers of all instructions that are executed.
var handlers struct {
	once sync.Once
	byOp map[ir.Op]handler
}

// handlerOf returns the handler of an opcode, nil if it has none.
func handlerOf(op ir.Op) handler {
	handlers.once.Do(func() {
		handlers.byOp = map[ir.Op]handler{}
		// What most instructions have in common: a function of the operands' bits.
		ir.Ops(func(op ir.Op, info ir.OpInfo) {
			switch info.Kind {
			case ir.Arithmetic, ir.Move, ir.SetPred, ir.Carry:
				handlers.byOp[op] = compilePure
			}
		})
		for _, row := range []struct {
			ops string
			h   handler
		}{
			{"ld ldu", compileLoad},
			{"st", compileStore},
			{"cvta", compileCvta},
			{"isspacep", compileIsspacep},
			{"mov", compileMove},
			{"tex tld4", compileTex},
			{"suld sust sured", compileSurface},
			{"txq suq", compileQuery},
			{"istypep", compileIstypep},

			{"bra", compileBranch},
			{"brx.idx", compileIndexedBranch},
			{"call", compileCall},
			{"ret", compileRet},
			{"exit", compileExit},
			{"trap brkpt", compileTrap},

			{"atom", compileAtom},
			{"red", compileRed},
			{"membar fence", compileFence},
			{"prefetch prefetchu applypriority discard", compileHint},
			{"createpolicy.range createpolicy.fractional createpolicy.cvt", compileCreatePolicy},

			{"bar.sync bar.cta.sync barrier.sync barrier.cta.sync bar.arrive bar.cta.arrive barrier.arrive " +
				"barrier.cta.arrive bar.red bar.cta.red barrier.red barrier.cta.red", compileBarrier},
			{"barrier.cluster.arrive barrier.cluster.wait", compileClusterBarrier},
			{"mapa", compileMapa},
			{"getctarank", compileRank},
			{"st.async red.async", compileRemote},
			{"fence.proxy fence.mbarrier_init", compileProxyFence},
			{"setmaxnreg", compileSetmaxnreg},
			{"griddepcontrol", compileGridDependency},

			{"shfl.sync shfl", compileShuffle},
			{"vote.sync vote", compileVote},
			{"match.any.sync match.all.sync", compileMatch},
			{"redux.sync", compileRedux},
			{"elect.sync", compileElect},
			{"bar.warp.sync", compileBarWarp},
			{"activemask", compileActivemask},

			{"nanosleep", compileNanosleep},
			{"pmevent", compileHint},
			{"alloca", compileAlloca},
			{"stacksave", compileStackSave},
			{"stackrestore", compileStackRestore},

			{"cp.async", compileCpAsync},
			{"cp.async.commit_group", compileCommit},
			{"cp.async.wait_group cp.async.wait_all", compileWaitGroup},
			{"cp.async.mbarrier.arrive", compileCpAsyncArrive},
			{"cp.async.bulk cp.reduce.async.bulk", compileBulk},
			{"cp.async.bulk.prefetch", compileBulkPrefetch},
			{"cp.async.bulk.commit_group", compileBulkCommit},
			{"cp.async.bulk.wait_group", compileBulkWait},
			{"cp.async.bulk.tensor cp.reduce.async.bulk.tensor", compileTensor},
			{"cp.async.bulk.prefetch.tensor", compileTensorPrefetch},
			{"tensormap.replace", compileReplace},
			{"tensormap.cp_fenceproxy", compileCopyFence},

			{"mbarrier.init mbarrier.inval", compileMbarrierInit},
			{"mbarrier.arrive mbarrier.arrive_drop", compileArrive},
			{"mbarrier.expect_tx mbarrier.complete_tx", compileTx},
			{"mbarrier.test_wait mbarrier.try_wait", compileMbarrierWait},
			{"mbarrier.pending_count", compilePendingCount},

			{"ldmatrix", compileLdmatrix},
			{"stmatrix", compileStmatrix},
			{"movmatrix", compileMovmatrix},
			{"mma", compileMMA},
			{"mma.sp mma.sp::ordered_metadata", compileSparse},
			{"wmma.load.a wmma.load.b wmma.load.c wmma.store.d", compileWmmaMemory},
			{"wmma.mma", compileWmma},
			{"wgmma.mma_async", compileWgmma},
			{"wgmma.fence", compileWgmmaFence},
			{"wgmma.commit_group", compileWgmmaCommit},
			{"wgmma.wait_group", compileWgmmaWait},

			{"tcgen05.alloc", compileTensorAlloc},
			{"tcgen05.dealloc", compileTensorDealloc},
			{"tcgen05.relinquish_alloc_permit", compileTensorRelinquish},
			{"tcgen05.ld", compileTensorLoad},
			{"tcgen05.st", compileTensorStore},
			{"tcgen05.wait::ld tcgen05.wait::st", compileTensorWait},
			{"tcgen05.mma tcgen05.mma.sp", compileTensorProduct},
			{"tcgen05.commit", compileTensorCommit},
			{"tcgen05.cp", compileTensorCopy},
			{"tcgen05.fence::before_thread_sync tcgen05.fence::after_thread_sync", compileTensorFence},
		} {
			for op := range strings.FieldsSeq(row.ops) {
				handlers.byOp[ir.Op(op)] = row.h
			}
		}
	})
	return handlers.byOp[op]
}
