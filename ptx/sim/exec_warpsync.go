package sim

import (
	"math/bits"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/eval"
	"github.com/wavelane/wavelane/ptx/ir"
)

// compileBarWarp compiles bar.warp.sync.
func compileBarWarp(c *compiler, in *ir.Instr) (step, error) {
	return c.synced(in, 0, func(*warp, uint32) {})
}

func compileActivemask(c *compiler, in *ir.Instr) (step, error) {
	if len(in.Args) != 1 {
		return nil, c.unsupported(in)
	}
	d, err := c.dst(in, &in.Args[0])
	return func(w *warp, m uint32) { w.setAll(d, m, uint64(m)) }, err
}

// setAll writes the same value in all lanes of m.
func (w *warp) setAll(d ref, m uint32, v uint64) {
	for ; m != 0; m &= m - 1 {
		w.set(d, first(m), v)
	}
}

// synced makes a step that the lanes named by a member mask execute together: argument i, or the lanes that happen to be in
// the group if i is beyond the arguments.
func (c *compiler) synced(in *ir.Instr, i int, s step) (step, error) {
	if i >= len(in.Args) {
		return s, nil
	}
	mask, err := c.src(in, &in.Args[i], ir.B32)
	if err != nil {
		return nil, err
	}
	known, immediate := uint32(in.Args[i].Bits), in.Args[i].Kind == ir.IntOperand
	s = c.inside(s)
	do := func(w *warp, m uint32) {
		if w.mon != nil {
			w.mon.meet(w, m)
		}
		s(w, m)
		w.next()
	}
	c.flow()
	return func(w *warp, m uint32) {
		if m == 0 {
			w.next()
			return
		}
		named, same := uint64(known), immediate
		if !same {
			named, same = w.uniform(mask, m)
		}
		if same {
			w.checkMembers(m, uint32(named))
			w.together(m, uint32(named), 0, do)
			return
		}
		w.meetings(m, mask, do)
	}, nil
}

func (w *warp) checkMembers(m, named uint32) {
	if bad := m &^ named; bad != 0 {
		w.fault(WarpSync, first(bad), 0, 0, "lanes %#08x execute it, and the member mask %#08x does not name them", bad, named)
	}
	if bad := named &^ w.exists; bad != 0 && w.exists != full && named != full {
		w.fault(WarpSync, first(m), 0, 0, "the member mask %#08x names lanes %#08x, which the warp does not have", named, bad)
	}
}

// meetings is together for lanes that name different masks: each mask's lanes on their own.
func (w *warp) meetings(m uint32, mask ref, do step) {
	at, act := w.at, w.act
	w.place(act&^m, at+1)
	for m != 0 {
		named := uint32(w.get(mask, first(m)))
		same := uint32(0)
		for l := m; l != 0; l &= l - 1 {
			if uint32(w.get(mask, first(l))) == named {
				same |= 1 << first(l)
			}
		}
		m &^= same
		w.act, w.at = same, at
		w.checkMembers(same, named)
		w.together(same, named, 0, do)
		w.place(w.act, w.at)
	}
	w.scatter()
}

// dstPair is a destination d or d|p; the second drops what is written where there is only one.
func (c *compiler) dstPair(in *ir.Instr) (d, p ref, err error) {
	o := &in.Args[0]
	if o.Kind != ir.PairOperand {
		d, err = c.dst(in, o)
		return d, none, err
	}
	if len(o.Elems) != 2 {
		return none, none, c.errorf(in, compute.ErrArgument, "a destination of %d registers", len(o.Elems))
	}
	if d, err = c.dst(in, &o.Elems[0]); err == nil {
		p, err = c.dst(in, &o.Elems[1])
	}
	return d, p, err
}

// compileShuffle compiles shfl[.sync].mode.b32 d[|p], a, b, c[, mask].
func compileShuffle(c *compiler, in *ir.Instr) (step, error) {
	if len(in.Args) < 4 {
		return nil, c.errorf(in, compute.ErrArgument, "operands are missing")
	}
	mode := in.First("up", "down", "bfly", "idx")
	if mode == "" {
		return nil, c.unsupported(in)
	}
	d, p, err := c.dstPair(in)
	if err != nil {
		return nil, err
	}
	var src [3]ref
	for i := range src {
		if src[i], err = c.src(in, &in.Args[i+1], ir.B32); err != nil {
			return nil, err
		}
	}
	// As a rule all lanes take part and shuffle by the same operand: then it is known from where each reads.
	var sources *[warpSize]shuffled
	if in.Args[3].Kind == ir.IntOperand && d.bank == bank32 && d.bits == 32 && d.i >= 0 && src[0].bank == bank32 {
		sources = shuffles(mode, uint32(in.Args[3].Bits))
	}
	return c.synced(in, 4, func(w *warp, m uint32) {
		if sources != nil && m == full {
			b, same := in.Args[2].Bits, in.Args[2].Kind == ir.IntOperand
			if !same {
				b, same = w.uniform(src[1], m)
			}
			if same {
				known := &sources[b&31]
				x, r := w.r32[src[0].i], &w.r32[d.i] // a copy: they may be the same
				for l := range r {
					r[l] = x[known.from[l]&31]
				}
				if p.i >= 0 {
					w.p[p.i] = known.inRange
				}
				return
			}
		}
		var old [warpSize]uint64
		for l := range old {
			old[l] = w.get(src[0], l)
		}
		for rest := m; rest != 0; rest &= rest - 1 {
			l := first(rest)
			from, in := shuffleSource(mode, l, int(w.get(src[1], l)&31), uint32(w.get(src[2], l)))
			w.set(p, l, uint64(b2i(in)))
			if m>>from&1 == 0 && w.mon != nil {
				w.fault(WarpSync, l, 0, 0, "lane %d reads from lane %d, which does not take part", l, from)
			}
			w.set(d, l, old[from])
		}
	})
}

// shuffled is from where the lanes read, and which of the places are in range.
type shuffled struct {
	from    [warpSize]uint8
	inRange uint32
}

// shuffles are those for each distance or lane of a mode, with a clamp and segment mask.
func shuffles(mode ir.Mod, c uint32) *[warpSize]shuffled {
	all := new([warpSize]shuffled)
	for b := range all {
		for l := range warpSize {
			from, in := shuffleSource(mode, l, b, c)
			all[b].from[l] = uint8(from)
			all[b].inRange |= uint32(b2i(in)) << l
		}
	}
	return all
}

// shuffleSource is the lane from which a lane reads, and whether it is in range. c is the clamp, with the segment mask from
// bit 8.
func shuffleSource(mode ir.Mod, lane, b int, c uint32) (from int, in bool) {
	clamp, segment := int(c&31), int(c>>8&31)
	top := lane&segment | clamp&^segment
	switch mode {
	case "up":
		from = lane - b
		in = from >= top
	case "down":
		from = lane + b
		in = from <= top
	case "bfly":
		from = lane ^ b
		in = from <= top
	default:
		from = lane&segment | b&^segment
		in = from <= top
	}
	if !in {
		from = lane
	}
	return from, in
}

// compileVote compiles vote[.sync].mode d, {!}p[, mask].
func compileVote(c *compiler, in *ir.Instr) (step, error) {
	if len(in.Args) < 2 {
		return nil, c.errorf(in, compute.ErrArgument, "operands are missing")
	}
	d, err := c.dst(in, &in.Args[0])
	if err != nil {
		return nil, err
	}
	p, err := c.src(in, &in.Args[1], ir.Pred)
	if err != nil {
		return nil, err
	}
	if p.bank != bankP {
		return nil, c.errorf(in, compute.ErrArgument, "the source is no predicate")
	}
	not := -uint32(b2i(in.Args[1].Not))
	mode := in.First("all", "any", "uni", "ballot")
	if mode == "" {
		return nil, c.unsupported(in)
	}
	return c.synced(in, 2, func(w *warp, m uint32) {
		v := (w.p[p.i] ^ not) & m
		r := v
		switch mode {
		case "all":
			r = uint32(b2i(v == m))
		case "any":
			r = uint32(b2i(v != 0))
		case "uni":
			r = uint32(b2i(v == m || v == 0))
		}
		w.setAll(d, m, uint64(r))
	})
}

// compileMatch compiles match.any.sync.type d, a, mask and match.all.sync.type d[|p], a, mask.
func compileMatch(c *compiler, in *ir.Instr) (step, error) {
	if len(in.Args) != 3 {
		return nil, c.unsupported(in)
	}
	d, p, err := c.dstPair(in)
	if err != nil {
		return nil, err
	}
	a, err := c.src(in, &in.Args[1], in.Type(0))
	if err != nil {
		return nil, err
	}
	all := in.Op == "match.all.sync"
	return c.synced(in, 2, func(w *warp, m uint32) {
		var r [warpSize]uint32
		for i := m; i != 0; i &= i - 1 {
			v := w.get(a, first(i))
			for j := m; j != 0; j &= j - 1 {
				if w.get(a, first(j)) == v {
					r[first(i)] |= 1 << first(j)
				}
			}
		}
		for i := m; i != 0; i &= i - 1 {
			v := r[first(i)]
			if all && v != m {
				v = 0
			}
			w.set(d, first(i), uint64(v))
			w.set(p, first(i), uint64(b2i(v != 0)))
		}
	})
}

// compileRedux compiles redux.sync.op.type d, a, mask. Of floats there are the least and the largest: NaN counts where .NaN says so.
func compileRedux(c *compiler, in *ir.Instr) (step, error) {
	if len(in.Args) != 3 {
		return nil, c.unsupported(in)
	}
	d, err := c.dst(in, &in.Args[0])
	if err != nil {
		return nil, err
	}
	a, err := c.src(in, &in.Args[1], in.Type(0))
	if err != nil {
		return nil, err
	}
	op := in.First("add", "min", "max", "and", "or", "xor")
	t := in.Type(0)
	mods := []ir.Mod{t.Mod()}
	if in.Has(ir.NaN) {
		mods = []ir.Mod{ir.NaN, t.Mod()}
	}
	f, err := eval.Of(&ir.Instr{Op: ir.Op(op), Mods: mods, Args: make([]ir.Operand, 3)})
	if err != nil || t.Bits() != 32 {
		return nil, c.unsupported(in)
	}
	keep := ^uint64(0)
	if in.Has(ir.Abs) {
		keep = 1<<31 - 1
	}
	return c.synced(in, 2, func(w *warp, m uint32) {
		v := w.get(a, first(m)) & keep
		if t.IsFloat() {
			v = f(v, v, 0, 0) // NaN as the others give it
		}
		for i := m & (m - 1); i != 0; i &= i - 1 {
			v = f(v, w.get(a, first(i))&keep, 0, 0)
		}
		w.setAll(d, m, v)
	})
}

// compileElect compiles elect.sync d|p, mask: the lowest lane is the leader.
func compileElect(c *compiler, in *ir.Instr) (step, error) {
	if len(in.Args) != 2 || in.Args[0].Kind != ir.PairOperand {
		return nil, c.unsupported(in)
	}
	d, p, err := c.dstPair(in)
	if err != nil {
		return nil, err
	}
	return c.synced(in, 1, func(w *warp, m uint32) {
		leader := bits.TrailingZeros32(m)
		w.setAll(d, m, uint64(leader))
		for i := m; i != 0; i &= i - 1 {
			w.set(p, first(i), uint64(b2i(first(i) == leader)))
		}
	})
}
