package flow

import "slices"

// tree is a tree of dominators with numbers that answer whether one node is above another: enter and leave of a walk.
type tree struct{ enter, leave []int }

// newTree numbers the tree that the parents in idom describe; root has none, and nodes with -1 are outside.
func newTree(idom []int, root int) tree {
	n := len(idom)
	children := make([][]int, n)
	for v, p := range idom {
		if p >= 0 {
			children[p] = append(children[p], v)
		}
	}
	t := tree{make([]int, n), make([]int, n)}
	clock := 0
	type frame struct{ node, i int }
	clock++
	t.enter[root] = clock
	stack := []frame{{root, 0}}
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		if top.i == len(children[top.node]) {
			clock++
			t.leave[top.node] = clock
			stack = stack[:len(stack)-1]
			continue
		}
		c := children[top.node][top.i]
		top.i++
		clock++
		t.enter[c] = clock
		stack = append(stack, frame{c, 0})
	}
	return t
}

// above tells whether a is b or an ancestor of it. Nodes outside the tree are above nothing.
func (t tree) above(a, b int) bool {
	return t.enter[a] > 0 && t.enter[b] > 0 && t.enter[a] <= t.enter[b] && t.leave[b] <= t.leave[a]
}

// immediate finds immediate dominators by the iteration of Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm":
// order is the nodes in reverse post-order, the root first.
func immediate(n int, order []int, preds func(int) []int) []int {
	idom := make([]int, n)
	place := make([]int, n)
	for i := range idom {
		idom[i] = -1
	}
	for i, v := range order {
		place[v] = i
	}
	root := order[0]
	idom[root] = root
	for changed := true; changed; {
		changed = false
		for _, v := range order[1:] {
			d := -1
			for _, p := range preds(v) {
				switch {
				case idom[p] < 0:
				case d < 0:
					d = p
				default:
					for d != p {
						for place[d] > place[p] {
							d = idom[d]
						}
						for place[p] > place[d] {
							p = idom[p]
						}
					}
				}
			}
			if idom[v] != d {
				idom[v], changed = d, true
			}
		}
	}
	idom[root] = -1
	return idom
}

func (g *Graph) dominators() {
	g.IDom = immediate(len(g.Blocks), g.RPO, func(b int) []int { return g.Blocks[b].Preds })
	g.dom = newTree(g.IDom, 0)
}

// postDominators turns the graph round. Where there is no way out, the last such block in reverse post-order is taken to
// leave, until all blocks have a way.
func (g *Graph) postDominators() {
	n := len(g.Blocks)
	leaves := make([]bool, n)
	for _, b := range g.RPO {
		leaves[b] = g.Blocks[b].Leaves
	}
	reaches := make([]bool, n)
	spread := func(b int) {
		work := []int{b}
		for len(work) > 0 {
			b := work[len(work)-1]
			work = work[:len(work)-1]
			if reaches[b] {
				continue
			}
			reaches[b] = true
			for _, p := range g.Blocks[b].Preds {
				if g.order[p] >= 0 && !reaches[p] {
					work = append(work, p)
				}
			}
		}
	}
	for _, b := range g.RPO {
		if leaves[b] {
			spread(b)
		}
	}
	for _, b := range g.RPO {
		if !reaches[b] {
			g.Endless = append(g.Endless, b)
		}
	}
	for i := len(g.RPO) - 1; i >= 0; i-- {
		if b := g.RPO[i]; !reaches[b] {
			leaves[b] = true
			spread(b)
		}
	}
	var outside []int
	for b := range leaves {
		if leaves[b] {
			outside = append(outside, b)
		}
	}
	// In the graph turned round the exit is the root, and a block's predecessors are its successors.
	back := make([][]int, n+1)
	forth := make([][]int, n+1)
	back[n] = outside
	for _, b := range g.RPO {
		forth[b] = g.Blocks[b].Succs
		if leaves[b] {
			forth[b] = append(slices.Clone(forth[b]), n)
		}
		for _, p := range g.Blocks[b].Preds {
			if g.order[p] >= 0 {
				back[b] = append(back[b], p)
			}
		}
	}
	order := postOrder(n+1, n, func(b int) []int { return back[b] })
	slices.Reverse(order)
	ipdom := immediate(n+1, order, func(b int) []int { return forth[b] })
	g.pdom = newTree(ipdom, n)
	g.IPDom = ipdom[:n]
}

// Dominates tells whether every way from the entry to block b goes through a; a block dominates itself. Blocks that cannot be
// reached dominate nothing and are not dominated.
func (g *Graph) Dominates(a, b int) bool { return g.dom.above(a, b) }

// PostDominates tells whether every way from block b to the outside goes through a, which may be Exit.
func (g *Graph) PostDominates(a, b int) bool { return g.pdom.above(a, b) }

// ControlDependence is, for each block, the edges that decide whether it runs (Ferrante, Ottenstein and Warren): those whose
// target it post-dominates, but not their origin. Edges are in the order of their origins.
func (g *Graph) ControlDependence() [][]Edge {
	deps := make([][]Edge, len(g.Blocks))
	for a := range g.Blocks {
		if g.order[a] < 0 {
			continue
		}
		for _, e := range g.Edges(a) {
			for b := e.To; b != g.Exit && b >= 0 && b != g.IPDom[a]; b = g.IPDom[b] {
				deps[b] = append(deps[b], e)
			}
		}
	}
	return deps
}
