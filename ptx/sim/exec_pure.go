package sim

import (
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/eval"
	"github.com/wavelane/wavelane/ptx/ir"
)

// compilePure compiles what package eval knows.
func compilePure(c *compiler, in *ir.Instr) (step, error) {
	if len(in.Args) < 2 {
		return nil, c.errorf(in, compute.ErrArgument, "operands are missing")
	}
	var src []ref
	var not uint64 // bit i: source i is a negated predicate
	for i := 1; i < len(in.Args); i++ {
		if in.Op == "lop3" && i == 4 {
			continue // the table is in the function
		}
		r, err := c.src(in, &in.Args[i], eval.ArgType(in, i))
		if err != nil {
			return nil, err
		}
		if in.Args[i].Not {
			not |= 1 << len(src)
		}
		src = append(src, r)
	}
	d, p, err := c.dstPair(in)
	if err != nil {
		return nil, err
	}
	single := in.Args[0].Kind != ir.PairOperand
	if in.Kind() == ir.Carry {
		return c.compileCarry(in, d, src)
	}
	if not == 0 && single && !(c.cfg.Perturb && in.Has(ir.Approx)) {
		c.vector(opOf(in, d, src))
		if s := fast(in, d, src); s != nil {
			return s, nil
		}
	}
	f, err := eval.Of(in)
	if err == nil && c.cfg.Perturb && (in.Has(ir.Approx) || in.Has(ir.Full)) {
		f, err = eval.Perturbed(in, c.rng)
	}
	if err != nil {
		return nil, c.errorf(in, compute.ErrUnsupported, "%v", err)
	}
	for len(src) < 4 {
		src = append(src, none)
	}
	if not != 0 || !single {
		return generalStep(f, [2]ref{d, p}, [4]ref(src), not), nil
	}
	return pureStep(f, d, [4]ref(src)), nil
}

// generalStep computes any function of up to four operands, with a second destination in bit 32 and negated predicates.
func generalStep(f eval.Func, dst [2]ref, src [4]ref, not uint64) step {
	return func(w *warp, m uint32) {
		for ; m != 0; m &= m - 1 {
			l := first(m)
			v := f(w.get(src[0], l)^not&1, w.get(src[1], l)^not>>1&1, w.get(src[2], l)^not>>2&1, w.get(src[3], l)^not>>3&1)
			w.set(dst[0], l, v)
			w.set(dst[1], l, v>>32)
		}
	}
}

// pureStep computes a function of up to four operands with one destination. (Not inlined: see fast.go.)
//
//go:noinline
func pureStep(f eval.Func, d ref, s [4]ref) step {
	if s[2].i < 0 && s[3].i < 0 {
		return binaryStep(f, d, s[0], s[1])
	}
	return func(w *warp, m uint32) {
		for ; m != 0; m &= m - 1 {
			l := first(m)
			w.set(d, l, f(w.get(s[0], l), w.get(s[1], l), w.get(s[2], l), w.get(s[3], l)))
		}
	}
}

//go:noinline
func binaryStep(f eval.Func, d, a, b ref) step {
	all32 := func(r ref) bool { return r.bank == bank32 }
	if b.i < 0 {
		b = a
	}
	if all32(a) && all32(b) && d.bank == bank32 && d.bits == 32 {
		return func(w *warp, m uint32) {
			x, y, z := &w.r32[a.i], &w.r32[b.i], &w.r32[d.i]
			for ; m != 0; m &= m - 1 {
				l := first(m) & 31
				z[l] = uint32(f(uint64(x[l]), uint64(y[l]), 0, 0))
			}
		}
	}
	if all32(a) && all32(b) && d.bank == bankP {
		return func(w *warp, m uint32) {
			x, y := &w.r32[a.i], &w.r32[b.i]
			v := w.p[d.i] &^ m
			for ; m != 0; m &= m - 1 {
				l := first(m) & 31
				v |= uint32(f(uint64(x[l]), uint64(y[l]), 0, 0)) & 1 << l
			}
			w.p[d.i] = v
		}
	}
	return func(w *warp, m uint32) {
		for ; m != 0; m &= m - 1 {
			l := first(m)
			w.set(d, l, f(w.get(a, l), w.get(b, l), 0, 0))
		}
	}
}

// compileCarry compiles what reads or writes the carry flag.
func (c *compiler) compileCarry(in *ir.Instr, d ref, src []ref) (step, error) {
	f, err := eval.Carry(in)
	if err != nil {
		return nil, c.errorf(in, compute.ErrUnsupported, "%v", err)
	}
	for len(src) < 3 {
		src = append(src, none)
	}
	return func(w *warp, m uint32) {
		for ; m != 0; m &= m - 1 {
			l := first(m)
			v, cc := f(w.get(src[0], l), w.get(src[1], l), w.get(src[2], l), w.cc>>l&1 != 0)
			w.set(d, l, v)
			w.cc &^= 1 << l
			w.cc |= uint32(b2i(cc)) << l
		}
	}, nil
}

// compileMove compiles mov: of registers and immediates, of addresses, of special registers, and between a register and its
// parts.
func compileMove(c *compiler, in *ir.Instr) (step, error) {
	if len(in.Args) != 2 {
		return nil, c.unsupported(in)
	}
	t := in.Type(0)
	d, s := &in.Args[0], &in.Args[1]
	if d.Kind == ir.VecOperand || s.Kind == ir.VecOperand || t == ir.B128 {
		return c.compileParts(in, t)
	}
	dst, err := c.dst(in, d)
	if err != nil {
		return nil, err
	}
	if s.Kind == ir.SpecialOperand && volatileSpecials[s.Sym] != nil {
		read := volatileSpecials[s.Sym]
		return func(w *warp, m uint32) {
			for v := read(w); m != 0; m &= m - 1 {
				w.set(dst, first(m), v)
			}
		}, nil
	}
	if s.Kind == ir.SymOperand || s.Kind == ir.AddrOperand {
		if off, ok := c.frameAddress(s.Sym); ok {
			return func(w *warp, m uint32) {
				for ; m != 0; m &= m - 1 {
					l := first(m)
					w.set(dst, l, uint64(w.lanes[l].frame)+off+uint64(s.Off))
				}
			}, nil
		}
		if s.Kind == ir.AddrOperand {
			return nil, c.unsupported(in)
		}
	}
	src, err := c.src(in, s, t)
	if err != nil {
		return nil, err
	}
	if s.Not {
		return nil, c.errorf(in, compute.ErrArgument, "a negated source")
	}
	if dst.i < 0 {
		return func(*warp, uint32) {}, nil
	}
	if f := c.fastMove(dst, src); f != nil {
		return f, nil
	}
	return func(w *warp, m uint32) {
		for ; m != 0; m &= m - 1 {
			l := first(m)
			w.set(dst, l, w.get(src, l))
		}
	}, nil
}

// compileParts compiles mov.b64 d, {a, b} and its like, in both directions. A 128-bit register is two slots.
func (c *compiler) compileParts(in *ir.Instr, t ir.Type) (step, error) {
	parts := func(o *ir.Operand) ([]ref, int, error) {
		if o.Kind == ir.VecOperand {
			if n := len(o.Elems); n == 0 || t.Bits()%n != 0 {
				return nil, 0, c.errorf(in, compute.ErrArgument, "%d parts of %s", n, t)
			}
			w := t.Bits() / len(o.Elems)
			refs, err := c.list(in, o, map[int]ir.Type{8: ir.B8, 16: ir.B16, 32: ir.B32, 64: ir.B64}[w])
			return refs, w, err
		}
		refs, err := c.list(in, o, t)
		if err == nil && t == ir.B128 {
			lo, hi := refs[0], refs[0]
			hi.i++
			return []ref{lo, hi}, 64, nil
		}
		return refs, t.Bits(), err
	}
	dst, dw, err := parts(&in.Args[0])
	if err != nil {
		return nil, err
	}
	src, sw, err := parts(&in.Args[1])
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(dst, func(r ref) bool { return r.bank == bankP }) {
		return nil, c.unsupported(in)
	}
	return func(w *warp, m uint32) {
		for ; m != 0; m &= m - 1 {
			l := first(m)
			var v [2]uint64
			for i, r := range src {
				v[i*sw/64] |= w.get(r, l) & (1<<sw - 1) << (i * sw % 64)
			}
			for i, r := range dst {
				w.set(r, l, v[i*dw/64]>>(i*dw%64)&(1<<dw-1))
			}
		}
	}, nil
}
