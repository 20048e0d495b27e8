package dispatch

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/wavelane/wavelane/internal/simd/asmgen/ir"
)

// table lists the kernels for tests: their counts, and their function and portable fallback behind one signature.
func table(all []signature) string {
	var w bytes.Buffer
	w.WriteString(header + "package kernels\n\n")
	fmt.Fprintf(&w, "// Lanes is that of the generator.\nvar _ = [1]struct{}{}[Lanes-%d]\n\nvar table = []kernel{\n", ir.Lanes)
	for _, s := range all {
		fmt.Fprintf(&w, "{name: %q, inputs: %d", s.Name, len(s.Inputs))
		if len(s.Params) > 0 {
			fmt.Fprintf(&w, ", params: %d", len(s.Params))
		}
		if n := s.accumulators; n > 0 {
			fmt.Fprintf(&w, ", accumulators: %d", n)
		}
		for _, flag := range []struct {
			name string
			set  bool
		}{{"store", s.store}, {"guard", s.guard}, {"lanes", s.lanes}} {
			if flag.set {
				fmt.Fprintf(&w, ", %s: true", flag.name)
			}
		}
		fmt.Fprintf(&w, ",\nrun: func(c *call) { %s },\nportable: func(c *call) { %s }},\n", s.testCall(s.Name), s.testCall(s.Func("Go")))
	}
	w.WriteString("}\n")
	return w.String()
}

func (s signature) testCall(function string) string {
	var results []string
	if s.search() {
		results = append(results, "c.n")
	}
	for i := range s.merges {
		results = append(results, fmt.Sprintf("c.out[%d]", i))
	}
	assign := ""
	if len(results) > 0 {
		assign = strings.Join(results, ", ") + " = "
	}
	return fmt.Sprintf("%s%s(%s)", assign, function, strings.Join(s.testArgs(same, same), ", "))
}

// testArgs are the arguments out of a call of the test's table; f and number make a slice and a number into what is passed, extra follows
// slices.
func (s signature) testArgs(f, number func(string) string, extra ...string) []string {
	var args []string
	if s.lanes {
		args = append(args, fmt.Sprintf("(*[%d * Lanes]float32)(c.lanes[:])", s.accumulators))
	}
	if s.store {
		args = append(args, f("c.y"))
	}
	for i := range s.Inputs {
		args = append(args, f(fmt.Sprintf("c.in[%d]", i)))
	}
	args = append(args, extra...)
	for i := range s.Params {
		args = append(args, number(fmt.Sprintf("c.p[%d]", i)))
	}
	return args
}

// raw gives tests the assembly of guarded kernels, to see where it stops.
func raw(a Arch, all []signature) string {
	var w bytes.Buffer
	w.WriteString(header + "package kernels\n\n" + a.imports())
	w.WriteString("// stops are the guarded kernels of the active tier without what their portable fallbacks add.\n")
	w.WriteString("var stops = map[string]func(c *call) (done int){\n")
	for _, s := range all {
		if !s.guard {
			continue
		}
		n := "len(c.in[0])"
		fmt.Fprintf(&w, "%q: func(c *call) (done int) {\nswitch active {\n", s.Name)
		for _, t := range a.Tiers {
			args := strings.Join(s.testArgs(data, t.number, n), ", ")
			results := "done" + strings.Repeat(", _", len(s.merges))
			fmt.Fprintf(&w, "case %s:\n%s = %s(%s)\n", t.Const, results, s.Func(t.Const), args)
		}
		w.WriteString("}\nreturn done\n},\n")
	}
	w.WriteString("}\n")
	return w.String()
}
