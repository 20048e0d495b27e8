package analyze

import (
	"slices"

	"github.com/wavelane/wavelane/ptx/ir"
)

var spaceDetectors = []Detector{
	{Class: "GenericAddressCorruption", Severity: Bug,
		Doc: "cvta made a generic address of this one; an access that names shared or local memory takes the address inside that " +
			"memory, and reads elsewhere.",
		Fix: "Leave the state space out of the access, or convert back with cvta.to.", run: detectGenericInSpace},
	{Class: "IncompatibleAddressSpace", Severity: Bug,
		Doc: "The address belongs to another state space than the one that the access names.",
		Fix: "Name the right space, or convert the address with cvta and leave the space out.", run: detectWrongSpace},
	{Class: "MissingDirectShared", Severity: Performance,
		Doc: "A generic access to what is known to be shared memory: the hardware must find out which memory is meant.",
		Fix: "Name the space (ld.shared) and use the address without cvta.", run: detectGenericShared},
	{Class: "LoopCvtaShared", Severity: Performance,
		Doc: "A loop converts an address anew in each iteration that does not change in it.",
		Fix: "Convert it before the loop.", run: detectLoopCvta},
	{Class: "DataDependentStore", Severity: Info, Strict: true,
		Doc: "Where the store goes depends on values from memory: if two threads meet, the result depends on their order. Scatters " +
			"are meant so.",
		Fix: "Make sure that the indices differ, or use atomics.",
		run: func(k *kernel, report reporter) { detectDataAddress(k, ir.Store, report) }},
	{Class: "ComputedAddrFromLoaded", Severity: Info, Strict: true,
		Doc: "The address depends on values from memory: it cannot be checked before the kernel runs, and one access waits for the " +
			"other. Gathers are meant so.",
		Fix: "Check the index against the length before the access.",
		run: func(k *kernel, report reporter) { detectDataAddress(k, ir.Load, report) }},
	{Class: "SharedMemU64Addressing", Severity: Info, Strict: true,
		Doc: "Shared memory is addressed by a register of 64 bits. This is legal: ptxas takes the lower half, as shared memory is " +
			"smaller than 4 GiB. It costs a register. The prior art took it for a defect.",
		Fix: "Address shared memory by registers of 32 bits.", run: detectWideShared},
}

// inner tells spaces whose addresses differ from generic ones.
func inner(s ir.Space) bool {
	return s == ir.SharedSpace || s == ir.LocalSpace || s == ir.SharedClusterSpace
}

// accesses calls f for every load, store and atomic operation whose address is known to be made from something.
func (k *kernel) accesses(f func(i int, in *ir.Instr, v *vec)) {
	if len(k.walks) == 0 {
		return
	}
	k.each(func(i int, in *ir.Instr) {
		switch in.Op {
		case "ld", "st", "atom", "red", "ldmatrix", "stmatrix":
			if v := k.walks[0].seen.addresses[i]; v != nil {
				f(i, in, v)
			}
		}
	})
}

// spaceOf is the space that an access names; that of ldmatrix is always shared memory.
func spaceOf(in *ir.Instr) ir.Space {
	if in.Kind() == ir.Matrix {
		return ir.SharedSpace
	}
	return in.Space()
}

func detectGenericInSpace(k *kernel, report reporter) {
	k.accesses(func(i int, in *ir.Instr, v *vec) {
		if inner(v.generic) && inner(spaceOf(in)) {
			report(i, "a generic address (of %s memory) where one of %s memory is wanted", v.generic, spaceOf(in))
		}
	})
}

func detectWrongSpace(k *kernel, report reporter) {
	k.accesses(func(i int, in *ir.Instr, v *vec) {
		b := v.base()
		s := spaceOf(in)
		if b == nil || inner(v.generic) && inner(s) {
			return
		}
		switch {
		case b.kind == addressSymbol && s == ir.NoSpace && named(in):
		case b.kind == addressSymbol && s == ir.NoSpace && v.generic == ir.NoSpace && (inner(b.space) || b.space == ir.ConstSpace):
			report(i, "a generic access to the address of %s, which is in %s memory, without cvta", b.name, b.space)
		case b.kind == addressSymbol && s != ir.NoSpace && s != b.space && !(inner(s) && s != ir.LocalSpace &&
			b.space == ir.SharedSpace):
			report(i, "%s is in %s memory", b.name, b.space)
		case b.kind == paramSymbol && inner(s) && !inner(b.v.PtrSpace) && b.v.Type.Bits() == 64:
			report(i, "the parameter %s points to %s memory", b.name, max(b.v.PtrSpace, ir.GlobalSpace))
		}
	})
}

// named tells accesses to a variable by its name, whose space they have.
func named(in *ir.Instr) bool {
	return slices.ContainsFunc(in.Args, func(o ir.Operand) bool { return o.Kind == ir.AddrOperand && o.Sym != "" })
}

func detectGenericShared(k *kernel, report reporter) {
	k.accesses(func(i int, in *ir.Instr, v *vec) {
		if b := v.base(); spaceOf(in) == ir.NoSpace && v.generic == ir.SharedSpace && b != nil && b.space == ir.SharedSpace {
			report(i, "%s is in shared memory", b.name)
		}
	})
}

func detectLoopCvta(k *kernel, report reporter) {
	k.each(func(i int, in *ir.Instr) {
		l := k.loopOf(i)
		if in.Op != "cvta" || l == nil {
			return
		}
		writes := k.writesIn(l)
		same := true
		k.g.Reads(i, func(r ir.Reg) { same = same && k.invariant(writes, r) })
		if same {
			report(i, "its operand is the same in every iteration")
		}
	})
}

func detectDataAddress(k *kernel, kind ir.Kind, report reporter) {
	k.accesses(func(i int, in *ir.Instr, v *vec) {
		if data, _ := v.from(); data && in.Kind() == kind {
			report(i, "the address comes from loaded values")
		}
	})
}

func detectWideShared(k *kernel, report reporter) {
	k.each(func(i int, in *ir.Instr) {
		if s := spaceOf(in); s != ir.SharedSpace && s != ir.SharedClusterSpace {
			return
		}
		switch in.Kind() {
		case ir.Load, ir.Store, ir.Atomic, ir.Matrix:
			for a := range in.Args {
				if o := &in.Args[a]; o.Kind == ir.AddrOperand && o.Reg != 0 && k.f.Regs[o.Reg].Type.Bits() == 64 {
					report(i, "%s has 64 bits", k.f.Regs[o.Reg].Name)
				}
			}
		}
	})
}
