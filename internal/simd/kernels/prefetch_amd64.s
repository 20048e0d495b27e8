#include "textflag.h"

// func prefetch(x *float32, n int)
TEXT ·prefetch(SB), NOSPLIT, $0-16
	MOVQ x+0(FP), SI
	MOVQ n+8(FP), CX
	LEAQ (SI)(CX*4), CX

next:
	PREFETCHT0 (SI)
	ADDQ       $64, SI
	CMPQ       SI, CX
	JLT        next
	RET

// func prefetchWrite(x *float32, n int)
TEXT ·prefetchWrite(SB), NOSPLIT, $0-16
	MOVQ x+0(FP), SI
	MOVQ n+8(FP), CX
	LEAQ (SI)(CX*4), CX

next:
	BYTE $0x0F; BYTE $0x0D; BYTE $0x0E // PREFETCHW (SI)
	ADDQ $64, SI
	CMPQ SI, CX
	JLT  next
	RET
