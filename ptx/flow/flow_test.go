package flow_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/ptx/flow"

	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/ir"
)

// registers %r0… and %p0…: 1 to n are words, n+1 to 2n predicates.
func registers(n int) []ir.RegDecl {
	regs := []ir.RegDecl{{}}
	for i := range n {
		regs = append(regs, ir.RegDecl{Name: fmt.Sprintf("%%r%d", i), Type: ir.B32})
	}
	for i := range n {
		regs = append(regs, ir.RegDecl{Name: fmt.Sprintf("%%p%d", i), Type: ir.Pred})
	}
	return regs
}

func at(name string) ir.Instr { return ir.Instr{Op: ir.OpLabel, Args: []ir.Operand{ir.LabelOf(name)}} }

func jump(name string, guard ir.Reg) ir.Instr {
	return ir.Instr{Op: "bra", Guard: ir.Guard{Reg: guard}, Args: []ir.Operand{ir.LabelOf(name)}}
}

func op(code string, args ...ir.Operand) ir.Instr {
	o, mods, _ := ir.SplitOpcode(code)
	return ir.Instr{Op: o, Mods: mods, Args: args}
}

func guarded(p ir.Reg, in ir.Instr) ir.Instr {
	in.Guard.Reg = p
	return in
}

// anyFunc is a function of random instructions and jumps, with no structure at all.
func anyFunc(rng *rand.Rand) *ir.Func {
	const regs = 4
	f := &ir.Func{Name: "f", Entry: true, Regs: registers(regs), Body: []ir.Instr{}}
	word := func() ir.Reg { return ir.Reg(1 + rng.IntN(regs)) }
	pred := func() ir.Reg { return ir.Reg(1 + regs + rng.IntN(regs)) }
	n, labels := rng.IntN(30), 1+rng.IntN(6)
	name := func() string { return fmt.Sprintf("L%d", rng.IntN(labels)) }
	for l := range labels {
		f.Body = append(f.Body, at(fmt.Sprintf("L%d", l)))
	}
	for range n {
		var in ir.Instr
		switch rng.IntN(12) {
		case 0:
			in = jump(name(), 0)
		case 1, 2:
			in = jump(name(), pred())
		case 3:
			in = op([]string{"ret", "exit", "trap"}[rng.IntN(3)])
		case 4:
			in = guarded(pred(), op("exit"))
		case 5:
			in = op("brx.idx", ir.R(word()), ir.LabelOf("T"))
		case 6:
			in = op("setp.lt.s32", ir.R(pred()), ir.R(word()), ir.Int(3))
		case 7:
			in = guarded(pred(), op("mov.b32", ir.R(word()), ir.R(word())))
		default:
			in = op("add.s32", ir.R(word()), ir.R(word()), ir.R(word()))
		}
		f.Body = append(f.Body, in)
	}
	rng.Shuffle(len(f.Body), func(i, j int) { f.Body[i], f.Body[j] = f.Body[j], f.Body[i] })
	f.Body = append(f.Body, at("T"), op(string(ir.OpBranchTargets), ir.LabelOf(name()), ir.LabelOf(name())))
	if rng.IntN(2) == 0 {
		f.Body = append(f.Body, op("exit"))
	}
	return f
}

// next are the instructions that may follow i, len(body) for the outside; told from the instructions alone.
func next(f *ir.Func, i int) []int {
	in := &f.Body[i]
	find := func(name string) int {
		return slices.IndexFunc(f.Body, func(in ir.Instr) bool { return in.Op == ir.OpLabel && in.Args[0].Sym == name })
	}
	var out []int
	switch in.Op {
	case "bra":
		out = append(out, find(in.Args[0].Sym))
	case "brx.idx":
		for _, o := range f.Body[find(in.Args[1].Sym)+1].Args {
			out = append(out, find(o.Sym))
		}
	case "ret", "exit", "trap":
		out = append(out, len(f.Body))
	default:
		return []int{i + 1}
	}
	if in.Guard.Reg != 0 {
		out = append(out, i+1)
	}
	return out
}

// from is what can be reached from a place (itself among it) without stepping on a barred one.
func from(f *ir.Func, start int, barred func(int) bool) []bool {
	seen := make([]bool, len(f.Body)+1)
	work := []int{start}
	for len(work) > 0 {
		i := work[len(work)-1]
		work = work[:len(work)-1]
		if seen[i] || barred != nil && barred(i) {
			continue
		}
		seen[i] = true
		if i < len(f.Body) {
			work = append(work, next(f, i)...)
		}
	}
	return seen
}

func reads(f *ir.Func, i int, r ir.Reg) (read, written bool) {
	f.Body[i].Regs(func(x ir.Reg, role ir.Role) {
		read = read || x == r && role == ir.Read
		written = written || x == r && role == ir.Write
	})
	return read, written
}

// TestGraphAgainstPaths compares with the definitions, by search over all paths.
func TestGraphAgainstPaths(t *testing.T) {
	rng := ptxtest.Random(t)
	n := 400
	if testing.Short() {
		n = 100
	}
	for range n {
		f := anyFunc(rng)
		g := flow.New(f)
		require.Empty(t, g.Unresolved)
		end := len(f.Body)
		reached := from(f, 0, nil)
		for b := range g.Blocks {
			blk := g.Blocks[b]
			if b > 0 {
				require.Equal(t, g.Blocks[b-1].End, blk.Start)
			}
			for i := blk.Start; i < blk.End; i++ {
				require.Equal(t, b, g.BlockOf(i))
			}
			require.Equal(t, g.Reachable(b), reached[blk.End-1], "%s\nblock %d", f, b)
			var succs []int
			for _, s := range next(f, blk.End-1) {
				if s < end {
					succs = append(succs, g.BlockOf(s))
				} else {
					require.True(t, blk.Leaves)
				}
			}
			slices.Sort(succs)
			require.Equal(t, slices.Compact(succs), blk.Succs, "%s\nblock %d", f, b)
		}
		endless := map[int]bool{}
		for b := range g.Blocks {
			if g.Reachable(b) && !from(f, g.Blocks[b].End-1, nil)[end] {
				endless[b] = true
				require.Contains(t, g.Endless, b)
			}
		}
		require.Len(t, g.Endless, len(endless))
		// Inside an irreducible or endless region only dominance has a meaning without further convention.
		for a := range g.Blocks {
			if !g.Reachable(a) {
				continue
			}
			last := g.Blocks[a].End - 1
			around := from(f, 0, func(i int) bool { return i == last })
			for b := range g.Blocks {
				if !g.Reachable(b) {
					continue
				}
				dominates := a == b || !around[g.Blocks[b].End-1]
				require.Equal(t, dominates, g.Dominates(a, b), "%s\ndominance %d %d", f, a, b)
				if len(endless) > 0 {
					continue
				}
				without := from(f, g.Blocks[b].End-1, func(i int) bool { return i == last })
				require.Equal(t, a == b || !without[end], g.PostDominates(a, b), "%s\npost-dominance %d %d", f, a, b)
			}
		}
		if len(endless) == 0 {
			checkControl(t, f, g)
		}
		checkLoops(t, f, g)
		checkValues(t, f, g)
	}
}

func checkControl(t *testing.T, f *ir.Func, g *flow.Graph) {
	t.Helper()
	deps := g.ControlDependence()
	for b := range g.Blocks {
		for a := range g.Blocks {
			if !g.Reachable(a) || !g.Reachable(b) {
				continue
			}
			for _, e := range g.Edges(a) {
				over := e.To != g.Exit && g.PostDominates(b, e.To)
				want := over && (a == b || !g.PostDominates(b, a))
				require.Equal(t, want, slices.Contains(deps[b], e), "%s\n%d on %v", f, b, e)
			}
		}
	}
}

func checkLoops(t *testing.T, f *ir.Func, g *flow.Graph) {
	t.Helper()
	for i, l := range g.Loops {
		require.Equal(t, i == 0 || l.Parent < i, true)
		require.NotEmpty(t, l.Latches)
		for _, b := range l.Blocks {
			require.True(t, g.Dominates(l.Header, b))
			require.True(t, g.Depth(b) >= l.Depth)
		}
		if l.Parent >= 0 {
			require.Equal(t, g.Loops[l.Parent].Depth+1, l.Depth)
			for _, b := range l.Blocks {
				require.True(t, g.Loops[l.Parent].Has(b))
			}
		}
		for _, e := range l.Exits {
			require.True(t, l.Has(e.From) && !l.Has(e.To))
		}
		// A block belongs to the loop if a latch can be reached from it without the header.
		head := g.Blocks[l.Header].End - 1
		for b := range g.Blocks {
			if !g.Reachable(b) {
				continue
			}
			in := b == l.Header
			ways := from(f, g.Blocks[b].Start, func(i int) bool { return i == head && b != l.Header })
			for _, latch := range l.Latches {
				in = in || ways[g.Blocks[latch].End-1] && g.Dominates(l.Header, b)
			}
			require.Equal(t, in, l.Has(b), "%s\nloop %d block %d", f, i, b)
		}
	}
	// What is left when back edges go is without cycles, but for the edges reported.
	for _, b := range g.RPO {
		for _, s := range g.Blocks[b].Succs {
			back := slices.Index(g.RPO, s) <= slices.Index(g.RPO, b)
			odd := slices.Contains(g.Irreducible, flow.Edge{From: b, To: s})
			require.Equal(t, back && !g.Dominates(s, b), odd)
		}
	}
}

func checkValues(t *testing.T, f *ir.Func, g *flow.Graph) {
	t.Helper()
	reached := from(f, 0, nil)
	in, out := g.Liveness().Live()
	reach := g.Reaching()
	for r := ir.Reg(1); int(r) < len(f.Regs); r++ {
		kills := func(i int) bool {
			if i == len(f.Body) {
				return false
			}
			_, w := reads(f, i, r)
			return w && f.Body[i].Guard.Reg == 0
		}
		writtenBefore := make([]bool, len(f.Body)+1) // there is a way here with a write on it
		for i := range f.Body {
			if _, w := reads(f, i, r); w && reached[i] {
				for _, s := range next(f, i) {
					for j, x := range from(f, s, nil) {
						writtenBefore[j] = writtenBefore[j] || x
					}
				}
			}
		}
		for i := range f.Body {
			// Neighbouring labels are one place for the graph, which ever is jumped to.
			if !reached[i] || f.Body[i].Kind() == ir.Directive {
				continue
			}
			// Live: there is a way to a read on which nothing before the read kills it.
			live := func(from int) bool {
				for j, x := range waysUntil(f, from, kills) {
					if rd := false; x && j < len(f.Body) {
						if rd, _ = reads(f, j, r); rd {
							return true
						}
					}
				}
				return false
			}
			require.Equal(t, writtenBefore[i] && live(i), in[i].Has(r), "%s\n%s live before %d", f, f.Regs[r].Name, i)
			_, w := reads(f, i, r)
			after := slices.ContainsFunc(next(f, i), live) && (w || writtenBefore[i])
			require.Equal(t, after, out[i].Has(r), "%s\n%s live after %d", f, f.Regs[r].Name, i)
			if rd, _ := reads(f, i, r); !rd {
				continue
			}
			var defs []int
			if waysUntil(f, 0, kills)[i] {
				defs = append(defs, flow.Entry)
			}
			for d := range f.Body {
				if _, w := reads(f, d, r); !w || !reached[d] {
					continue
				}
				for _, s := range next(f, d) {
					if s < len(f.Body) && waysUntil(f, s, kills)[i] && !slices.Contains(defs, d) {
						defs = append(defs, d)
					}
				}
			}
			require.Equal(t, defs, reach.Defs(i, r), "%s\ndefinitions of %s at %d", f, f.Regs[r].Name, i)
			for _, d := range defs {
				require.Contains(t, reach.Uses(d, r), flow.Use{Instr: i, Reg: r})
			}
		}
	}
}

// waysUntil is what can be reached from start, without going on after a barring place: that itself is reached.
func waysUntil(f *ir.Func, start int, bars func(int) bool) []bool {
	seen := make([]bool, len(f.Body)+1)
	work := []int{start}
	for len(work) > 0 {
		i := work[len(work)-1]
		work = work[:len(work)-1]
		if seen[i] {
			continue
		}
		seen[i] = true
		if i < len(f.Body) && !bars(i) {
			work = append(work, next(f, i)...)
		}
	}
	return seen
}
