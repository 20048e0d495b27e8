package sim

import "github.com/wavelane/wavelane/ptx/ir"

// With CheckAsync each word of 4 bytes of shared and global memory knows which asynchronous operations have to do with it,
// and which thread wrote it last through the generic proxy. Nothing of this exists until a kernel has such instructions.

// words is what is known of a segment, in pages that are made when they are needed.
type words struct {
	grid    *grid // the launch that it is about
	cluster Dim3  // and the cluster, for shared memory: it is used again
	pages   []*page
}

const pageWords = 64

// page is neighbouring words.
type page struct {
	locked int // how many of them have a writer
	words  [pageWords]word
}

// lock notes that an operation writes bytes of a word, unlock that it is over.
func (p *page) lock(x *word, f *flight, bytes uint8) {
	if x.writer == nil {
		p.locked++
	}
	x.writer, x.writerBytes = f, bytes
}

func (p *page) unlock(x *word, f *flight) {
	if x.writer == f {
		p.locked--
		x.writer = nil
	}
}

// word is the state of 4 bytes. Which of them each part is about is in a mask; of two operations that write different bytes
// of a word only the first is known.
type word struct {
	writer  *flight
	reader  *flight // one of those that read
	readers int
	generic *fenced // the thread that wrote it last, through the generic proxy
	fences  uint32  // how many proxy fences the launch had seen then
	pc      int32   // its instruction

	writerBytes, readerBytes, genericBytes uint8
}

// fenced is a thread and its last proxy fence.
type fenced struct {
	w     *warp
	lane  int
	fence uint32 // its number in the launch; 0: none
}

// proxyFence notes that lanes execute a proxy fence.
func (w *warp) proxyFence(m uint32) {
	if !w.prog.async {
		return
	}
	w.block.grid.fences++
	for ; m != 0; m &= m - 1 {
		w.fenced(first(m)).fence = w.block.grid.fences
	}
}

// tracks says that the program being compiled has asynchronous operations.
func (c *compiler) tracks() {
	if c.cfg.Checks&CheckAsync != 0 {
		c.prog.async = true
	}
}

func (w *warp) fenced(lane int) *fenced {
	if w.async.fences == nil {
		w.async.fences = make([]fenced, warpSize)
		for i := range w.async.fences {
			w.async.fences[i] = fenced{w: w, lane: i}
		}
	}
	return &w.async.fences[lane]
}

// wordsOf is what is known of a segment since the launch began, or the cluster.
func (w *warp) wordsOf(s *segment) *words {
	var cluster Dim3
	if s.space == ir.SharedSpace {
		cluster = w.block.cluster.id
	}
	if s.words == nil || s.words.grid != w.block.grid || s.words.cluster != cluster {
		s.words = &words{grid: w.block.grid, cluster: cluster, pages: make([]*page, len(s.data)/(4*pageWords)+1)}
	}
	return s.words
}

// at is the words of n bytes, not more than 32, at an offset that is a multiple of n.
func (k *words) at(off uint64, n int) (*page, []word) {
	p := &k.pages[off/(4*pageWords)]
	if *p == nil {
		*p = new(page)
	}
	return *p, (*p).words[off/4%pageWords:][:n/4]
}

// idle tells whether no asynchronous operation has to do with n bytes at the offsets of lanes, which are multiples of n.
func (k *words) idle(m uint32, n int, off *[warpSize]uint64) bool {
	for ; m != 0; m &= m - 1 {
		_, list := k.at(off[first(m)&31], n)
		for i := range list {
			if list[i].writer != nil || list[i].readers > 0 {
				return false
			}
		}
	}
	return true
}

// words calls f for those from an offset on, n bytes long, with a mask of the bytes of each.
func (w *warp) words(s *segment, off, n int, f func(p *page, x *word, bytes uint8)) {
	k := w.wordsOf(s)
	for i := off / 4; i <= (off+n-1)/4; i++ {
		from, to := max(off-4*i, 0), min(off+n-4*i, 4)
		p, x := k.at(uint64(4*i), 4)
		f(p, &x[0], uint8(byteMask(from, to-from)))
	}
}

// wrote notes that a thread writes bytes of the word through the generic proxy.
func (x *word) wrote(by *fenced, bytes uint8) {
	if n := by.w.block.grid.fences; x.generic != by || x.fences != n {
		x.generic, x.fences, x.genericBytes = by, n, 0
	}
	x.genericBytes |= bytes
	x.pc = by.w.at
}

// free notes that one of the operations that read the word is over.
func (x *word) free() {
	if x.readers--; x.readers == 0 {
		x.reader, x.readerBytes = nil, 0
	}
}

// guard looks at each access of a program with asynchronous operations.
func (w *warp) guard(lane int, op *memOp, s *segment, off int) {
	if s.space != ir.SharedSpace && s.space != ir.GlobalSpace {
		return
	}
	w.words(s, off, op.size, func(_ *page, x *word, bytes uint8) {
		if !w.async.landing {
			if x.writer != nil && x.writerBytes&bytes != 0 {
				w.hazard(x.writer, lane, s, off, "nobody has waited for the asynchronous operation that writes here")
			}
			if op.write && x.readers > 0 && x.readerBytes&bytes != 0 {
				w.hazard(x.reader, lane, s, off, "nobody has waited for the asynchronous operation that reads this")
			}
		}
		switch {
		case op.write && !op.async:
			x.wrote(w.fenced(lane), bytes)
		case op.write:
			x.genericBytes &^= bytes
		case op.async && x.genericBytes&bytes != 0:
			w.proxied(lane, s, off, x.generic, x.fences, x.pc)
		}
	})
}

// proxied faults if the async proxy reads what a thread has written through the generic one and neither that thread nor the
// one that issues the operation has executed a proxy fence since.
func (w *warp) proxied(lane int, s *segment, off int, by *fenced, fences uint32, pc int32) {
	if by.fence > fences || w.fenced(lane).fence > fences {
		return
	}
	f := w.faultOf(ProxyFence, lane, s.space, s.base+uint64(off),
		"written through the generic proxy and read through the async proxy, with no fence.proxy.async between")
	f.Other = by.w.accessAt(pc, by.lane)
	f.Other.Write = true
	panic(f)
}

// hold notes that an operation reads or, with op.write, writes.
func (w *warp) hold(f *flight, op *memOp, addr uint64, n int) {
	if !w.prog.async || f.reduce != nil && op.write {
		return
	}
	s, off := w.locate(f.lane, op, addr)
	w.words(s, int(off), n, func(p *page, x *word, bytes uint8) {
		switch {
		case !op.write:
			x.reader = f
			x.readers++
			x.readerBytes |= bytes
		case x.writer == nil:
			p.lock(x, f, bytes)
		case x.writer == f:
			x.writerBytes |= bytes
		}
	})
}

// unlock undoes hold for all pieces.
func (f *flight) unlock(op *memOp) {
	if !f.w.prog.async {
		return
	}
	f.pieces(func(p piece) {
		addr, n := p.src, p.to-p.from
		if op.write {
			addr, n = p.dst, p.n
		}
		if n <= 0 {
			return
		}
		s, off := f.w.locate(f.lane, op, addr)
		f.w.words(s, int(off), n, func(p *page, x *word, _ uint8) {
			if op.write {
				p.unlock(x, f)
			} else {
				x.free()
			}
		})
	})
}
