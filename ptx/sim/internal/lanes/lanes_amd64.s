#include "textflag.h"

// Vectors of eight lanes, four of them in a warp: no lengths, no tails. Y15 is PTX's NaN.
#define NAN \
	VPCMPEQD Y15, Y15, Y15 \
	VPSRLD $1, Y15, Y15

// STORE stores Y0 with that for any NaN.
#define STORE(at) \
	VCMPPS $3, Y0, Y0, Y1 \
	VBLENDVPS Y1, Y15, Y0, Y0 \
	VMOVUPS Y0, at(DI)

#define FMA(at) \
	VMOVUPS at(SI), Y0 \
	VMOVUPS at(DX), Y2 \
	VFMADD213PS at(CX), Y2, Y0 \
	STORE(at)

#define BINARY(op, at) \
	VMOVUPS at(SI), Y0 \
	op at(DX), Y0, Y0 \
	STORE(at)

#define LANES(op) \
	MOVQ r+0(FP), DI \
	MOVQ x+8(FP), SI \
	MOVQ y+16(FP), DX \
	NAN \
	BINARY(op, 0) \
	BINARY(op, 32) \
	BINARY(op, 64) \
	BINARY(op, 96) \
	VZEROUPPER \
	RET

// Four lanes of 64 bits in Y0 become offsets; Y4 and Y5 collect.
#define OFFSET(at) \
	VPADDQ Y2, Y0, Y0 \
	VMOVDQU Y0, at(DI) \
	VPOR Y0, Y4, Y4 \
	VPSUBQ Y0, Y3, Y1 \
	VPOR Y1, Y5, Y5

#define WIDE(at) \
	VMOVDQU at(SI), Y0 \
	OFFSET(at)

#define NARROW(from, at) \
	VPMOVZXDQ from(SI), Y0 \
	OFFSET(at)

#define BEGIN \
	MOVQ to+0(FP), DI \
	MOVQ x+8(FP), SI \
	VPBROADCASTQ add+16(FP), Y2 \
	VPBROADCASTQ limit+24(FP), Y3 \
	VPXOR Y4, Y4, Y4 \
	VPXOR Y5, Y5, Y5

// The four lanes of Y4 and of Y5 become one.
#define END \
	VEXTRACTI128 $1, Y4, X0 \
	VPOR X0, X4, X4 \
	VPSHUFD $0xee, X4, X0 \
	VPOR X0, X4, X4 \
	VEXTRACTI128 $1, Y5, X0 \
	VPOR X0, X5, X5 \
	VPSHUFD $0xee, X5, X0 \
	VPOR X0, X5, X5 \
	VMOVQ X4, all+32(FP) \
	VMOVQ X5, bad+40(FP) \
	VZEROUPPER \
	RET

// The words of four lanes, a row each, transposed.
#define ROW(at, x) \
	MOVQ at(BX), AX \
	VMOVUPS (SI)(AX*1), x

// func fma(r, x, y, z *[32]uint32)
TEXT ·fma(SB), NOSPLIT, $0-32
	MOVQ r+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ y+16(FP), DX
	MOVQ z+24(FP), CX
	NAN
	FMA(0)
	FMA(32)
	FMA(64)
	FMA(96)
	VZEROUPPER
	RET

// func add(r, x, y *[32]uint32)
TEXT ·add(SB), NOSPLIT, $0-24
	LANES(VADDPS)

// func sub(r, x, y *[32]uint32)
TEXT ·sub(SB), NOSPLIT, $0-24
	LANES(VSUBPS)

// func mul(r, x, y *[32]uint32)
TEXT ·mul(SB), NOSPLIT, $0-24
	LANES(VMULPS)

// func offsets(to, x *[32]uint64, add, limit uint64) (all, bad uint64)
TEXT ·offsets(SB), NOSPLIT, $0-48
	BEGIN
	WIDE(0)
	WIDE(32)
	WIDE(64)
	WIDE(96)
	WIDE(128)
	WIDE(160)
	WIDE(192)
	WIDE(224)
	END

// func offsets32(to *[32]uint64, x *[32]uint32, add, limit uint64) (all, bad uint64)
TEXT ·offsets32(SB), NOSPLIT, $0-48
	BEGIN
	NARROW(0, 0)
	NARROW(16, 32)
	NARROW(32, 64)
	NARROW(48, 96)
	NARROW(64, 128)
	NARROW(80, 160)
	NARROW(96, 192)
	NARROW(112, 224)
	END

// func load4(r0, r1, r2, r3 *[32]uint32, data *byte, off *[32]uint64)
TEXT ·load4(SB), NOSPLIT, $0-48
	MOVQ r0+0(FP), R8
	MOVQ r1+8(FP), R9
	MOVQ r2+16(FP), R10
	MOVQ r3+24(FP), R11
	MOVQ data+32(FP), SI
	MOVQ off+40(FP), BX
	XORQ CX, CX

four:
	ROW(0, X0)
	ROW(8, X1)
	ROW(16, X2)
	ROW(24, X3)
	VUNPCKLPS X1, X0, X4
	VUNPCKHPS X1, X0, X5
	VUNPCKLPS X3, X2, X6
	VUNPCKHPS X3, X2, X7
	VUNPCKLPD X6, X4, X0
	VUNPCKHPD X6, X4, X1
	VUNPCKLPD X7, X5, X2
	VUNPCKHPD X7, X5, X3
	VMOVUPS X0, (R8)(CX*1)
	VMOVUPS X1, (R9)(CX*1)
	VMOVUPS X2, (R10)(CX*1)
	VMOVUPS X3, (R11)(CX*1)
	ADDQ $32, BX
	ADDQ $16, CX
	CMPQ CX, $128
	JNE four
	RET
