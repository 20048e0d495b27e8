package ir_test

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/ir"
)

// stricter are instructions of which ptxas does not look at all registers, while the table does.
var stricter = regexp.MustCompile(`^(w?mma|wgmma|tcgen05|ldmatrix|stmatrix|movmatrix|` +
	`setp?\..*bf16|multimem.*bf16|fence\.proxy|sured|sust\.p|cp\.async\.bulk\.tensor|(ld|st)\..*\.(v8|v4\.\w64))`)

// TestPtxasTypes: with a register of another type in the place of one, the table and ptxas come to the same opinion.
func TestPtxasTypes(t *testing.T) {
	tool := ptxtest.Ptxas(t)
	rng := ptxtest.Random(t)
	r := newRegisters()
	r.get(ir.B128)
	types := slices.Sorted(maps.Keys(r.pool))
	lists, takes := map[need][]sample{}, map[need][]error{}
	for f := range ir.Forms() {
		for mods := range f.Cover() {
			if f.Op == "call" || strings.HasPrefix(string(f.Op), "wmma.") {
				continue // ptxas reports wmma's types without a line
			}
			in := adapt(f.Samples(mods, r.get)[0])
			if ofKernels(&in) {
				continue
			}
			form, err := r.f.Form(&in)
			require.NoError(t, err)
			typ := types[rng.IntN(len(types))]
			if typ == ir.B128 && (form.SM.SM < 70 || form.PTX.Less(ir.Version{Major: 8, Minor: 3})) || len(in.Args) == 0 {
				continue
			}
			// ptxas takes narrow registers as addresses, some with a later complaint, and looks at the first element of some
			// vectors only; the table is stricter.
			switch o := &in.Args[rng.IntN(len(in.Args))]; {
			case o.Kind == ir.RegOperand || o.Kind == ir.AddrOperand && o.Elems == nil && typ.Bits() == 64:
				o.Reg = r.get(typ)
			case o.Kind == ir.VecOperand:
				for j := range o.Elems {
					o.Elems[j].Reg = r.get(typ)
				}
			case o.Kind == ir.PairOperand:
				o.Elems[rng.IntN(2)].Reg = r.get(typ)
			default:
				continue
			}
			changed, err := r.f.Form(&in)
			if err == nil {
				form = changed
			}
			n := need{form.SM, later(form.PTX, form.SM.PTX())}
			lists[n] = append(lists[n], sample{f, r.f.InstrString(&in)})
			takes[n] = append(takes[n], err)
		}
	}
	total := 0
	var report strings.Builder
	known := knownTargets(t, tool)
	for n, list := range lists {
		if !known[n.sm] {
			continue
		}
		bad := assemble(t, tool, r, n, list)
		for i, s := range list {
			total++
			if bad[i] == "" && stricter.MatchString(s.text) {
				continue
			}
			if (takes[n][i] == nil) != (bad[i] == "") {
				fmt.Fprintf(&report, "%s\n\there: %v\n\tptxas: %s\n", s.text, takes[n][i], bad[i])
			}
		}
	}
	t.Logf("%d instructions", total)
	require.Empty(t, report.String())
}

// TestPtxasKernelForms: what refers to the parameters of kernels.
func TestPtxasKernelForms(t *testing.T) {
	tool := ptxtest.Ptxas(t)
	for target, body := range map[string]string{
		"8.3 50": "ld.param::entry.u32 %r, [x]; ld.param.u32 %r, [x];",
		"7.7 70": "cvta.param.u64 %d, x;",
	} {
		version, sm, _ := strings.Cut(target, " ")
		text := ".version " + version + "\n.target sm_" + sm + "\n.address_size 64\n.entry k(.param .u32 x) {\n" +
			".reg .u32 %r; .reg .u64 %d;\n" + body + "\nret; }\n"
		_, err := ptxtest.Assemble(t, tool, "sm_"+sm, text)
		if errors.Is(err, ptxtest.ErrTarget) {
			t.Logf("%v: sm_%s", err, sm)
			continue
		}
		require.NoError(t, err, text)
	}
}

// TestPtxasSpecials: ptxas knows the special registers for what the table says that they need.
func TestPtxasSpecials(t *testing.T) {
	tool := ptxtest.Ptxas(t)
	r := newRegisters()
	lists := map[need][]sample{}
	ir.Specials(func(name string, info ir.SpecialInfo) {
		if info.Vector {
			name += ".y"
		}
		in := ir.Instr{Op: "mov", Mods: []ir.Mod{info.Type.Mod()}, Args: []ir.Operand{ir.R(r.get(info.Type)),
			{Kind: ir.SpecialOperand, Sym: name}}}
		n := need{ir.Target{SM: max(info.SM, ir.OldestTarget.SM)}, later(info.PTX, ir.OldestVersion)}
		lists[n] = append(lists[n], sample{text: r.f.InstrString(&in)})
	})
	known := knownTargets(t, tool)
	for n, list := range lists {
		if !known[n.sm] {
			continue
		}
		for i, msg := range assemble(t, tool, r, need{n.sm, later(n.ptx, n.sm.PTX())}, list) {
			t.Errorf("%s for %s %s: %s", list[i].text, n.sm, n.ptx, msg)
		}
		i := slices.Index(versions, n.ptx)
		if i == 0 || versions[i-1].Less(n.sm.PTX()) {
			continue
		}
		bad := assemble(t, tool, r, need{n.sm, versions[i-1]}, list)
		for j, s := range list {
			if bad[j] == "" {
				t.Errorf("%s is taken for %s %s already", s.text, n.sm, versions[i-1])
			}
		}
	}
}
