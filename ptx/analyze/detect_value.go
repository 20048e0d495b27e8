package analyze

import (
	"fmt"
	"github.com/wavelane/wavelane/ptx/flow"
	"github.com/wavelane/wavelane/ptx/ir"
)

var valueDetectors = []Detector{
	{Class: "UninitializedRegister", Severity: Bug,
		Doc: "A register is read that nothing has written on any way there: its value is random, and ptxas does not say so.",
		Fix: "Write it first.", run: func(k *kernel, report reporter) { detectUnwritten(k, true, report) }},
	{Class: "MayBeUninitialized", Severity: Warning, Strict: true,
		Doc: "There is a way, as far as the branches show, on which a register is read before it is written. Conditions may " +
			"exclude it.",
		Fix: "Write it on all ways.", run: func(k *kernel, report reporter) { detectUnwritten(k, false, report) }},
	{Class: "UnusedResult", Severity: Warning,
		Doc: "What the instruction computes is read by nobody: often another register was meant.",
		Fix: "Use the result, or remove the instruction.", run: detectUnusedResults},
	{Class: "RedundantMoves", Severity: Info, Strict: true,
		Doc: "A value is copied from a copy, or to itself. ptxas removes such moves; they show that the generator is careless.",
		Fix: "Read the original.", run: detectMoves},
	{Class: "UnusedParameter", Severity: Warning,
		Doc: "A kernel does not use one of its parameters: either it is superfluous or something was forgotten.",
		Fix: "Use it, or remove it.", run: detectUnusedParams},
	{Class: "RegisterTypeInvariant", Severity: Bug,
		Doc: "A register's type does not fit the instruction's: its width differs, or it holds an integer where a float is meant.",
		Fix: "Use a register of the instruction's type, or convert with cvt.", run: detectTypes},
	{Class: "HighRegisterPressure", Severity: Performance,
		Doc: "More registers hold values at once than a thread can have: ptxas must spill some to local memory.",
		Fix: "Compute values later or again, use smaller tiles, or fewer threads in a block.", run: detectPressure},
	{Class: "LowOccupancy", Severity: Info, Strict: true,
		Doc: "A thread has more than 128 registers, so that a multiprocessor holds few warps, which hide little latency.",
		Fix: "Use smaller tiles per thread, unless the kernel is bound by arithmetic and its instructions overlap by themselves.",
		run: detectOccupancy},
	{Class: "PredicateOverflow", Severity: Performance,
		Doc: "The hardware has seven predicates; further live ones are kept in registers and moved to and fro. How many are " +
			"declared does not matter.",
		Fix: "Use comparisons where they are made, or selp.", run: detectPredicates},
}

func detectUnwritten(k *kernel, never bool, report reporter) {
	params := map[string]bool{}
	for i := range k.f.Params {
		params[k.f.Params[i].Name] = k.f.Params[i].Space == ir.RegSpace
	}
	said := map[ir.Reg]bool{}
	k.each(func(i int, in *ir.Instr) {
		if in.Kind() == ir.Wgmma {
			return // its accumulators may be read without effect: scale-d
		}
		k.g.Reads(i, func(r ir.Reg) {
			defs := k.reach.Defs(i, r)
			if said[r] || len(defs) == 0 || defs[0] != flow.Entry || params[k.f.Regs[r].Name] {
				return
			}
			if !never && k.guardedAlike(i, r) {
				return
			}
			if never == (len(defs) == 1 || len(defs) == 2 && defs[1] == i) {
				said[r] = true
				if never {
					report(i, "nothing writes %s before", k.f.Regs[r].Name)
				} else {
					report(i, "not every way here writes %s", k.f.Regs[r].Name)
				}
			}
		})
	})
}

// guardedAlike tells whether the guard of instruction i has let, in the same block and with the same value, a write of r pass.
func (k *kernel) guardedAlike(i int, r ir.Reg) bool {
	guard := k.f.Body[i].Guard
	if guard.Reg == 0 || guard.Reg == r {
		return false
	}
	for j := i - 1; j >= k.g.Blocks[k.g.BlockOf(i)].Start; j-- {
		of, written, changed := k.f.Body[j].Guard, false, false
		k.g.Writes(j, func(w ir.Reg) { written, changed = written || w == r, changed || w == guard.Reg })
		switch {
		case changed:
			return false
		case written && of == guard:
			return true
		}
	}
	return false
}

func detectUnusedResults(k *kernel, report reporter) {
	k.each(func(i int, in *ir.Instr) {
		if kind := in.Kind(); !pure(kind) && (kind != ir.Load || effect(in)) {
			return
		}
		some, used := false, false
		k.g.Writes(i, func(r ir.Reg) { some, used = true, used || k.out[i].Has(r) })
		if some && !used {
			report(i, "nobody reads the result")
		}
	})
}

func detectMoves(k *kernel, report reporter) {
	isCopy := func(in *ir.Instr) bool {
		return in.Op == "mov" && in.Guard.Reg == 0 && in.Args[0].Kind == ir.RegOperand && in.Args[1].Kind == ir.RegOperand
	}
	k.each(func(i int, in *ir.Instr) {
		if !isCopy(in) {
			return
		}
		if in.Args[0].Reg == in.Args[1].Reg {
			report(i, "a copy to itself")
			return
		}
		if defs := k.reach.Defs(i, in.Args[1].Reg); len(defs) == 1 && defs[0] != flow.Entry && isCopy(&k.f.Body[defs[0]]) {
			report(i, "a copy of the copy at %s", k.place(defs[0]))
		}
	})
}

func detectUnusedParams(k *kernel, report reporter) {
	if !k.f.Entry {
		return
	}
	mentioned := map[string]bool{}
	for i := range k.f.Body {
		for a := range k.f.Body[i].Args {
			mentions(&k.f.Body[i].Args[a], mentioned)
		}
	}
	var unused []string
	for i := range k.f.Params {
		if n := k.f.Params[i].Name; !mentioned[n] {
			unused = append(unused, n)
		}
	}
	if len(unused) == len(k.f.Params) {
		return // PlaceholderCode says more
	}
	for _, n := range unused {
		report(-1, "%s is never read", n)
	}
}

// detectTypes compares registers with the type of instructions whose operands all have it.
func detectTypes(k *kernel, report reporter) {
	k.each(func(i int, in *ir.Instr) {
		t := in.Type(0)
		first := 0
		switch in.Op {
		case "add", "sub", "div", "rem", "abs", "neg", "min", "max", "fma", "and", "or", "xor", "not", "rcp", "sqrt", "rsqrt", "sin",
			"cos", "lg2", "ex2":
		case "mul", "mad":
			if in.Has(ir.Wide) {
				return
			}
		case "setp":
			first = 1
		default:
			return
		}
		for a := first; a < len(in.Args) && (in.Op != "setp" || a < 3); a++ {
			o := &in.Args[a]
			if o.Kind != ir.RegOperand {
				continue
			}
			r := k.f.Regs[o.Reg]
			switch {
			case r.Type.Bits() != t.Bits() && t != ir.NoType:
				report(i, "%s is .%s (%d bits), the instruction's type is .%s (%d bits)", r.Name, r.Type, r.Type.Bits(), t, t.Bits())
			case r.Type.Class() != ir.Bits && t.Class() != ir.Bits && r.Type.IsFloat() != t.IsFloat():
				report(i, "%s is .%s, the instruction's type is .%s", r.Name, r.Type, t)
			}
		}
	})
}

func detectPressure(k *kernel, report reporter) {
	if !k.f.Entry {
		return
	}
	p := k.live.Pressure().Units
	limit := k.registerLimit()
	if p.Live > limit {
		report(p.Instr, "%d registers hold values here, %d may be had", p.Live, limit)
	}
}

// registers is how many a thread has: as ptxas says, or else the most that hold values at once.
func (k *kernel) registers() (n int, ptxas bool) {
	if n, ok := k.o.Registers[k.f.Name]; ok {
		return n, true
	}
	return k.live.Pressure().Units.Live, false
}

func detectOccupancy(k *kernel, report reporter) {
	n, _ := k.registers()
	if !k.f.Entry || n <= 128 {
		return
	}
	share := ""
	if l, err := k.limits(); err == nil {
		if o, err := l.Occupancy(product3(k.dims), min(n, l.MaxRegisters), k.sharedBytes()); err == nil {
			share = fmt.Sprintf(": occupancy is %.0f %%", 100*o.Share)
		}
	}
	report(k.live.Pressure().Units.Instr, "%d registers%s", n, share)
}

// registerLimit is how many registers a thread may have.
func (k *kernel) registerLimit() int {
	limit := 255
	if n := k.f.Bounds.MaxRegs; n > 0 {
		limit = min(limit, n)
	}
	if t := k.f.Bounds.Threads(); t > 0 {
		warps := (t + 31) / 32 * max(1, k.f.Bounds.MinBlocks)
		limit = min(limit, (64<<10)/(warps*32)/8*8)
	}
	return limit
}

func detectPredicates(k *kernel, report reporter) {
	if p := k.live.Pressure().Pred; p.Live > 7 {
		report(p.Instr, "%d predicates hold values here", p.Live)
	}
}
