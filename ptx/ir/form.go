package ir

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/wavelane/wavelane/compute"
)

// Form is one form of an instruction: the parts that may follow its root, its operands, and what it needs.
//
// The table is written in lines such as
//
//	add{.(rn rz rm rp)}{.ftz}{.sat}.f32   d s s
//	fma.rn{.ftz}.relu.(f16 f16x2)         d s s s   | 80 7.0
//
// Parts in braces may be left out, of those in parentheses one is to be chosen, and @80/7.0 behind one is what it needs more.
// The operands are described at [argument]. Behind the bar stand the least architecture and PTX version; without, they are
// those of [Oldest]. $words are abbreviations, see macros.
type Form struct {
	Op     Op
	Syntax string // the line of the table
	SM     Target
	PTX    Version

	parts []part
	args  []argument
}

// Oldest is what all PTX here needs at least: nothing older is supported by any assembler that still is.
var (
	OldestTarget  = Target{SM: 50}
	OldestVersion = Version{4, 0}
)

// part is a place in the opcode.
type part struct {
	optional bool
	alts     []alternative
}

// alternative is what may stand there: one part of the opcode, or several that belong together.
type alternative struct {
	mods []Mod
	sm   Target
	ptx  Version
}

// formsOfOp are the forms of a root, parsed when first asked for: a program uses few of them.
type formsOfOp struct {
	lines []string
	forms func() []*Form
}

// formTable is the table by roots.
var formTable = sync.OnceValue(func() map[Op]*formsOfOp {
	m := map[Op]*formsOfOp{}
	for _, text := range []string{arithmeticForms, logicForms, moveForms, convertForms, memoryForms, atomicForms, controlForms,
		warpForms, matrixForms, asyncForms, mbarrierForms} {
		for line := range strings.SplitSeq(text, "\n") {
			if line == "" || line[0] == '#' {
				continue
			}
			op, _, ok := SplitOpcode(fixedPart(line))
			if !ok {
				panic("table of forms: " + line)
			}
			of := m[op]
			if of == nil {
				of = &formsOfOp{}
				of.forms = sync.OnceValue(of.parse)
				m[op] = of
			}
			of.lines = append(of.lines, line)
		}
	}
	return m
})

func (of *formsOfOp) parse() []*Form {
	var forms []*Form
	for _, line := range of.lines {
		for _, l := range places(line) {
			forms = append(forms, parseForm(l))
		}
	}
	return forms
}

// fixedPart is the beginning of the opcode in a line, as far as there is no choice.
func fixedPart(line string) string {
	if i := strings.IndexAny(line, "{($ "); i >= 0 {
		line = line[:i]
	}
	return strings.TrimSuffix(line, ".")
}

// macros are the abbreviations of the table.
var macros = strings.NewReplacer(append(wgmmaShapes(),
	"$int", "u16 u32 u64 s16 s32 s64",
	"$ld", "b8 b16 b32 b64 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64",
	"$vec", vectors(),
	"$sel", "b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64",
	"$rnd", "rn rz rm rp",
	"$rint", "rni rzi rmi rpi",
	"$fcmp", "eq ne lt le gt ge equ neu ltu leu gtu geu num nan",
	"$sem", "relaxed@70/6.0 acquire@70/6.0",
	"$scope", "cta gpu sys cluster@90/7.8",
	"$shared", "shared shared::cta@50/7.8",
	"$order", "{.(relaxed@70/6.0 acquire@70/6.0 release@70/6.0 acq_rel@70/6.0)}"+atomicScope,
	"$releasing", "{.(relaxed@70/6.0 release@70/6.0)}"+atomicScope,
	"$released", "release.cta@80/8.0 release.cluster@90/8.0 relaxed.cta@90/8.6 relaxed.cluster@90/8.6",
	"$acquired", "acquire.cta@80/8.0 acquire.cluster@90/8.0 relaxed.cta@90/8.6 relaxed.cluster@90/8.6",
	"$reduced", "{.(weak relaxed.cta relaxed.cluster relaxed.gpu relaxed.sys acquire.gpu acquire.sys)}",
	"$priority", "L2::evict_last L2::evict_normal L2::evict_first L2::evict_unchanged",
	"$wshape", "m16n16k16 m8n32k16 m32n8k16",
	"$s8", "u8.u8 s8.s8 u8.s8@90a/8.4 s8.u8@90a/8.4",
	"$prefetch", "{.(L2::64B@75/7.4 L2::128B@75/7.4 L2::256B@80/7.4)}",
	"$hint", "{.L2::cache_hint@80/7.4}",
	"$pol", "s:u64@L2::cache_hint",
	"$evict", "{.(L1::evict_normal@70/7.4 L1::evict_unchanged@70/7.4 L1::evict_first@70/7.4 L1::evict_last@70/7.4 "+
		"L1::no_allocate@70/7.4)}",
	"$tx", "mbarrier::complete_tx::bytes",
	"$dim", "1d 2d 3d 4d 5d")...)

const atomicScope = "{.(cta@60/5.0 gpu@60/5.0 sys@60/5.0 cluster@90/7.8)}"

// places makes two lines of one with $place or $common: hints about caches go with global and generic addresses only. $common
// is without the local space.
func places(line string) []string {
	far := strings.NewReplacer("$place", "{.global}", "$common", "{.global}")
	near := strings.NewReplacer("$place", ".(local $shared shared::cluster@90/7.8)",
		"$common", ".($shared shared::cluster@90/7.8)", "$evict", "", "$hint", "", "$prefetch", "", "$pol", "")
	if far.Replace(line) == line {
		return []string{line}
	}
	return []string{far.Replace(line), near.Replace(line)}
}

// vectors are the types that loads and stores move, and vectors of them of up to 128 bits.
func vectors() string {
	types := strings.Fields("b8 b16 b32 b64 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64")
	list := types
	for _, t := range types {
		list = append(list, "v2."+t)
		if !strings.HasSuffix(t, "64") {
			list = append(list, "v4."+t)
		}
	}
	return strings.Join(list, " ")
}

// wgmmaShapes are the macros $wk8 … for the shapes m64nNk8 …; $wi32 and $wi256 have the fewer N of integers and bits.
func wgmmaShapes() []string {
	var list []string
	for _, k := range []string{"k8", "k16", "k32", "i32", "i256"} {
		var shapes []string
		for n := 8; n <= 256; n += 8 {
			if k[0] == 'k' || n <= 24 || n%16 == 0 {
				shapes = append(shapes, fmt.Sprintf("m64n%dk%s", n, k[1:]))
			}
		}
		list = append(list, "$w"+k, strings.Join(shapes, " "))
	}
	return list
}

func parseForm(line string) *Form {
	f := &Form{Syntax: line, SM: OldestTarget, PTX: OldestVersion}
	line = macros.Replace(line)
	if code, need, ok := strings.Cut(line, "|"); ok {
		words := strings.Fields(need)
		f.SM, f.PTX = parseNeed(words[0] + "/" + words[1])
		line = strings.TrimSpace(code)
	}
	code, args := line, ""
	for i, depth := 0, 0; i < len(line); i++ {
		switch line[i] {
		case '(', '{':
			depth++
		case ')', '}':
			depth--
		}
		if depth == 0 && line[i] == ' ' {
			code, args = line[:i], line[i:]
			break
		}
	}
	fixed := fixedPart(code)
	op, mods, _ := SplitOpcode(fixed)
	f.Op = op
	for _, m := range mods {
		f.parts = append(f.parts, part{alts: []alternative{{mods: []Mod{m}}}})
	}
	f.parts = append(f.parts, parseParts(code[len(fixed):])...)
	for _, a := range strings.Fields(args) {
		f.args = append(f.args, parseArgument(a))
	}
	return f
}

// parseParts reads {.a}, .(a b), .a in turn.
func parseParts(s string) []part {
	var parts []part
	for s != "" {
		p := part{}
		var inner string
		switch {
		case s[0] == '{':
			inner, s, _ = strings.Cut(s[1:], "}")
			p.optional = true
		case strings.HasPrefix(s, ".("):
			i := strings.IndexByte(s, ')')
			inner, s = s[:i+1], s[i+1:]
		default:
			i := strings.IndexAny(s[1:], ".{")
			if i < 0 {
				i = len(s) - 1
			}
			inner, s = s[:i+1], s[i+1:]
		}
		inner = strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(inner, "."), "("), ")")
		for a := range strings.FieldsSeq(inner) {
			word, need, _ := strings.Cut(a, "@")
			alt := alternative{}
			for m := range strings.SplitSeq(word, ".") {
				alt.mods = append(alt.mods, Mod(m))
			}
			if need != "" {
				alt.sm, alt.ptx = parseNeed(need)
			}
			p.alts = append(p.alts, alt)
		}
		parts = append(parts, p)
	}
	return parts
}

// parseNeed reads 90a/8.0.
func parseNeed(s string) (Target, Version) {
	sm, ptx, _ := strings.Cut(s, "/")
	digits := strings.TrimRight(sm, "af")
	t := Target{Suffix: sm[len(digits):]}
	var v Version
	major, minor, _ := strings.Cut(ptx, ".")
	var err [3]error
	t.SM, err[0] = strconv.Atoi(digits)
	v.Major, err[1] = strconv.Atoi(major)
	v.Minor, err[2] = strconv.Atoi(minor)
	if err != [3]error{} {
		panic("table of forms: " + s)
	}
	return t, v
}

// Forms are all forms, those of one root together.
func Forms() iter.Seq[*Form] {
	return func(yield func(*Form) bool) {
		for op := range formTable() {
			for _, f := range FormsOf(op) {
				if !yield(f) {
					return
				}
			}
		}
	}
}

// FormsOf are the forms of a root.
func FormsOf(op Op) []*Form {
	if of := formTable()[op]; of != nil {
		return of.forms()
	}
	return nil
}

// Error is what is wrong with an instruction, and where. It wraps [compute.ErrArgument] or [compute.ErrUnsupported].
type Error struct {
	Pos    Pos
	Func   string // "" if not known
	Opcode string
	Msg    string
	err    error
}

// Error says it with the position, as far as known.
func (e *Error) Error() string {
	where := e.Pos.String()
	if where != "" {
		where += ": "
	}
	return fmt.Sprintf("ptx: %s%s: %s", where, e.Opcode, e.Msg)
}

// Unwrap returns the sentinel.
func (e *Error) Unwrap() error { return e.err }

func wrong(in *Instr, format string, args ...any) *Error {
	return &Error{Pos: in.Pos, Opcode: in.Opcode(), Msg: fmt.Sprintf(format, args...), err: compute.ErrArgument}
}

// Form is [FormOf] with the types of the function's registers looked at too.
func (f *Func) Form(in *Instr) (*Form, error) {
	form, err := formOf(in, f)
	if err != nil {
		err.Func = f.Name
		return nil, err
	}
	return form, nil
}

// FormOf finds the form that the instruction has, with what its parts need together. The error, of type [*Error], says what is
// wrong: an unknown instruction, a part that does not fit, the wrong number or kind of operands. Types of registers are for
// [Validate].
func FormOf(in *Instr) (*Form, error) {
	f, err := formOf(in, nil)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// formOf is FormOf with the types of registers looked at too, if fn is given.
func formOf(in *Instr, fn *Func) (*Form, *Error) {
	forms := FormsOf(in.Op)
	if len(forms) == 0 {
		if reason := Unsupported(in.Op); reason != "" {
			return nil, wrong(in, "%s", reason).unsupported()
		}
		return nil, wrong(in, "there is no such instruction")
	}
	mods := inOrder(in)
	deepest, depth := -1, -1
	var bad *argumentError
	var of *Form
	for _, f := range forms {
		need := alternative{sm: f.SM, ptx: f.PTX}
		ok, reached := f.match(0, mods, 0, &need)
		deepest = max(deepest, reached)
		if !ok {
			continue
		}
		e := f.arguments(in, fn)
		if e == nil {
			if need.sm != f.SM || need.ptx != f.PTX {
				g := *f
				g.SM, g.PTX = need.sm, need.ptx
				f = &g
			}
			return f, nil
		}
		if bad == nil || e.at > depth {
			bad, of, depth = e, f, e.at
		}
	}
	switch {
	case bad != nil:
		return nil, wrong(in, "%s; the form is %s", bad.msg, of.Usage())
	case deepest < len(mods):
		return nil, wrong(in, "%s has no part .%s at this place", in.Op, mods[deepest])
	}
	return nil, wrong(in, "a part of the opcode, such as its type, is missing")
}

// inOrder returns the parts of the opcode in the order of the manual. Assemblers take the ordering, scope and space of a
// memory access in any order, and compilers make use of it.
func inOrder(in *Instr) []Mod {
	switch in.Op {
	case "ld", "st", "atom", "red":
	default:
		return in.Mods
	}
	rank := func(m Mod) int {
		switch m {
		case Weak, Volatile, Relaxed, Acquire, Release, AcqRel:
			return 1
		case ScopeCTA, ScopeCluster, ScopeGPU, ScopeSys:
			return 2
		case Global, Shared, SharedCTA, SharedCluster, Local:
			return 3
		}
		return 0
	}
	n := 0
	for n < len(in.Mods) && rank(in.Mods[n]) > 0 {
		n++
	}
	byRank := func(a, b Mod) int { return rank(a) - rank(b) }
	if slices.IsSortedFunc(in.Mods[:n], byRank) {
		return in.Mods
	}
	mods := slices.Clone(in.Mods)
	slices.SortStableFunc(mods[:n], byRank)
	return mods
}

// match tells whether mods[j:] are the parts from the i-th on, and how many of mods fitted at best. It adds to need what the
// chosen alternatives need.
func (f *Form) match(i int, mods []Mod, j int, need *alternative) (bool, int) {
	if i == len(f.parts) {
		return j == len(mods), j
	}
	p, reached := &f.parts[i], j
	for k := range p.alts {
		a := &p.alts[k]
		n := 0
		for n < len(a.mods) && j+n < len(mods) && a.mods[n] == mods[j+n] {
			n++
		}
		reached = max(reached, j+n)
		if n < len(a.mods) {
			continue
		}
		ok, r := f.match(i+1, mods, j+n, need)
		reached = max(reached, r)
		if ok {
			need.raise(a.sm, a.ptx)
			return true, r
		}
	}
	if p.optional {
		ok, r := f.match(i+1, mods, j, need)
		return ok, max(reached, r)
	}
	return false, reached
}

func (a *alternative) raise(sm Target, ptx Version) {
	if a.sm.SM < sm.SM || a.sm.SM == sm.SM && sm.Suffix != "" {
		a.sm = sm
	}
	if a.ptx.Less(ptx) {
		a.ptx = ptx
	}
}
