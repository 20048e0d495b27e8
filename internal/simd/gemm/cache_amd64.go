package gemm

import "golang.org/x/sys/cpu"

// cpuid returns what the processor says of itself.
func cpuid(leaf, sub uint32) (a, b, c, d uint32)

// detect reads the deterministic cache parameters: leaf 4 of Intel, 0x8000001d of AMD with the same fields.
func detect() caches {
	var found caches
	leaf := uint32(4)
	if top, b, _, _ := cpuid(0, 0); b == 0x68747541 || b == 0x6f677948 { // "Auth", "Hygo"
		leaf = 0x8000001d
		if most, _, _, _ := cpuid(0x80000000, 0); most < leaf || !cpu.X86.HasSSE3 {
			return found
		}
		if _, _, c, _ := cpuid(0x80000001, 0); c>>22&1 == 0 { // no topology extensions
			return found
		}
	} else if top < leaf {
		return found
	}
	for i := range uint32(16) {
		a, b, c, _ := cpuid(leaf, i)
		kind, level, sharing := a&31, a>>5&7, int(a>>14&4095)+1
		if kind == 0 {
			break
		}
		if kind == 2 { // instructions
			continue
		}
		size := int(b>>22+1) * int(b>>12&1023+1) * int(b&4095+1) * int(c+1)
		switch level {
		case 1:
			found.l1 = size
		case 2:
			found.l2 = size / max(1, sharing/2) // two threads of a core share theirs
		}
	}
	return found
}
