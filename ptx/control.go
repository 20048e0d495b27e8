package ptx

import (
	"cmp"
	"fmt"

	"github.com/wavelane/wavelane/ptx/ir"
)

// label is a place in the code.
type label struct {
	name string
	used bool
}

// loop is where Continue and Break lead.
type loop struct{ next, end *label }

func (k *Kernel) label(stem, end string) *label {
	return &label{name: fmt.Sprintf("$%s%d%s", stem, k.labels, end)}
}

// place puts a label here, if anything leads to it.
func (k *Kernel) place(l *label) {
	if !l.used {
		return
	}
	k.region++
	k.dead = false
	k.body = append(k.body, instr{Instr: ir.Instr{Pos: caller(), Op: ir.OpLabel, Args: []ir.Operand{ir.LabelOf(l.name)}}})
}

// jump goes to a label, always.
func (k *Kernel) jump(l *label) {
	if k.dead {
		return
	}
	l.used = true
	k.add(k.prepare("bra", []arg{raw(ir.LabelOf(l.name))}))
	k.dead = true
}

// jumpIf goes to a label if p, or if not p.
func (k *Kernel) jumpIf(p Reg[bool], not bool, l *label) {
	l.used = true
	in := k.prepare("bra", []arg{raw(ir.LabelOf(l.name))})
	k.guarded(in, p.v, not)
	k.add(in)
}

// flow reports control flow where there may be none.
func (k *Kernel) flow(what string) {
	if k.guard != nil {
		k.fail("%s inside When", what)
	}
}

// If runs then where p is true, and otherwise, if given, where it is false.
func (k *Kernel) If(p Reg[bool], then func(), otherwise ...func()) {
	k.flow("If")
	k.labels++
	end := k.label("if", "_end")
	to := end
	if len(otherwise) > 0 {
		to = k.label("if", "_else")
	}
	k.jumpIf(p, true, to)
	k.block(nil, then)
	if len(otherwise) > 0 {
		k.jump(end)
		k.place(to)
		for _, f := range otherwise {
			k.block(nil, f)
		}
	}
	k.place(end)
}

// When runs f with every instruction under the predicate p: what is cheaper than a branch around a few stores or loads.
// Control flow is not allowed inside, and a Var set there counts as set only if it was before.
func (k *Kernel) When(p Reg[bool], f func()) {
	outer := k.guard
	if outer != nil {
		p = k.both(outer, p)
	}
	k.guard = inRegister(k, p).v
	k.block(nil, f)
	k.guard = outer
}

// both is p where outer is true, which is the guard now, and false elsewhere, where p may have no value.
func (k *Kernel) both(outer *value, p Reg[bool]) Reg[bool] {
	k.guard = nil
	r := &value{k: k, reg: k.move(&value{}, &infos.pred).reg, scope: k.scopes[len(k.scopes)-1], def: -1}
	k.guard = outer
	k.emit("mov.pred", result{r}, p).sure = true
	r.def = -1
	return Reg[bool]{r}
}

// LoopOption changes how a loop is made.
type LoopOption struct {
	unroll      int // 0 leaves it as it is
	noUnroll    bool
	atLeastOnce bool
}

// Unroll makes each iteration of a loop run its body n times, with a second loop for the rest.
func Unroll(n int) LoopOption { return LoopOption{unroll: n} }

// NoUnroll keeps the compiler from unrolling the loop.
func NoUnroll() LoopOption { return LoopOption{noUnroll: true} }

// AtLeastOnce says that the loop has an iteration: it does not ask before the first.
func AtLeastOnce() LoopOption { return LoopOption{atLeastOnce: true} }

// For runs body with i = first, first + by … as long as i < limit; with i > limit if by is a negative constant. i + by must not
// overflow. Each of the three is a Reg[T] or a constant.
func For[T Index](k *Kernel, first, limit, by any, body func(i Reg[T]), opts ...LoopOption) {
	from, to, step := lift[T](k, first), lift[T](k, limit), lift[T](k, by)
	k.flow("For")
	o := LoopOption{unroll: 1}
	for _, x := range opts {
		o.unroll, o.noUnroll, o.atLeastOnce = cmp.Or(x.unroll, o.unroll), o.noUnroll || x.noUnroll, o.atLeastOnce || x.atLeastOnce
	}
	stride, fixed := constantOf(step)
	if fixed && stride == 0 {
		k.fail("a loop of step 0")
		return
	}
	if o.unroll > 1 && !(fixed && stride > 0) {
		k.fail("unrolling a loop whose step is no positive constant")
		return
	}
	f := forLoop[T]{k: k, to: to, step: step, body: body, keep: o.noUnroll, goOn: LT, stop: GE}
	if fixed && stride < 0 {
		f.goOn, f.stop = GT, LE
	}
	k.labels++
	f.id = k.labels
	f.end = f.label("_end")
	f.i = VarOf(k, from)
	begin, known := constantOf(from)
	last, bounded := constantOf(to)
	if !o.atLeastOnce && !(known && bounded && (stride > 0 && begin < last || stride < 0 && begin > last)) {
		k.jumpIf(f.i.Get().SetP(f.stop, to), false, f.end)
	}
	if o.unroll > 1 {
		whole := known && bounded && ceilDiv(last-begin, stride)%int64(o.unroll) == 0
		f.unrolled(int64(o.unroll), stride, whole)
		if whole {
			k.place(f.end)
			return
		}
	}
	f.run("", func(next *label) { f.iteration(next, f.i.Get()); k.place(next) }, step)
	k.place(f.end)
}

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }

// constantOf is an immediate's value. uint64 beyond int64 counts as unknown.
func constantOf[T Index](r Reg[T]) (int64, bool) {
	bits, ok := r.constant()
	t := typeOf[T]().op
	if n := 64 - t.Bits(); t.IsSigned() {
		return int64(bits<<n) >> n, ok
	}
	return int64(bits), ok && int64(bits) >= 0
}

// immIndex is a constant of an index type.
func immIndex[T Index](n int64) Reg[T] { return Imm(T(n)) }

type forLoop[T Index] struct {
	k          *Kernel
	i          *Var[T]
	to, step   Reg[T]
	body       func(Reg[T])
	goOn, stop Cmp
	end        *label
	keep       bool
	id         int // in the names of its labels
}

func (f *forLoop[T]) label(end string) *label {
	return &label{name: fmt.Sprintf("$for%d%s", f.id, end)}
}

// iteration runs the body once.
func (f *forLoop[T]) iteration(next *label, i Reg[T]) {
	f.k.block(&loop{next: next, end: f.end}, func() { f.body(Reg[T]{f.k.inScope(i.v)}) })
}

// inScope is v as a value of the present block, so that it is not known outside.
func (k *Kernel) inScope(v *value) *value {
	if v.k == nil {
		return v
	}
	c := *v
	c.scope = k.scopes[len(k.scopes)-1]
	return &c
}

// run is a loop of iterations, each of which moves on by step.
func (f *forLoop[T]) run(suffix string, iteration func(next *label), step Reg[T]) {
	k := f.k
	top, next := f.label(suffix), f.label(suffix+"_next")
	top.used = true
	k.place(top)
	if f.keep {
		k.add(&instr{Instr: ir.Instr{Pos: caller(), Op: ir.OpPragma, Args: []ir.Operand{{Kind: ir.TextOperand, Sym: "nounroll"}}}})
	}
	iteration(next)
	if k.dead {
		return
	}
	f.i.Set(f.i.Get().Add(step))
	k.jumpIf(f.i.Get().SetP(f.goOn, f.to), false, top)
}

// unrolled is the loop of n bodies an iteration, which is left with at most n-1 iterations to go, at least one unless whole.
func (f *forLoop[T]) unrolled(n, stride int64, whole bool) {
	k := f.k
	rest := f.label("_rest")
	f.run("_unrolled", func(next *label) {
		if !whole {
			left := f.to.Sub(f.i.Get())
			k.jumpIf(left.SetP(LE, immIndex[T]((n-1)*stride)), false, rest)
		}
		for j := range n {
			i := f.i.Get()
			if j > 0 {
				i = i.Add(immIndex[T](j * stride))
				k.regs[i.v.reg].ignore = true
				k.body[i.v.def].drop = true
			}
			own := f.label(fmt.Sprintf("_next%d", j))
			f.iteration(own, i)
			k.place(own)
			if k.dead {
				return
			}
		}
	}, immIndex[T](n*stride))
	if !whole {
		k.jump(f.end)
		k.place(rest)
	}
}

// While runs body as long as condition is true. It is evaluated before each iteration; what it defines is known in body.
func (k *Kernel) While(condition func() Reg[bool], body func()) {
	k.iterations("while", func(end *label) {
		k.jumpIf(condition(), true, end)
		k.block(nil, body)
	})
}

// Loop runs body until it breaks.
func (k *Kernel) Loop(body func()) { k.iterations("loop", func(*label) { body() }) }

func (k *Kernel) iterations(stem string, iteration func(end *label)) {
	k.flow("a loop")
	k.labels++
	top, end := k.label(stem, ""), k.label(stem, "_end")
	top.used = true
	k.place(top)
	k.block(&loop{next: top, end: end}, func() { iteration(end) })
	k.jump(top)
	k.place(end)
}

// where is a label of the loop around.
func (k *Kernel) where(what string, pick func(*loop) *label) *label {
	k.flow(what)
	l := k.scopes[len(k.scopes)-1].loop
	if l == nil {
		k.fail("%s outside of a loop", what)
		return &label{name: "$nowhere"}
	}
	return pick(l)
}

func endOf(l *loop) *label  { return l.end }
func nextOf(l *loop) *label { return l.next }

// Break leaves the innermost loop. What follows in the block would never be reached, and is an error of Build.
func (k *Kernel) Break() { k.jump(k.where("Break", endOf)) }

// BreakIf leaves the innermost loop if p.
func (k *Kernel) BreakIf(p Reg[bool]) { k.jumpIf(p, false, k.where("BreakIf", endOf)) }

// BreakUnless leaves the innermost loop if not p.
func (k *Kernel) BreakUnless(p Reg[bool]) { k.jumpIf(p, true, k.where("BreakUnless", endOf)) }

// Continue begins the next iteration of the innermost loop.
func (k *Kernel) Continue() { k.jump(k.where("Continue", nextOf)) }

// ContinueIf begins the next iteration of the innermost loop if p.
func (k *Kernel) ContinueIf(p Reg[bool]) { k.jumpIf(p, false, k.where("ContinueIf", nextOf)) }

// Return ends the thread.
func (k *Kernel) Return() {
	k.flow("Return")
	k.emit("ret")
	k.dead = true
}

// ReturnIf ends the thread if p.
func (k *Kernel) ReturnIf(p Reg[bool]) {
	in := k.prepare("ret", nil)
	k.guarded(in, p.v, false)
	k.flow("ReturnIf")
	k.add(in)
}

// Trap aborts the launch.
func (k *Kernel) Trap() {
	k.emit("trap")
	k.dead = k.guard == nil
}

// TrapIf aborts the launch if p.
func (k *Kernel) TrapIf(p Reg[bool]) { k.When(p, func() { k.emit("trap") }) }

// Pragma gives the compiler a hint.
func (k *Kernel) Pragma(text string) {
	k.add(&instr{Instr: ir.Instr{Pos: caller(), Op: ir.OpPragma, Args: []ir.Operand{{Kind: ir.TextOperand, Sym: text}}}})
}
