package analyze

import (
	"slices"

	"github.com/wavelane/wavelane/ptx/ir"
)

var moduleDetectors = []Detector{
	{Class: "MissingEntryPoint", Severity: Warning, module: true,
		Doc: "A module without .entry has nothing that can be launched.",
		Fix: "Declare the kernel with .entry rather than .func.", run: detectNoEntry},
	{Class: "VersionMismatch", Severity: Bug, module: true,
		Doc: "An instruction needs a newer PTX version or architecture than the module names: ptxas or the driver refuses it.",
		Fix: "Raise .version or .target.", run: detectVersion},
	{Class: "InvalidSyntaxAccepted", Severity: Bug, raw: true,
		Doc: "PTX has no such instruction: its modifiers or operands do not fit.",
		Fix: "Look the instruction up in the PTX ISA.", run: detectForms},
	{Class: "LaunchBounds", Severity: Bug,
		Doc: "The kernel asks for more than any block may have: 1,024 threads, or the architecture's shared memory.",
		Fix: "Use smaller blocks or tiles.", run: detectBounds},
}

func detectNoEntry(k *kernel, report reporter) {
	for _, f := range k.mod.Funcs {
		if f.Entry {
			return
		}
	}
	report(-1, "the module has %d functions and no kernel", len(k.mod.Funcs))
}

func detectVersion(k *kernel, report reporter) {
	if slices.ContainsFunc(k.mod.Funcs, broken) {
		return // InvalidSyntaxAccepted says where
	}
	v, t, err := ir.Requires(k.mod)
	if err != nil {
		return // InvalidSyntaxAccepted says where
	}
	// What needs no more than the oldest ones that the table of forms knows may need less.
	if k.mod.Version.Less(v) && v != ir.OldestVersion {
		report(-1, "the instructions need PTX %s, the module says %s", v, k.mod.Version)
	}
	if !k.mod.Target.Covers(t) && t != ir.OldestTarget {
		report(-1, "the instructions need %s, the module says %s", t, k.mod.Target)
	}
}

func detectForms(k *kernel, report reporter) {
	for i := range k.f.Body {
		in := &k.f.Body[i]
		if in.Kind() == ir.Directive {
			continue
		}
		if _, err := ir.FormOf(in); err != nil {
			report(i, "%v", err)
			continue
		}
		in.Regs(func(r ir.Reg, _ ir.Role) {
			if r <= 0 || int(r) >= len(k.f.Regs) {
				report(i, "register %d is not declared", r)
			}
		})
	}
}

func detectBounds(k *kernel, report reporter) {
	if !k.f.Entry {
		return
	}
	if n := product3(k.dims); n > 1024 {
		report(-1, "%d threads in a block", n)
	}
	if l, err := k.limits(); err == nil {
		if n := k.sharedBytes(); n > l.MaxShared {
			report(-1, "%d bytes of shared memory, at most %d on sm_%d", n, l.MaxShared, l.SM)
		}
	}
}
