package ir_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/ir"
)

// versions are those of PTX, in order.
var versions = []ir.Version{{Major: 4, Minor: 0}, {Major: 4, Minor: 1}, {Major: 4, Minor: 2}, {Major: 4, Minor: 3}, {Major: 5, Minor: 0}, {Major: 5, Minor: 1}, {Major: 6, Minor: 0}, {Major: 6, Minor: 1}, {Major: 6, Minor: 2}, {Major: 6, Minor: 3}, {Major: 6, Minor: 4}, {Major: 6, Minor: 5}, {Major: 7, Minor: 0}, {Major: 7, Minor: 1},
	{Major: 7, Minor: 2}, {Major: 7, Minor: 3}, {Major: 7, Minor: 4}, {Major: 7, Minor: 5}, {Major: 7, Minor: 6}, {Major: 7, Minor: 7}, {Major: 7, Minor: 8}, {Major: 8, Minor: 0}, {Major: 8, Minor: 1}, {Major: 8, Minor: 2}, {Major: 8, Minor: 3}, {Major: 8, Minor: 4}, {Major: 8, Minor: 5}, {Major: 8, Minor: 6}, {Major: 8, Minor: 7}, {Major: 8, Minor: 8}}

// sample is an instruction and what the table says it needs.
type sample struct {
	form *ir.Form
	text string
}

type need struct {
	sm  ir.Target
	ptx ir.Version
}

// registers gives registers of every type, some hundred of each.
type registers struct {
	f    *ir.Func
	pool map[ir.Type][]ir.Reg
	next map[ir.Type]int
}

const perType = 300

func newRegisters() *registers {
	r := &registers{f: &ir.Func{Name: "f", Regs: []ir.RegDecl{{}}}, pool: map[ir.Type][]ir.Reg{}, next: map[ir.Type]int{}}
	for _, t := range []ir.Type{ir.Pred, ir.B8, ir.B16, ir.B32, ir.B64, ir.U16, ir.U32, ir.U64, ir.S16, ir.S32,
		ir.S64, ir.F16, ir.F32, ir.F64} {
		for i := range perType {
			r.pool[t] = append(r.pool[t], ir.Reg(len(r.f.Regs)))
			r.f.Regs = append(r.f.Regs, ir.RegDecl{Name: fmt.Sprintf("%%%s_%d", t, i), Type: t})
		}
	}
	return r
}

func (r *registers) get(t ir.Type) ir.Reg {
	if t == ir.B128 {
		r.pool[t] = r.pool[ir.B128]
		if r.pool[t] == nil {
			for i := range 4 {
				r.pool[t] = append(r.pool[t], ir.Reg(len(r.f.Regs)))
				r.f.Regs = append(r.f.Regs, ir.RegDecl{Name: fmt.Sprintf("%%%s_%d", t, i), Type: t})
			}
		}
	}
	pool := r.pool[t]
	if pool == nil {
		panic(t.String())
	}
	r.next[t]++
	return pool[r.next[t]%len(pool)]
}

// samples are instructions of all forms, by what they need: every variant, or, where there are many, a cover and some at
// random.
func samples(t *testing.T, r *registers, rng *rand.Rand, most int) map[need][]sample {
	all := map[need][]sample{}
	for f := range ir.Forms() {
		if f.Op == "call" { // needs a function to call: see the tests of package parse
			continue
		}
		variants := slices.Collect(f.Variants())
		if len(variants) > most {
			rng.Shuffle(len(variants), func(i, j int) { variants[i], variants[j] = variants[j], variants[i] })
			variants = append(slices.Collect(f.Cover()), variants[:most]...)
		}
		for _, mods := range variants {
			for _, in := range f.Samples(mods, r.get) {
				in = adapt(in)
				got, err := r.f.Form(&in)
				require.NoError(t, err, f.Syntax)
				n := need{got.SM, got.PTX}
				if ofKernels(&in) {
					continue
				}
				all[n] = append(all[n], sample{f, r.f.InstrString(&in)})
			}
		}
	}
	return all
}

// ofKernels tells instructions for the parameters of kernels, which the function here is not. See [TestPtxasKernelForms].
func ofKernels(in *ir.Instr) bool {
	return in.Has("param::entry") || in.Op == "cvta" && in.Args[1].Sym == "in_param"
}

// adapt puts symbols in where a register will not do.
func adapt(in ir.Instr) ir.Instr {
	in = in.Clone()
	space := in.Space()
	for i := range in.Args {
		o := &in.Args[i]
		switch {
		case o.Kind == ir.SymOperand && in.Type(0).Bits() == 32:
			o.Sym = "in_shared"
		case o.Kind == ir.SymOperand && space != ir.NoSpace:
			o.Sym = "in_" + strings.TrimSuffix(space.String(), "::cluster")
		case o.Kind == ir.AddrOperand && space == ir.ParamSpace && (in.Op == "ld" || in.Op == "st"):
			*o = ir.AddrOf("in_param", 0)
		case o.Kind == ir.LabelOperand && in.Op == "brx.idx":
			o.Sym = "T"
		}
	}
	return in
}

// knownTargets are the architectures of this ptxas: newer ones have left the oldest.
func knownTargets(t *testing.T, tool string) map[ir.Target]bool {
	known := map[ir.Target]bool{}
	ir.Targets(func(target ir.Target, v ir.Version) {
		text := fmt.Sprintf(".version %s\n.target %s\n.address_size 64\n", v, target)
		_, err := ptxtest.Assemble(t, tool, target.String(), text)
		if known[target] = err == nil; err != nil {
			require.ErrorIs(t, err, ptxtest.ErrTarget)
			t.Logf("this ptxas does not know %s: what needs it is not compared", target)
		}
	})
	return known
}

// assemble returns the message for each of the lines that ptxas rejects.
func assemble(t *testing.T, tool string, r *registers, n need, lines []sample) map[int]string {
	rejected := map[int]string{}
	left := make([]int, len(lines))
	for i := range left {
		left[i] = i
	}
	message := regexp.MustCompile(`(?m)^ptxas .*, line (\d+); (error|fatal) *: (.*)$`)
	for range 200 {
		var b bytes.Buffer
		fmt.Fprintf(&b, ".version %s\n.target %s\n.address_size 64\n.global .align 16 .b32 variable;.global .align 16 .b32 in_global;"+
			".shared .align 16 .b32 in_shared;.const .align 16 .b32 in_const;\n.func f(.param .b32 argument) {", n.ptx, n.sm)
		b.WriteString(".local .align 16 .b8 in_local[64]; .param .align 16 .b8 in_param[64];")
		for typ, pool := range r.pool {
			if typ == ir.B128 && (n.sm.SM < 70 || n.ptx.Less(ir.Version{Major: 8, Minor: 3})) {
				continue
			}
			fmt.Fprintf(&b, ".reg .%s %%%s_<%d>;", typ, typ, len(pool))
		}
		b.WriteString("\nL: T: ")
		if !n.ptx.Less(ir.Version{Major: 6}) {
			b.WriteString(".branchtargets L;")
		}
		b.WriteString("\n")
		first := bytes.Count(b.Bytes(), []byte("\n")) + 1
		for _, i := range left {
			b.WriteString(lines[i].text + "\n")
		}
		b.WriteString("ret; }\n")
		log, err := ptxtest.Assemble(t, tool, n.sm.String(), b.String())
		if err == nil {
			return rejected
		}
		stop := -1
		found := message.FindAllStringSubmatch(log, -1)
		if len(found) == 0 {
			for _, m := range regexp.MustCompile(`line '(\d+)'`).FindAllStringSubmatch(log, -1) {
				line, _ := strconv.Atoi(m[1])
				t.Log(strings.Split(b.String(), "\n")[line-1])
			}
		}
		require.NotEmpty(t, found, "%v", err)
		for _, m := range found {
			line, _ := strconv.Atoi(m[1])
			require.True(t, line >= first && line < first+len(left), "%s %s: %s", n.sm, n.ptx, m[0])
			rejected[left[line-first]] = m[3]
			if m[2] == "fatal" {
				stop = line - first
			}
		}
		if stop < 0 {
			return rejected
		}
		left = slices.Delete(left, stop, stop+1)
	}
	t.Fatalf("%s %s: too many fatal errors", n.sm, n.ptx)
	return nil
}

// documented tells instructions that older versions of PTX do not have, though ptxas takes them there.
func documented(n need, text string) bool {
	for _, d := range []struct {
		ptx    ir.Version
		prefix string
	}{
		{ir.Version{Major: 4, Minor: 3}, `(add|sub|mad)c`}, // of 64 bits
		{ir.Version{Major: 6}, `barrier\.|bar\.warp|vote\.sync|shfl\.sync|fns|neg`},
		{ir.Version{Major: 7, Minor: 8}, `cp\.async\.c[ag]\.shared::cta`},
	} {
		if n.ptx == d.ptx && regexp.MustCompile(`^(`+d.prefix+`)`).MatchString(text) {
			return true
		}
	}
	return false
}

func later(a, b ir.Version) ir.Version {
	if a.Less(b) {
		return b
	}
	return a
}

// TestPtxasForms: ptxas takes every form for what the table says that it needs, and not for less.
func TestPtxasForms(t *testing.T) {
	tool := ptxtest.Ptxas(t)
	r := newRegisters()
	r.get(ir.B128)
	var targets []ir.Target
	ir.Targets(func(s ir.Target, _ ir.Version) { targets = append(targets, s) })
	rng := ptxtest.Random(t)
	total, wrong := 0, map[string][]string{}
	complain := func(s sample, format string, args ...any) {
		wrong[s.form.Syntax] = append(wrong[s.form.Syntax], s.text+" "+fmt.Sprintf(format, args...))
	}
	known := knownTargets(t, tool)
	for n, list := range samples(t, r, rng, 24) {
		if !known[n.sm] {
			continue
		}
		total += len(list)
		least := n.sm.PTX()
		at := need{n.sm, later(n.ptx, least)}
		for i, msg := range assemble(t, tool, r, at, list) {
			complain(list[i], "rejected for %s %s: %s", at.sm, at.ptx, msg)
		}
		if testing.Short() {
			continue
		}
		if i := slices.Index(versions, n.ptx); i > 0 && !versions[i-1].Less(least) {
			lower := need{n.sm, versions[i-1]}
			bad := assemble(t, tool, r, lower, list)
			for i := range list {
				if bad[i] == "" && !documented(n, list[i].text) {
					complain(list[i], "accepted for %s %s", lower.sm, lower.ptx)
				}
			}
		}
		if i := slices.Index(targets, n.sm); i > 0 && known[targets[i-1]] {
			lower := need{targets[i-1], at.ptx}
			bad := assemble(t, tool, r, lower, list)
			for i := range list {
				if bad[i] == "" {
					complain(list[i], "accepted for %s %s", lower.sm, lower.ptx)
				}
			}
		}
	}
	var report strings.Builder
	for syntax, list := range wrong {
		fmt.Fprintf(&report, "%s\n\t%s\n", syntax, strings.Join(list[:min(len(list), 3)], "\n\t"))
	}
	t.Logf("%d instructions", total)
	require.Empty(t, report.String())
}
