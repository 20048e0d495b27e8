package cuda

// spanTree holds free spans in the order of size, then address: a treap whose nodes are the spans themselves, so that nothing
// is allocated. Random priorities keep it balanced: operations take O(log n) expected. (Seidel and Aragon, "Randomized Search
// Trees", 1996.)
type spanTree struct {
	root *span
	seed uint32
}

func (s *span) less(o *span) bool { return s.size < o.size || s.size == o.size && s.at < o.at }

func (t *spanTree) insert(s *span) {
	t.seed = max(t.seed, 1)
	t.seed ^= t.seed << 13 // xorshift (Marsaglia, 2003)
	t.seed ^= t.seed >> 17
	t.seed ^= t.seed << 5
	s.priority = t.seed
	at := &t.root
	for *at != nil && (*at).priority >= s.priority {
		at = (*at).child(s)
	}
	s.left, s.right = split(*at, s)
	*at = s
}

func (t *spanTree) remove(s *span) {
	at := &t.root
	for *at != s {
		at = (*at).child(s)
	}
	*at = merge(s.left, s.right)
	s.left, s.right = nil, nil
}

// best is the smallest span of at least size bytes, the lowest of several; nil if there is none.
func (t *spanTree) best(size uint64) *span {
	var found *span
	for n := t.root; n != nil; {
		if n.size >= size {
			found, n = n, n.left
		} else {
			n = n.right
		}
	}
	return found
}

// largest is the size of the largest span.
func (t *spanTree) largest() uint64 {
	n := t.root
	if n == nil {
		return 0
	}
	for n.right != nil {
		n = n.right
	}
	return n.size
}

// child is where s hangs below n.
func (n *span) child(s *span) **span {
	if s.less(n) {
		return &n.left
	}
	return &n.right
}

// split parts a tree into what is less than the key and what is not.
func split(n, key *span) (less, rest *span) {
	l, r := &less, &rest
	for n != nil {
		if n.less(key) {
			*l, l, n = n, &n.right, n.right
		} else {
			*r, r, n = n, &n.left, n.left
		}
	}
	*l, *r = nil, nil
	return less, rest
}

// merge joins two trees, all of l less than all of r.
func merge(l, r *span) (root *span) {
	at := &root
	for l != nil && r != nil {
		if l.priority >= r.priority {
			*at, at, l = l, &l.right, l.right
		} else {
			*at, at, r = r, &r.left, r.left
		}
	}
	if l != nil {
		*at = l
	} else {
		*at = r
	}
	return root
}
