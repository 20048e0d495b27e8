package cuda

import (
	"slices"

	"github.com/wavelane/wavelane/internal/op"
	"github.com/wavelane/wavelane/ptx/lower"
)

// arrange gives every value its place: in the arena of a run, where memory whose last reader has run serves again, unless the
// value is a tensor's or is kept. Inputs of more than large bytes have no place in the staging memory.
func (pl *plan) arrange(scratch [][]int, large uint64) {
	p := pl.prog
	for i, v := range p.Values {
		pl.places[i].bytes = uint64(v.Bytes())
	}
	for i, s := range p.Tensor {
		pl.places[s].kind, pl.places[s].index = inTensor, i
	}
	for i, home := range pl.homes {
		if home != op.Slot(i) {
			pl.places[i].kind, pl.places[i].index = inTensor, pl.places[home].index
		}
	}
	for i, s := range p.Keep {
		if pl.places[s].kind == inArena {
			pl.places[s].kind, pl.places[s].index = inKept, i
		}
	}
	last := lastUses(p)
	var a layout
	// Inputs lie one behind the other, here and in the staging memory, so that one copy brings them.
	for _, s := range p.Host {
		x := &pl.places[s]
		pl.large = append(pl.large, x.bytes > large)
		if x.kind == inArena && x.bytes <= large {
			x.at = a.get(x.bytes)
		}
	}
	pl.inputs = a.end
	pl.upload = pl.inputs
	for i, s := range p.Host {
		x := &pl.places[s]
		at := x.at
		switch {
		case pl.large[i] && x.kind == inArena:
			x.at = a.get(x.bytes)
		case pl.large[i]:
		case x.kind != inArena:
			at = pl.upload
			pl.upload += aligned(x.bytes)
		}
		pl.uploadAt = append(pl.uploadAt, at)
	}
	for _, s := range p.Read {
		pl.readAt = append(pl.readAt, pl.read)
		pl.read += aligned(pl.places[s].bytes)
	}
	free := func(s op.Slot) {
		if pl.places[s].kind == inArena {
			a.put(pl.places[s].at, pl.places[s].bytes)
		}
	}
	for _, s := range p.Host {
		if last[s] < 0 {
			free(s)
		}
	}
	next := len(p.Values) // scratch memory
	for i := range p.Steps {
		s := &p.Steps[i]
		for _, out := range s.Out {
			if x := &pl.places[out]; x.kind == inArena {
				x.at = a.get(x.bytes)
			}
		}
		first := next
		for range scratch[i] {
			pl.places[next].at = a.get(pl.places[next].bytes)
			next++
		}
		for k := first; k < next; k++ {
			a.put(pl.places[k].at, pl.places[k].bytes)
		}
		for j, in := range s.In {
			if last[in] == i && !slices.Contains(s.In[:j], in) {
				free(in)
			}
		}
		for _, out := range s.Out {
			if last[out] < 0 {
				free(out)
			}
		}
	}
	pl.arena = a.high
}

// lastUses is, by value, the last step that reads it: −1 if none does, the number of steps if the program's end does.
func lastUses(p *op.Program) []int {
	last := make([]int, len(p.Values))
	for i := range last {
		last[i] = -1
	}
	for i := range p.Steps {
		for _, s := range p.Steps[i].In {
			last[s] = i
		}
	}
	for _, s := range p.Read {
		last[s] = len(p.Steps)
	}
	return last
}

// aligned is the room that so many bytes take.
func aligned(n uint64) uint64 { return (n + lower.Align - 1) &^ (lower.Align - 1) }

// layout hands out pieces of an arena that grows as it has to: the smallest that fits (best fit), neighbours joined.
type layout struct {
	free []hole // by position, never touching
	end  uint64 // behind the last piece in use, at present
	high uint64 // the largest end there was
}

type hole struct{ at, n uint64 }

func (l *layout) get(n uint64) uint64 {
	n = aligned(max(n, 1))
	best := -1
	for i, h := range l.free {
		if h.n >= n && (best < 0 || h.n < l.free[best].n) {
			best = i
		}
	}
	if best >= 0 {
		at := l.free[best].at
		l.free[best].at += n
		l.free[best].n -= n
		if l.free[best].n == 0 {
			l.free = slices.Delete(l.free, best, best+1)
		}
		return at
	}
	at := l.end
	l.end += n
	l.high = max(l.high, l.end)
	return at
}

func (l *layout) put(at, n uint64) {
	n = aligned(max(n, 1))
	i, _ := slices.BinarySearchFunc(l.free, at, func(h hole, at uint64) int {
		if h.at < at {
			return -1
		}
		return 1
	})
	l.free = slices.Insert(l.free, i, hole{at, n})
	if i+1 < len(l.free) && l.free[i].at+l.free[i].n == l.free[i+1].at {
		l.free[i].n += l.free[i+1].n
		l.free = slices.Delete(l.free, i+1, i+2)
	}
	if i > 0 && l.free[i-1].at+l.free[i-1].n == l.free[i].at {
		l.free[i-1].n += l.free[i].n
		l.free = slices.Delete(l.free, i, i+1)
	}
	if k := len(l.free) - 1; l.free[k].at+l.free[k].n == l.end {
		l.end = l.free[k].at
		l.free = l.free[:k]
	}
}
