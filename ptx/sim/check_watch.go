package sim

import (
	"fmt"
	"math/bits"

	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/sim/internal/shadow"
)

// watch is the monitor of a GPU: it knows of each byte whether something has been written to it, and in which order
// accesses happen.
type watch struct {
	checks Checks
	grid   *grid
	races  *shadow.Races
	// What threads synchronise on: barriers of blocks, and other keys.
	barriers map[*barrier]*shadow.Barrier
	posts    map[any]*shadow.Post
}

// newMonitor returns what watches a GPU with the configuration, nil if nothing does.
func newMonitor(cfg Config) monitor {
	if cfg.Checks == 0 {
		return nil
	}
	return &watch{checks: cfg.Checks, races: shadow.NewRaces()}
}

// warpWatch is what the monitor keeps for a warp.
type warpWatch struct {
	clock   shadow.Warp
	origins map[originKey]*origin // of values that are not defined, other than of registers never written
	loaded  [warpSize]*origin     // of what the last load found undefined
	parts   [8][warpSize]uint8    // and which bytes of element i; 0: all
	storing []ref                 // what is being stored, while some of it has no value
	twice   uint32                // lanes that write where others of the same instruction write the same value
	values  []ref                 // what a store writes
}

// shadowed is what the monitor knows of a segment.
type shadowed struct {
	shadow.Values
	history shadow.History
	origins map[int]*origin // of bytes that were written without a value
}

// origin is where a value without definition comes from.
type origin struct {
	what  string
	by    *Access
	bytes uint8 // of a register: which of its bytes have no value; 0: all
}

func (d *watch) shadow(s *segment) *shadowed {
	sh := s.shadow
	if sh == nil {
		sh = &shadowed{}
		s.shadow = sh
	}
	if sh.Bytes() < len(s.data) {
		sh.Resize(len(s.data))
		sh.history.Resize(sh.Bytes())
	}
	return sh
}

func (d *watch) begin(g *grid) {
	d.grid = g
	d.races.Begin((g.launch.Block.count()+warpSize-1)/warpSize, g.launch.Cluster.count())
	d.barriers, d.posts = map[*barrier]*shadow.Barrier{}, map[any]*shadow.Post{}
}

func (d *watch) end() { d.grid, d.barriers, d.posts = nil, nil, nil }

func (d *watch) started(w *warp) {
	x := &w.watched
	clear(x.origins)
	if w.index == 0 { // blocks and clusters are used again
		for i := range w.block.bars {
			delete(d.barriers, &w.block.bars[i])
		}
		if w.block.rank == 0 {
			delete(d.posts, any(w.block.cluster))
		}
	}
	// Blocks of a cluster follow each other.
	shape, id := w.block.grid.shape, w.block.cluster.id
	d.races.Start(&x.clock, id.X+shape.X*(id.Y+shape.Y*id.Z), w.block.rank, w.index, w.exists)
}

func (d *watch) allocated(s *segment) { s.shadow = nil }

func (d *watch) freed(s *segment) { s.shadow = nil }

func (d *watch) wrote(s *segment, off, n int) { d.shadow(s).Mark(off, n, true) }

func (d *watch) read(s *segment, off, n int) *Fault {
	if d.checks&CheckInit == 0 {
		return nil
	}
	sh := d.shadow(s)
	for i := 0; i < n; i += 32 {
		if m := sh.Undefined(off+i, min(32, n-i)); m != 0 {
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
	sh.Mark(off, n, false)
	if off == 0 && n == len(s.data) {
		d.races.Forget(&sh.history)
		sh.origins = nil
	}
}

func (d *watch) carry(to *segment, dst int, from *segment, src, n int) {
	known, sh := d.shadow(from), d.shadow(to)
	for i := 0; i < n; i += 32 {
		k := min(32, n-i)
		sh.Define(dst+i, k, known.Undefined(src+i, k))
		if known.origins != nil || sh.origins != nil {
			for j := i; j < i+k; j++ {
				sh.setOrigin(dst+j, known.origins[src+j])
			}
		}
	}
}

func (sh *shadowed) setOrigin(at int, o *origin) {
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
	sh := s.shadow
	if sh == nil || sh.Bytes() < len(s.data) {
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
func (d *watch) defined(w *warp, lane int, op *memOp, s *segment, sh *shadowed, off int, undef uint32) uint32 {
	switch {
	case op.atomic:
		if undef != 0 {
			d.undefinedFault(w, lane, nil, s, off, "an operand of the atomic operation has no value")
		}
		if bad := sh.Undefined(off, op.size); bad != 0 {
			o := d.memoryOrigin(w, lane, s, sh, off, op.size, off+bits.TrailingZeros32(bad))
			d.undefinedFault(w, lane, o, s, off, "the atomic operation meets bytes without a value")
			sh.Define(off, op.size, 0)
		}
	case op.write:
		sh.Define(off, op.size, undef)
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
		undef = sh.Undefined(off, op.size)
		if undef != 0 {
			w.watched.loaded[lane] = d.memoryOrigin(w, lane, s, sh, off, op.size, off+bits.TrailingZeros32(undef))
		}
		return undef
	}
	return 0
}

// memoryOrigin is why a byte that the current instruction reads has no value.
func (d *watch) memoryOrigin(w *warp, lane int, s *segment, sh *shadowed, off, size, at int) *origin {
	if o := sh.origins[at]; o != nil {
		return o
	}
	return &origin{what: fmt.Sprintf("byte %d of %s (%s address %#x), which nothing has written, as loaded", at, s.name, s.space,
		s.base+uint64(at)), by: w.readAt(lane, s, off, size)}
}

// readAt is the current instruction as it reads memory.
func (w *warp) readAt(lane int, s *segment, off, size int) *Access {
	a := w.access(lane)
	a.Space, a.Addr, a.Size = s.space, s.base+uint64(off), size
	return a
}

// undefinedFault reports that a value without definition matters.
func (d *watch) undefinedFault(w *warp, lane int, o *origin, s *segment, off int, format string, args ...any) {
	f := w.faultOf(Uninitialized, lane, ir.NoSpace, 0, fmt.Sprintf(format, args...))
	if s != nil {
		f.Space, f.Addr = s.space, s.base+uint64(off)
	}
	if o != nil {
		f.Detail += ": " + o.what
		f.Other = o.by
	}
	w.report(f)
}

// race notes an access for the order of accesses, and reports it if it races.
func (d *watch) race(w *warp, lane int, op *memOp, s *segment, sh *shadowed, off int) {
	a := shadow.Access{Size: op.size, At: w.at, Write: op.write, Atomic: op.atomic, Global: s.space == ir.GlobalSpace,
		Alike: w.watched.twice>>lane&1 != 0}
	if op.strong() {
		a.Scope = scopeOf(op.scope)
		a.Acquire = op.sem == ir.Acquire || op.sem == ir.AcqRel || op.sem == ir.SC
		a.Release = op.sem == ir.Release || op.sem == ir.AcqRel || op.sem == ir.SC
	}
	other, at, ok := d.races.Access(&w.watched.clock, lane, &sh.history, off, &a)
	if a.Repeats = !ok && w.repeats(lane, op, s.data[off:]); a.Repeats {
		other, at, ok = d.races.Access(&w.watched.clock, lane, &sh.history, off, &a)
	}
	if ok {
		return
	}
	f := w.faultOf(Race, lane, s.space, s.base+uint64(at), "")
	what := func(strong, write bool) string {
		kind := "read"
		if write {
			kind = "write"
		}
		if strong {
			kind = "strong " + kind
		}
		return kind
	}
	f.Other = d.who(other)
	f.Detail = fmt.Sprintf("this %s and an earlier %s by another thread have no order: %s at offset %d",
		what(a.Scope != shadow.Weak, a.Write), what(other.Strong, other.Write), s.name, at)
	f.Size, f.Write = op.size, op.write
	w.report(f)
}

// who describes the other access of a race.
func (d *watch) who(other shadow.Conflict) *Access {
	g := d.grid
	c, rank, thread := d.races.Locate(other.Thread)
	in := &g.prog.code[other.At]
	cluster, block, size := g.shape.at(c), g.launch.Cluster.at(rank), g.launch.Cluster
	return &Access{Kernel: g.prog.name, Instr: in.text(), Pos: in.in.Pos, Source: g.prog.module.ir.Source(in.in.Pos),
		Block:  Dim3{cluster.X*size.X + block.X, cluster.Y*size.Y + block.Y, cluster.Z*size.Z + block.Z},
		Thread: g.threadAt(thread), Write: other.Write, Atomic: other.Strong}
}
