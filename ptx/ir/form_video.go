package ir

import (
	"fmt"
	"slices"
	"strings"
)

// Scalar instructions compute with words, halves or bytes, signed or not each, and put the result into a word, add it to another or
// take the smaller or larger one, or put it into a part of another word. Those with a 2 or 4 compute with so many parts at once.
const videoForms = `
vadd.$word.$word.$word{.sat} d s.part:1 s.part:2
vadd.$word.$word.$word{.sat} d.merged s.part:1 s.part:2 s
vadd.$word.$word.$word{.sat}.(add min max) d s.part:1 s.part:2 s
vsub.$word.$word.$word{.sat} d s.part:1 s.part:2
vsub.$word.$word.$word{.sat} d.merged s.part:1 s.part:2 s
vsub.$word.$word.$word{.sat}.(add min max) d s.part:1 s.part:2 s
vabsdiff.$word.$word.$word{.sat} d s.part:1 s.part:2
vabsdiff.$word.$word.$word{.sat} d.merged s.part:1 s.part:2 s
vabsdiff.$word.$word.$word{.sat}.(add min max) d s.part:1 s.part:2 s
vmin.$word.$word.$word{.sat} d s.part:1 s.part:2
vmin.$word.$word.$word{.sat} d.merged s.part:1 s.part:2 s
vmin.$word.$word.$word{.sat}.(add min max) d s.part:1 s.part:2 s
vmax.$word.$word.$word{.sat} d s.part:1 s.part:2
vmax.$word.$word.$word{.sat} d.merged s.part:1 s.part:2 s
vmax.$word.$word.$word{.sat}.(add min max) d s.part:1 s.part:2 s
vshl.$word.$word.u32{.sat}.(clamp wrap) d s.part:1 s.part:2
vshl.$word.$word.u32{.sat}.(clamp wrap) d.merged s.part:1 s.part:2 s
vshl.$word.$word.u32{.sat}.(clamp wrap).(add min max) d s.part:1 s.part:2 s
vshr.$word.$word.u32{.sat}.(clamp wrap) d s.part:1 s.part:2
vshr.$word.$word.u32{.sat}.(clamp wrap) d.merged s.part:1 s.part:2 s
vshr.$word.$word.u32{.sat}.(clamp wrap).(add min max) d s.part:1 s.part:2 s
vmad.$word.$word.$word{.sat}{.(shr7 shr15)} d N.part:1 N.part:2 N
vmad.$word.$word.$word.po{.sat}{.(shr7 shr15)} d s.part:1 s.part:2 s
vset.$word.$word.(eq ne lt le gt ge) d:u32 s.part:0 s.part:1
vset.$word.$word.(eq ne lt le gt ge) d.merged:u32 s.part:0 s.part:1 s:u32
vset.$word.$word.(eq ne lt le gt ge).(add min max) d:u32 s.part:0 s.part:1 s:u32

vadd2.$word.$word.$word{.(sat add)} d.halves r.pair:1 r.pair:2 r
vsub2.$word.$word.$word{.(sat add)} d.halves r.pair:1 r.pair:2 r
vavrg2.$word.$word.$word{.(sat add)} d.halves r.pair:1 r.pair:2 r
vabsdiff2.$word.$word.$word{.(sat add)} d.halves r.pair:1 r.pair:2 r
vmin2.$word.$word.$word{.(sat add)} d.halves r.pair:1 r.pair:2 r
vmax2.$word.$word.$word{.(sat add)} d.halves r.pair:1 r.pair:2 r
vset2.$word.$word.(eq ne lt le gt ge){.add} d.halves:u32 r.pair:0 r.pair:1 r:u32
vadd4.$word.$word.$word{.(sat add)} d.bytes r.quad:1 r.quad:2 r
vsub4.$word.$word.$word{.(sat add)} d.bytes r.quad:1 r.quad:2 r
vavrg4.$word.$word.$word{.(sat add)} d.bytes r.quad:1 r.quad:2 r
vabsdiff4.$word.$word.$word{.(sat add)} d.bytes r.quad:1 r.quad:2 r
vmin4.$word.$word.$word{.(sat add)} d.bytes r.quad:1 r.quad:2 r
vmax4.$word.$word.$word{.(sat add)} d.bytes r.quad:1 r.quad:2 r
vset4.$word.$word.(eq ne lt le gt ge){.add} d.bytes:u32 r.quad:0 r.quad:1 r:u32`

// parts are the parts of registers that may be selected, by their names in the table of forms. Without a selection it is the whole
// register, but with merged, which needs one. Of a pair or quad, which are selected among the halves or bytes of both operands, there
// are many: these are examples.
var parts = map[string][]string{
	"part":     {"b0", "b1", "b2", "b3", "h0", "h1"},
	mergedPart: {"b0", "b1", "b2", "b3", "h0", "h1"},
	"halves":   {"h0", "h1", "h10"},
	"bytes": {"b0", "b1", "b2", "b3", "b10", "b20", "b21", "b30", "b31", "b32", "b210", "b310", "b320", "b321",
		"b3210"},
	"pair": {"h10", "h32", "h00", "h13", "h20"},
	"quad": {"b3210", "b7654", "b0000", "b0752"},
}

const mergedPart = "merged"

// IsPart tells whether a name such as "b0" or "h32" is that of parts of registers.
func IsPart(name string) bool {
	return name != "" && (slices.Contains(parts["part"], name) || slices.Contains(parts["halves"], name) ||
		slices.Contains(parts["bytes"], name) || selectsAmong(name, 'h', 2) || selectsAmong(name, 'b', 4))
}

// selectsAmong tells whether name is c and n digits, each below 2n.
func selectsAmong(name string, c byte, n int) bool {
	return len(name) == n+1 && name[0] == c && strings.Trim(name[1:], "01234567"[:2*n]) == ""
}

// selects says what is wrong with the part of a register that an operand names, "" if nothing.
func (a *argument) selects(o *Operand) string {
	list := parts[a.parts]
	switch {
	case list == nil && o.Part == "":
		return ""
	case list == nil:
		return "has no parts to select"
	case o.Part == "" && a.parts == mergedPart:
		return "has to name a part, such as .b0"
	case o.Part == "", slices.Contains(list, o.Part), a.parts == "pair" && selectsAmong(o.Part, 'h', 2),
		a.parts == "quad" && selectsAmong(o.Part, 'b', 4):
		return ""
	case a.parts == "pair" || a.parts == "quad":
		return fmt.Sprintf("has no part .%s; parts are such as .%s", o.Part, list[0])
	}
	return fmt.Sprintf("has no part .%s; it may have %s", o.Part, strings.Join(list, ", "))
}

// negations says what is wrong with the minus signs of vmad, whose product or sum may be negated, not both.
func negations(in *Instr) *argumentError {
	if in.Op == "vmad" && len(in.Args) == 4 && in.Args[3].Neg && in.Args[1].Neg != in.Args[2].Neg {
		return &argumentError{3, "operand 4 cannot be negated beside a negated product"}
	}
	return nil
}
