package analyze

import (
	"fmt"
	"io"
	"strings"
)

// Difference is what has changed from one report to another.
type Difference struct {
	Added   []Finding      `json:"added"`   // findings that were not there
	Removed []Finding      `json:"removed"` // findings that are gone
	Kernels []KernelChange `json:"kernels"`
}

// KernelChange is a number of a kernel that has changed.
type KernelChange struct {
	Kernel string  `json:"kernel"`
	What   string  `json:"what"`
	Old    float64 `json:"old"`
	New    float64 `json:"new"`
}

// Compare tells what has changed from an old report to a new one. Findings are the same if class, kernel, instruction and
// message are, wherever they stand. A kernel that only one report has is a change of "present".
func Compare(before, after *Report) Difference {
	d := Difference{Added: []Finding{}, Removed: []Finding{}, Kernels: []KernelChange{}}
	d.Added = append(d.Added, minus(after.Findings, before.Findings)...)
	d.Removed = append(d.Removed, minus(before.Findings, after.Findings)...)
	find := func(r *Report, name string) *KernelReport {
		for i := range r.Kernels {
			if r.Kernels[i].Name == name {
				return &r.Kernels[i]
			}
		}
		return nil
	}
	for i := range before.Kernels {
		a := &before.Kernels[i]
		b := find(after, a.Name)
		if b == nil {
			d.Kernels = append(d.Kernels, KernelChange{a.Name, "present", 1, 0})
			continue
		}
		x, y := a.numbers(), b.numbers()
		for n := range x {
			if x[n].value != y[n].value {
				d.Kernels = append(d.Kernels, KernelChange{a.Name, x[n].name, x[n].value, y[n].value})
			}
		}
	}
	for i := range after.Kernels {
		if find(before, after.Kernels[i].Name) == nil {
			d.Kernels = append(d.Kernels, KernelChange{after.Kernels[i].Name, "present", 0, 1})
		}
	}
	return d
}

// minus are the findings of a that b has not, with their number.
func minus(a, b []Finding) []Finding {
	key := func(f *Finding) string { return fmt.Sprintf("%s|%s|%s|%s", f.Class, f.Kernel, f.Instr, f.Message) }
	count := map[string]int{}
	for i := range b {
		count[key(&b[i])]++
	}
	var out []Finding
	for i := range a {
		if k := key(&a[i]); count[k] > 0 {
			count[k]--
		} else {
			out = append(out, a[i])
		}
	}
	return out
}

type number struct {
	name  string
	value float64
}

func (k *KernelReport) numbers() []number {
	occupancy := 0.0
	if k.Occupancy != nil {
		occupancy = k.Occupancy.Share
	}
	return []number{{"instructions", float64(k.Instructions)}, {"registers", float64(k.Registers)}, {"shared", float64(k.Shared)},
		{"local", float64(k.Local)}, {"occupancy", occupancy}, {"flops", k.Flops}, {"bytes", k.Bytes}, {"intensity", k.Intensity},
		{"coalescing", k.Memory.Coalescing}, {"bank conflicts", k.Memory.BankConflicts}}
}

// WriteText writes the difference for people; nothing if there is none.
func (d *Difference) WriteText(w io.Writer) error {
	var b strings.Builder
	for i := range d.Added {
		b.WriteString("+ ")
		d.Added[i].text(&b)
	}
	for i := range d.Removed {
		b.WriteString("- ")
		d.Removed[i].text(&b)
	}
	for _, k := range d.Kernels {
		fmt.Fprintf(&b, "%s: %s: %.4g → %.4g\n", k.Kernel, k.What, k.Old, k.New)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
