package ir

import (
	"strings"
	"sync"
)

// Op is the root of an opcode, such as "add", "ld", "bar.sync" or "cp.async.bulk.tensor". Roots of several words are those whose
// words decide what the operands mean; everything after them is a [Mod].
type Op string

// What stands in a body beside instructions.
const (
	// OpLabel marks a place. Its one argument is the label.
	OpLabel Op = ":"
	// OpPragma is a .pragma; its one argument is the text.
	OpPragma Op = ".pragma"
	// OpBranchTargets lists the labels that a brx.idx may jump to. It follows the OpLabel that names the list.
	OpBranchTargets Op = ".branchtargets"
	// OpCallPrototype describes a function called by address. It follows the OpLabel that names it.
	OpCallPrototype Op = ".callprototype"
	// OpCallTargets lists the functions that a call by address may be of. It follows the OpLabel that names it.
	OpCallTargets Op = ".calltargets"
)

// Role is what an instruction does with one of its arguments.
type Role uint8

// The roles.
const (
	Read      Role = iota // registers are read; for addresses and vectors, all registers in them
	Write                 // the register, or each register of a vector or pair, is written
	ReadWrite             // accumulators of wgmma
)

// Kind says what an instruction is for, as far as passes, analyser and counters distinguish it.
type Kind uint8

// The kinds.
const (
	Other        Kind = iota
	Arithmetic        // pure: a function of the operands alone
	Move              // mov, cvta, cvt, selp and packing: pure too
	SetPred           // setp, testp: pure, predicates as result
	Carry             // add.cc and the like: a hidden register besides
	Load              // reads memory
	Store             // writes memory
	Atomic            // atom, red and what else reads and writes memory at once
	Texture           // tex, suld, sust and their like: memory by way of a texture or surface
	Fetch             // prefetch, discard, createpolicy: hints, no result that matters
	Branch            // bra, brx.idx
	Call              // call
	Leave             // ret, exit, trap
	Barrier           // bar, barrier, barrier.cluster
	Fence             // membar, fence
	WarpSync          // shfl, vote, match, redux, elect, activemask, bar.warp.sync: lanes meet
	Matrix            // mma, wmma, ldmatrix, stmatrix, movmatrix: the whole warp
	Async             // cp.async and what commits and awaits it
	Mbarrier          // mbarrier.*
	Wgmma             // wgmma.*: a warpgroup
	TensorMemory      // tcgen05.*
	System            // setmaxnreg, griddepcontrol, nanosleep, …
	Directive         // no instruction: labels and directives
)

// OpInfo is what is true of all forms of an Op.
type OpInfo struct {
	Kind  Kind
	Roles string // of the arguments in turn: w written, r read, x both; the last one also stands for all that follow
}

// ops is the list of roots. Their forms, with what may follow and what they need, are in the table of forms.
var ops = sync.OnceValue(func() map[Op]OpInfo {
	ops := map[Op]OpInfo{}
	define := func(k Kind, roles, names string) {
		for _, n := range strings.Fields(names) {
			ops[Op(n)] = OpInfo{k, roles}
		}
	}
	define(Directive, "r", string(OpLabel)+" "+string(OpPragma)+" "+string(OpBranchTargets)+" "+string(OpCallPrototype)+" "+string(OpCallTargets))
	define(Arithmetic, "wr", `add sub mul mad mul24 mad24 sad div rem abs neg min max popc clz bfind fns brev bfe bfi bmsk szext
		dp4a dp2a fma rcp sqrt rsqrt sin cos lg2 ex2 tanh copysign and or xor not cnot lop3 shf shl shr prmt
		vadd vsub vabsdiff vmin vmax vshl vshr vmad vset vadd2 vsub2 vavrg2 vabsdiff2 vmin2 vmax2 vset2
		vadd4 vsub4 vavrg4 vabsdiff4 vmin4 vmax4 vset4`)
	define(Carry, "wr", "addc subc madc") // add.cc, sub.cc, mad.cc are Carry too: see Instr.Kind
	define(Move, "wr", "mov cvt cvt.pack cvta isspacep selp slct mapa getctarank")
	define(SetPred, "wr", "set setp testp")
	define(Load, "wr", "ld ldu multimem.ld_reduce")
	define(Store, "r", "st st.async st.bulk multimem.st")
	define(Texture, "wr", "tex tld4 suld txq suq istypep")
	define(Texture, "r", "sust sured")
	define(Atomic, "wr", "atom")
	define(Atomic, "r", "red red.async multimem.red")
	define(Fetch, "r", "prefetch prefetchu discard applypriority")
	define(Fetch, "wr", "createpolicy.range createpolicy.fractional createpolicy.cvt")
	define(Branch, "r", "bra brx.idx")
	define(Call, "wrr", "call") // written: what is in the first list, see Instr.Roles
	define(Leave, "r", "ret exit trap")
	define(Barrier, "r", `bar.sync bar.arrive barrier.sync barrier.arrive barrier.cluster.arrive barrier.cluster.wait
		bar.cta.sync bar.cta.arrive barrier.cta.sync barrier.cta.arrive`)
	define(Barrier, "wr", "bar.red barrier.red bar.cta.red barrier.cta.red")
	define(Fence, "r", "membar fence fence.proxy fence.mbarrier_init")
	define(WarpSync, "wr", "shfl shfl.sync vote vote.sync match.any.sync match.all.sync redux.sync elect.sync activemask")
	define(WarpSync, "r", "bar.warp.sync")
	define(Matrix, "wr", "mma wmma.load.a wmma.load.b wmma.load.c wmma.mma ldmatrix movmatrix mma.sp mma.sp::ordered_metadata")
	define(Matrix, "r", "wmma.store.d stmatrix")
	define(Async, "r", `cp.async cp.async.commit_group cp.async.wait_group cp.async.wait_all cp.async.mbarrier.arrive
		cp.async.bulk cp.async.bulk.prefetch cp.async.bulk.tensor cp.async.bulk.prefetch.tensor cp.async.bulk.commit_group
		cp.async.bulk.wait_group cp.reduce.async.bulk cp.reduce.async.bulk.tensor tensormap.replace tensormap.cp_fenceproxy`)
	define(Mbarrier, "r", "mbarrier.init mbarrier.inval mbarrier.expect_tx mbarrier.complete_tx")
	define(Mbarrier, "wr", "mbarrier.arrive mbarrier.arrive_drop mbarrier.test_wait mbarrier.try_wait mbarrier.pending_count")
	define(Wgmma, "xr", "wgmma.mma_async")
	define(Wgmma, "r", "wgmma.fence wgmma.commit_group wgmma.wait_group")
	define(TensorMemory, "wr", "tcgen05.ld")
	define(TensorMemory, "r", `tcgen05.st tcgen05.alloc tcgen05.dealloc tcgen05.relinquish_alloc_permit tcgen05.wait::ld tcgen05.wait::st
		tcgen05.mma tcgen05.mma.sp tcgen05.mma.ws tcgen05.commit tcgen05.cp tcgen05.shift tcgen05.fence::before_thread_sync
		tcgen05.fence::after_thread_sync`)
	define(System, "r", "setmaxnreg griddepcontrol nanosleep pmevent brkpt stackrestore")
	define(System, "wr", "stacksave alloca")
	return ops
})

// maxWords is how many words the longest root has.
var maxWords = sync.OnceValue(func() int {
	n := 1
	for op := range ops() {
		n = max(n, strings.Count(string(op), ".")+1)
	}
	return n
})

// Ops calls f for every root, in no order.
func Ops(f func(Op, OpInfo)) {
	for op, info := range ops() {
		f(op, info)
	}
}

// Info is what is true of all forms of the root; ok is false for roots that PTX, as far as it is known here, does not have.
func (op Op) Info() (info OpInfo, ok bool) {
	info, ok = ops()[op]
	return info, ok
}

// SplitOpcode cuts an opcode such as "cp.async.ca.shared.global" into its root, the longest known one, and the parts after it. For an
// unknown root ok is false and op is the first word.
func SplitOpcode(code string) (op Op, mods []Mod, ok bool) {
	words := strings.Split(code, ".")
	for n := min(maxWords(), len(words)); n > 0; n-- {
		if root := Op(strings.Join(words[:n], ".")); ops()[root] != (OpInfo{}) {
			op, ok = root, true
			words = words[n:]
			break
		}
	}
	if !ok {
		op, words = Op(words[0]), words[1:]
	}
	for _, w := range words {
		mods = append(mods, Mod(w))
	}
	return op, mods, ok
}

// Kind says what the instruction is for.
func (in *Instr) Kind() Kind {
	k := ops()[in.Op].Kind
	if k == Arithmetic && in.Has(CC) {
		return Carry
	}
	return k
}

// Role is what the instruction does with its i-th argument. For call the first list is written and the rest read, if there are a list
// before the function's name and one after it.
func (in *Instr) Role(i int) Role {
	switch in.Op {
	case "call":
		if i == 0 && in.Args[0].Kind == ListOperand {
			return Write
		}
		return Read
	case "mbarrier.arrive", "mbarrier.arrive_drop": // the state is optional
		if i == 0 && in.Args[0].Kind == AddrOperand {
			return Read
		}
	}
	roles := ops()[in.Op].Roles
	if roles == "" {
		return Read
	}
	switch roles[min(i, len(roles)-1)] {
	case 'w':
		return Write
	case 'x':
		return ReadWrite
	}
	return Read
}

// Regs calls f with every register that the instruction touches: those read first (guard and addresses among them), then those written.
// A register that is both, an accumulator of wgmma, comes twice. Registers inside an address are read whatever the argument's role.
func (in *Instr) Regs(f func(r Reg, role Role)) {
	if in.Guard.Reg != 0 {
		f(in.Guard.Reg, Read)
	}
	for i := range in.Args {
		if in.Role(i) == Write && in.Args[i].Kind != AddrOperand {
			continue
		}
		in.Args[i].Regs(func(r Reg) { f(r, Read) })
	}
	for i := range in.Args {
		if in.Role(i) != Read && in.Args[i].Kind != AddrOperand {
			in.Args[i].Regs(func(r Reg) { f(r, Write) })
		}
	}
}
