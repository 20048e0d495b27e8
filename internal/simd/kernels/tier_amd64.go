package kernels

import "golang.org/x/sys/cpu"

// detect: x/sys/cpu reports AVX2 and AVX-512 only where the operating system saves their registers.
func detect() []Tier {
	tiers := []Tier{Scalar, SSE}
	x := &cpu.X86
	if x.HasAVX2 && x.HasFMA && x.HasF16C {
		tiers = append(tiers, AVX2)
		if x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL {
			tiers = append(tiers, AVX512)
		}
	}
	return tiers
}
