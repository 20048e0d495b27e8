package sim

import (
	"fmt"
	"strings"

	"github.com/wavelane/wavelane/ptx/ir"
)

// Values without definition. Each register has a bit per lane that says whether its value is one: results of
// instructions are defined if all their sources are (selp: if the chosen one is), whatever the values; so `and` with 0
// of something undefined is undefined. What is undefined may be computed with, shuffled, stored and loaded: kernels do
// so with padding. It is a fault where it decides something: as an address, guard, index of a branch, operand of a
// barrier or an atomic operation, and when the host reads it.

// originKey is a register of a lane.
type originKey struct {
	bank uint8
	lane uint8
	i    int32
}

// originOf is why a register has no value.
func (w *warp) originOf(r ref, lane int) *origin {
	if o := w.watched.origins[originKey{r.bank, uint8(lane), r.i}]; o != nil {
		return o
	}
	name := "a register"
	for _, f := range w.prog.funcs {
		for i, g := range f.regs {
			if i > 0 && g.bank == r.bank && g.i == r.i {
				name = "register " + f.ir.Regs[i].Name
			}
		}
	}
	return &origin{what: name + " has never been written", by: w.access(lane)}
}

// undefine notes that lanes of dst have no value because those of src have none.
func (w *warp) undefine(dst []ref, lanes uint32, src []ref) {
	for m := lanes; m != 0; m &= m - 1 {
		lane := first(m)
		for _, r := range src {
			if w.def[r.bank][r.i]>>lane&1 == 0 {
				w.setOrigin(dst, lane, w.originOf(r, lane))
				break
			}
		}
	}
}

// setOrigin says of whole registers why they have no value.
func (w *warp) setOrigin(dst []ref, lane int, o *origin) {
	w.setOriginOf(dst, lane, o, 0)
}

// setOriginOf says it of some bytes, those of a value that was loaded: what copies structures copies their padding too,
// and what is copied keeps the value it has.
func (w *warp) setOriginOf(dst []ref, lane int, o *origin, bytes uint8) {
	if o != nil && o.bytes != bytes {
		o = &origin{o.what, o.by, bytes}
	}
	if w.watched.origins == nil {
		w.watched.origins = map[originKey]*origin{}
	}
	for _, r := range dst {
		w.watched.origins[originKey{r.bank, uint8(lane), r.i}] = o
	}
}

// undefinedBytes are those of the n low bytes of a register without value that have none.
func (w *warp) undefinedBytes(r ref, lane, n int) uint32 {
	if o := w.watched.origins[originKey{r.bank, uint8(lane), r.i}]; o != nil && o.bytes != 0 {
		return uint32(o.bytes) & byteMask(0, n)
	}
	return byteMask(0, n)
}

// demand reports a register that has no value in some of the lanes. Where the launch goes on, it has one from here on.
func (w *warp) demand(r ref, m uint32, what string) {
	if bad := m &^ w.def[r.bank][r.i]; bad != 0 {
		w.lacks(r, bad, what)
	}
}

func (w *warp) lacks(r ref, bad uint32, what string) {
	lane := first(bad)
	o := w.originOf(r, lane)
	f := w.faultOf(Uninitialized, lane, 0, 0, fmt.Sprintf("%s has no value in lanes %#08x: %s", what, bad, o.what))
	f.Other = o.by
	w.report(f)
	w.def[r.bank][r.i] |= bad
}

// operands are the registers of an instruction, by what happens to them. Constants and special registers always have
// values.
type operands struct {
	values, addresses, written []ref
}

func (c *compiler) operands(in *ir.Instr) operands {
	var o operands
	add := func(to *[]ref, r ir.Reg) {
		if x := c.fn.regs[r]; x.i >= 0 {
			*to = append(*to, x)
		}
	}
	for i := range in.Args {
		a := &in.Args[i]
		switch role := in.Role(i); {
		case a.Kind == ir.AddrOperand:
			a.Regs(func(r ir.Reg) { add(&o.addresses, r) })
		case role == ir.Write:
			a.Regs(func(r ir.Reg) { add(&o.written, r) })
		default:
			a.Regs(func(r ir.Reg) { add(&o.values, r) })
			if role == ir.ReadWrite {
				a.Regs(func(r ir.Reg) { add(&o.written, r) })
			}
		}
	}
	return o
}

// checked wraps the step of an instruction in a program compiled for checking: sources are tested, destinations marked.
func (c *compiler) checked(in *ir.Instr, s step) step {
	if c.cfg.Checks&CheckRace != 0 && in.Op == "st" {
		s = c.overlaps(in, s)
	}
	if c.cfg.Checks&CheckInit == 0 {
		return s
	}
	if in.Op == "wgmma.mma_async" { // accumulators need values only with scale-d: it looks itself
		return s
	}
	o := c.operands(in)
	switch k := in.Kind(); k {
	case ir.Arithmetic, ir.Move, ir.SetPred, ir.Carry:
		switch {
		case in.Op == "selp" && len(in.Args) == 4 && in.Args[3].Kind == ir.RegOperand:
			return c.chosen(in, o, s)
		case len(o.written) == 1 && len(o.values) <= 3:
			return pure(o, s)
		}
		return pureMany(o, s)
	case ir.WarpSync:
		if in.Op == "shfl.sync" || in.Op == "shfl" {
			return c.shuffled(in, o, s)
		}
		return gathered(o, s)
	case ir.Matrix:
		switch {
		case isVolta(in):
			return multipliedByVolta(o, s)
		case in.Op == "mma" && len(in.Args) == 4:
			return c.multiplied(in, o, s)
		case strings.HasPrefix(string(in.Op), "mma.sp") && len(in.Args) == 6:
			return c.chosenBy(in, c.multiplied(in, o, s))
		case len(o.addresses) == 0:
			return gathered(o, s)
		}
	case ir.TensorMemory:
		if in.Op == "tcgen05.st" { // what it stores may have no value
			return demanding(ir.Store, o, s)
		}
	case ir.Call: // arguments are looked at where they are used; results come with ret
		o.values, o.written = nil, nil
		if at := calleeArg(in); at < len(in.Args) && in.Args[at].Kind == ir.RegOperand {
			o.addresses = []ref{c.fn.regs[in.Args[at].Reg]}
		}
	}
	return demanding(in.Kind(), o, s)
}

// pure is the wrapper of instructions with one result.
func pure(o operands, s step) step {
	d, src := o.written[0], o.values
	slow := func(w *warp, m, def uint32) {
		if bad := m &^ def; bad != 0 {
			w.undefine(o.written, bad, src)
		}
		p := &w.def[d.bank][d.i]
		*p = *p&^m | def&m
	}
	switch len(src) {
	case 0:
		return func(w *warp, m uint32) {
			s(w, m)
			w.def[d.bank][d.i] |= m
		}
	case 1:
		a := src[0]
		return func(w *warp, m uint32) {
			def := w.def[a.bank][a.i]
			if m&^def != 0 {
				slow(w, m, def)
				s(w, m)
				return
			}
			s(w, m)
			w.def[d.bank][d.i] |= m
		}
	case 2:
		a, b := src[0], src[1]
		return func(w *warp, m uint32) {
			def := w.def[a.bank][a.i] & w.def[b.bank][b.i]
			if m&^def != 0 {
				slow(w, m, def)
				s(w, m)
				return
			}
			s(w, m)
			w.def[d.bank][d.i] |= m
		}
	}
	a, b, e := src[0], src[1], src[2]
	return func(w *warp, m uint32) {
		def := w.def[a.bank][a.i] & w.def[b.bank][b.i] & w.def[e.bank][e.i]
		if m&^def != 0 {
			slow(w, m, def)
			s(w, m)
			return
		}
		s(w, m)
		w.def[d.bank][d.i] |= m
	}
}

// pureMany is the wrapper of instructions with any number of results, all of which depend on all sources.
func pureMany(o operands, s step) step {
	return func(w *warp, m uint32) {
		def := full
		for _, r := range o.values {
			def &= w.def[r.bank][r.i]
		}
		if m&^def != 0 {
			w.undefine(o.written, m&^def, o.values)
		}
		s(w, m)
		for _, r := range o.written {
			p := &w.def[r.bank][r.i]
			*p = *p&^m | def&m
		}
	}
}

// chosen is the wrapper of selp: only the chosen source matters.
func (c *compiler) chosen(in *ir.Instr, o operands, s step) step {
	side := func(i int) (ref, bool) {
		a := &in.Args[i]
		if a.Kind != ir.RegOperand {
			return ref{}, false
		}
		return c.fn.regs[a.Reg], true
	}
	yes, hasYes := side(1)
	no, hasNo := side(2)
	p, not := c.fn.regs[in.Args[3].Reg], uint32(0)
	if in.Args[3].Not {
		not = full
	}
	return func(w *warp, m uint32) {
		def, takes := w.def[bankP][p.i], w.p[p.i]^not
		if hasYes {
			def &= w.def[yes.bank][yes.i] | ^takes
		}
		if hasNo {
			def &= w.def[no.bank][no.i] | takes
		}
		if bad := m &^ def; bad != 0 {
			lost := []ref{p}
			for lanes := bad; lanes != 0; lanes &= lanes - 1 {
				one := lanes & -lanes
				switch {
				case w.def[bankP][p.i]&one == 0:
					lost[0] = p
				case takes&one != 0:
					lost[0] = yes
				default:
					lost[0] = no
				}
				w.undefine(o.written, one, lost)
			}
		}
		s(w, m)
		for _, r := range o.written {
			d := &w.def[r.bank][r.i]
			*d = *d&^m | def&m
		}
	}
}

// inside wraps a step that lanes of a warp execute once they have come together.
func (c *compiler) inside(s step) step {
	c.wrapped = true
	return c.wrap(c.in.in, s)
}

// wrap adds to a step what checks and counters ask for.
func (c *compiler) wrap(in *ir.Instr, s step) step {
	if c.checks {
		s = c.guarded(in, c.checked(in, s))
	}
	if c.cfg.Counters {
		s = c.counted(in, s)
	}
	return s
}

// gathered is the wrapper of instructions whose results depend on the sources of all lanes.
func gathered(o operands, s step) step {
	return func(w *warp, m uint32) {
		lost := false
		for _, r := range o.values {
			if bad := m &^ w.def[r.bank][r.i]; bad != 0 && !lost {
				lost = true
				from := w.originOf(r, first(bad))
				for l := m; l != 0; l &= l - 1 {
					w.setOrigin(o.written, first(l), from)
				}
			}
		}
		s(w, m)
		for _, r := range o.written {
			w.def[r.bank][r.i] |= m
			if lost {
				w.def[r.bank][r.i] &^= m
			}
		}
	}
}

// shuffled is the wrapper of shfl: a result has a value if its source has.
func (c *compiler) shuffled(in *ir.Instr, o operands, s step) step {
	a, err := c.src(in, &in.Args[1], ir.B32)
	b, err2 := c.src(in, &in.Args[2], ir.B32)
	k, err3 := c.src(in, &in.Args[3], ir.B32)
	if err != nil || err2 != nil || err3 != nil || len(o.written) == 0 {
		return pureMany(o, s)
	}
	mode := in.First("up", "down", "bfly", "idx")
	return func(w *warp, m uint32) {
		w.demand(b, m, "an operand")
		w.demand(k, m, "an operand")
		def := full
		if has := w.def[a.bank][a.i]; m&^has != 0 {
			def = 0
			var origins [warpSize]*origin
			for l := m; l != 0; l &= l - 1 {
				lane := first(l)
				from, _ := shuffleSource(mode, lane, int(w.get(b, lane)&31), uint32(w.get(k, lane)))
				if has>>from&1 != 0 {
					def |= 1 << lane
				} else {
					origins[lane] = w.originOf(a, from)
				}
			}
			for l := m &^ def; l != 0; l &= l - 1 {
				w.setOrigin(o.written[:1], first(l), origins[first(l)])
			}
		}
		s(w, m)
		for i, r := range o.written {
			p := &w.def[r.bank][r.i]
			*p |= m
			if i == 0 {
				*p &^= m &^ def
			}
		}
	}
}

// multiplied is the wrapper of mma and of mma.sp: what lies in rows of A without value, or columns of B, is lost in D. Lanes 4i to
// 4i+3 have rows i and i+8 of A and D and column i of B; lanes with the same remainder j by 4 have columns 2j and 2j+1
// of D.
func (c *compiler) multiplied(in *ir.Instr, o operands, s step) step {
	var src [3][]ref
	for i := range src {
		in.Args[i+1].Regs(func(r ir.Reg) { src[i] = append(src[i], c.fn.regs[r]) })
	}
	return func(w *warp, m uint32) {
		var bad [3]uint32
		for i, list := range src {
			for _, r := range list {
				bad[i] |= ^w.def[r.bank][r.i]
			}
		}
		lost := bad[2]
		if bad[0]|bad[1] != 0 {
			for i := range 8 {
				if bad[0]>>(4*i)&15 != 0 {
					lost |= 15 << (4 * i)
				}
				if bad[1]>>(4*i)&15 != 0 {
					lost |= 0x11111111 << (i / 2)
				}
			}
		}
		if lost != 0 {
			var from *origin
			for i, list := range src {
				for _, r := range list {
					if lanes := bad[i] &^ w.def[r.bank][r.i]; lanes != 0 && from == nil {
						from = w.originOf(r, first(lanes))
					}
				}
			}
			for l := lost; l != 0; l &= l - 1 {
				w.setOrigin(o.written, first(l), from)
			}
		}
		s(w, m)
		for _, r := range o.written {
			w.def[r.bank][r.i] = ^lost
		}
	}
}

// demanding is the wrapper of instructions whose addresses, and but for stores operands, have to have values.
func demanding(k ir.Kind, o operands, s step) step {
	texture := k == ir.Texture
	stores := k == ir.Store || k == ir.Matrix || texture && len(o.written) == 0
	return func(w *warp, m uint32) {
		for _, r := range o.addresses {
			w.demand(r, m, "the address")
		}
		if !stores {
			for _, r := range o.values {
				w.demand(r, m, "an operand")
			}
			if k != ir.Load && !texture {
				for _, r := range o.written { // before: lanes that wait get results later
					w.def[r.bank][r.i] |= m
				}
				s(w, m)
				return
			}
		}
		if stores {
			bad := uint32(0)
			for i, r := range o.values[:min(len(o.values), len(w.poison))] {
				w.poison[i] = m &^ w.def[r.bank][r.i]
				bad |= w.poison[i]
			}
			if bad != 0 {
				w.watched.storing = o.values
			}
		}
		s(w, m)
		if w.poison == ([len(w.poison)]uint32{}) {
			for _, r := range o.written[:min(len(o.written), len(w.poison))] {
				w.def[r.bank][r.i] |= m
			}
			return
		}
		for i, r := range o.written[:min(len(o.written), len(w.poison))] {
			lost := w.poison[i] & m
			p := &w.def[r.bank][r.i]
			*p = *p&^lost | m&^lost
			for ; lost != 0; lost &= lost - 1 {
				part := &w.watched.parts[i][first(lost)]
				w.setOriginOf(o.written[i:i+1], first(lost), w.watched.loaded[first(lost)], *part)
				*part = 0
			}
		}
		clear(w.poison[:])
		w.watched.storing = nil
	}
}

// overlaps looks at a store for lanes that write to the same place: with different values they race.
func (c *compiler) overlaps(in *ir.Instr, s step) step {
	strong := in.First(ir.Volatile, ir.Relaxed, ir.Release) != ""
	if strong || in.Space() == ir.LocalSpace || in.Space() == ir.ParamSpace {
		return s
	}
	size := uint64(in.Type(0).Size() * in.Width())
	addr, err := c.addr(in, &in.Args[0])
	values, err2 := c.list(in, &in.Args[1], in.Type(0))
	if err != nil || err2 != nil { // the handler has said so
		return s
	}
	bits := in.Type(0).Bits()
	return func(w *warp, m uint32) {
		var at [warpSize]uint64
		rising, last := true, uint64(0)
		for l := m; l != 0; l &= l - 1 {
			lane := first(l)
			at[lane] = addr.of(w, lane)
			rising = rising && at[lane] >= last
			last = at[lane] + size
		}
		if !rising {
			w.watched.twice = w.twice(m, &at, size, values, bits)
		}
		w.watched.values = values
		s(w, m)
		w.watched.twice, w.watched.values = 0, nil
	}
}

// repeats tells whether a lane stores what is in memory already.
func (w *warp) repeats(lane int, op *memOp, data []byte) bool {
	values := w.watched.values
	for i, v := range values {
		size := op.size / len(values)
		if x := data[i*size:]; load(x, size) != w.get(v, lane)&(^uint64(0)>>max(0, 64-8*size)) {
			return false
		}
	}
	return len(values) > 0
}

// twice returns the lanes that write what another one writes too, to the same place.
func (w *warp) twice(m uint32, at *[warpSize]uint64, size uint64, values []ref, bits int) uint32 {
	mask := ^uint64(0) >> max(0, 64-bits)
	both := uint32(0)
	for l := m; l != 0; l &= l - 1 {
		i := first(l)
	others:
		for r := l & (l - 1); r != 0; r &= r - 1 {
			j := first(r)
			if at[i] != at[j] {
				continue
			}
			for _, v := range values {
				if (w.get(v, i)^w.get(v, j))&mask != 0 {
					continue others
				}
			}
			both |= 1<<i | 1<<j
		}
	}
	return both
}
