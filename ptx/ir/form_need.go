package ir

// needs of the architectures: the first version of PTX that knows them.
var targets = []struct {
	Target
	Version
}{
	{Target{50, ""}, Version{4, 0}}, {Target{52, ""}, Version{4, 1}}, {Target{53, ""}, Version{4, 2}},
	{Target{60, ""}, Version{5, 0}}, {Target{61, ""}, Version{5, 0}}, {Target{62, ""}, Version{5, 0}},
	{Target{70, ""}, Version{6, 0}}, {Target{72, ""}, Version{6, 1}}, {Target{75, ""}, Version{6, 3}},
	{Target{80, ""}, Version{7, 0}}, {Target{86, ""}, Version{7, 1}}, {Target{87, ""}, Version{7, 4}},
	{Target{89, ""}, Version{7, 8}},
	{Target{90, ""}, Version{7, 8}}, {Target{90, "a"}, Version{8, 0}},
	{Target{100, ""}, Version{8, 6}}, {Target{100, "a"}, Version{8, 6}}, {Target{100, "f"}, Version{8, 8}},
	{Target{101, ""}, Version{8, 6}}, {Target{101, "a"}, Version{8, 6}}, {Target{101, "f"}, Version{8, 8}},
	{Target{103, ""}, Version{8, 8}}, {Target{103, "a"}, Version{8, 8}}, {Target{103, "f"}, Version{8, 8}},
	{Target{120, ""}, Version{8, 7}}, {Target{120, "a"}, Version{8, 7}}, {Target{120, "f"}, Version{8, 8}},
	{Target{121, ""}, Version{8, 8}}, {Target{121, "a"}, Version{8, 8}}, {Target{121, "f"}, Version{8, 8}},
}

// Targets calls f for the known architectures in ascending order, with the version of PTX that each needs.
func Targets(f func(Target, Version)) {
	for _, t := range targets {
		f(t.Target, t.Version)
	}
}

// PTX is the first version of PTX that knows the target. Of targets that are not known here it is that of the newest.
func (t Target) PTX() Version {
	for _, k := range targets {
		if k.Target == t {
			return k.Version
		}
	}
	for _, k := range targets {
		if k.SM >= t.SM {
			return k.Version
		}
	}
	return Version{9, 0}
}

// Covers tells whether code that needs the target u runs on t.
func (t Target) Covers(u Target) bool {
	switch u.Suffix {
	case "a": // that architecture only
		return t == u
	case "f": // the family: same first digits, at least as new
		return t.Suffix != "" && t.SM/10 == u.SM/10 && t.SM >= u.SM
	}
	return t.SM >= u.SM
}

// accelerated tells whether the instruction, which needs sm, is one of own too: those of sm_90a that all newer targets for one architecture
// or family have, which wgmma is not, and those of sm_100a that its relatives have.
func accelerated(in *Instr, sm, own Target) bool {
	switch {
	case own.Suffix == "":
		return false
	case in.Kind() == TensorMemory || in.First("cta_group::1", "cta_group::2") != "":
		return own.SM/10 == sm.SM/10 && own.SM >= sm.SM
	}
	return own.SM > sm.SM && (in.Op == "setmaxnreg" || in.Op == "tensormap.replace")
}

// Requires is the least version and target that the module's instructions, special registers and directives need; of several targets
// that are for one architecture each, it is the module's own. It is an error if there is none: an instruction that no form describes,
// or instructions for different architectures only.
func Requires(m *Module) (Version, Target, error) {
	need := alternative{sm: OldestTarget, ptx: OldestVersion}
	for _, f := range m.Funcs {
		if err := need.function(f, m.Target); err != nil {
			return Version{}, Target{}, err
		}
	}
	need.raise(need.sm, need.sm.PTX())
	return need.ptx, need.sm, nil
}

func (a *alternative) function(f *Func, own Target) error {
	b := f.Bounds
	if b.ReqCluster[0] > 0 || b.ExplicitCluster || b.MaxClusterBlocks > 0 {
		a.raise(Target{SM: 90}, Version{7, 8})
	}
	if f.NoRet {
		a.raise(OldestTarget, Version{6, 4})
	}
	for _, r := range f.Regs {
		if r.Type == B128 {
			a.raise(Target{SM: 70}, Version{8, 3})
		}
	}
	for i := range f.Body {
		in := &f.Body[i]
		if in.Kind() == Directive {
			if in.Op == OpBranchTargets {
				a.raise(OldestTarget, Version{6, 0})
			}
			continue
		}
		form, err := formOf(in, f)
		if err != nil {
			err.Func = f.Name
			return err
		}
		before, sm := a.sm, form.SM
		if accelerated(in, sm, own) {
			sm = own
		}
		a.raise(sm, form.PTX)
		if before.Suffix != "" && !a.sm.Covers(before) || sm.Suffix != "" && !a.sm.Covers(sm) {
			e := wrong(in, "needs %s, but instructions before it need %s; no GPU has both", sm, before)
			e.Func = f.Name
			return e
		}
		for j := range in.Args {
			if info, ok := Special(in.Args[j].Sym); ok && in.Args[j].Kind == SpecialOperand {
				a.raise(Target{SM: info.SM}, info.PTX)
			}
		}
	}
	return nil
}
