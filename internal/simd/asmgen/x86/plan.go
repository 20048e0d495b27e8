package x86

import (
	"fmt"
	"maps"
	"slices"

	"github.com/wavelane/wavelane/internal/simd/asmgen/ir"
)

// plan chooses how to unroll the main loop, what to keep in registers, and what in memory, by trying.
func plan(s *set, k *ir.Kernel) *function {
	body := k.Build(s.Features)
	want := s.unroll(k, body)
	for copies := want; ; copies /= 2 {
		together := copies
		if light(body) {
			together = 1
		}
		for _, pinned := range []bool{true, false} {
			for group := together; group >= 1; group /= 2 {
				f := newFunction(s, k, body, copies, group, pinned, nil)
				if f == nil {
					continue
				}
				last := copies == 1 && group == 1 && !pinned
				if a := f.try(f.pins); a != nil && (a.spills == 0 || last) {
					f.hoistConstants()
					return f
				} else if a == nil && last {
					panic(fmt.Sprintf("x86 %s: too few registers for %s", s.name, k.Name))
				}
			}
		}
	}
}

// light says whether loads from L1 and stores bound a body. Its copies take turns then, since loads and stores of different copies begin in
// the same cycle: axpy of 4,096 elements on Emerald Rapids takes 0.97 of the time. With three operands in L2 it is better to load
// together. Multiply-adds of AVX-512 take an operand from memory then, which for additions and multiplications would be slower.
func light(b *ir.Body) bool {
	inputs := 0
	for _, n := range b.Nodes {
		if n.Op == ir.OpInput {
			inputs++
		}
	}
	return inputs <= 2 && len(b.Nodes) <= lightNodes && len(b.Accumulators) == 0
}

// unroll is the number of vectors in a step of the main loop. Folds gain from more chains than other loops: two additions may
// begin in a cycle, and each takes four.
func (s *set) unroll(k *ir.Kernel, body *ir.Body) int {
	n := max(k.Unroll, 1)
	count := len(body.Accumulators)
	fold := count > 0 && body.Accumulators[0].Merge != ir.MergeNone && body.Guard == nil && body.Store == nil
	if n == 4 && fold && len(body.Nodes) <= lightNodes {
		return 8
	}
	for n*s.lanes > ir.Lanes && (count > 0 || body.Guard != nil) {
		n /= 2
	}
	return n
}

// newFunction returns nil if values for the whole function leave no registers. Inputs that are held are in registers.
func newFunction(s *set, k *ir.Kernel, body *ir.Body, copies, group int, pinned bool, held []int) *function {
	f := &function{lowering: lower(s, body), kernel: k, pins: map[*value]int{}, copies: copies, group: group}
	f.frame.fixed = map[*value]int{}
	next := [2]int{s.regs - 1, 6} // K7 is the tail's mask
	pin := func(v *value) {
		f.pins[v] = next[class(v)]
		next[class(v)]--
	}
	for range copies * len(body.Accumulators) {
		v := f.new(home, false)
		f.homes = append(f.homes, v)
		pin(v)
	}
	for _, v := range f.flagHomes() {
		pin(v)
	}
	for _, input := range held {
		for range copies {
			v := f.new(invariant, false)
			f.held[input] = append(f.held[input], v)
			pin(v)
		}
	}
	const least = 4 // registers for the rest
	for _, n := range body.Nodes {
		if n.Op == ir.OpParam && f.usedInLoop(n) && pinned {
			pin(f.param(int(n.Imm)))
		}
	}
	for _, n := range body.Nodes {
		v := f.once[n]
		switch {
		case v == nil:
		case pinned && next[class(v)] >= least:
			pin(v)
		default:
			f.frame.fixed[v] = len(f.frame.fixed)
		}
	}
	f.frame.slots = len(f.frame.fixed)
	if next[0] < least && held == nil {
		return nil
	}
	return f
}

// try counts what the main loop needs with these values pinned; nil if it cannot be done.
func (f *function) try(pins map[*value]int) (a *allocator) {
	defer func() {
		if e := recover(); e == tooFew {
			a = nil
		} else if e != nil {
			panic(e)
		}
	}()
	frame := f.frame
	a = newAllocator(f.lowering, f.section(f.copies, f.group, f.homes, nil), pins, &frame, nil)
	a.run()
	return a
}

// hoistConstants keeps as many constants in registers as the main loop leaves, those first that are needed in a register.
func (f *function) hoistConstants() {
	base := f.try(f.pins)
	uses := map[*value]int{}
	var list []*value
	for _, in := range base.sec.code {
		for i, v := range in.args {
			if v.kind == constant {
				if uses[v] == 0 {
					list = append(list, v)
				}
				uses[v]++
				_, form := f.form(in.op)
				if in.op != opFMA && in.op != opFNMA && form.mem != i && !in.commutes {
					uses[v] += 100
				}
			}
		}
	}
	slices.SortStableFunc(list, func(v, w *value) int { return uses[w] - uses[v] })
	room := f.room()
	best := base.loads
	for n := 1; n <= len(list) && n <= len(room)-1; n++ {
		pins := maps.Clone(f.pins)
		for i, v := range list[:n] {
			pins[v] = room[i]
		}
		if a := f.try(pins); a != nil && a.spills <= base.spills && a.loads <= best {
			best = a.loads
			f.hoist = list[:n]
		}
	}
}

// room lists the vector registers that hold nothing for the whole function, the last first.
func (f *function) room() []int {
	taken := map[int]bool{}
	for v, r := range f.pins {
		taken[r] = taken[r] || !v.mask
	}
	var list []int
	for r := f.regs - 1; r >= 0; r-- {
		if !taken[r] {
			list = append(list, r)
		}
	}
	return list
}
