package sim

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/wavelane/wavelane/ptx/ir"
)

// watch is the monitor of a GPU: it knows of each byte whether something has been written to it, and in which order
// accesses happen.
type watch struct {
	checks Checks
	grid   *grid
	races  *races
	order  order
}

// newMonitor returns what watches a GPU with the configuration, nil if nothing does.
func newMonitor(cfg Config) monitor {
	if cfg.Checks == 0 {
		return nil
	}
	d := &watch{checks: cfg.Checks, races: &races{limits: [2]int{maxShared, maxGlobal}}}
	d.races.now = 1
	return d
}

// warpWatch is what the monitor keeps for a warp.
type warpWatch struct {
	clock   warpClock
	origins map[originKey]*origin // of values that are not defined, other than of registers never written
	loaded  [warpSize]*origin     // of what the last load found undefined
	parts   [8][warpSize]uint8    // and which bytes of element i; 0: all
	storing []ref                 // what is being stored, while some of it has no value
	twice   uint32                // lanes that write where others of the same instruction write the same value
}

// shadow is what the monitor knows of a segment.
type shadow struct {
	def     []uint64 // a bit for each byte that has a value
	pages   [][]cell // of pageCells words each, nil while nothing in them has been accessed
	from    uint64   // the time before which accesses do not count
	origins map[int]*origin
	marks   map[int]*location // where something was released, since the launch that began at
	launch  uint64
}

const pageCells = 1 << 10

// origin is where a value without definition comes from.
type origin struct {
	what  string
	by    *Access
	bytes uint8 // of a register: which of its bytes have no value; 0: all
}

func (d *watch) shadow(s *segment) *shadow {
	sh, _ := s.shadow.(*shadow)
	if sh == nil {
		sh = &shadow{}
		s.shadow = sh
	}
	if n := (len(s.data) + 63) / 64; len(sh.def) < n {
		sh.def = append(sh.def, make([]uint64, n-len(sh.def))...)
	}
	if n := (len(s.data) + 4*pageCells - 1) / (4 * pageCells); len(sh.pages) < n {
		sh.pages = append(sh.pages, make([][]cell, n-len(sh.pages))...)
	}
	return sh
}

// undefined has a bit for each of up to 32 bytes that has no value.
func (sh *shadow) undefined(off, n int) uint32 {
	v := sh.def[off>>6] >> (off & 63)
	if off&63+n > 64 {
		v |= sh.def[off>>6+1] << (64 - off&63)
	}
	return ^uint32(v) & uint32(1<<n-1)
}

// define notes which of up to 32 bytes have a value from now on.
func (sh *shadow) define(off, n int, undef uint32) {
	mask := uint64(1)<<n - 1
	v := mask &^ uint64(undef)
	at := off & 63
	sh.def[off>>6] = sh.def[off>>6]&^(mask<<at) | v<<at
	if at+n > 64 {
		sh.def[off>>6+1] = sh.def[off>>6+1]&^(mask>>(64-at)) | v>>(64-at)
	}
}

// mark sets or clears any number of bytes.
func (sh *shadow) mark(off, n int, defined bool) {
	for n > 0 {
		k := min(n, 64-off&63)
		mask := (^uint64(0) >> (64 - k)) << (off & 63)
		if defined {
			sh.def[off>>6] |= mask
		} else {
			sh.def[off>>6] &^= mask
		}
		off, n = off+k, n-k
	}
}

// cell is that of the word at an offset that is a multiple of 4.
func (sh *shadow) cell(off int) *cell {
	p := &sh.pages[off/(4*pageCells)]
	if *p == nil {
		*p = make([]cell, min(pageCells, (len(sh.def)*64-off/(4*pageCells)*4*pageCells)/4))
	}
	return &(*p)[off/4%pageCells]
}

func (d *watch) begin(g *grid) {
	d.grid = g
	d.races.begin(g)
	d.order.begin()
}

func (d *watch) end() {
	d.grid = nil
	d.order.begin()
}

func (d *watch) started(w *warp) {
	x := &w.watched
	clear(x.origins)
	if w.index == 0 { // blocks and clusters are used again
		for i := range w.block.bars {
			delete(d.order.meetings, &w.block.bars[i])
		}
		if w.block.rank == 0 {
			delete(d.order.keys, any(w.block.cluster))
		}
	}
	d.races.start(&x.clock, w)
}

func (d *watch) allocated(s *segment) { s.shadow = nil }

func (d *watch) freed(s *segment) { s.shadow = nil }

func (d *watch) wrote(s *segment, off, n int) { d.shadow(s).mark(off, n, true) }

func (d *watch) read(s *segment, off, n int) *Fault {
	if d.checks&CheckInit == 0 {
		return nil
	}
	sh := d.shadow(s)
	for i := 0; i < n; i += 32 {
		if m := sh.undefined(off+i, min(32, n-i)); m != 0 {
			at := off + i + bits.TrailingZeros32(m)
			f := &Fault{Kind: Uninitialized, Addr: s.base + uint64(at), Space: s.space,
				Detail: fmt.Sprintf("Read of %d bytes at offset %d of %s: byte %d has never been written", n, off, s.name, at-off)}
			if o := sh.origins[at]; o != nil {
				f.Detail = fmt.Sprintf("Read of %d bytes at offset %d of %s: byte %d was written without a value: %s",
					n, off, s.name, at-off, o.what)
				f.Other = o.by
			}
			return f
		}
	}
	return nil
}

func (d *watch) forget(s *segment, off, n int) {
	sh := d.shadow(s)
	sh.mark(off, n, false)
	if off == 0 && n == len(s.data) {
		sh.from = d.races.tick()
		sh.origins, sh.marks = nil, nil
	}
}

func (d *watch) carry(to *segment, dst int, from *segment, src, n int) {
	known, sh := d.shadow(from), d.shadow(to)
	for i := 0; i < n; i += 32 {
		k := min(32, n-i)
		sh.define(dst+i, k, known.undefined(src+i, k))
		if known.origins != nil || sh.origins != nil {
			for j := i; j < i+k; j++ {
				sh.setOrigin(dst+j, known.origins[src+j])
			}
		}
	}
}

func (sh *shadow) setOrigin(at int, o *origin) {
	switch {
	case o != nil:
		if sh.origins == nil {
			sh.origins = map[int]*origin{}
		}
		sh.origins[at] = o
	case sh.origins != nil:
		delete(sh.origins, at)
	}
}

func (d *watch) access(w *warp, lane int, op *memOp, s *segment, off int, undef uint32) uint32 {
	sh, _ := s.shadow.(*shadow)
	if sh == nil || len(sh.def)*64 < len(s.data) {
		sh = d.shadow(s)
	}
	if d.checks&CheckInit != 0 && s.space != ir.ParamSpace {
		undef = d.defined(w, lane, op, s, sh, off, undef)
	}
	if d.checks&CheckRace != 0 && !s.readOnly && (s.space == ir.GlobalSpace || s.space == ir.SharedSpace) {
		d.race(w, lane, op, s, sh, off)
	}
	return undef
}

// defined is what access does about values.
func (d *watch) defined(w *warp, lane int, op *memOp, s *segment, sh *shadow, off int, undef uint32) uint32 {
	switch {
	case op.atomic:
		if undef != 0 {
			w.fault(Uninitialized, lane, s.space, s.base+uint64(off), "an operand of the atomic operation has no value")
		}
		if bad := sh.undefined(off, op.size); bad != 0 {
			o := d.memoryOrigin(w, lane, s, sh, off+bits.TrailingZeros32(bad))
			d.undefinedFault(w, lane, o, s, off, "the atomic operation meets bytes without a value")
		}
	case op.write:
		sh.define(off, op.size, undef)
		if undef != 0 || len(sh.origins) > 0 {
			for i := range op.size {
				var o *origin
				if undef>>i&1 != 0 {
					o = &origin{what: "stored without a value", by: w.access(lane)}
					for _, r := range w.watched.storing {
						if w.def[r.bank][r.i]>>lane&1 == 0 {
							o = w.originOf(r, lane)
							break
						}
					}
				}
				sh.setOrigin(off+i, o)
			}
		}
	default:
		undef = sh.undefined(off, op.size)
		if undef != 0 {
			w.watched.loaded[lane] = d.memoryOrigin(w, lane, s, sh, off+bits.TrailingZeros32(undef))
		}
		return undef
	}
	return 0
}

// memoryOrigin is why a byte that the current instruction reads has no value.
func (d *watch) memoryOrigin(w *warp, lane int, s *segment, sh *shadow, at int) *origin {
	if o := sh.origins[at]; o != nil {
		return o
	}
	return &origin{what: fmt.Sprintf("byte %d of %s (%s address %#x), which nothing has written, as loaded", at, s.name, s.space,
		s.base+uint64(at)), by: w.access(lane)}
}

// undefinedFault ends the launch because of a value without definition.
func (d *watch) undefinedFault(w *warp, lane int, o *origin, s *segment, off int, format string, args ...any) {
	f := w.faultOf(Uninitialized, lane, ir.NoSpace, 0, fmt.Sprintf(format, args...))
	if s != nil {
		f.Space, f.Addr = s.space, s.base+uint64(off)
	}
	if o != nil {
		f.Detail += ": " + o.what
		f.Other = o.by
	}
	panic(f)
}

// race notes an access for the order of accesses, and ends the launch if it races.
func (d *watch) race(w *warp, lane int, op *memOp, s *segment, sh *shadow, off int) {
	c := &w.watched.clock
	d.races.fresh(c, 1<<lane, w.at)
	v, m := c.view(lane), mode(0)
	if op.write {
		m = writes
	}
	if op.strong() {
		m |= mode(scopeOf(op.scope)) << scopeShift
	}
	from, limit := max(sh.from, d.races.base), d.races.limits[b2i(s.space == ir.GlobalSpace)]
	for at := off &^ 3; at < off+op.size; at += 4 {
		cl := sh.cell(at)
		if at >= off && at+4 <= off+op.size && (cl.more == nil || cl.more.bytes == nil) {
			if other, ok := d.races.touch(c, lane, v, cl, from, m, w.at, limit); !ok {
				d.raced(w, lane, v, s, cl, at, from, m, other)
			}
			if m.scope() != weakScope {
				cl.observe(c, lane, op)
			}
			continue
		}
		d.bytewise(w, lane, v, s, cl, at, from, max(at, off), min(at+4, off+op.size), op, m)
	}
	if sh.launch != d.races.base {
		sh.marks, sh.launch = nil, d.races.base
	}
	switch {
	case m.scope() != weakScope:
		d.strong(w, lane, op, sh, off)
	case op.write && len(sh.marks) > 0: // what is written weakly hands nothing on
		for at := off; at < off+op.size; at += 4 {
			delete(sh.marks, at)
		}
	}
}

// bytewise is race for part of a word, or one whose bytes have different histories.
func (d *watch) bytewise(w *warp, lane int, v *view, s *segment, cl *cell, word int, from uint64, first, last int,
	op *memOp, m mode) {
	if cl.more == nil || cl.more.bytes == nil {
		bytes := &[4]cell{*cl, *cl, *cl, *cl}
		if cl.more != nil {
			for i := range bytes {
				own := *cl.more
				own.list = slices.Clone(own.list)
				bytes[i].more = &own
			}
		}
		*cl = cell{more: &accesses{bytes: bytes}}
	}
	bytes := cl.more.bytes
	for i := first; i < last; i++ {
		b := &bytes[i-word]
		if other, ok := d.races.touch(&w.watched.clock, lane, v, b, from, m, w.at, d.races.limits[1]); !ok {
			d.raced(w, lane, v, s, b, i, from, m, other)
		}
		if m.scope() != weakScope {
			b.observe(&w.watched.clock, lane, op)
		}
	}
	if last-first == 4 && m == writes {
		*cl = bytes[0]
	}
}

// raced ends the launch, unless lanes of one instruction write the same value.
func (d *watch) raced(w *warp, lane int, v *view, s *segment, cl *cell, off int, from uint64, m mode, other conflict) {
	c := &w.watched.clock
	if m == writes && w.watched.twice>>lane&1 != 0 && other.mode == writes && other.at == w.at && other.thread/warpSize == c.id &&
		cl.time == c.epoch && cl.first.time == 0 && cl.more.none() {
		cl.thread = c.id*warpSize + uint32(lane)
		return
	}
	d.raceFault(w, lane, s, off, m, d.who(other.thread, other.at, other.mode))
}

func (d *watch) raceFault(w *warp, lane int, s *segment, off int, m mode, other *Access) {
	f := w.faultOf(Race, lane, s.space, s.base+uint64(off), "")
	what := func(a *Access) string {
		switch {
		case a.Write && a.Atomic:
			return "strong write"
		case a.Write:
			return "write"
		case a.Atomic:
			return "strong read"
		}
		return "read"
	}
	me := &Access{Write: m&writes != 0, Atomic: m.scope() != weakScope}
	f.Other = other
	f.Detail = fmt.Sprintf("this %s and an earlier %s by another thread have no order: %s at offset %d", what(me), what(other),
		s.name, off)
	panic(f)
}
