package eval

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/ptx/ir"
)

// elsewhere are the pure instructions that are not here, by opcode or root, with the reason.
var elsewhere = map[string]string{
	"cvta": "depends on where the state spaces lie in generic addresses", "isspacep": "likewise",
	"mapa": "depends on the cluster", "getctarank": "likewise",
	"mov.b128": "wider than a Func's operands: the software GPU's own", "exch.b128": "likewise", "cas.b128": "likewise",
	"fma.rn.oob": "PTX does not say what its out-of-bounds NaN looks like",
}

func isElsewhere(in *ir.Instr) bool {
	code := in.Opcode()
	for what := range elsewhere {
		if code == what || strings.HasPrefix(code, what+".") || strings.HasSuffix(code, "."+what) {
			return true
		}
	}
	return false
}

// TestForms: every form of a pure instruction that PTX has is here.
func TestForms(t *testing.T) {
	n, missing := 0, map[string]int{}
	for form := range ir.Forms() {
		for mods := range form.Variants() {
			for _, in := range form.Samples(mods, func(ir.Type) ir.Reg { return 1 }) {
				if err := known(&in); err != nil {
					if missing[form.Syntax]++; missing[form.Syntax] == 1 {
						t.Errorf("%s: %v", form.Syntax, err)
					}
				}
				n++
			}
		}
	}
	t.Logf("%d instructions", n)
	require.Greater(t, n, 1000)
}

func known(in *ir.Instr) error {
	if isElsewhere(in) {
		return nil
	}
	switch in.Kind() {
	case ir.Arithmetic, ir.Move, ir.SetPred:
		for _, a := range in.Args {
			if in.Op == "mov" && a.Kind != ir.RegOperand { // of vectors, symbols and special registers: the software GPU's own
				return nil
			}
		}
		_, err := Of(in)
		return err
	case ir.Carry:
		_, err := Carry(in)
		return err
	case ir.Atomic:
		_, err := Atom(in)
		return err
	}
	return nil
}

// TestArgType: pure instructions read their scalars as the table of forms says.
func TestArgType(t *testing.T) {
	types := []ir.Type{ir.NoType}
	register := func(typ ir.Type) ir.Reg {
		types = append(types, typ)
		return ir.Reg(len(types) - 1)
	}
	width := func(t ir.Type) int { // of registers
		if t == ir.Pred {
			return 1
		}
		return max(16, t.Bits())
	}
	real := func(t ir.Type) bool { return t == ir.F32 || t == ir.F64 }
	n := 0
	for form := range ir.Forms() {
		for mods := range form.Cover() {
			for _, in := range form.Samples(mods, register) {
				pure := []ir.Kind{ir.Arithmetic, ir.Move, ir.SetPred, ir.Carry}
				if !slices.Contains(pure, in.Kind()) || isElsewhere(&in) {
					continue
				}
				for i := 1; i < len(in.Args); i++ {
					if in.Args[i].Kind != ir.RegOperand {
						continue
					}
					want, got := types[in.Args[i].Reg], ArgType(&in, i)
					require.Equal(t, width(want), width(got), "%s, argument %d: .%s or .%s", in.Opcode(), i, want, got)
					require.Equal(t, real(want), real(got), "%s, argument %d: .%s or .%s", in.Opcode(), i, want, got)
					n++
				}
			}
		}
	}
	require.Greater(t, n, 1000)
}
