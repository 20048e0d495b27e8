package arm64

import (
	"fmt"
	"strings"
)

// halfFiles are the functions of package kernels between float32 and bytes or the floats of 16 bits. All convert n vectors of four.
func halfFiles() map[string][]byte {
	const y, x, n = 0, 1, 2
	t := &text{}
	t.b.WriteString(header + include)
	var stubs strings.Builder
	stubs.WriteString(header + "package kernels\n")
	vectors := map[string]string{"uint8": "FMOVS.P%s 4", "uint16": "FMOVD.P%s 8", "float32": "FMOVQ.P%s 16"}
	function := func(name, to, from string, prepare, convert func()) {
		declaration := fmt.Sprintf("func %sNEON(y *%s, x *%s, n int)", name, to, from)
		load, save := fmt.Sprintf(vectors[from], ""), fmt.Sprintf(vectors[to], " F0,")
		stubs.WriteString("\n//go:noescape\n" + declaration + "\n")
		t.line("\n// %s", declaration)
		t.line("TEXT ·%sNEON(SB), NOSPLIT, $0-24", name)
		for i, arg := range []string{"y+0", "x+8", "n+16"} {
			t.ins("MOVD %s(FP), R%d", arg, i)
		}
		prepare()
		t.loop(name)
		t.ins("%s(R%d), F0", load, x)
		convert()
		t.ins("%s(R%d)", save, y)
		t.ins("SUBS $1, R%d, R%d", n, n)
		t.ins("BNE %s", name)
		t.ins("RET")
	}
	nothing := func() {}
	function("widenF16", "float32", "uint16", nothing, func() { t.vec("fcvtl", 0, 0) })
	function("widenBF16", "float32", "uint16", nothing, func() { t.vec("shll", 0, 0) })
	function("narrowF16", "uint16", "float32", nothing, func() { t.vec("fcvtn", 0, 0) })
	function("widenU8", "float32", "uint8", nothing, func() {
		t.vec("uxtl.b", 0, 0)
		t.vec("uxtl.h", 0, 0)
		t.vec("ucvtf", 0, 0)
	})
	function("narrowU8", "uint8", "float32", nothing, func() { // all three limit what they take
		t.vec("fcvtnu", 0, 0)
		t.vec("uqxtn.s", 0, 0)
		t.vec("uqxtn.h", 0, 0)
	})
	const odd, below, quiet = 4, 5, 6
	function("narrowBF16", "uint16", "float32", func() {
		for i, bits := range []string{"1", "0x7fff", "0x400000"} {
			t.ins("MOVD $%s, R3", bits)
			t.ins("FMOVS R3, F%d", odd+i)
			t.vec("dup", odd+i, odd+i)
		}
	}, func() { // as on x86: half of the last place, less one bit if the number is even
		t.vec("fcmeq", 2, 0, 0)
		t.vec("ushr", 1, 0, 16)
		t.vec("and", 1, 1, odd)
		t.vec("add", 1, 1, below)
		t.vec("add", 1, 1, 0)
		t.vec("orr", 0, 0, quiet)
		t.vec("bit", 0, 1, 2)
		t.vec("shrn", 0, 0)
	})
	return map[string][]byte{
		"kernels/half_gen_arm64.s":        []byte(t.b.String()),
		"kernels/half_stubs_gen_arm64.go": []byte(stubs.String()),
	}
}
