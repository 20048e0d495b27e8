package flow

import (
	"cmp"
	"slices"
)

// Loop is a natural loop: the blocks from which an edge back to the header can be reached without passing the header.
type Loop struct {
	Header int
	// Latches are the blocks with an edge back to the header.
	Latches []int
	// Blocks are all blocks of the loop, those of loops inside it among them, ascending.
	Blocks []int
	// Exits are the edges out of the loop; To is Graph.Exit where a thread leaves the function.
	Exits []Edge
	// Parent is the loop around it, an index into Graph.Loops; -1 for none.
	Parent int
	// Depth is 1 for a loop that is in no other.
	Depth int
}

// Has tells whether the block is in the loop.
func (l *Loop) Has(block int) bool {
	_, ok := slices.BinarySearch(l.Blocks, block)
	return ok
}

func (g *Graph) findLoops() {
	latches := map[int][]int{}
	for _, b := range g.RPO {
		for _, s := range g.Blocks[b].Succs {
			switch {
			case g.Dominates(s, b):
				latches[s] = append(latches[s], b)
			case g.order[s] <= g.order[b]:
				g.Irreducible = append(g.Irreducible, Edge{b, s})
			}
		}
	}
	for _, h := range g.RPO {
		if latches[h] == nil {
			continue
		}
		l := Loop{Header: h, Latches: latches[h], Parent: -1}
		slices.Sort(l.Latches)
		inside := map[int]bool{h: true}
		work := slices.Clone(l.Latches)
		for len(work) > 0 {
			b := work[len(work)-1]
			work = work[:len(work)-1]
			if inside[b] {
				continue
			}
			inside[b] = true
			for _, p := range g.Blocks[b].Preds {
				if g.order[p] >= 0 {
					work = append(work, p)
				}
			}
		}
		for b := range inside {
			l.Blocks = append(l.Blocks, b)
		}
		slices.Sort(l.Blocks)
		for _, b := range l.Blocks {
			for _, e := range g.Edges(b) {
				if !inside[e.To] {
					l.Exits = append(l.Exits, e)
				}
			}
		}
		g.Loops = append(g.Loops, l)
	}
	// A loop inside another has fewer blocks.
	slices.SortStableFunc(g.Loops, func(a, b Loop) int {
		return cmp.Or(cmp.Compare(len(b.Blocks), len(a.Blocks)), cmp.Compare(a.Header, b.Header))
	})
	for i := range g.Loops {
		l := &g.Loops[i]
		l.Parent = g.Blocks[l.Header].Loop
		l.Depth = 1
		if l.Parent >= 0 {
			l.Depth = g.Loops[l.Parent].Depth + 1
		}
		for _, b := range l.Blocks {
			g.Blocks[b].Loop = i
		}
	}
}

// Depth is the number of loops that the block is in.
func (g *Graph) Depth(block int) int {
	if l := g.Blocks[block].Loop; l >= 0 {
		return g.Loops[l].Depth
	}
	return 0
}
