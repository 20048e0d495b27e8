// Package ir is the form in which everything here holds PTX: what the builder makes, the parser reads, the passes rewrite, the
// analyser looks at and the software GPU executes.
//
// It is PTX's own form: a module of variables and functions, a function of typed registers and a flat list of instructions, an
// instruction of an opcode and operands. Nothing is interpreted away, so that printing and parsing are each other's inverse; what
// the parts of an opcode mean is in the table of forms ([Form]) and in package eval.
//
// A module is plain data: it may be read from several goroutines, and belongs to one while it is changed. Passes that change
// copy first ([Module.Clone]).
package ir

import (
	"fmt"
	"reflect"
	"slices"
	"sort"
)

// Pos is where something was written: a line of PTX, or the line of Go that called the builder.
type Pos struct {
	File string
	Line int // from 1; 0 if unknown
	Col  int // from 1; 0 if unknown
}

// String is file:line:col, as far as known.
func (p Pos) String() string {
	switch {
	case p.Line == 0:
		return p.File
	case p.Col == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	case p.File == "":
		return fmt.Sprintf("%d:%d", p.Line, p.Col)
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col)
}

// Version is a version of PTX.
type Version struct{ Major, Minor int }

// String is "8.0".
func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// Less orders versions.
func (v Version) Less(w Version) bool {
	return v.Major < w.Major || v.Major == w.Major && v.Minor < w.Minor
}

// Target is an architecture: 90 with suffix "a" is sm_90a.
type Target struct {
	SM     int
	Suffix string // "", "a" (that architecture only) or "f" (its family)
}

// String is "sm_90a".
func (t Target) String() string { return fmt.Sprintf("sm_%d%s", t.SM, t.Suffix) }

// Module is a translation unit.
type Module struct {
	Version     Version
	Target      Target
	Options     []string // further words of .target, such as "debug"
	AddressSize int      // 64, or 32
	Vars        []Var    // .global, .const, and .shared at module level
	Funcs       []*Func
	Aliases     []Alias
	Lines       []Line // by Line.At; where a compiler has said what the text comes from
}

// Line says where the instructions of a line of PTX and of those that follow, up to the next Line, come from: a place in the source,
// and where the function that it lies in was inlined, innermost first. From is nil where nothing is known.
type Line struct {
	At   Pos // in the PTX, without column
	From []Pos
}

// Source is where an instruction with a position comes from in the source that was compiled to this module, innermost call first;
// nil if the module does not say.
func (m *Module) Source(p Pos) []Pos {
	i := sort.Search(len(m.Lines), func(i int) bool { return m.Lines[i].At.Line > p.Line }) - 1
	if i < 0 || m.Lines[i].At.File != p.File {
		return nil
	}
	return m.Lines[i].From
}

// Alias is a second name of a function, for other modules: calls here name the function itself. The name is that of a declaration
// among the functions.
type Alias struct{ Name, Of string }

// Space is a state space.
type Space uint8

// The spaces. NoSpace stands for generic addressing.
const (
	NoSpace Space = iota
	RegSpace
	GlobalSpace
	SharedSpace        // of the block; shared::cta too
	SharedClusterSpace // shared::cluster: of any block of the cluster
	LocalSpace
	ParamSpace
	ConstSpace
)

var spaces = [...]Mod{"", "reg", Global, Shared, SharedCluster, Local, Param, Const}

// String is the space's name as PTX writes it, "generic" for NoSpace.
func (s Space) String() string {
	if s == NoSpace {
		return "generic"
	}
	return string(spaces[s])
}

// SpaceNamed is the space that a part of an opcode names, NoSpace if it names none.
func SpaceNamed(m Mod) Space {
	switch m {
	case SharedCTA:
		return SharedSpace
	case "param::entry", "param::func":
		return ParamSpace
	case "":
		return NoSpace
	}
	return Space(max(0, slices.Index(spaces[:], m)))
}

// Linkage says who sees a function or a variable.
type Linkage uint8

// The linkages.
const (
	Internal Linkage = iota
	Visible
	Extern
	WeakLinkage
	Common
)

var linkages = [...]string{"", ".visible ", ".extern ", ".weak ", ".common "}

// Var is a variable, a parameter or a return value in memory.
type Var struct {
	Pos     Pos
	Name    string
	Space   Space
	Linkage Linkage
	Type    Type
	Vec     int   // 2 or 4 for .v2, .v4; 0 otherwise
	Align   int   // as declared; 0 if not
	Dims    []int // of an array; 0 as the first one leaves it open (extern shared memory). nil for a scalar
	Init    []Init
	Fields  []string // of a texture, sampler or surface: "filter_mode = linear"
	Managed bool     // .attribute(.managed): in memory that the host sees too
	// Ptr and its like, on a parameter: ".ptr.global.align 4"
	Ptr      bool
	PtrSpace Space
	PtrAlign int
}

// Init is one element of a variable's initial value. What is missing at the end is zero.
type Init struct {
	Bits    uint64 // of the element's type
	Sym     string // or the address of a symbol, plus Bits
	Generic bool   // as a generic address: generic(sym)
	Mask    uint64 // the byte of the address that is meant: 0xFF, 0xFF00 …; 0 for all of it
}

// Size is the number of bytes of the variable, 0 for one left open.
func (v *Var) Size() int {
	n := v.Type.Size() * max(1, v.Vec)
	for _, d := range v.Dims {
		n *= d
	}
	return n
}

// Alignment is the declared one or, without it, the natural one.
func (v *Var) Alignment() int {
	if v.Align > 0 {
		return v.Align
	}
	return max(1, v.Type.Size()*max(1, v.Vec))
}

// Func is a kernel (.entry) or a device function (.func).
type Func struct {
	Pos     Pos
	Name    string
	Entry   bool
	Linkage Linkage
	NoRet   bool  // .noreturn
	Rets    []Var // .func only; in .param or .reg space. A Var in RegSpace names the register of Regs with its name
	Params  []Var // likewise
	// Bounds is for kernels.
	Bounds Bounds
	// Regs are the registers in the order in which the body first mentions them; Regs[0] is none. Names are unique.
	Regs []RegDecl
	// Vars are .shared, .local and .param variables declared inside, names unique in the function.
	Vars []Var
	// Body is nil for a mere declaration.
	Body []Instr
}

// Bounds are what a kernel says about its launches.
type Bounds struct {
	MaxThreads       [3]int // .maxntid; 0, 0, 0 if not given
	ReqThreads       [3]int // .reqntid
	MinBlocks        int    // .minnctapersm
	MaxRegs          int    // .maxnreg
	ReqCluster       [3]int // .reqnctapercluster
	ExplicitCluster  bool   // .explicitcluster
	MaxClusterBlocks int    // .maxclusterrank
}

// Threads is the largest number of threads in a block, or 0 if the kernel does not say.
func (b Bounds) Threads() int {
	for _, d := range [][3]int{b.ReqThreads, b.MaxThreads} {
		if d[0] > 0 {
			return d[0] * max(1, d[1]) * max(1, d[2])
		}
	}
	return 0
}

// Reg is a register of a function: an index into its Regs. 0 is none.
type Reg int32

// RegDecl is the declaration of a register.
type RegDecl struct {
	Name string // with its percent sign, if it has one
	Type Type
}

// Guard is the predicate before an instruction.
type Guard struct {
	Reg Reg // 0: none
	Not bool
}

// Instr is an instruction, or a label or directive among them (Kind Directive).
type Instr struct {
	Pos   Pos
	Guard Guard
	Op    Op
	Mods  []Mod
	Args  []Operand
}

// OperandKind says what an operand is.
type OperandKind uint8

// The kinds of operands, with the fields they use.
const (
	NoOperand      OperandKind = iota
	RegOperand                 // Reg; Not for a negated predicate; Neg and Part in video instructions
	IntOperand                 // Bits: a 64-bit integer in two's complement
	F32Operand                 // Bits: 0fXXXXXXXX
	F64Operand                 // Bits: 0dXXXXXXXXXXXXXXXX, and decimal literals
	SpecialOperand             // Sym: "%tid.x"
	SymOperand                 // Sym + Off: address of a variable, or a function
	LabelOperand               // Sym
	AddrOperand                // [Reg + Off], [Sym + Off] or [Off]; Elems: what follows a comma, a tensor's coordinates
	VecOperand                 // {Elems}
	PairOperand                // Elems[0] | Elems[1]
	ListOperand                // (Elems), in calls
	SinkOperand                // _
	TextOperand                // Sym: "text" of a directive
)

// Operand is an operand of an instruction.
type Operand struct {
	Kind  OperandKind
	Not   bool
	Neg   bool   // -r
	Part  string // r.b0, r.h10: the bytes or halves of the register that are meant
	Reg   Reg
	Bits  uint64
	Sym   string
	Off   int64
	Elems []Operand
}

// R is a register as operand.
func R(r Reg) Operand { return Operand{Kind: RegOperand, Reg: r} }

// Int is an integer as operand.
func Int(v int64) Operand { return Operand{Kind: IntOperand, Bits: uint64(v)} }

// LabelOf is a label as operand.
func LabelOf(name string) Operand { return Operand{Kind: LabelOperand, Sym: name} }

// Addr is [r + off] as operand.
func Addr(r Reg, off int64) Operand { return Operand{Kind: AddrOperand, Reg: r, Off: off} }

// AddrOf is [sym + off] as operand.
func AddrOf(sym string, off int64) Operand { return Operand{Kind: AddrOperand, Sym: sym, Off: off} }

// Vec is {e…} as operand.
func Vec(e ...Operand) Operand { return Operand{Kind: VecOperand, Elems: e} }

// Regs calls f with every register in the operand.
func (o *Operand) Regs(f func(Reg)) {
	if o.Reg != 0 {
		f(o.Reg)
	}
	for i := range o.Elems {
		o.Elems[i].Regs(f)
	}
}

// Func returns the function with the name, or nil.
func (m *Module) Func(name string) *Func {
	for _, f := range m.Funcs {
		if f.Name == name {
			return f
		}
	}
	return nil
}

// Clone is a deep copy.
func (m *Module) Clone() *Module {
	c := *m
	c.Options, c.Aliases, c.Lines = slices.Clone(m.Options), slices.Clone(m.Aliases), slices.Clone(m.Lines)
	c.Vars = cloneVars(m.Vars)
	c.Funcs = make([]*Func, len(m.Funcs))
	for i, f := range m.Funcs {
		c.Funcs[i] = f.Clone()
	}
	return &c
}

// Clone is a deep copy.
func (f *Func) Clone() *Func {
	c := *f
	c.Rets, c.Params, c.Vars = cloneVars(f.Rets), cloneVars(f.Params), cloneVars(f.Vars)
	c.Regs = slices.Clone(f.Regs)
	c.Body = slices.Clone(f.Body)
	for i := range c.Body {
		c.Body[i] = c.Body[i].Clone()
	}
	return &c
}

// Clone is a deep copy.
func (in Instr) Clone() Instr {
	in.Mods = slices.Clone(in.Mods)
	in.Args = cloneOperands(in.Args)
	return in
}

func cloneOperands(s []Operand) []Operand {
	s = slices.Clone(s)
	for i := range s {
		if s[i].Elems != nil {
			s[i].Elems = cloneOperands(s[i].Elems)
		}
	}
	return s
}

func cloneVars(s []Var) []Var {
	s = slices.Clone(s)
	for i := range s {
		s[i].Dims, s[i].Init, s[i].Fields = slices.Clone(s[i].Dims), slices.Clone(s[i].Init), slices.Clone(s[i].Fields)
	}
	return s
}

// Equal tells whether two modules are the same but for positions and lines of source.
func Equal(a, b *Module) bool { return reflect.DeepEqual(a.anywhere(), b.anywhere()) }

// anywhere is a copy without positions, in which empty slices are nil.
func (m *Module) anywhere() *Module {
	c := m.Clone()
	c.Lines = nil
	if len(c.Options) == 0 {
		c.Options = nil
	}
	if len(c.Aliases) == 0 {
		c.Aliases = nil
	}
	c.Vars = varsAnywhere(c.Vars)
	for _, f := range c.Funcs {
		f.Pos = Pos{}
		f.Rets, f.Params, f.Vars = varsAnywhere(f.Rets), varsAnywhere(f.Params), varsAnywhere(f.Vars)
		for i := range f.Body {
			in := &f.Body[i]
			in.Pos = Pos{}
			if len(in.Mods) == 0 {
				in.Mods = nil
			}
			if len(in.Args) == 0 {
				in.Args = nil
			}
		}
	}
	return c
}

func varsAnywhere(s []Var) []Var {
	if len(s) == 0 {
		return nil
	}
	for i := range s {
		s[i].Pos = Pos{}
	}
	return s
}
