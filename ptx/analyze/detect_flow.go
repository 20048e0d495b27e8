package analyze

import (
	"slices"

	"github.com/wavelane/wavelane/ptx/flow"
	"github.com/wavelane/wavelane/ptx/ir"
)

var flowDetectors = []Detector{
	{Class: "InfiniteLoop", Severity: Bug,
		Doc: "No way leads out of a loop, or what decides about leaving it never changes in it.",
		Fix: "Change the condition's operands in the loop.", run: detectEndless},
	{Class: "LoopBranchToEnd", Severity: Bug,
		Doc: "A branch at the end of a loop's body goes to the label after the loop rather than to its start: the body runs once.",
		Fix: "Branch to the loop's start.", run: detectBranchToEnd},
	{Class: "NonInPlaceLoopAccumulator", Severity: Bug,
		Doc: "In each iteration of a loop a result is formed from an initial value that never changes, and goes to a register of its " +
			"own: nothing accumulates.",
		Fix: "Write the result back to the accumulator.", run: detectLostAccumulator},
	{Class: "EmptyLoopBody", Severity: Warning,
		Doc: "A loop does nothing but count, and nothing it computes is used.",
		Fix: "Remove it, or put the work in.", run: detectEmptyLoop},
	{Class: "PlaceholderCode", Severity: Bug,
		Doc: "A kernel that stores nothing, or that uses none of its parameters, computes nothing.",
		Fix: "Write the kernel.", run: detectPlaceholder},
	{Class: "DeadCode", Severity: Warning,
		Doc: "Control never comes to these instructions.",
		Fix: "Remove them, or correct the branch before them.", run: detectUnreachable},
	{Class: "PredicateNeverTrue", Severity: Warning,
		Doc: "The guard is false in all threads whatever the parameters are.",
		Fix: "Correct the comparison, or remove what it guards.", run: detectNeverTrue},
}

// effect tells instructions that do more than write registers.
func effect(in *ir.Instr) bool {
	switch in.Kind() {
	case ir.Store, ir.Atomic, ir.Call, ir.Async, ir.Barrier, ir.Mbarrier, ir.Wgmma, ir.Fence, ir.System, ir.WarpSync, ir.Other:
		return true
	case ir.Matrix:
		return in.Op == "stmatrix" || in.Op == "wmma.store.d"
	case ir.Load: // of what may change meanwhile
		return in.First(ir.Volatile, ir.Acquire, ir.Relaxed) != "" || in.Op != "ld"
	}
	return in.Op == "trap" || in.Op == "sust" || in.Op == "sured"
}

func detectEndless(k *kernel, report reporter) {
	said := map[int]bool{}
	for _, b := range k.g.Endless {
		if l := k.g.Blocks[b].Loop; l >= 0 && !said[l] {
			said[l] = true
			report(k.firstOf(k.g.Loops[l].Header), "no way leads out of this loop")
		}
	}
	for li := range k.g.Loops {
		l := &k.g.Loops[li]
		if said[li] || len(l.Exits) == 0 {
			continue
		}
		writes := k.writesIn(l)
		same, yields := true, false
		k.inLoop(l, func(_ int, in *ir.Instr) {
			yields = yields || in.Kind() == ir.Call || in.Op == "brx.idx" || in.Op == "trap"
		})
		for _, e := range l.Exits {
			g := k.f.Body[k.last(e.From)].Guard
			same = same && g.Reg != 0 && k.invariant(writes, g.Reg)
		}
		if same && !yields {
			report(k.last(l.Exits[0].From), "the condition is the same in every iteration")
		}
	}
}

// firstOf is a block's first instruction that is no label.
func (k *kernel) firstOf(b int) int {
	for i := k.g.Blocks[b].Start; i < k.g.Blocks[b].End; i++ {
		if k.f.Body[i].Kind() != ir.Directive {
			return i
		}
	}
	return k.g.Blocks[b].Start
}

// detectBranchToEnd looks for what was meant as a loop: a test of a register that leaves to a label, after it in-place
// counting of that register for nobody, and a branch to the same label although it comes next anyway.
func detectBranchToEnd(k *kernel, report reporter) {
	for b := range k.g.Blocks {
		if !k.g.Reachable(b) || k.g.Blocks[b].Loop >= 0 {
			continue
		}
		i := k.last(b)
		in := &k.f.Body[i]
		if in.Op != "bra" || in.Guard.Reg != 0 || len(k.g.Blocks[b].Succs) != 1 {
			continue
		}
		end := k.g.Blocks[b].Succs[0]
		if end != b+1 {
			continue
		}
		for h := k.g.IDom[b]; h >= 0; h = k.g.IDom[h] {
			test := k.last(h)
			if g := k.f.Body[test].Guard; g.Reg != 0 && slices.Contains(k.g.Blocks[h].Succs, end) && k.countsInVain(b, test, g.Reg) {
				report(i, "the loop that %s leaves has no way back to its start", k.place(test))
				break
			}
		}
	}
}

// countsInVain tells whether block b adds to a register in place that the test compares, and nobody reads the sum.
func (k *kernel) countsInVain(b, test int, pred ir.Reg) bool {
	for i := k.g.Blocks[b].Start; i < k.g.Blocks[b].End; i++ {
		in := &k.f.Body[i]
		if in.Op != "add" && in.Op != "sub" && in.Op != "shl" && in.Op != "shr" || len(in.Args) != 3 ||
			in.Args[0].Kind != ir.RegOperand || in.Args[1].Reg != in.Args[0].Reg {
			continue
		}
		r := in.Args[0].Reg
		if k.out[i].Has(r) {
			continue
		}
		for _, d := range k.reach.Defs(test, pred) {
			found := false
			if d != flow.Entry {
				k.g.Reads(d, func(s ir.Reg) { found = found || s == r })
			}
			if found {
				return true
			}
		}
	}
	return false
}

func detectLostAccumulator(k *kernel, report reporter) {
	for li := range k.g.Loops {
		l := &k.g.Loops[li]
		writes := k.writesIn(l)
		k.inLoop(l, func(i int, in *ir.Instr) {
			if k.loopOf(i) != l {
				return
			}
			switch in.Op {
			case "add", "or", "xor", "fma", "mad", "max", "min":
			default:
				return
			}
			dst := in.Args[0]
			if dst.Kind != ir.RegOperand || len(writes[dst.Reg]) != 1 || k.readIn(l, dst.Reg) || !k.liveAfter(l, dst.Reg) {
				return
			}
			for a := 1; a < len(in.Args); a++ {
				o := &in.Args[a]
				if o.Kind == ir.RegOperand && o.Reg != dst.Reg && k.initialValue(i, o.Reg, l) && k.onlyReadBy(i, o.Reg, l) &&
					k.variesBesides(i, a, writes) {
					report(i, "%s is the same in every iteration, and %s is written anew", k.f.Regs[o.Reg].Name, k.f.Regs[dst.Reg].Name)
					return
				}
			}
		})
	}
}

func (k *kernel) readIn(l *flow.Loop, r ir.Reg) bool {
	found := false
	k.inLoop(l, func(i int, _ *ir.Instr) { k.g.Reads(i, func(s ir.Reg) { found = found || s == r }) })
	return found
}

func (k *kernel) liveAfter(l *flow.Loop, r ir.Reg) bool {
	for _, e := range l.Exits {
		if e.To != k.g.Exit && k.live.In(e.To).Has(r) {
			return true
		}
	}
	return false
}

// initialValue tells whether instruction i reads in r, inside a loop, a number that was set before the loop.
func (k *kernel) initialValue(i int, r ir.Reg, l *flow.Loop) bool {
	defs := k.reach.Defs(i, r)
	for _, d := range defs {
		if d == flow.Entry || l.Has(k.g.BlockOf(d)) {
			return false
		}
		in := &k.f.Body[d]
		if in.Op != "mov" {
			return false
		}
		switch in.Args[1].Kind {
		case ir.IntOperand, ir.F32Operand, ir.F64Operand:
		default:
			return false
		}
	}
	return len(defs) > 0
}

// onlyReadBy tells whether nothing else in the loop reads r.
func (k *kernel) onlyReadBy(i int, r ir.Reg, l *flow.Loop) bool {
	only := true
	k.inLoop(l, func(j int, _ *ir.Instr) { k.g.Reads(j, func(s ir.Reg) { only = only && (s != r || j == i) }) })
	return only
}

// variesBesides tells whether another operand than the a-th changes from iteration to iteration.
func (k *kernel) variesBesides(i, a int, writes map[ir.Reg][]int) bool {
	varies := false
	for b := 1; b < len(k.f.Body[i].Args); b++ {
		if o := &k.f.Body[i].Args[b]; b != a && o.Kind == ir.RegOperand {
			varies = varies || !k.invariant(writes, o.Reg)
		}
	}
	return varies
}

func detectEmptyLoop(k *kernel, report reporter) {
	for li := range k.g.Loops {
		l := &k.g.Loops[li]
		idle := true
		k.inLoop(l, func(i int, in *ir.Instr) {
			idle = idle && !effect(in) && in.Kind() != ir.Load && in.Kind() != ir.Leave && !readsClock(in)
			k.g.Writes(i, func(r ir.Reg) { idle = idle && !k.liveAfter(l, r) })
		})
		if idle && len(l.Exits) > 0 {
			report(k.firstOf(l.Header), "nothing that this loop computes is used")
		}
	}
}

func detectPlaceholder(k *kernel, report reporter) {
	if !k.f.Entry {
		return
	}
	stores := false
	mentioned := map[string]bool{}
	k.each(func(_ int, in *ir.Instr) {
		for a := range in.Args {
			mentions(&in.Args[a], mentioned)
		}
		switch in.Kind() {
		case ir.Store, ir.Atomic, ir.Async:
			outside := in.Space() != ir.SharedSpace && in.Space() != ir.LocalSpace && in.Space() != ir.ParamSpace
			stores = stores || outside || in.Kind() == ir.Async && bulkStore(in)
		case ir.Call, ir.System:
			stores = stores || in.Op == "call" || in.Op == "pmevent" || in.Op == "griddepcontrol"
		}
		stores = stores || in.Kind() == ir.Texture && effect(in) || in.Op == "wmma.store.d" && in.Space() != ir.SharedSpace || in.Op == "trap"
	})
	if !stores {
		report(-1, "the kernel stores nothing")
		return
	}
	for i := range k.f.Params {
		if mentioned[k.f.Params[i].Name] {
			return
		}
	}
	if len(k.f.Params) > 0 {
		report(-1, "the kernel uses none of its %d parameters", len(k.f.Params))
	}
}

func detectUnreachable(k *kernel, report reporter) {
	for b := range k.g.Blocks {
		if k.g.Reachable(b) || b > 0 && !k.g.Reachable(b-1) && len(k.g.Blocks[b].Preds) > 0 {
			continue
		}
		// What ends a block for form's sake, after trap or bra, is no code.
		for i := k.g.Blocks[b].Start; i < k.g.Blocks[b].End; i++ {
			if kind := k.f.Body[i].Kind(); kind != ir.Directive && kind != ir.Leave && kind != ir.Branch {
				report(i, "no way leads here")
				break
			}
		}
	}
}

func detectNeverTrue(k *kernel, report reporter) {
	k.each(func(i int, in *ir.Instr) {
		if in.Kind() == ir.SetPred && in.Op == "setp" && in.First("lt", "lo") != "" && in.Type(0).Class() == ir.Unsigned {
			if o := &in.Args[len(in.Args)-1]; len(in.Args) == 3 && o.Kind == ir.IntOperand && o.Bits == 0 {
				report(i, "nothing unsigned is less than 0")
			}
		}
	})
	if len(k.walks) == 0 || len(k.o.Params) > 0 || k.o.Grid[0] > 0 || k.o.Block[0] > 0 {
		return // what is known only of this launch says nothing about the code
	}
	m := k.walks[0]
	launch := func(in *ir.Instr) bool {
		for a := range in.Args {
			if in.Args[a].Kind == ir.SpecialOperand {
				return true
			}
		}
		return false
	}
	k.each(func(i int, in *ir.Instr) {
		g := &m.seen.guards[i]
		if in.Guard.Reg == 0 || g.visits == 0 || !g.plain || g.taken {
			return
		}
		for l := k.g.Blocks[k.g.BlockOf(i)].Loop; l >= 0; l = k.g.Loops[l].Parent {
			if m.seen.open[k.g.Loops[l].Header] {
				return
			}
		}
		if !k.dependsOn(i, in.Guard.Reg, launch) {
			report(i, "%s is never as this guard wants it", k.f.Regs[in.Guard.Reg].Name)
		}
	})
}
