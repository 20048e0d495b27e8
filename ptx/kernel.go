package ptx

import (
	"fmt"
	"path"
	"runtime"
	"strings"
	"sync"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/ir"
)

// Kernel is a kernel under construction. It belongs to one goroutine.
type Kernel struct {
	m      *Module
	name   string
	pos    ir.Pos
	params []ir.Var
	vars   []ir.Var
	bounds ir.Bounds

	regs   []register // by provisional number; 0 is none
	views  []ir.Reg   // the register that each view shows; 0 is none
	body   []instr
	scopes []*scope
	guard  *value // of When
	labels int
	region int  // counts labels: within one, code is straight
	dead   bool // what would come now is never reached
}

// register is a register with what is known of it.
type register struct {
	typ     *typeInfo
	pos     ir.Pos
	uses    int
	mutable bool
	ignore  bool   // may go unused
	what    string // for messages, if it is not the result of an instruction
}

// instr is an instruction with what the checks need. One without Op only marks where views begin.
type instr struct {
	ir.Instr
	defs   []*value // results
	reads  []int32  // views that are read
	gens   []int32  // views that begin after the instruction
	assign *value   // of a move to a variable: what is moved
	drop   bool     // to be left out if no result is used
	sure   bool     // a guarded write that completes an unguarded one
	fresh  bool     // what it reads and writes need not be set before
}

// value is what a [Reg] stands for.
type value struct {
	k     *Kernel // nil for immediates
	bits  uint64  // of an immediate
	reg   ir.Reg
	scope *scope
	view  int32   // 0, or what makes it stale when the variable changes
	def   int     // index in the body, -1 if unknown
	of    *Kernel // that a constant of ConstIn is for
	what  string  // why it is none, for messages
}

// scope is a block of code. What it defines is known in it and in those inside.
type scope struct {
	depth   int
	symbols map[string]*value // addresses already in registers
	loop    *loop
}

// Error is a mistake in the use of the builder.
type Error struct {
	Kernel string // "" for one of the module
	Pos    ir.Pos // of the line outside this package that made it
	Msg    string
}

func (e *Error) Error() string {
	if e.Kernel == "" {
		return fmt.Sprintf("ptx: %s: %s", e.Pos, e.Msg)
	}
	return fmt.Sprintf("ptx: %s: kernel %s: %s", e.Pos, e.Kernel, e.Msg)
}

// Unwrap is [compute.ErrArgument].
func (e *Error) Unwrap() error { return compute.ErrArgument }

// here is the folder of this package, as the compiler names it.
var here = func() string {
	_, file, _, _ := runtime.Caller(0)
	return path.Dir(file)
}()

// outside tells a line that is not this package's own. Functions' names do not: a closure that is inlined has the name of where it went.
func outside(f runtime.Frame) bool {
	return path.Dir(f.File) != here || strings.HasSuffix(f.File, "_test.go")
}

// caller is the innermost line outside this package.
func caller() ir.Pos {
	for skip, n := 2, 6; ; skip, n = skip+n, 2*n {
		pcs := make([]uintptr, n)
		got := runtime.Callers(skip, pcs)
		for _, pc := range pcs[:got] {
			if f := frameAt(pc); f.outside {
				return f.pos
			}
		}
		if got < n {
			return ir.Pos{}
		}
	}
}

// line is caller unless nobody wants to know.
func (k *Kernel) line() ir.Pos {
	if k.m.bare {
		return ir.Pos{}
	}
	return caller()
}

// frame is a line of Go.
type frame struct {
	pos     ir.Pos
	outside bool // of this package
}

// frames keeps lines by what [runtime.Callers] calls them: kernels are built by loops, and looking a line up takes long.
var frames sync.Map // uintptr → frame

func frameAt(pc uintptr) frame {
	if f, ok := frames.Load(pc); ok {
		return f.(frame)
	}
	g, _ := runtime.CallersFrames([]uintptr{pc}).Next()
	f := frame{ir.Pos{File: g.File, Line: g.Line}, g.File != "" && outside(g)}
	frames.Store(pc, f)
	return f
}

// Errorf records a mistake of the caller's, with the line at fault, which Build returns.
func (k *Kernel) Errorf(format string, args ...any) { k.fail(format, args...) }

func (k *Kernel) fail(format string, args ...any) { k.failAt(caller(), format, args...) }

func (k *Kernel) failAt(pos ir.Pos, format string, args ...any) {
	k.m.errs = append(k.m.errs, &Error{Kernel: k.name, Pos: pos, Msg: fmt.Sprintf(format, args...)})
}

// arg is what can become an operand: Reg, Ptr, and the types below.
type arg interface{ arg(u *uses) ir.Operand }

// uses collects what an instruction reads and defines while its operands are made.
type uses struct {
	k     *Kernel
	views []int32
	defs  []*value
}

type (
	result  struct{ v *value }  // a register that is written
	raw     ir.Operand          // any other operand
	lit     int64               // an integer
	vector  []arg               // {…}
	pair    [2]arg              // …|…
	address struct{ p pointer } // [base+off]
)

func (r result) arg(u *uses) ir.Operand {
	u.defs = append(u.defs, r.v)
	return ir.R(r.v.reg)
}
func (r raw) arg(*uses) ir.Operand      { return ir.Operand(r) }
func (n lit) arg(*uses) ir.Operand      { return ir.Int(int64(n)) }
func (v vector) arg(u *uses) ir.Operand { return ir.Vec(u.all(v)...) }
func (p pair) arg(u *uses) ir.Operand {
	return ir.Operand{Kind: ir.PairOperand, Elems: u.all(p[:])}
}

func (u *uses) all(args []arg) []ir.Operand {
	ops := make([]ir.Operand, len(args))
	for i, a := range args {
		ops[i] = a.arg(u)
	}
	return ops
}

// sink is the operand for a result that nobody wants.
var sink = raw{Kind: ir.SinkOperand}

// read is the operand for a value of type t.
func (u *uses) read(v *value, t *typeInfo) ir.Operand {
	k := u.k
	if v == nil {
		k.fail("a %s that was never defined is used", t.name)
		return ir.Int(0)
	}
	if v.what != "" {
		k.fail("%s", v.what)
		return ir.Int(0)
	}
	if v.k == nil {
		if !t.held {
			return t.immediate(v.bits)
		}
		v = k.move(v, t)
	}
	if !k.knows(v) {
		return ir.Int(0)
	}
	k.regs[v.reg].uses++
	if v.view != 0 {
		u.views = append(u.views, v.view)
	}
	return ir.R(v.reg)
}

// knows tells, and reports if not, whether a value may be used here.
func (k *Kernel) knows(v *value) bool {
	if v.k != k {
		k.fail("a value of kernel %s is used in kernel %s", v.k.name, k.name)
		return false
	}
	if s := v.scope; s.depth >= len(k.scopes) || k.scopes[s.depth] != s {
		k.fail("a value is used outside the block that defines it (at %s); what outlives a block has to be a Var", k.regs[v.reg].pos)
		return false
	}
	return true
}

// move puts an immediate into a register.
func (k *Kernel) move(v *value, t *typeInfo) *value {
	r := k.fresh(t)
	k.emit("mov."+t.bits.String(), result{r}, raw(ir.Int(int64(v.bits))))
	return r
}

// fresh is a value in a new register.
func (k *Kernel) fresh(t *typeInfo) *value {
	k.regs = append(k.regs, register{typ: t, pos: k.line()})
	return &value{k: k, reg: ir.Reg(len(k.regs) - 1), scope: k.scopes[len(k.scopes)-1], def: -1}
}

// emit adds an instruction under the guard of When, if there is one.
func (k *Kernel) emit(code string, args ...arg) *instr {
	in := k.prepare(code, args)
	if k.guard != nil {
		k.guarded(in, k.guard, false)
	}
	return k.add(in)
}

// prepare makes an instruction without adding it.
func (k *Kernel) prepare(code string, args []arg) *instr {
	op, mods, _ := ir.SplitOpcode(code)
	u := &uses{k: k}
	in := &instr{Instr: ir.Instr{Pos: k.line(), Op: op, Mods: mods}}
	if len(args) > 0 {
		in.Args = u.all(args)
	}
	in.reads, in.defs = u.views, u.defs
	return in
}

// guarded puts a guard before the instruction.
func (k *Kernel) guarded(in *instr, p *value, not bool) {
	u := &uses{k: k}
	in.Guard = ir.Guard{Reg: u.read(p, &infos.pred).Reg, Not: not}
	in.reads = append(in.reads, u.views...)
}

func (k *Kernel) add(in *instr) *instr {
	if k.dead {
		k.failAt(in.Pos, "this code is never reached")
		k.dead = false
	}
	for _, v := range in.defs {
		v.def = len(k.body)
	}
	k.body = append(k.body, *in)
	return &k.body[len(k.body)-1]
}

// def emits an instruction whose one result is its first operand.
func def[T Type](k *Kernel, code string, args ...arg) Reg[T] {
	v := k.fresh(typeOf[T]())
	k.emit(code, append([]arg{result{v}}, args...)...)
	return Reg[T]{v}
}

// several makes n registers, as values and as operands to be written.
func several[T Type](k *Kernel, n int) ([]Reg[T], vector) {
	regs, out := make([]Reg[T], n), make(vector, n)
	for i := range regs {
		regs[i] = Reg[T]{k.fresh(typeOf[T]())}
		out[i] = result{regs[i].v}
	}
	return regs, out
}

// operands are values as operands.
func operands[T Type](regs []Reg[T]) vector {
	v := make(vector, len(regs))
	for i := range regs {
		v[i] = regs[i]
	}
	return v
}

// block runs f in a scope of its own.
func (k *Kernel) block(l *loop, f func()) {
	if l == nil {
		l = k.scopes[len(k.scopes)-1].loop
	}
	k.scopes = append(k.scopes, &scope{depth: len(k.scopes), loop: l})
	f()
	k.scopes = k.scopes[:len(k.scopes)-1]
}

// symbol is the address of a variable in a register.
func (k *Kernel) symbol(name string, t *typeInfo) *value {
	for _, s := range k.scopes {
		if v := s.symbols[name]; v != nil {
			return v
		}
	}
	v := k.fresh(t)
	k.regs[v.reg].ignore = true
	in := k.emit("mov."+t.op.String(), result{v}, raw{Kind: ir.SymOperand, Sym: name})
	in.drop = true
	if k.guard == nil {
		s := k.scopes[len(k.scopes)-1]
		if s.symbols == nil {
			s.symbols = map[string]*value{}
		}
		s.symbols[name] = v
	}
	return v
}

// specialOperand is a special register.
func specialOperand(name string) ir.Operand {
	return ir.Operand{Kind: ir.SpecialOperand, Sym: "%" + name}
}
