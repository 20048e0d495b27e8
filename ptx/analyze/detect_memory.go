package analyze

import (
	"slices"

	"github.com/wavelane/wavelane/ptx/ir"
)

var memoryDetectors = []Detector{
	{Class: "OutOfBounds", Severity: Bug,
		Doc: "An address lies outside of the array that it is formed from.",
		Fix: "Guard the access by a comparison with the array's length, or make the array larger.", run: detectOutside},
	{Class: "UnalignedMemoryAccess", Severity: Bug,
		Doc: "An access of n bytes must lie at a multiple of n; otherwise the hardware faults (716, misaligned address).",
		Fix: "Align the array, or use narrower accesses.", run: detectAskew},
	{Class: "UninitializedShared", Severity: Bug,
		Doc: "A thread reads a part of a shared array that nothing in the kernel ever writes: shared memory begins with random contents.",
		Fix: "Correct the index, or write the whole array first.", run: detectNeverWritten},
	{Class: "MissingBoundsCheck", Severity: Warning,
		Doc: "Global memory is indexed by block and thread without any condition, although the kernel gets a number that no " +
			"comparison looks at: with a grid larger than the data, threads access what lies beyond it.",
		Fix: "Compare the index with the length and guard the access.", run: detectUnchecked},
	{Class: "SharedMemBankConflict", Severity: Performance,
		Doc: "Lanes of a warp access different words of one of the 32 banks of shared memory: they are served one after the other.",
		Fix: "Pad rows by one word, or swizzle columns by xor with the row.",
		run: func(k *kernel, report reporter) { detectConflicts(k, false, report) }},
	{Class: "LdmatrixBankConflict", Severity: Performance,
		Doc: "Rows of 16 bytes that ldmatrix or stmatrix moves at once lie in the same banks: they are served one after the other.",
		Fix: "Swizzle the 16-byte chunks of a row by xor with the row (chunk ^ (row & 7) for rows of 128 bytes).",
		run: func(k *kernel, report reporter) { detectConflicts(k, true, report) }},
	{Class: "UncoalescedStore", Severity: Performance,
		Doc: "The lanes of a warp store to many sectors of 32 bytes and fill few of them: bandwidth is lost.",
		Fix: "Let neighbouring lanes store to neighbouring addresses, through shared memory if need be.",
		run: func(k *kernel, report reporter) { detectScattered(k, true, report) }},
	{Class: "UncoalescedLoad", Severity: Performance,
		Doc: "The lanes of a warp load from many sectors of 32 bytes and use little of them: bandwidth is lost.",
		Fix: "Let neighbouring lanes load from neighbouring addresses, through shared memory if need be.",
		run: func(k *kernel, report reporter) { detectScattered(k, false, report) }},
	{Class: "UnoptimizedMemoryPattern", Severity: Performance,
		Doc: "A thread loads neighbouring words one by one where one vector load would do.",
		Fix: "Use ld.v4 (16 bytes), or ld.v2.", run: detectScalarRuns},
	{Class: "RegisterSpills", Severity: Performance,
		Doc: "Local memory lies in the GPU's memory: spilled registers and arrays indexed at run time are slow.",
		Fix: "Use fewer registers, unroll loops so that indices are constant, or put the array into shared memory.",
		run: detectLocal},
	{Class: "UnusedSharedMemory", Severity: Warning,
		Doc: "A shared array is declared and never used: it takes room from other blocks.",
		Fix: "Remove it.", run: detectUnusedShared},
}

// used calls f with what was seen of every access.
func (k *kernel) used(f func(i int, in *ir.Instr, u *memoryUse)) {
	for _, m := range k.walks {
		for i := range k.f.Body {
			for _, at := range []int{i, ^i} {
				if u := m.seen.memory[at]; u != nil {
					f(i, &k.f.Body[i], u)
				}
			}
		}
	}
}

func detectOutside(k *kernel, report reporter) {
	k.used(func(i int, _ *ir.Instr, u *memoryUse) {
		if u.outside && !k.assumed {
			report(i, "%d bytes at %s%+d, which has %d bytes", u.size, u.of, u.where, u.limit)
		}
	})
}

func detectNeverWritten(k *kernel, report reporter) {
	said := map[int]bool{}
	for _, m := range k.walks {
		k.neverWritten(m, func(i int, of *symbol, offset int64) {
			if !said[i] {
				said[i] = true
				report(i, "nothing writes %s%+d", of.name, offset)
			}
		})
	}
}

func detectAskew(k *kernel, report reporter) {
	k.used(func(i int, _ *ir.Instr, u *memoryUse) {
		switch {
		case u.askew && u.declared:
			report(i, "%d bytes at once of %s, which is declared with an alignment of %d", u.size, u.of, u.skewed)
		case u.askew:
			report(i, "%d bytes at once at %s%+d", u.size, u.of, u.skewed)
		}
	})
}

func detectUnchecked(k *kernel, report reporter) {
	if len(k.walks) == 0 {
		return
	}
	m := k.walks[0]
	scalars := map[string]bool{}
	for i := range k.f.Params {
		p := &k.f.Params[i]
		if p.Dims == nil && !p.Type.IsFloat() && !p.Ptr && !m.pointers()[p.Name] && p.Type.Bits() >= 32 {
			scalars[p.Name] = true
		}
	}
	for _, v := range m.seen.addresses { // pointers that went through local memory
		if b := v.base(); b != nil && b.v != nil {
			delete(scalars, b.v.Name)
		}
	}
	if len(scalars) == 0 {
		return
	}
	isScalar := func(in *ir.Instr) bool {
		return in.Op == "ld" && in.Space() == ir.ParamSpace && len(in.Args) > 1 && scalars[in.Args[1].Sym]
	}
	compared := false
	k.each(func(i int, in *ir.Instr) {
		if in.Kind() != ir.SetPred && in.Op != "min" && in.Op != "max" {
			return
		}
		k.g.Reads(i, func(r ir.Reg) { compared = compared || k.dependsOn(i, r, isScalar) })
	})
	if compared {
		return
	}
	k.used(func(i int, in *ir.Instr, u *memoryUse) {
		v := m.seen.addresses[i]
		if u.space != ir.GlobalSpace || !u.bare || v == nil || v.base() == nil {
			return
		}
		if _, block := v.from(); block && v.level() == perThread {
			report(i, "the index depends on block and thread, and nothing is compared with %s", names(scalars))
		}
	})
}

func names(set map[string]bool) string {
	var list []string
	for n := range set {
		list = append(list, n)
	}
	slices.Sort(list)
	s := ""
	for i, n := range list {
		if i > 0 {
			s += ", "
		}
		s += n
	}
	return s
}

func detectConflicts(k *kernel, matrix bool, report reporter) {
	k.used(func(i int, in *ir.Instr, u *memoryUse) {
		if u.space != ir.SharedSpace || u.atomic || in.Kind() == ir.Mbarrier || matrix != (in.Kind() == ir.Matrix) {
			return
		}
		if u.ideal > 0 && u.sectors >= 2*u.ideal {
			report(i, "%d-way conflicts: %.3g times as many passes over the banks as necessary", u.worst,
				float64(u.sectors)/float64(u.ideal))
		}
	})
}

func detectScattered(k *kernel, stores bool, report reporter) {
	k.used(func(i int, in *ir.Instr, u *memoryUse) {
		if u.space != ir.GlobalSpace || u.write != stores || u.atomic || in.Kind() == ir.Atomic || u.requests == 0 ||
			u.sectors < 2*u.ideal {
			return
		}
		stride := ""
		if u.strided {
			stride = ": lanes are a parameter's multiple apart"
		}
		report(i, "%.3g sectors per request where %.3g would do%s", float64(u.sectors)/float64(u.requests),
			float64(u.ideal)/float64(u.requests), stride)
	})
}

// detectScalarRuns looks, in each block of instructions, for loads from one register at neighbouring offsets.
func detectScalarRuns(k *kernel, report reporter) {
	if len(k.walks) == 0 {
		return
	}
	m := k.walks[0]
	type key struct {
		base   ir.Reg
		opcode string
	}
	flush := func(runs map[key][]int) {
		for kk, list := range runs {
			slices.SortFunc(list, func(a, b int) int {
				return int(k.f.Body[a].Args[1].Off - k.f.Body[b].Args[1].Off)
			})
			size := k.f.Body[list[0]].Type(0).Size()
			if size == 0 {
				continue
			}
			n := 16 / size
			for s := 0; s+n <= len(list); s++ {
				ok := true
				for j := range n {
					ok = ok && k.f.Body[list[s+j]].Args[1].Off == k.f.Body[list[s]].Args[1].Off+int64(j*size)
				}
				if ok && k.alwaysAligned(m, list[s], 16) {
					report(list[s], "%d loads of %d bytes from %s in a row", n, size, k.f.Regs[kk.base].Name)
					break
				}
			}
		}
		clear(runs)
	}
	runs := map[key][]int{}
	for b := range k.g.Blocks {
		if !k.g.Reachable(b) {
			continue
		}
		for i := k.g.Blocks[b].Start; i < k.g.Blocks[b].End; i++ {
			in := &k.f.Body[i]
			switch in.Kind() {
			case ir.Store, ir.Atomic, ir.Barrier, ir.Call, ir.Async, ir.Mbarrier, ir.Fence:
				flush(runs)
			case ir.Load:
				o := len(in.Args) > 1 && in.Args[1].Kind == ir.AddrOperand && in.Args[1].Reg != 0
				if o && in.Op == "ld" && in.Width() == 1 && in.First(ir.Volatile, ir.Relaxed, ir.Acquire) == "" &&
					in.Type(0).Size() >= 4 && (in.Space() == ir.GlobalSpace || in.Space() == ir.SharedSpace) {
					kk := key{in.Args[1].Reg, in.Opcode()}
					runs[kk] = append(runs[kk], i)
				}
			}
			k.g.Writes(i, func(r ir.Reg) {
				for kk := range runs {
					if kk.base == r {
						flush(runs)
						break
					}
				}
			})
		}
		flush(runs)
	}
}

// alwaysAligned tells whether an access lies at a multiple of n in all threads.
func (k *kernel) alwaysAligned(m *machine, i int, n int64) bool {
	v := m.seen.addresses[i]
	if v == nil || v.base() == nil || v.aligned()%n != 0 {
		return false
	}
	for _, c := range v.c {
		if c%n != 0 {
			return false
		}
	}
	return true
}

func detectLocal(k *kernel, report reporter) {
	first := -1
	n := 0
	k.each(func(i int, in *ir.Instr) {
		local := in.Space() == ir.LocalSpace
		for _, m := range k.walks {
			if v := m.seen.addresses[i]; v != nil && v.base() != nil && v.base().space == ir.LocalSpace {
				local = true
			}
		}
		if kind := in.Kind(); local && (kind == ir.Load || kind == ir.Store) {
			n++
			if first < 0 {
				first = i
			}
		}
	})
	if n > 0 {
		report(first, "%d accesses to local memory", n)
	}
}

func detectUnusedShared(k *kernel, report reporter) {
	if !k.f.Entry {
		return
	}
	unused := func(list []ir.Var, funcs ...*ir.Func) {
		mentioned := map[string]bool{}
		for _, f := range funcs {
			for i := range f.Body {
				for a := range f.Body[i].Args {
					mentions(&f.Body[i].Args[a], mentioned)
				}
			}
		}
		for i := range list {
			if v := &list[i]; v.Space == ir.SharedSpace && !mentioned[v.Name] {
				report(-1, "%s (%d bytes) is never used", v.Name, v.Size())
			}
		}
	}
	unused(k.f.Vars, k.f)
	unused(k.mod.Vars, k.mod.Funcs...)
}

func mentions(o *ir.Operand, into map[string]bool) {
	if o.Sym != "" {
		into[o.Sym] = true
	}
	for i := range o.Elems {
		mentions(&o.Elems[i], into)
	}
}
