package analyze

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// WriteText writes the report for people: findings, worst first for each kernel, then what each kernel costs. Why a class of
// findings is a defect, and what to do, is said with the first of them.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	said := map[Class]bool{}
	for i := range r.Findings {
		f := &r.Findings[i]
		f.text(&b)
		if !said[f.Class] {
			said[f.Class] = true
			fmt.Fprintf(&b, "\twhy: %s\n\tfix: %s\n", f.Explanation, f.Fix)
		}
	}
	for i := range r.Kernels {
		if i > 0 || len(r.Findings) > 0 {
			b.WriteByte('\n')
		}
		r.Kernels[i].text(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (f *Finding) text(b *strings.Builder) {
	if where := f.Pos.String(); where != "" {
		b.WriteString(where + ": ")
	}
	fmt.Fprintf(b, "%s: %s", f.Severity, f.Class)
	if f.Kernel != "" {
		fmt.Fprintf(b, " in %s", f.Kernel)
	}
	fmt.Fprintf(b, ": %s", f.Message)
	if n := len(f.More); n > 0 {
		fmt.Fprintf(b, " (and %d more like it)", n)
	}
	b.WriteByte('\n')
	if f.Instr != "" {
		fmt.Fprintf(b, "\t%s\n", f.Instr)
	}
}

func (k *KernelReport) text(b *strings.Builder) {
	line := func(name, format string, args ...any) {
		fmt.Fprintf(b, "  %-13s %s\n", name, fmt.Sprintf(format, args...))
	}
	assumed := ""
	if k.Assumed {
		assumed = " (assumed: the kernel does not say)"
	}
	fmt.Fprintf(b, "%s\n", k.Name)
	line("block", "%d × %d × %d%s", k.Block[0], k.Block[1], k.Block[2], assumed)
	var mix []string
	for _, name := range slices.Sorted(maps.Keys(k.Mix)) {
		mix = append(mix, fmt.Sprintf("%s %d", name, k.Mix[name]))
	}
	line("instructions", "%d: %s", k.Instructions, strings.Join(mix, ", "))
	source := "live at once"
	if k.FromPtxas {
		source = "by ptxas"
	}
	line("registers", "%d %s; live: b64 %d, b32 %d, b16 %d, predicates %d", k.Registers, source, k.Live.B64.Live, k.Live.B32.Live,
		k.Live.B16.Live, k.Live.Pred.Live)
	line("shared", "%d bytes per block", k.Shared)
	if k.Local > 0 {
		line("local", "%d bytes per thread", k.Local)
	}
	if k.Occupancy != nil {
		line("occupancy", "on sm_%d: %s", k.SM, k.Occupancy)
	}
	for _, t := range []struct {
		name string
		t    Traffic
	}{{"global loads", k.Memory.GlobalLoads}, {"global stores", k.Memory.GlobalStores}, {"shared loads", k.Memory.SharedLoads},
		{"shared stores", k.Memory.SharedStores}, {"local loads", k.Memory.LocalLoads}, {"local stores", k.Memory.LocalStores},
		{"atomics", k.Memory.Atomics}} {
		if t.t.Instructions > 0 {
			line(t.name, "%d, per thread %.4g with %.4g bytes", t.t.Instructions, t.t.Accesses, t.t.Bytes)
		}
	}
	if k.Memory.CoalescingKnown {
		line("coalescing", "%.0f %%", 100*k.Memory.Coalescing)
	}
	if k.Memory.BankConflictsKnown {
		line("banks", "%.3g passes where 1 would do", k.Memory.BankConflicts)
	}
	note := ""
	switch {
	case !k.Walked:
		note = ", each instruction counted once"
	case k.OpenLoops > 0:
		note = fmt.Sprintf(", per iteration of %d loops of unknown length", k.OpenLoops)
	}
	if k.Incomplete {
		line("incomplete", "the kernel is too long to follow all iterations of its loops: there may be more to find")
	}
	line("intensity", "%.4g flop, %.4g bytes per thread: %.3g flop/byte (%s)%s", k.Flops, k.Bytes, k.Intensity, k.Rate, note)
	if p := k.Placement; p != nil {
		line("roofline", "%s: bound by %s; %.4g of %.4g Tflop/s attainable, ridge at %.3g flop/byte", p.GPU, p.Bound,
			p.Attainable/1e12, p.Peak/1e12, p.Ridge)
	}
}
