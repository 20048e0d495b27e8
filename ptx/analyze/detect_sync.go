package analyze

import (
	"fmt"
	"strings"

	"github.com/wavelane/wavelane/ptx/ir"
)

var syncDetectors = []Detector{
	{Class: "MissingBarrierSync", Severity: Bug,
		Doc: "A thread reads memory that another one wrote, and no barrier between them makes sure that the write came first.",
		Fix: "Put bar.sync between the write and the read (bar.warp.sync if both threads are in one warp).",
		run: detectReadAfterWrite},
	{Class: "Race", Severity: Bug,
		Doc: "Two threads access one place, the later access is a write, and no barrier orders them: in a loop, often the barrier " +
			"at the end of the iteration is missing, so that the next iteration overwrites what others still read.",
		Fix: "Put bar.sync between the accesses, or use two buffers in turn.", run: detectOverwrites},
	{Class: "BarrierUnderDivergence", Severity: Bug,
		Doc: "A barrier stands where only some of the threads it waits for come: the block hangs, or threads meet at different " +
			"barriers.",
		Fix: "Move the barrier out of the divergent code, or make the condition the same for all threads.",
		run: func(k *kernel, report reporter) { k.divergentBarriers(false, report) }},
	{Class: "EarlyExitBeforeBarrier", Severity: Bug,
		Doc: "Some threads leave the kernel before a barrier that the others wait at.",
		Fix: "Let all threads go on to the barrier and guard the work between by a predicate.",
		run: func(k *kernel, report reporter) { k.divergentBarriers(true, report) }},
	{Class: "FullMaskAfterExit", Severity: Bug,
		Doc: "An instruction that names all lanes of the warp stands where some of them may not come: the result is undefined, or " +
			"the warp hangs.",
		Fix: "Let all lanes come there and guard what they do with the result, or pass the mask of the lanes that do.",
		run: detectFullMask},
}

func detectReadAfterWrite(k *kernel, report reporter) {
	k.races(func(r race) bool { return r.kind == readAfterWrite }, report)
}

func detectOverwrites(k *kernel, report reporter) {
	k.races(func(r race) bool { return r.kind != readAfterWrite }, report)
}

func (k *kernel) races(want func(race) bool, report reporter) {
	for _, m := range k.walks {
		for _, r := range m.seen.races {
			if !want(r) {
				continue
			}
			what := map[raceKind]string{readAfterWrite: "reads what thread %d wrote", writeAfterRead: "writes what thread %d reads",
				writeAfterWrite: "writes what thread %d writes"}[r.kind]
			scope := "no barrier is"
			if r.warp {
				scope = "neither a barrier nor bar.warp.sync is"
			}
			where := fmt.Sprintf("%s%+d", r.base, r.offset)
			if r.anywhere {
				what, where = "may clash with thread %d", "some place of "+r.base
			}
			report(r.second, "thread %d "+what+" at %s (%s), and %s between", r.threads[1], r.threads[0], where, k.place(r.first), scope)
		}
	}
}

// place is an instruction and where it stands.
func (k *kernel) place(i int) string {
	return fmt.Sprintf("%s: %s", k.f.Body[i].Pos, k.f.InstrString(&k.f.Body[i]))
}

// waits tells barriers of the block at which threads wait.
func waits(op ir.Op) bool {
	switch op {
	case "bar.sync", "barrier.sync", "bar.red", "barrier.red", "bar.cta.sync", "barrier.cta.sync", "bar.cta.red",
		"barrier.cta.red":
		return true
	}
	return false
}

// divergentBarriers finds barriers that a divergent branch decides about; leaving tells those where the other threads leave the
// kernel.
func (k *kernel) divergentBarriers(leaving bool, report reporter) {
	for _, m := range k.walks {
		k.each(func(i int, in *ir.Instr) {
			if !waits(in.Op) {
				return
			}
			// Barriers of a number of threads are for some warps, but for whole ones.
			least := perWarp
			if m.seen.partial[i] {
				least = perThread
			}
			if g := &m.seen.guards[i]; in.Guard.Reg != 0 && g.split >= least && !leaving {
				report(i, "the barrier's guard differs from thread to thread")
				return
			}
			for _, c := range k.controllers(k.g.BlockOf(i)) {
				g := &m.seen.guards[k.last(c)]
				if g.visits == 0 || g.split < least || leaving != (k.g.IPDom[c] == k.g.Exit && k.mayLeave(c)) || k.meets(c, in) {
					continue
				}
				where := k.place(k.last(c))
				if leaving {
					report(i, "some threads leave before this barrier, by the branch at %s", where)
				} else {
					report(i, "threads part at %s, and not all of them come to this barrier", where)
				}
				return
			}
		})
	}
}

// meets tells whether a barrier lets threads wait at different instructions, and on all ways from block c they come to one of the same
// number, or leave: those that have left are not waited for. So warps wait that are told what to do by another one. Where what they are told
// is an entry of a table, one of them says to end, at a barrier of another number: that they are told the same is not known here.
func (k *kernel) meets(c int, in *ir.Instr) bool {
	anywhere := func(in *ir.Instr) bool {
		return strings.HasPrefix(string(in.Op), "barrier") && !in.Has(ir.Aligned) && len(in.Args) == 1 && in.Args[0].Kind == ir.IntOperand
	}
	if !anywhere(in) {
		return false
	}
	told := k.f.Body[k.last(c)].Op == "brx.idx"
	for _, s := range k.g.Blocks[c].Succs {
		any, met := false, false
		k.each(func(i int, other *ir.Instr) {
			if waits(other.Op) && k.reaches(s, k.g.BlockOf(i)) {
				any, met = true, met || anywhere(other) && (told || other.Args[0].Bits == in.Args[0].Bits)
			}
		})
		if any && !met {
			return false
		}
	}
	return true
}

// mayLeave tells whether some way out of block c ends without any barrier after it.
func (k *kernel) mayLeave(c int) bool {
	if k.g.Blocks[c].Leaves {
		return true
	}
	for _, s := range k.g.Blocks[c].Succs {
		seen := map[int]bool{}
		work := []int{s}
		for len(work) > 0 {
			b := work[len(work)-1]
			work = work[:len(work)-1]
			if seen[b] {
				continue
			}
			seen[b] = true
			stop := false
			for i := k.g.Blocks[b].Start; i < k.g.Blocks[b].End; i++ {
				stop = stop || waits(k.f.Body[i].Op)
			}
			if stop {
				continue
			}
			if k.g.Blocks[b].Leaves {
				return true
			}
			work = append(work, k.g.Blocks[b].Succs...)
		}
	}
	return false
}

// wholeWarps tells instructions that all lanes of a warp must come to: those that say so, and those whose mask names all.
func wholeWarps(in *ir.Instr) bool {
	switch in.Kind() {
	case ir.Matrix:
		return in.Has(ir.Aligned)
	case ir.WarpSync:
		if in.Op == "activemask" || len(in.Args) == 0 {
			return false
		}
		mask := &in.Args[len(in.Args)-1]
		return mask.Kind == ir.IntOperand && uint32(mask.Bits) == 0xffffffff
	}
	return false
}

func detectFullMask(k *kernel, report reporter) {
	for _, m := range k.walks {
		k.each(func(i int, in *ir.Instr) {
			if !wholeWarps(in) {
				return
			}
			if g := &m.seen.guards[i]; in.Guard.Reg != 0 && g.visits > 0 && g.split == perThread {
				report(i, "the guard differs from lane to lane, and the mask names all lanes")
				return
			}
			for _, c := range k.controllers(k.g.BlockOf(i)) {
				if g := &m.seen.guards[k.last(c)]; g.visits > 0 && g.split == perThread && !k.gone(c, in, i) {
					report(i, "lanes part at %s, and the mask names all of them", k.place(k.last(c)))
					return
				}
			}
		})
	}
}

// gone tells whether instruction i waits for lanes that have not left only, and those that do not come to it from the branch at
// the end of block c leave at once. What they had for others to read is undefined then.
func (k *kernel) gone(c int, in *ir.Instr, i int) bool {
	if in.Kind() != ir.WarpSync || in.Op == "shfl.sync" {
		return false
	}
	to := k.g.BlockOf(i)
	for _, s := range k.g.Blocks[c].Succs {
		if k.reaches(s, to) {
			continue
		}
		for j := k.g.Blocks[s].Start; j < k.g.Blocks[s].End; j++ {
			if kind := k.f.Body[j].Kind(); kind != ir.Directive && kind != ir.Leave {
				return false
			}
		}
	}
	return true
}

// reaches tells whether control may come from block a to block b.
func (k *kernel) reaches(a, b int) bool {
	seen, work := map[int]bool{a: true}, []int{a}
	for len(work) > 0 {
		x := work[len(work)-1]
		if work = work[:len(work)-1]; x == b {
			return true
		}
		for _, s := range k.g.Blocks[x].Succs {
			if !seen[s] {
				seen[s] = true
				work = append(work, s)
			}
		}
	}
	return false
}
