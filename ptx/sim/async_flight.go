package sim

// flight is an asynchronous operation on memory, from its issue until a thread has made sure that it is complete. Its bytes
// move at any time between; with CheckAsync nobody may touch what it writes, nor change what it reads, while it is in flight.
type flight struct {
	w        *warp
	lane     int
	pc       int32
	dst, src *memOp
	each     func(func(piece)) // the pieces that it moves; nil: one
	one      piece
	reduce   func(dst, src []byte)
	convert  func(b []byte)
	undef    []uint32 // by piece: bytes of the source without a value; nil if all have one
	tied     bool     // completes on an mbarrier
	moved    bool
	read     bool // the source may be changed again
	landed   bool // the destination may be used
}

// piece is up to 16 neighbouring bytes that an operation moves.
type piece struct {
	dst, src uint64 // addresses in the spaces of the operation
	n        int
	from, to int    // which of the n bytes come from src, the address of byte from; the others are filled
	fill     uint64 // with these bits, again and again
}

// pieces calls do for the pieces that the operation moves.
func (f *flight) pieces(do func(piece)) {
	if f.each == nil {
		do(f.one)
		return
	}
	f.each(do)
}

// sized is op for n bytes at any address.
func sized(op *memOp, n int) *memOp {
	op.size, op.align = n, 1
	return op
}

// issue begins an operation: bounds and what the checks want to know. The addresses' alignment is for the caller to check.
func (w *warp) issue(f *flight) {
	if f.dst != nil {
		d := *f.dst
		d.write = true
		f.dst = &d
	}
	if f.src != nil {
		s := *f.src
		s.write = false
		f.src = &s
	}
	i := 0
	f.pieces(func(p piece) {
		if p.to > p.from && f.src != nil {
			_, undef := w.bytes(f.lane, sized(f.src, p.to-p.from), p.src, 0)
			if undef != 0 && f.undef == nil {
				f.undef = make([]uint32, i, i+16)
			}
			if f.undef != nil {
				f.undef = append(f.undef, undef<<p.from)
			}
			w.hold(f, f.src, p.src, p.to-p.from)
		} else if f.undef != nil {
			f.undef = append(f.undef, 0)
		}
		if f.dst != nil {
			w.bytes(f.lane, sized(f.dst, p.n), p.dst, 0)
			w.hold(f, f.dst, p.dst, p.n)
			if w.mon != nil && f.reduce == nil { // no value until it has come
				s, off := w.locate(f.lane, f.dst, p.dst)
				w.mon.forget(s, int(off), p.n)
			}
		}
		i++
	})
}

// move moves the bytes, once.
func (f *flight) move() {
	if f.moved {
		return
	}
	f.moved = true
	if f.dst == nil {
		return
	}
	view := func(op *memOp, addr uint64, n int) []byte {
		s, off := f.w.locate(f.lane, op, addr)
		return s.data[off:][:n]
	}
	f.pieces(func(p piece) {
		dst := view(f.dst, p.dst, p.n)
		if f.reduce != nil {
			defer f.w.atomically(p.dst)()
			var src []byte
			if f.src != nil {
				src = view(f.src, p.src, p.n)
			}
			f.reduce(dst, src)
			return
		}
		for i := range dst[:p.from] {
			dst[i] = byte(p.fill >> (i % 8 * 8))
		}
		if p.to > p.from {
			copy(dst[p.from:p.to], view(f.src, p.src, p.to-p.from))
			if f.convert != nil {
				f.convert(dst[p.from:p.to])
			}
		}
		for i := max(p.from, p.to); i < p.n; i++ {
			dst[i] = byte(p.fill >> (i % 8 * 8))
		}
	})
}

// atomically excludes other blocks on other goroutines.
func (w *warp) atomically(addr uint64) (unlock func()) {
	if w.mon != nil || w.block.grid.gpu.cfg.Workers == 1 {
		return func() {}
	}
	return w.lock(addr)
}

// free lets the source be changed again: the operation has read it.
func (f *flight) free() {
	f.move()
	if !f.read {
		f.read = true
		if f.src != nil {
			f.unlock(f.src)
		}
	}
}

// land ends an operation: a lane of w has made sure that it is complete, and from here on its bytes count as written by that
// lane.
func (f *flight) land(w *warp, lane int) {
	f.free()
	if f.landed {
		return
	}
	f.landed = true
	if f.dst == nil || f.reduce != nil {
		return
	}
	f.unlock(f.dst)
	if w.mon == nil {
		return
	}
	w.async.landing = true
	defer func() { w.async.landing = false }()
	w.from(f.pc, func() {
		i := 0
		op := *f.dst
		f.pieces(func(p piece) {
			undef := uint32(0)
			if f.undef != nil {
				undef = f.undef[i]
			}
			i++
			s, off := f.w.locate(f.lane, f.dst, p.dst)
			w.mon.access(w, lane, sized(&op, p.n), s, int(off), undef)
			if !op.async {
				w.guard(lane, &op, s, int(off))
			}
		})
	})
}

// hazard faults because a lane touches what an operation still has to do with.
func (w *warp) hazard(f *flight, lane int, s *segment, off int, what string) {
	fault := w.faultOf(AsyncHazard, lane, s.space, s.base+uint64(off), what)
	fault.Other = f.w.accessAt(f.pc, f.lane)
	panic(fault)
}

// exit is called when lanes have ended: operations that nobody can wait for any more are an error.
func (a *warpAsync) exit(w *warp, m uint32) {
	a.products.exit(w, m)
	checks := w.checksAsync()
	a.copies.exit(w, m, checks)
	for ; a.lanes != nil && m != 0; m &= m - 1 {
		lane := first(m)
		l := &a.lanes[lane]
		for _, f := range append(flat(l.bulk.groups), l.bulk.open...) {
			if checks && !f.read { // what it writes to global memory comes in any case
				w.neverAwaited(f)
			}
			f.land(w, lane)
		}
		*l = laneAsync{}
	}
	if w.block.live == 0 {
		w.block.tensor.leaks(w)
	}
	if checks && w.block.live == 0 {
		for _, f := range w.block.async.flights {
			if !f.landed {
				w.neverAwaited(f)
			}
		}
	}
}

func (w *warp) neverAwaited(f *flight) {
	f.w.from(f.pc, func() {
		f.w.fault(AsyncHazard, f.lane, 0, 0, "the kernel ends and nobody has waited for this operation")
	})
}

func (w *warp) checksAsync() bool { return w.mon != nil && w.block.grid.gpu.cfg.Checks&CheckAsync != 0 }

func flat(groups [][]*flight) (all []*flight) {
	for _, g := range groups {
		all = append(all, g...)
	}
	return all
}
