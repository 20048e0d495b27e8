package arm64

// transposeFiles are the functions of package kernels that transpose.
func transposeFiles() map[string][]byte {
	const dst, src, dstStep, srcStep, count, to = 0, 1, 2, 3, 4, 5
	t := &text{}
	t.b.WriteString(header + include)
	t.line("\n// func transposeNEON(dst, src *uint32, ldd, lds, n int)")
	t.line("TEXT ·transposeNEON(SB), NOSPLIT, $0-40")
	for i, arg := range []string{"dst+0", "src+8", "ldd+16", "lds+24", "n+32"} {
		t.ins("MOVD %s(FP), R%d", arg, i)
	}
	t.ins("LSL $2, R%d, R%d", dstStep, dstStep)
	t.ins("LSL $2, R%d, R%d", srcStep, srcStep)
	t.ins("CBZ R%d, done", count)
	t.loop("loop")
	for i := range lanes {
		t.ins("FMOVQ (R%d), F%d", src, i)
		t.ins("ADD R%d, R%d, R%d", srcStep, src, src)
	}
	exchange(t)
	t.ins("MOVD R%d, R%d", dst, to)
	for i := range lanes {
		t.ins("FMOVQ F%d, (R%d)", i, to)
		if i+1 < lanes {
			t.ins("ADD R%d, R%d, R%d", dstStep, to, to)
		}
	}
	t.ins("ADD $16, R%d, R%d", dst, dst)
	t.ins("SUBS $1, R%d, R%d", count, count)
	t.ins("BNE loop")
	t.label("done")
	t.ins("RET")
	return map[string][]byte{
		"kernels/transpose_gen_arm64.s": []byte(t.b.String()),
		"kernels/transpose_stubs_gen_arm64.go": []byte(header + `package kernels

//go:noescape
func transposeNEON(dst, src *uint32, ldd, lds, n int)
`),
	}
}
