package op

import (
	"cmp"
	"slices"
)

// Memory tells what one run of a compiled program needs, in bytes, beside the tensors that it is given.
type Memory struct {
	Peak    int // memory of the device, which values share that are not needed at the same time, and steps' scratch memory
	Inputs  int // host data that the run reads
	Results int // host data that it writes, and the tensors that it makes
	Step    int // where most of Peak is in use, as an index of Program.Steps; −1 if Peak is 0
}

// Sized is an Executable that tells what its runs need.
type Sized interface {
	Memory() Memory
}

// Demand is what a program asks of a device's memory, in the device's terms: its steps may be others than the program's.
type Demand struct {
	Bytes  []int  // of each value; 0 for those that lie elsewhere
	Before []Slot // values that are there before the first step; in an arena they lie at its start, in this order
	After  []Slot // values that must be there behind the last step
	Steps  []Use
	Align  int  // sizes and offsets are multiples of it; 0 is 1
	Apart  bool // nothing shares memory; see [Program.Apart]
}

// Use is what a step does with memory. It may write a result before it has read all operands, so none of them lies where another
// does, unless Over says otherwise.
type Use struct {
	In, Out []Slot
	Scratch []int    // bytes of each piece that the step needs while it runs
	Over    [][]Slot // by result, as far as there are any: operands in whose memory it may lie if no later step reads them
}

// Arrangement says where values lie.
type Arrangement struct {
	Values  []int   // by slot: its offset in the arena, or the number of its block; −1 of those that have no memory
	Scratch [][]int // by step, the same
	Blocks  []int   // bytes of each block; of the arena, which is one
	Peak    int     // bytes of all blocks
	Step    int     // where most of them is in use; −1 if there is no step or nothing is used
}

// span is memory that is in use from step first to step last.
type span struct {
	bytes, first, last int
	at                 int // offset or block
}

func (s *span) meets(t *span) bool { return s.first <= t.last && t.first <= s.last }

// lifetimes is the spans of values and scratch memory, those of Before first, and which of them each value and scratch piece has.
type lifetimes struct {
	spans   []span
	value   []int // by slot, −1 for none
	scratch [][]int
}

func (d *Demand) round(bytes int) int {
	a := max(d.Align, 1)
	return (bytes + a - 1) / a * a
}

// lifetimes finds out from where to where values are needed.
func (d *Demand) lifetimes() *lifetimes {
	l := &lifetimes{value: slices.Repeat([]int{-1}, len(d.Bytes)), scratch: make([][]int, len(d.Steps))}
	add := func(bytes, first, last int) int {
		if d.Apart {
			first, last = -1, len(d.Steps)
		}
		l.spans = append(l.spans, span{bytes: d.round(bytes), first: first, last: last})
		return len(l.spans) - 1
	}
	last := slices.Repeat([]int{-1}, len(d.Bytes))
	for i := range d.Steps {
		for _, s := range d.Steps[i].In {
			last[s] = i
		}
	}
	for _, s := range d.After {
		last[s] = len(d.Steps)
	}
	for _, s := range d.Before {
		if d.Bytes[s] > 0 && l.value[s] < 0 {
			l.value[s] = add(d.Bytes[s], -1, last[s])
		}
	}
	for i := range d.Steps {
		u := &d.Steps[i]
		var taken []int
		for k, s := range u.Out {
			if d.Bytes[s] == 0 || l.value[s] >= 0 {
				continue
			}
			end := max(i, last[s])
			if x := d.over(l, last, i, k); x >= 0 && !slices.Contains(taken, x) {
				l.value[s], taken = x, append(taken, x)
				l.spans[x].last = end
				continue
			}
			l.value[s] = add(d.Bytes[s], i, end)
		}
		for _, n := range u.Scratch {
			if n == 0 {
				l.scratch[i] = append(l.scratch[i], -1)
			} else {
				l.scratch[i] = append(l.scratch[i], add(n, i, i))
			}
		}
	}
	return l
}

// over is the span of an operand that ends with step i and in which its result k fits, or −1.
func (d *Demand) over(l *lifetimes, last []int, i, k int) int {
	u := &d.Steps[i]
	if d.Apart || k >= len(u.Over) {
		return -1
	}
	for _, s := range u.Over[k] {
		if x := l.value[s]; x >= 0 && last[s] == i && d.round(d.Bytes[u.Out[k]]) == l.spans[x].bytes {
			return x
		}
	}
	return -1
}

// bySize is the order in which spans get their memory: the largest first, as long as nothing small is in their way. From Pisarchyk
// and Lee, Efficient Memory Management for Deep Neural Net Inference (2020).
func (l *lifetimes) bySize(from int) []int {
	order := make([]int, len(l.spans)-from)
	for i := range order {
		order[i] = from + i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(l.spans[b].bytes, l.spans[a].bytes) })
	return order
}

// Arena lays everything out in one piece of memory, each in the smallest gap between those that are in use at the same time.
func (d *Demand) Arena() *Arrangement {
	l := d.lifetimes()
	size, first := 0, 0
	var placed []int // by offset
	for first < len(l.spans) && first < len(d.Before) && l.spans[first].first < 0 {
		l.spans[first].at = size
		size += l.spans[first].bytes
		placed = append(placed, first)
		first++
	}
	for _, i := range l.bySize(first) {
		s := &l.spans[i]
		end, best, gap := 0, -1, 0
		for _, j := range placed {
			t := &l.spans[j]
			if !s.meets(t) {
				continue
			}
			if g := t.at - end; g >= s.bytes && (best < 0 || g < gap) {
				best, gap = end, g
			}
			end = max(end, t.at+t.bytes)
		}
		if best < 0 {
			best = end
		}
		s.at = best
		size = max(size, s.at+s.bytes)
		at, _ := slices.BinarySearchFunc(placed, s.at, func(j, at int) int { return cmp.Compare(l.spans[j].at, at) })
		placed = slices.Insert(placed, at, i)
	}
	return d.arrangement(l, []int{size})
}

// InBlocks gives everything a block, which is for what is never in use at the same time. A step binds no block twice, unless Over
// allows it.
func (d *Demand) InBlocks() *Arrangement {
	l := d.lifetimes()
	var blocks []int
	var in [][]int // spans of each block
	for _, i := range l.bySize(0) {
		s := &l.spans[i]
		s.at = len(blocks)
		for b := len(blocks) - 1; b >= 0; b-- { // the smallest is the last
			if !slices.ContainsFunc(in[b], func(j int) bool { return s.meets(&l.spans[j]) }) {
				s.at = b
				break
			}
		}
		if s.at == len(blocks) {
			blocks, in = append(blocks, s.bytes), append(in, nil)
		}
		in[s.at] = append(in[s.at], i)
	}
	return d.arrangement(l, blocks)
}

func (d *Demand) arrangement(l *lifetimes, blocks []int) *Arrangement {
	a := &Arrangement{Values: l.value, Scratch: l.scratch, Blocks: blocks, Step: -1}
	locate := func(spans []int) {
		for i, x := range spans {
			if x >= 0 {
				spans[i] = l.spans[x].at
			}
		}
	}
	locate(a.Values)
	for _, s := range a.Scratch {
		locate(s)
	}
	for _, n := range blocks {
		a.Peak += n
	}
	a.Step = d.fullest(l)
	return a
}

// fullest is the step during which most bytes are in use.
func (d *Demand) fullest(l *lifetimes) int {
	change := make([]int, len(d.Steps)+2) // in bytes, from the step before on
	for _, s := range l.spans {
		change[s.first+1] += s.bytes
		change[min(s.last+2, len(change)-1)] -= s.bytes
	}
	step, most, now := -1, 0, change[0]
	for i := range d.Steps {
		if now += change[i+1]; now > most {
			step, most = i, now
		}
	}
	return step
}
