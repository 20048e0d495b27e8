#include "textflag.h"

// func addressesAVX2() *[linkOps]uintptr
TEXT ·addressesAVX2(SB), NOSPLIT, $0-8
	LEAQ ·linksAVX2(SB), AX
	MOVQ AX, ret+0(FP)
	RET

// func addressesAVX512() *[linkOps]uintptr
TEXT ·addressesAVX512(SB), NOSPLIT, $0-8
	LEAQ ·linksAVX512(SB), AX
	MOVQ AX, ret+0(FP)
	RET

// func runChain(links *Link, n int)
// It has no frame, and neither have links: the last one returns to the caller.
TEXT ·runChain(SB), NOSPLIT|NOFRAME, $0-16
	MOVQ links+0(FP), DI
	MOVQ n+8(FP), CX
	XORL AX, AX
	MOVQ DI, SI
	MOVQ (SI), BX
	JMP  BX
