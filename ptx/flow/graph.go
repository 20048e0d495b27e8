// Package flow is the analysis of control and data flow in one function: basic blocks, dominators and post-dominators, loops,
// control dependence, reaching definitions, liveness and register pressure.
//
// PTX from elsewhere is not in SSA form: registers are written several times, and a guarded write leaves the old value where
// the guard is false. Everything here takes that as it is. No function panics or fails on odd code; what is unclear (a branch
// to a label that is not there) is listed, and the rest treated as if it did not branch there.
//
// The results are plain data and describe the function as it was: after changing its body, make them anew. They may be read
// from several goroutines.
package flow

import (
	"slices"

	"github.com/wavelane/wavelane/ptx/ir"
)

// Block is a run of instructions that is entered at its first and left after its last.
type Block struct {
	Start, End int // instructions Func.Body[Start:End]
	// Succs and Preds are indices of blocks, ascending, each once.
	Succs, Preds []int
	// Leaves tells that a thread may leave the function here: by ret, exit or trap, or after the last instruction.
	Leaves bool
	// Loop is the innermost loop that the block is in, an index into Graph.Loops; -1 for none.
	Loop int
}

// Edge is a way from one block to another; To may be Graph.Exit.
type Edge struct{ From, To int }

// Graph is the control-flow graph of a function. Block 0 is where it is entered; Exit, one after the last block, stands for
// the outside.
type Graph struct {
	Func   *ir.Func
	Blocks []Block
	Exit   int
	// RPO lists the blocks that can be reached from the entry in reverse post-order: without loops, a block after all its
	// predecessors.
	RPO []int
	// IDom is each block's immediate dominator, -1 for the entry and for blocks that cannot be reached.
	IDom []int
	// IPDom is each block's immediate post-dominator, possibly Exit; -1 for blocks that cannot be reached.
	IPDom []int
	// Endless lists the reachable blocks from which there is no way out. For post-dominance some of them are taken to leave.
	Endless []int
	// Loops are the natural loops, those of more blocks first, so that a loop comes after the ones it is in.
	Loops []Loop
	// Irreducible lists edges that go back to a block that does not dominate where they come from: loops with several entries,
	// which Loops does not have.
	Irreducible []Edge
	// Unresolved lists branches (as instructions) with a target that is not in the function.
	Unresolved []int

	blockOf []int          // of each instruction
	labels  map[string]int // instruction of each label
	order   []int          // of each block in RPO; -1
	dom     tree
	pdom    tree
	regs    int // one more than the largest register
	reads   [][]ir.Reg
	writes  [][]ir.Reg // of each instruction, each once
}

// New makes the graph of f, which may be a mere declaration: then there is one empty block.
func New(f *ir.Func) *Graph {
	g := &Graph{Func: f, labels: map[string]int{}, blockOf: make([]int, len(f.Body)), regs: len(f.Regs)}
	g.mention()
	g.cut()
	g.connect()
	g.sortReachable()
	g.dominators()
	g.postDominators()
	g.findLoops()
	return g
}

// cut finds the blocks' limits.
func (g *Graph) cut() {
	body := g.Func.Body
	first := true
	for i := range body {
		in := &body[i]
		if name, ok := label(in); ok {
			if _, twice := g.labels[name]; !twice {
				g.labels[name] = i
			}
			first = first || !namesTable(body, i) && !g.onlyLabels(i)
		}
		if first {
			g.Blocks = append(g.Blocks, Block{Start: i, Loop: -1})
			first = false
		}
		b := len(g.Blocks) - 1
		g.blockOf[i] = b
		g.Blocks[b].End = i + 1
		k := in.Kind()
		first = k == ir.Branch || k == ir.Leave
	}
	if len(g.Blocks) == 0 {
		g.Blocks = []Block{{Loop: -1}}
	}
	g.Exit = len(g.Blocks)
}

// onlyLabels tells whether there is nothing but labels and directives before i in its block.
func (g *Graph) onlyLabels(i int) bool {
	if len(g.Blocks) == 0 {
		return false
	}
	for j := g.Blocks[len(g.Blocks)-1].Start; j < i; j++ {
		if g.Func.Body[j].Kind() != ir.Directive {
			return false
		}
	}
	return true
}

// label is the name that an instruction defines.
func label(in *ir.Instr) (string, bool) {
	if in.Op != ir.OpLabel || len(in.Args) == 0 {
		return "", false
	}
	return in.Args[0].Sym, true
}

// namesTable tells whether the label at i names a list of branch targets or a prototype rather than a place.
func namesTable(body []ir.Instr, i int) bool {
	return i+1 < len(body) && (body[i+1].Op == ir.OpBranchTargets || body[i+1].Op == ir.OpCallPrototype || body[i+1].Op == ir.OpCallTargets)
}

// Targets are the instructions (labels) that the branch at i may go to; ok is false if one is not in the function.
func (g *Graph) Targets(i int) (to []int, ok bool) {
	in := &g.Func.Body[i]
	ok = true
	add := func(o *ir.Operand) {
		at, found := g.labels[o.Sym]
		if !found {
			ok = false
			return
		}
		to = append(to, at)
	}
	switch {
	case in.Kind() != ir.Branch:
		return nil, true
	case len(in.Args) == 0:
		return nil, false
	case in.Op == "bra":
		add(&in.Args[0])
		return to, ok
	}
	table, found := g.labels[in.Args[len(in.Args)-1].Sym]
	if !found || !namesTable(g.Func.Body, table) {
		return nil, false
	}
	list := &g.Func.Body[table+1]
	for j := range list.Args {
		add(&list.Args[j])
	}
	return to, ok
}

func (g *Graph) connect() {
	for b := range g.Blocks {
		blk := &g.Blocks[b]
		falls := true
		if blk.End > blk.Start {
			last := &g.Func.Body[blk.End-1]
			switch last.Kind() {
			case ir.Leave:
				blk.Leaves = true
				falls = last.Guard.Reg != 0
			case ir.Branch:
				falls = last.Guard.Reg != 0
				to, ok := g.Targets(blk.End - 1)
				if !ok {
					g.Unresolved = append(g.Unresolved, blk.End-1)
				}
				for _, t := range to {
					blk.Succs = append(blk.Succs, g.blockOf[t])
				}
			}
		}
		switch {
		case falls && b+1 < len(g.Blocks):
			blk.Succs = append(blk.Succs, b+1)
		case falls:
			blk.Leaves = true
		}
		slices.Sort(blk.Succs)
		blk.Succs = slices.Compact(blk.Succs)
	}
	for b := range g.Blocks {
		for _, s := range g.Blocks[b].Succs {
			g.Blocks[s].Preds = append(g.Blocks[s].Preds, b)
		}
	}
}

func (g *Graph) sortReachable() {
	g.RPO = postOrder(len(g.Blocks), 0, func(b int) []int { return g.Blocks[b].Succs })
	slices.Reverse(g.RPO)
	g.order = make([]int, len(g.Blocks))
	for i := range g.order {
		g.order[i] = -1
	}
	for i, b := range g.RPO {
		g.order[b] = i
	}
}

// postOrder lists what can be reached from root, each after what follows it. It keeps its own stack: bodies may be long.
func postOrder(n, root int, next func(int) []int) []int {
	type frame struct{ node, i int }
	seen := make([]bool, n)
	var out []int
	seen[root] = true
	stack := []frame{{root, 0}}
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		s := next(top.node)
		if top.i == len(s) {
			out = append(out, top.node)
			stack = stack[:len(stack)-1]
			continue
		}
		// The last successor first, so that reversing the order keeps a branch's fall-through close after it.
		to := s[len(s)-1-top.i]
		top.i++
		if !seen[to] {
			seen[to] = true
			stack = append(stack, frame{to, 0})
		}
	}
	return out
}

// BlockOf is the block that instruction i is in.
func (g *Graph) BlockOf(i int) int { return g.blockOf[i] }

// Label is the instruction at which the label stands.
func (g *Graph) Label(name string) (int, bool) {
	i, ok := g.labels[name]
	return i, ok
}

// Reachable tells whether control can come to the block.
func (g *Graph) Reachable(block int) bool { return g.order[block] >= 0 }

// Edges are the block's ways out: its successors, and Exit if it may leave.
func (g *Graph) Edges(block int) []Edge {
	var out []Edge
	for _, s := range g.Blocks[block].Succs {
		out = append(out, Edge{block, s})
	}
	if g.Blocks[block].Leaves {
		out = append(out, Edge{block, g.Exit})
	}
	return out
}

// Before tells whether instruction i always runs before j when j runs: it comes earlier in the same block, or its block
// dominates the other.
func (g *Graph) Before(i, j int) bool {
	a, b := g.blockOf[i], g.blockOf[j]
	if a == b {
		return i < j
	}
	return g.Dominates(a, b)
}
