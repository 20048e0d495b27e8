package x86

import "github.com/wavelane/wavelane/internal/simd/asmgen/ir"

// ternary is a node that is a function of the bits of three others. Bit 4a+2b+c of the table is the result for bits a, b, c.
type ternary struct {
	leaves []*ir.Node
	table  int
}

// resolve returns the node that computes the bits of n.
func resolve(n *ir.Node) *ir.Node {
	for isCast(n) {
		n = n.Args[0]
	}
	return n
}

func isLogic(n *ir.Node) bool {
	return n.Op == ir.OpIAnd || n.Op == ir.OpIOr || n.Op == ir.OpIXor || n.Op == ir.OpIAndNot
}

// alone returns the node after n if nothing but n's user needs it.
func (l *lowering) alone(n *ir.Node) *ir.Node {
	for {
		if len(l.users[n]) != 1 || l.isRoot(n) {
			return nil
		}
		if !isCast(n) {
			return n
		}
		n = n.Args[0]
	}
}

// findLogic finds trees of bitwise operations on three values, users before operands.
func (l *lowering) findLogic() {
	for i := len(l.body.Nodes) - 1; i >= 0; i-- {
		n := l.body.Nodes[i]
		if !isLogic(n) || l.invariant[n] || l.absorbed[n] {
			continue
		}
		inner := map[*ir.Node]bool{n: true}
		leaves := l.leaves(n, inner)
		for queue := []*ir.Node{n}; len(queue) > 0; queue = queue[1:] {
			for _, a := range queue[0].Args {
				c := l.alone(a)
				if c == nil || !isLogic(c) || l.invariant[c] || l.cone[c] != l.cone[n] {
					continue
				}
				inner[c] = true
				if next := l.leaves(n, inner); len(next) <= 3 {
					leaves, queue = next, append(queue, c)
				} else {
					delete(inner, c)
				}
			}
		}
		if len(inner) == 1 || len(leaves) != 3 {
			continue
		}
		for m := range inner {
			l.absorbed[m] = m != n
		}
		// The operand that may be in memory is the last.
		for k, a := range leaves {
			if leaf(a) {
				leaves[k], leaves[2] = leaves[2], leaves[k]
				break
			}
		}
		t := &ternary{leaves: leaves}
		for bits := range 8 {
			env := map[*ir.Node]int{leaves[0]: bits >> 2 & 1, leaves[1]: bits >> 1 & 1, leaves[2]: bits & 1}
			t.table |= truth(n, env) << bits
		}
		l.logic[n] = t
	}
}

// leaves are the operands of a tree with these inner nodes, in order of nodes.
func (l *lowering) leaves(n *ir.Node, inner map[*ir.Node]bool) []*ir.Node {
	var list []*ir.Node
	seen := map[*ir.Node]bool{}
	var walk func(n *ir.Node)
	walk = func(n *ir.Node) {
		for _, a := range n.Args {
			a = resolve(a)
			switch {
			case inner[a]:
				walk(a)
			case !seen[a]:
				seen[a] = true
				list = append(list, a)
			}
		}
	}
	walk(n)
	return list
}

func truth(n *ir.Node, env map[*ir.Node]int) int {
	if v, ok := env[n]; ok {
		return v
	}
	x, y := truth(resolve(n.Args[0]), env), truth(resolve(n.Args[1]), env)
	switch n.Op {
	case ir.OpIAnd:
		return x & y
	case ir.OpIOr:
		return x | y
	case ir.OpIXor:
		return x ^ y
	}
	return x &^ y
}
