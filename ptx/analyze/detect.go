package analyze

import (
	"slices"

	"github.com/wavelane/wavelane/ptx/flow"
	"github.com/wavelane/wavelane/ptx/ir"
)

// Class names a kind of defect.
type Class string

// Detector finds one class of defects.
type Detector struct {
	Class    Class    `json:"class"`
	Severity Severity `json:"severity"`
	// Strict detectors run only when asked for.
	Strict bool `json:"strict"`
	// Doc says what the defect is and why it is one, Fix what to do.
	Doc string `json:"doc"`
	Fix string `json:"fix"`

	module bool // looks at the module, not at functions
	raw    bool // takes functions whose instructions are none
	run    func(k *kernel, report func(instr int, format string, args ...any))
}

type reporter = func(instr int, format string, args ...any)

var detectors = slices.Concat(syncDetectors, asyncDetectors, memoryDetectors, spaceDetectors, flowDetectors, valueDetectors, moduleDetectors)

// Detectors lists all detectors.
func Detectors() []Detector { return append([]Detector(nil), detectors...) }

// each calls f for every instruction that control can reach.
func (k *kernel) each(f func(i int, in *ir.Instr)) {
	for i := range k.f.Body {
		if k.g.Reachable(k.g.BlockOf(i)) && k.f.Body[i].Kind() != ir.Directive {
			f(i, &k.f.Body[i])
		}
	}
}

// controllers are the blocks whose branches decide, directly or through others, whether block b runs.
func (k *kernel) controllers(b int) []int {
	seen := map[int]bool{}
	var out []int
	work := []int{b}
	for len(work) > 0 {
		b := work[len(work)-1]
		work = work[:len(work)-1]
		for _, e := range k.deps[b] {
			if !seen[e.From] {
				seen[e.From] = true
				out = append(out, e.From)
				work = append(work, e.From)
			}
		}
	}
	return out
}

// last is the block's last instruction.
func (k *kernel) last(b int) int { return k.g.Blocks[b].End - 1 }

// loopOf is the innermost loop around instruction i, nil if there is none.
func (k *kernel) loopOf(i int) *flow.Loop {
	if l := k.g.Blocks[k.g.BlockOf(i)].Loop; l >= 0 {
		return &k.g.Loops[l]
	}
	return nil
}

// inLoop calls f for every instruction of a loop.
func (k *kernel) inLoop(l *flow.Loop, f func(i int, in *ir.Instr)) {
	for _, b := range l.Blocks {
		for i := k.g.Blocks[b].Start; i < k.g.Blocks[b].End; i++ {
			if k.f.Body[i].Kind() != ir.Directive {
				f(i, &k.f.Body[i])
			}
		}
	}
}

// writesIn are the instructions of a loop that write each register.
func (k *kernel) writesIn(l *flow.Loop) map[ir.Reg][]int {
	out := map[ir.Reg][]int{}
	k.inLoop(l, func(i int, _ *ir.Instr) {
		k.g.Writes(i, func(r ir.Reg) { out[r] = append(out[r], i) })
	})
	return out
}

// invariant tells whether a register has the same value in every iteration of a loop: nothing in the loop writes it, or only pure
// instructions of invariant operands do.
func (k *kernel) invariant(writes map[ir.Reg][]int, r ir.Reg) bool {
	const (
		open = iota + 1
		yes
		no
	)
	state := map[ir.Reg]int{}
	var visit func(r ir.Reg) bool
	visit = func(r ir.Reg) bool {
		switch state[r] {
		case open, no: // depends on itself: it goes from iteration to iteration
			return false
		case yes:
			return true
		}
		state[r] = open
		ok := len(writes[r]) <= 1
		for _, i := range writes[r] {
			in := &k.f.Body[i]
			ok = ok && pure(in.Kind()) && in.Guard.Reg == 0 && !readsClock(in)
			k.g.Reads(i, func(s ir.Reg) { ok = ok && visit(s) })
		}
		state[r] = no
		if ok {
			state[r] = yes
		}
		return ok
	}
	return visit(r)
}

// readsClock tells instructions whose special register changes by itself.
func readsClock(in *ir.Instr) bool {
	for i := range in.Args {
		if in.Args[i].Kind == ir.SpecialOperand {
			switch in.Args[i].Sym {
			case "%clock", "%clock_hi", "%clock64", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi":
				return true
			}
		}
	}
	return false
}

// dependsOn tells whether what instruction i reads in r comes, through pure instructions, from a special register with one of
// the names (without dimension) or from anything that stop accepts.
func (k *kernel) dependsOn(i int, r ir.Reg, accept func(in *ir.Instr) bool) bool {
	seen := map[int]bool{}
	var visit func(i int, r ir.Reg) bool
	visit = func(i int, r ir.Reg) bool {
		for _, d := range k.reach.Defs(i, r) {
			if d == flow.Entry || seen[d] {
				continue
			}
			seen[d] = true
			in := &k.f.Body[d]
			if accept(in) {
				return true
			}
			if pure(in.Kind()) {
				found := false
				k.g.Reads(d, func(s ir.Reg) { found = found || visit(d, s) })
				if found {
					return true
				}
			}
		}
		return false
	}
	return visit(i, r)
}
