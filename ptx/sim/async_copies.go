package sim

import (
	"encoding/binary"

	"github.com/wavelane/wavelane/ptx/ir"
)

// cpAsync is a compiled cp.async: n bytes from src to dst in each lane.
type cpAsync struct {
	dst, src address
	to, from *memOp
	n        int
	size     ref // how many bytes come from src, zeros follow; none: all
	ignore   ref // a predicate: nothing does; none: something does
	not      bool
}

// copies is one execution of a cp.async, with an operation for each lane that took part.
type copies struct {
	op      *cpAsync
	lanes   uint32           // that have not waited for theirs
	group   [warpSize]uint32 // how many groups the lane had committed before
	flights [warpSize]flight
	known   bool     // others point to the operations: their memory cannot be used again
	alike   bool     // nothing was unusual: bytes come from source, all of them or none, and all have values
	source  *segment // nil if no bytes come from anywhere
}

// copyQueue is a warp's asynchronous copies.
type copyQueue struct {
	queue     []*copies        // the oldest first
	committed [warpSize]uint32 // groups
	spare     []*copies
}

// reset forgets all but the memory.
func (q *copyQueue) reset() {
	q.queue, q.committed = q.queue[:0], [warpSize]uint32{}
}

// run executes the instruction for lanes.
func (x *cpAsync) run(w *warp, m uint32) {
	q := &w.async.copies
	b := q.take()
	b.op, b.lanes, b.group, b.source = x, m, q.committed, nil
	b.known = w.work.rng != nil
	dst, src := &w.places[0], &w.places[1]
	x.dst.all(w, 0, dst)
	x.src.all(w, 0, src)
	reading, partly := uint32(0), false
	for l := m; l != 0; l &= l - 1 {
		lane := first(l) & 31
		n := x.n
		if x.size.i >= 0 {
			v := w.get(x.size, lane)
			if v > uint64(n) {
				w.fault(BadOperand, lane, 0, 0, "src-size %d of a copy of %d bytes", v, n)
			}
			n = int(v)
		}
		if x.ignore.i >= 0 && w.get(x.ignore, lane)&1 == 1 != x.not {
			n = 0
		}
		w.alignedTo(lane, ir.SharedSpace, dst[lane], x.n)
		if n > 0 {
			w.alignedTo(lane, ir.GlobalSpace, src[lane], x.n)
			reading |= 1 << lane
			partly = partly || n < x.n
		}
		// Field by field, as most are as they were, and pointers cost more than numbers.
		f := &b.flights[lane]
		if f.dst != x.to {
			f.w, f.lane, f.dst, f.src = w, lane, x.to, x.from
		}
		f.pc, f.undef, f.tied, f.moved, f.read, f.landed = w.at, nil, false, false, false, false
		f.one.dst, f.one.src, f.one.n, f.one.to = dst[lane], src[lane], x.n, n
	}
	b.alike = !partly && b.begin(w, reading, dst, src)
	b.known = b.known || !b.alike
	for l := m; l != 0 && !b.alike; l &= l - 1 {
		w.issue(&b.flights[first(l)])
	}
	q.queue = append(q.queue, b)
	if rng := w.work.rng; rng != nil {
		for l := m; l != 0; l &= l - 1 {
			if rng.IntN(2) == 0 {
				w.block.cluster.later(rng.Uint64N(300), b.flights[first(l)].move)
			}
		}
	}
}

func (q *copyQueue) take() *copies {
	if n := len(q.spare) - 1; n >= 0 {
		b := q.spare[n]
		q.spare = q.spare[:n]
		return b
	}
	return &copies{}
}

// begin issues the operations of all lanes at once, unless something is unusual: then it returns false, and they are to be
// issued one by one. src becomes offsets in the source.
func (b *copies) begin(w *warp, reading uint32, dst, src *[warpSize]uint64) bool {
	x, m, s := b.op, b.lanes, &w.block.shared
	if !within(s.data, m, x.n, dst) {
		return false
	}
	if reading != 0 {
		b.source = w.global(x.from, src[first(reading)])
		if b.source == nil || b.source.readOnly {
			return false
		}
		for l := reading; l != 0; l &= l - 1 {
			src[first(l)&31] -= b.source.base
		}
		if !within(b.source.data, reading, x.n, src) {
			return false
		}
	}
	if w.mon == nil {
		return true
	}
	if w.prog.async && !w.wordsOf(s).idle(m, x.n, dst) || reading != 0 && !w.reads(reading, x.from, b.source, src) ||
		!w.mon.writes(w, m, x.to, s, dst) {
		return false
	}
	for l := m; l != 0; l &= l - 1 { // no value until it has come
		w.mon.forget(s, int(dst[first(l)&31]), x.n)
	}
	if w.prog.async {
		b.hold(w, reading, dst, src)
	}
	return true
}

// hold is [warp.hold] and [warp.guard] for all operations.
func (b *copies) hold(w *warp, reading uint32, dst, src *[warpSize]uint64) {
	n := b.op.n
	words := w.wordsOf(&w.block.shared)
	for l := b.lanes; l != 0; l &= l - 1 {
		lane := first(l) & 31
		me := w.fenced(lane)
		p, list := words.at(dst[lane], n)
		for i := range list {
			p.lock(&list[i], &b.flights[lane], 15)
			list[i].wrote(me, 15)
		}
	}
	if reading == 0 {
		return
	}
	words = w.wordsOf(b.source)
	for l := reading; l != 0; l &= l - 1 {
		lane := first(l) & 31
		_, list := words.at(src[lane], n)
		for i := range list {
			list[i].reader, list[i].readerBytes = &b.flights[lane], 15
			list[i].readers++
		}
	}
}

// land ends the operations of lanes, which have waited for them.
func (b *copies) land(w *warp, m uint32) {
	b.lanes &^= m
	if b.alike && b.end(w, m) {
		return
	}
	b.known = true
	for ; m != 0; m &= m - 1 {
		lane := first(m)
		b.flights[lane].land(w, lane)
	}
}

// end is [flight.land] for all lanes in m at once, unless something is unusual: then it returns false, and what it has not
// done has to be done one by one.
func (b *copies) end(w *warp, m uint32) bool {
	n, s, dst := b.op.n, &w.block.shared, &w.places[0]
	for l := m; l != 0; l &= l - 1 {
		f := &b.flights[first(l)&31]
		if f.read || f.landed {
			return false
		}
		dst[f.lane&31] = f.one.dst
		if f.moved {
			continue
		}
		f.moved = true
		to := s.data[f.one.dst:][:n]
		switch {
		case f.one.to == 0:
			clear(to)
		case n == 4:
			binary.LittleEndian.PutUint32(to, binary.LittleEndian.Uint32(b.source.data[f.one.src-b.source.base:]))
		default:
			copy(to, b.source.data[f.one.src-b.source.base:])
		}
	}
	if w.mon == nil {
		for l := m; l != 0; l &= l - 1 {
			b.flights[first(l)&31].landed = true
		}
		return true
	}
	at := w.at
	w.at = b.flights[first(m)].pc
	ok := w.mon.writes(w, m, b.op.to, s, dst)
	if ok {
		b.release(w, m)
	}
	w.at = at
	return ok
}

// release is [flight.unlock] for all operations of lanes, which are over.
func (b *copies) release(w *warp, m uint32) {
	var here, there *words
	if w.prog.async {
		here = w.wordsOf(&w.block.shared)
		if b.source != nil {
			there = w.wordsOf(b.source)
		}
	}
	for ; m != 0; m &= m - 1 {
		lane := first(m) & 31
		f := &b.flights[lane]
		f.read, f.landed = true, true
		if here == nil {
			continue
		}
		me := w.fenced(lane)
		p, list := here.at(f.one.dst, b.op.n)
		for i := range list {
			p.unlock(&list[i], f)
			list[i].wrote(me, 15)
		}
		if f.one.to == 0 {
			continue
		}
		_, list = there.at(f.one.src-b.source.base, b.op.n)
		for i := range list {
			list[i].free()
			if list[i].reader == f { // it stays there for another one
				b.known = true
			}
		}
	}
}

// commit makes a group of the copies that each lane has issued since its last one.
func (q *copyQueue) commit(m uint32) {
	for ; m != 0; m &= m - 1 {
		q.committed[first(m)&31]++
	}
}

// wait lands lanes' copies but those of the last n groups and those not committed; with all, these too.
func (q *copyQueue) wait(w *warp, m uint32, n uint32, all bool) {
	for _, b := range q.queue {
		due := m & b.lanes
		for l := due; l != 0 && !all; l &= l - 1 {
			if lane := first(l) & 31; q.committed[lane]-b.group[lane] <= n {
				due &^= 1 << lane
			}
		}
		if due != 0 {
			b.land(w, due)
		}
	}
	q.tidy()
}

// tidy drops copies that all lanes have waited for.
func (q *copyQueue) tidy() {
	rest := q.queue[:0]
	for _, b := range q.queue {
		switch {
		case b.lanes != 0:
			rest = append(rest, b)
		case !b.known:
			q.spare = append(q.spare, b)
		}
	}
	clear(q.queue[len(rest):])
	q.queue = rest
}

// of is a lane's copies for which it has not waited. They are not only the queue's any more.
func (q *copyQueue) of(lane int) (list []*flight) {
	for _, b := range q.queue {
		if b.lanes>>lane&1 != 0 {
			b.known = true
			list = append(list, &b.flights[lane])
		}
	}
	return list
}

// exit is called when lanes have ended.
func (q *copyQueue) exit(w *warp, m uint32, checks bool) {
	for _, b := range q.queue {
		for l := b.lanes & m; l != 0; l &= l - 1 {
			f := &b.flights[first(l)]
			if f.tied {
				continue
			}
			if checks && !f.landed {
				w.neverAwaited(f)
			}
			f.move()
		}
		b.lanes &^= m
	}
	q.tidy()
}
