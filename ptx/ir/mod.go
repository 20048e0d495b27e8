package ir

import (
	"fmt"
	"slices"
)

// Mod is one part of an opcode after its root, without its dot: a type, a rounding, a space, a scope, a shape. What is joined by
// "::" is one part. Types are parts too: see [Type.Mod] and [Mod.Type].
type Mod string

// The parts that code here asks for by name. The table of forms knows all; these are only spelled out once.
const (
	RN    Mod = "rn"
	RZ    Mod = "rz"
	RM    Mod = "rm"
	RP    Mod = "rp"
	RNA   Mod = "rna"
	RNI   Mod = "rni"
	RZI   Mod = "rzi"
	RMI   Mod = "rmi"
	RPI   Mod = "rpi"
	FTZ   Mod = "ftz"
	Sat   Mod = "sat"
	Relu  Mod = "relu"
	NaN   Mod = "NaN"
	XorSg Mod = "xorsign"
	Abs   Mod = "abs"
	CC    Mod = "cc"

	Lo     Mod = "lo"
	Hi     Mod = "hi"
	Wide   Mod = "wide"
	Approx Mod = "approx"
	Full   Mod = "full"

	Global        Mod = "global"
	Shared        Mod = "shared"
	SharedCTA     Mod = "shared::cta"
	SharedCluster Mod = "shared::cluster"
	Local         Mod = "local"
	Param         Mod = "param"
	Const         Mod = "const"

	V2 Mod = "v2"
	V4 Mod = "v4"
	V8 Mod = "v8"

	Sync    Mod = "sync"
	Aligned Mod = "aligned"
	Uni     Mod = "uni"
	To      Mod = "to"
	NC      Mod = "nc"

	Volatile Mod = "volatile"
	Weak     Mod = "weak"
	Relaxed  Mod = "relaxed"
	Acquire  Mod = "acquire"
	Release  Mod = "release"
	AcqRel   Mod = "acq_rel"
	SC       Mod = "sc"

	ScopeCTA     Mod = "cta"
	ScopeCluster Mod = "cluster"
	ScopeGPU     Mod = "gpu"
	ScopeSys     Mod = "sys"
	GL           Mod = "gl" // the whole GPU in membar

	X1    Mod = "x1"
	X2    Mod = "x2"
	X4    Mod = "x4"
	Trans Mod = "trans"
	Row   Mod = "row"
	Col   Mod = "col"
)

// Type is the type that the part names, if it names one.
func (m Mod) Type() (Type, bool) { return TypeNamed(string(m)) }

// Has tells whether the opcode has the part.
func (in *Instr) Has(m Mod) bool { return slices.Contains(in.Mods, m) }

// First returns the first of the parts given that the opcode has, or "".
func (in *Instr) First(of ...Mod) Mod {
	for _, m := range in.Mods {
		if slices.Contains(of, m) {
			return m
		}
	}
	return ""
}

// Type returns the i-th type in the opcode, NoType if there are fewer. For cvt, 0 is the destination's type and 1 the source's; for
// mma they come in the order d, a, b, c.
func (in *Instr) Type(i int) Type {
	for _, m := range in.Mods {
		if t, ok := m.Type(); ok {
			if i == 0 {
				return t
			}
			i--
		}
	}
	return NoType
}

// Shape returns the m, n and k of an opcode that has them, such as m16n8k16.
func (in *Instr) Shape() (m, n, k int, ok bool) {
	for _, mod := range in.Mods {
		var rest string
		if c, _ := fmt.Sscanf(string(mod), "m%dn%dk%d%s", &m, &n, &k, &rest); c == 3 {
			return m, n, k, true
		}
	}
	return 0, 0, 0, false
}

// Rounding is the rounding mode in the opcode, or "".
func (in *Instr) Rounding() Mod { return in.First(RN, RZ, RM, RP, RNA, RNI, RZI, RMI, RPI) }

// Width is the number of elements that a load, store or the like moves: 1, or that of .v2, .v4, .v8.
func (in *Instr) Width() int {
	switch in.First(V2, V4, V8) {
	case V2:
		return 2
	case V4:
		return 4
	case V8:
		return 8
	}
	return 1
}

// Space is the state space that the opcode names, NoSpace for generic addresses.
func (in *Instr) Space() Space {
	for _, m := range in.Mods {
		if s := SpaceNamed(m); s != NoSpace {
			return s
		}
	}
	return NoSpace
}
