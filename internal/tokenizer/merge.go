package tokenizer

import "container/heap"

// merge joins neighbouring parts of a text, always the pair that comes first in order and, of equals, the leftmost, until no
// pair has an order. Parts are the ends of what they are in the text; the result is the ends of what is left. It takes n·log n
// steps.
func merge(text string, ends []int, order func(left, right string) (float64, bool)) []int {
	m := merger{text: text, order: order, parts: make([]part, len(ends))}
	from := 0
	for i, end := range ends {
		m.parts[i] = part{from, end, i - 1, i + 1}
		from = end
	}
	for i := range len(ends) - 1 {
		m.push(i)
	}
	heap.Init(&m.queue)
	for len(m.queue) > 0 {
		p := heap.Pop(&m.queue).(pair)
		left := &m.parts[p.left]
		if left.end != p.middle || left.next == len(ends) || m.parts[left.next].end != p.end || left.from < 0 {
			continue // one of them has been joined with another
		}
		right := &m.parts[left.next]
		left.end, left.next = right.end, right.next
		right.from = -1
		if left.next < len(ends) {
			m.parts[left.next].last = p.left
			m.add(p.left)
		}
		if left.last >= 0 {
			m.add(left.last)
		}
	}
	ends = ends[:0]
	for i := 0; i < len(m.parts); i = m.parts[i].next {
		ends = append(ends, m.parts[i].end)
	}
	return ends
}

type merger struct {
	text  string
	order func(left, right string) (float64, bool)
	parts []part
	queue pairs
}

// part is a piece of the text in a list; from is −1 for one that belongs to its left neighbour now.
type part struct{ from, end, last, next int }

// pair is two parts to be joined: text between the beginning of part left, middle and end.
type pair struct {
	order             float64
	left, middle, end int
}

func (m *merger) pairAt(left int) (pair, bool) {
	a := &m.parts[left]
	b := &m.parts[a.next]
	order, ok := m.order(m.text[a.from:a.end], m.text[b.from:b.end])
	return pair{order, left, a.end, b.end}, ok
}

func (m *merger) push(left int) {
	if p, ok := m.pairAt(left); ok {
		m.queue = append(m.queue, p)
	}
}

func (m *merger) add(left int) {
	if p, ok := m.pairAt(left); ok {
		heap.Push(&m.queue, p)
	}
}

type pairs []pair

func (q pairs) Len() int { return len(q) }
func (q pairs) Less(i, j int) bool {
	return q[i].order < q[j].order || q[i].order == q[j].order && q[i].left < q[j].left
}
func (q pairs) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *pairs) Push(p any)   { *q = append(*q, p.(pair)) }
func (q *pairs) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// pieces calls f for each part of a text that ends cut it into.
func pieces(text string, ends []int, f func(piece string)) {
	from := 0
	for _, end := range ends {
		f(text[from:end])
		from = end
	}
}

// characters are the ends of the characters of a text; bytes that are no UTF-8 stand alone.
func characters(text string) []int {
	ends := make([]int, 0, len(text))
	for i := range text {
		if i > 0 {
			ends = append(ends, i)
		}
	}
	if text != "" {
		ends = append(ends, len(text))
	}
	return ends
}
