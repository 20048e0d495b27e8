package flow

import (
	"math/bits"

	"github.com/wavelane/wavelane/ptx/ir"
)

// Counter is an integer register that a loop steps by a constant once an iteration and compares with something that the loop does not
// change, to go on or to leave.
type Counter struct {
	Loop   int    // index into Graph.Loops
	Reg    ir.Reg // the counter
	Type   ir.Type
	Step   int64 // added each iteration, in two's complement of the type
	Add    int   // the instruction that steps
	Test   int   // the setp
	Branch int   // the branch that leaves, or goes on
	Stays  bool  // the branch being taken means going on
	// The loop goes on while counter Cmp Bound: lt, le, gt, ge, ne or eq, signed if Type is.
	Cmp   ir.Mod
	Bound ir.Operand // register or integer
	// Stepped tells that the test sees the counter after the step of the iteration.
	Stepped bool
	// Start is the counter's first value, if HasStart.
	Start    uint64
	HasStart bool
	// Trips is how often the test is made until it ends the loop, that time included, if no other exit is taken before; 0
	// where that is not a constant, or over MaxTrips.
	Trips int
}

// MaxTrips is the largest constant number of iterations that is counted.
const MaxTrips = 1 << 20

// negated is the comparison that holds where the other does not. For integers there are no others.
var negated = map[ir.Mod]ir.Mod{"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq",
	"lo": "hs", "hs": "lo", "hi": "ls", "ls": "hi"}

// mirrored is the comparison with its sides changed.
var mirrored = map[ir.Mod]ir.Mod{"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}

// unsignedNames are other names of comparisons.
var unsignedNames = map[ir.Mod]ir.Mod{"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}

// Counters finds the counters of all loops that have one, in the order of the branches.
func (g *Graph) Counters(r *Reaching) []Counter {
	var out []Counter
	for b := range g.Blocks {
		l := g.Blocks[b].Loop
		if !g.Reachable(b) || l < 0 || g.Blocks[b].End == g.Blocks[b].Start {
			continue
		}
		i := g.Blocks[b].End - 1
		if in := &g.Func.Body[i]; in.Op != "bra" || in.Guard.Reg == 0 {
			continue
		}
		if c, ok := g.counter(r, l, i); ok {
			out = append(out, c)
		}
	}
	return out
}

// counter looks at the branch i in loop l.
func (g *Graph) counter(r *Reaching, l, i int) (Counter, bool) {
	loop, branch := &g.Loops[l], &g.Func.Body[i]
	to, ok := g.Targets(i)
	if !ok || g.blockOf[i]+1 >= len(g.Blocks) {
		return Counter{}, false
	}
	c := Counter{Loop: l, Branch: i, Stays: loop.Has(g.blockOf[to[0]])}
	if c.Stays == loop.Has(g.blockOf[i]+1) {
		return c, false
	}
	defs := r.Defs(i, branch.Guard.Reg)
	if len(defs) != 1 || defs[0] == Entry || g.blockOf[defs[0]] != g.blockOf[i] {
		return c, false
	}
	c.Test = defs[0]
	test := &g.Func.Body[c.Test]
	if test.Op != "setp" || test.Guard.Reg != 0 || len(test.Mods) != 2 || len(test.Args) != 3 ||
		test.Args[0].Kind != ir.RegOperand {
		return c, false
	}
	c.Cmp, c.Type = test.Mods[0], test.Type(0)
	if w := c.Type.Bits(); c.Type.IsFloat() || c.Type == ir.Pred || w < 16 || w > 64 || negated[c.Cmp] == "" {
		return c, false
	}
	if c.Stays == branch.Guard.Not {
		c.Cmp = negated[c.Cmp]
	}
	if name, ok := unsignedNames[c.Cmp]; ok {
		c.Cmp = name
	}
	for side := 1; side <= 2; side++ {
		c.Bound = test.Args[3-side]
		if side == 2 {
			c.Cmp = mirrored[c.Cmp]
		}
		if g.stepped(r, &c, test.Args[side]) && g.unchanged(loop, c.Bound) {
			g.count(r, &c)
			return c, true
		}
	}
	return c, false
}

// unchanged tells whether the operand is a constant in the loop.
func (g *Graph) unchanged(loop *Loop, o ir.Operand) bool {
	if o.Kind == ir.IntOperand {
		return true
	}
	return o.Kind == ir.RegOperand && len(g.writesIn(loop, o.Reg)) == 0
}

func (g *Graph) writesIn(loop *Loop, reg ir.Reg) (at []int) {
	for _, b := range loop.Blocks {
		for i := g.Blocks[b].Start; i < g.Blocks[b].End; i++ {
			g.Writes(i, func(r ir.Reg) {
				if r == reg {
					at = append(at, i)
				}
			})
		}
	}
	return at
}

// stepped tells whether the operand of the test is a register that is stepped once an iteration, and how.
func (g *Graph) stepped(r *Reaching, c *Counter, o ir.Operand) bool {
	if o.Kind != ir.RegOperand || int(o.Reg) >= len(g.Func.Regs) || width(g.Func.Regs[o.Reg].Type) != c.Type.Bits() {
		return false
	}
	loop := &g.Loops[c.Loop]
	at := g.writesIn(loop, o.Reg)
	if len(at) != 1 {
		return false
	}
	c.Reg, c.Add = o.Reg, at[0]
	in := &g.Func.Body[c.Add]
	if in.Op != "add" && in.Op != "sub" || in.Guard.Reg != 0 || len(in.Mods) != 1 || in.Type(0).Bits() != c.Type.Bits() ||
		in.Type(0).IsFloat() || len(in.Args) != 3 {
		return false
	}
	by := in.Args[2]
	if in.Op == "add" && by.Kind == ir.RegOperand {
		by = in.Args[1]
		if in.Args[2].Reg != c.Reg {
			return false
		}
	} else if in.Args[1].Kind != ir.RegOperand || in.Args[1].Reg != c.Reg {
		return false
	}
	if by.Kind != ir.IntOperand {
		return false
	}
	unused := 64 - c.Type.Bits()
	c.Step = int64(by.Bits) << unused >> unused
	if in.Op == "sub" {
		c.Step = -c.Step
	}
	// Once an iteration: not in a loop inside, and on every way back.
	if g.Blocks[g.blockOf[c.Add]].Loop != c.Loop || c.Step == 0 {
		return false
	}
	for _, latch := range loop.Latches {
		if !g.Dominates(g.blockOf[c.Add], latch) {
			return false
		}
	}
	switch {
	case g.Before(c.Add, c.Test):
		c.Stepped = true
	case g.Before(c.Test, c.Add):
		c.Stepped = false
	default:
		return false
	}
	return true
}

// count finds the first value and the number of iterations, where they are constant.
func (g *Graph) count(r *Reaching, c *Counter) {
	loop := &g.Loops[c.Loop]
	var start *ir.Operand
	for _, d := range r.Defs(c.Add, c.Reg) {
		switch {
		case d == c.Add:
		case d == Entry || start != nil || loop.Has(g.blockOf[d]):
			return
		default:
			in := &g.Func.Body[d]
			if in.Op != "mov" || in.Guard.Reg != 0 || len(in.Args) != 2 || in.Args[1].Kind != ir.IntOperand {
				return
			}
			start = &in.Args[1]
		}
	}
	if start == nil {
		return
	}
	w := c.Type.Bits()
	mask := ^uint64(0) >> (64 - w)
	c.Start, c.HasStart = start.Bits&mask, true
	for _, latch := range loop.Latches {
		if !g.Dominates(g.blockOf[c.Test], latch) {
			return
		}
	}
	if c.Bound.Kind != ir.IntOperand {
		return
	}
	v := c.Start
	for n := 1; n <= MaxTrips; n++ {
		if c.Stepped {
			v = (v + uint64(c.Step)) & mask
		}
		if !holds(c.Cmp, v, c.Bound.Bits&mask, c.Type) {
			c.Trips = n
			return
		}
		if !c.Stepped {
			v = (v + uint64(c.Step)) & mask
		}
	}
}

func holds(cmp ir.Mod, a, b uint64, t ir.Type) bool {
	less := a < b
	if t.IsSigned() {
		_, borrow := bits.Sub64(a^1<<(t.Bits()-1), b^1<<(t.Bits()-1), 0)
		less = borrow != 0
	}
	switch cmp {
	case "lt":
		return less
	case "le":
		return less || a == b
	case "gt":
		return !less && a != b
	case "ge":
		return !less
	case "eq":
		return a == b
	}
	return a != b
}
