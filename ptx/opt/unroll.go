package opt

import (
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/wavelane/wavelane/ptx/flow"
	"github.com/wavelane/wavelane/ptx/ir"
)

// full is the request to unroll a loop whole.
const full = 1 << 30

// request returns what a pragma asks for: 0 for nothing, -1 for "nounroll", full for "unroll", else the factor.
func request(in *ir.Instr) int {
	if in.Op != ir.OpPragma || len(in.Args) != 1 {
		return 0
	}
	word, count, _ := strings.Cut(strings.TrimSpace(in.Args[0].Sym), " ")
	switch n, err := strconv.Atoi(strings.TrimSpace(count)); {
	case word == "nounroll":
		return -1
	case word != "unroll":
		return 0
	case count == "":
		return full
	case err == nil && n > 0 && n < full:
		return n
	}
	return 0
}

// pragma finds the request at the header of a loop: among the labels and directives with which its block begins.
func pragma(g *flow.Graph, header int) (at, n int) {
	for i := g.Blocks[header].Start; i < g.Blocks[header].End && g.Func.Body[i].Kind() == ir.Directive; i++ {
		if n := request(&g.Func.Body[i]); n != 0 {
			return i, n
		}
	}
	return -1, 0
}

// unroll fulfils requests, inner loops first. Each request is taken out, so that this ends.
func (u *unit) unroll() int {
	u.labels()
	if u.o.Unroll > 1 {
		u.request()
	}
	n := 0
	for {
		u.labelBlocks()
		g := flow.New(u.f)
		l := -1
		at, factor := -1, 0
		for k := len(g.Loops) - 1; k >= 0; k-- { // those of fewest blocks first
			if i, f := pragma(g, g.Loops[k].Header); f > 0 {
				l, at, factor = k, i, f
				break
			}
		}
		if l < 0 {
			u.labels()
			return n
		}
		done := Unrolled{Function: u.f.Name, Pos: u.f.Body[at].Pos.String(), Loop: labelAt(g, g.Loops[l].Header)}
		if c := u.plan(g, l, factor, &done); c != nil {
			u.f.Body[at] = noUnroll()
			n += done.Copies
			u.copyLoop(g, c, &done)
		} else {
			u.f.Body[at].Op = gone
			u.sweep()
		}
		u.stats.Loops = append(u.stats.Loops, done)
	}
}

func noUnroll() ir.Instr {
	return instr(ir.OpPragma, nil, ir.Operand{Kind: ir.TextOperand, Sym: "nounroll"})
}

// labelBlocks gives every block a label, and the end of the body one if control may come there.
func (u *unit) labelBlocks() {
	g := flow.New(u.f)
	if last := len(u.f.Body) - 1; last >= 0 {
		if k := u.f.Body[last].Kind(); k != ir.Leave && k != ir.Branch && k != ir.Directive || u.f.Body[last].Guard.Reg != 0 {
			u.f.Body = append(u.f.Body, labelled(u.newLabel("L")))
		}
	}
	for b := len(g.Blocks) - 1; b >= 0; b-- {
		if labelAt(g, b) == "" {
			u.f.Body = slices.Insert(u.f.Body, g.Blocks[b].Start, labelled(u.newLabel("L")))
		}
	}
}

// labelAt is the first label of a block that names no table, "" if it begins with none.
func labelAt(g *flow.Graph, b int) string {
	body := g.Func.Body
	for i := g.Blocks[b].Start; i < g.Blocks[b].End && body[i].Kind() == ir.Directive; i++ {
		if body[i].Op == ir.OpLabel && len(body[i].Args) == 1 && !(i+1 < len(body) && namesTable(&body[i+1])) {
			return body[i].Args[0].Sym
		}
	}
	return ""
}

// request puts pragmas at the innermost loops that have none.
func (u *unit) request() {
	g := flow.New(u.f)
	inner := make([]bool, len(g.Loops))
	for i := range inner {
		inner[i] = true
	}
	for i := range g.Loops {
		if p := g.Loops[i].Parent; p >= 0 {
			inner[p] = false
		}
	}
	counted := map[int]bool{}
	for _, c := range g.Counters(g.Reaching()) {
		counted[c.Loop] = true
	}
	var at []int
	for i := range g.Loops {
		h := g.Loops[i].Header
		if _, n := pragma(g, h); n == 0 && inner[i] && counted[i] && u.f.Body[g.Blocks[h].Start].Op == ir.OpLabel {
			at = append(at, g.Blocks[h].Start+1)
		}
	}
	slices.Sort(at)
	text := "unroll " + strconv.Itoa(u.o.Unroll)
	for _, i := range slices.Backward(at) {
		in := ir.Instr{Pos: u.f.Body[i-1].Pos, Op: ir.OpPragma, Args: []ir.Operand{{Kind: ir.TextOperand, Sym: text}}}
		u.f.Body = slices.Insert(u.f.Body, i, in)
	}
}

// plan decides how often to copy the body, and by which counter. nil means not at all; done.Reason says why.
func (u *unit) plan(g *flow.Graph, l, factor int, done *Unrolled) *flow.Counter {
	loop := &g.Loops[l]
	size := 0
	for _, b := range loop.Blocks {
		for i := g.Blocks[b].Start; i < g.Blocks[b].End; i++ {
			switch in := &u.f.Body[i]; {
			case in.Op == "brx.idx" || namesTable(in):
				done.Reason = "the loop has a jump through a table"
				return nil
			case in.Kind() != ir.Directive:
				size++
			}
		}
	}
	var best *flow.Counter
	for _, c := range g.Counters(g.Reaching()) {
		if c.Loop == l && (best == nil || c.Trips > 0 && (best.Trips == 0 || c.Trips < best.Trips)) {
			best = &c
		}
	}
	switch {
	case best == nil:
		done.Reason = "no counter was found"
		return nil
	case best.Trips > 0 && iterations(best) <= factor:
		done.Full, done.Copies = true, best.Trips
	case factor == full:
		done.Reason = "the number of iterations is not a constant"
		return nil
	case factor == 1:
		done.Reason = "one iteration at a time was asked for"
		return nil
	case u.o.MaxUnrolled/factor < size:
		done.Reason = "it would become too large"
		return nil
	case !partial(best, factor):
		done.Reason = "the counter may pass its bound by wrapping round"
		return nil
	default:
		done.Copies = factor
		return best
	}
	if done.Copies > 0 && u.o.MaxUnrolled/done.Copies < size {
		done.Copies, done.Full, done.Reason = 0, false, "it would become too large"
		return nil
	}
	return best
}

// iterations is the constant number of iterations: a test in front is made once more than there are iterations.
func iterations(c *flow.Counter) int {
	if c.Stepped {
		return c.Trips
	}
	return c.Trips - 1
}

// partial tells whether the number of iterations left can be computed.
func partial(c *flow.Counter, factor int) bool {
	step := magnitude(c.Step)
	if hi, lo := bits.Mul64(step, uint64(factor)); hi != 0 || lo > ^uint64(0)>>(64-c.Type.Bits()) {
		return false
	}
	switch c.Cmp {
	case "lt", "le":
		return c.Step > 0
	case "gt", "ge":
		return c.Step < 0
	case "ne":
		return step == 1
	}
	return false
}

func magnitude(v int64) uint64 {
	if v < 0 {
		return -uint64(v)
	}
	return uint64(v)
}

func labelled(name string) ir.Instr { return instr(ir.OpLabel, nil, ir.LabelOf(name)) }

func jump(name string) ir.Instr { return instr("bra", nil, ir.LabelOf(name)) }

// copyLoop puts copies of the loop before its header, to which everything outside then goes. In the copies the counter's
// branch is decided: in all but the last to go on, and
//
//   - in full unrolling to leave in the last: the loop itself cannot be reached any more and goes;
//   - in partial unrolling the copies run only while at least as many iterations are left; the last copy goes back to the first,
//     and the loop itself does the rest.
func (u *unit) copyLoop(g *flow.Graph, c *flow.Counter, done *Unrolled) {
	loop := &g.Loops[c.Loop]
	header := labelAt(g, loop.Header)
	names := make([]map[int]string, done.Copies) // by copy and block
	for k := range names {
		names[k] = map[int]string{}
		for _, b := range loop.Blocks {
			names[k][b] = u.newLabel(labelAt(g, b))
		}
	}
	first := names[0][loop.Header]
	var chunk []ir.Instr
	if !done.Full {
		first = u.newLabel(header)
		chunk = u.enough(c, done.Copies, first, header)
	}
	order := []int{loop.Header}
	for _, b := range loop.Blocks {
		if b != loop.Header {
			order = append(order, b)
		}
	}
	for k := range names {
		back := first
		if k+1 < len(names) {
			back = names[k+1][loop.Header]
		}
		for _, b := range order {
			chunk = append(chunk, u.copyBlock(g, c, b, names[k], back, k+1 == len(names), done.Full)...)
		}
	}
	u.insert(g, loop, first, chunk)
	if done.Full {
		u.unreachable()
	}
}

// enough goes on to the copies if the loop certainly makes that many iterations, and to the loop itself otherwise. The difference
// between bound and counter is taken without sign: once their order is known, it does not wrap.
func (u *unit) enough(c *flow.Counter, copies int, first, loop string) []ir.Instr {
	t := map[int]ir.Type{16: ir.U16, 32: ir.U32, 64: ir.U64}[c.Type.Bits()]
	p, d := ir.R(u.newReg(ir.Pred, 0)), ir.R(u.newReg(t, 0))
	counter, bound := ir.R(c.Reg), c.Bound
	leave := jump(loop)
	leave.Guard = ir.Guard{Reg: p.Reg, Not: true}
	out := []ir.Instr{labelled(first), noUnroll()}
	if c.Cmp != "ne" {
		out = append(out, instr("setp", []ir.Mod{c.Cmp, c.Type.Mod()}, p, counter, bound), leave)
	}
	if c.Step > 0 {
		out = append(out, instr("sub", []ir.Mod{t.Mod()}, d, bound, counter))
	} else {
		out = append(out, instr("sub", []ir.Mod{t.Mod()}, d, counter, bound))
	}
	cmp := ir.Mod("gt")
	if c.Cmp == "le" || c.Cmp == "ge" {
		cmp = "ge"
	}
	more := literal(magnitude(c.Step)*uint64(copies-1), t)
	return append(out, instr("setp", []ir.Mod{cmp, t.Mod()}, p, d, more), leave.Clone())
}

// copyBlock is one block of a copy. names are the labels of this copy's blocks, back is where an edge to the header goes.
func (u *unit) copyBlock(g *flow.Graph, c *flow.Counter, b int, names map[int]string, back string, last, all bool) []ir.Instr {
	loop, blk := &g.Loops[c.Loop], &g.Blocks[b]
	out := []ir.Instr{labelled(names[b])}
	target := func(block int) string {
		switch {
		case block == loop.Header:
			return back
		case loop.Has(block):
			return names[block]
		}
		return labelAt(g, block)
	}
	falls := true
	for i := blk.Start; i < blk.End; i++ {
		in := u.f.Body[i].Clone()
		if in.Kind() == ir.Directive {
			if in.Op != ir.OpLabel && (request(&in) == 0 || b != loop.Header) {
				out = append(out, in)
			}
			continue
		}
		if i == c.Branch {
			// It goes on for certain, but in the last copy: there it leaves if all iterations are unrolled, and if it sees the
			// counter after its last step, that is not known.
			stay := !last || !all && !c.Stepped
			if stay || all {
				if stay != c.Stays {
					continue // not taken
				}
				in.Guard = ir.Guard{}
			}
		}
		if to, _ := g.Targets(i); in.Op == "bra" && len(to) == 1 {
			in.Args[0].Sym = target(g.BlockOf(to[0]))
		}
		k := in.Kind()
		falls = k != ir.Branch && k != ir.Leave || in.Guard.Reg != 0
		out = append(out, in)
	}
	if falls && b+1 < len(g.Blocks) {
		out = append(out, jump(target(b+1)))
	}
	return out
}

// insert puts the chunk before the loop's header. What comes from outside goes to the chunk.
func (u *unit) insert(g *flow.Graph, loop *flow.Loop, first string, chunk []ir.Instr) {
	header := &g.Blocks[loop.Header]
	own := map[string]bool{}
	for i := header.Start; i < header.End; i++ {
		if in := &u.f.Body[i]; in.Op == ir.OpLabel && len(in.Args) == 1 {
			own[in.Args[0].Sym] = true
		}
	}
	for i := range u.f.Body {
		in := &u.f.Body[i]
		if loop.Has(g.BlockOf(i)) || in.Op != "bra" && in.Op != ir.OpBranchTargets {
			continue
		}
		for j := range in.Args {
			if own[in.Args[j].Sym] {
				in.Args[j].Sym = first
			}
		}
	}
	if before := loop.Header - 1; before >= 0 && loop.Has(before) && slices.Contains(g.Blocks[before].Succs, loop.Header) {
		chunk = append([]ir.Instr{jump(labelAt(g, loop.Header))}, chunk...)
	}
	u.f.Body = slices.Insert(u.f.Body, header.Start, chunk...)
}
