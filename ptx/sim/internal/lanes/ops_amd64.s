#include "textflag.h"

// A list of operations is threaded code: each jumps to the next one by the table at the end, whose order is that of the constants in
// ops.go. R9 is the operation; R8, R10, R11 and R12 are registers of 32 bits, of 64 bits, predicates and parameters; BX is the table. Y15 is
// PTX's NaN, Y14 the bits of eight lanes, Y13 those of four lanes of 64 bits.

#define OP(name) TEXT name<>(SB), NOSPLIT|NOFRAME, $0-0

#define D(bank) \
	MOVLQZX 4(R9), DI \
	ADDQ bank, DI

#define X(bank) \
	MOVLQZX 8(R9), SI \
	ADDQ bank, SI

#define Y(bank) \
	MOVLQZX 12(R9), DX \
	ADDQ bank, DX

#define Z(bank) \
	MOVLQZX 16(R9), CX \
	ADDQ bank, CX

#define DXY(bank) \
	D(bank) \
	X(bank) \
	Y(bank)

#define GO \
	MOVLQZX (R9), AX \
	MOVQ (BX)(AX*8), AX \
	JMP AX

#define NEXT \
	ADDQ $20, R9 \
	GO

// STEP of a register of 32 bits in each lane, eight lanes at a time.
#define FOUR(STEP, op) \
	STEP(op, 0) \
	STEP(op, 32) \
	STEP(op, 64) \
	STEP(op, 96)

// STEP of a register of 64 bits, four lanes at a time; half is where their registers of 32 bits are.
#define EIGHT(STEP, op) \
	STEP(op, 0, 0) \
	STEP(op, 32, 16) \
	STEP(op, 64, 32) \
	STEP(op, 96, 48) \
	STEP(op, 128, 64) \
	STEP(op, 160, 80) \
	STEP(op, 192, 96) \
	STEP(op, 224, 112)

#define BITS(op, at) \
	VMOVDQU at(SI), Y0 \
	op at(DX), Y0, Y0 \
	VMOVDQU Y0, at(DI)

#define BITS64(op, at, half) BITS(op, at)

// NUMBER stores Y0 with PTX's NaN for any.
#define NUMBER(at) \
	VCMPPS $3, Y0, Y0, Y1 \
	VBLENDVPS Y1, Y15, Y0, Y0 \
	VMOVUPS Y0, at(DI)

#define FLOATS(op, at) \
	VMOVUPS at(SI), Y0 \
	op at(DX), Y0, Y0 \
	NUMBER(at)

// The upper halves of products in Y0.
#define HIGH(at) \
	VMOVDQU at(SI), Y0 \
	VMOVDQU at(DX), Y1 \
	VPSRLQ $32, Y0, Y2 \
	VPSRLQ $32, Y1, Y3 \
	VPMULUDQ Y1, Y0, Y0 \
	VPMULUDQ Y3, Y2, Y2 \
	VPSRLQ $32, Y0, Y0 \
	VPBLENDD $0xaa, Y2, Y0, Y0

// Products of 64 bits in Y0.
#define PRODUCT(op, half) \
	VPMOVZXDQ half(SI), Y0 \
	VPMOVZXDQ half(DX), Y1 \
	op Y1, Y0, Y0

// Z in AX from the signs of Y0 of eight lanes, after those before.
#define COLLECT \
	VMOVMSKPS Y0, AX \
	SHRL $8, R13 \
	SHLL $24, AX \
	ORL AX, R13

#define COLLECT64 \
	VMOVMSKPD Y0, AX \
	SHRL $4, R13 \
	SHLL $28, AX \
	ORL AX, R13

#define VERDICT \
	XORL 16(R9), R13 \
	MOVL R13, (DI)

#define INTEGERS(name, op) \
OP(name) \
	DXY(R8) \
	FOUR(BITS, op) \
	NEXT

#define INTEGERS64(name, op) \
OP(name) \
	DXY(R10) \
	EIGHT(BITS64, op) \
	NEXT

#define ARITHMETIC(name, op) \
OP(name) \
	DXY(R8) \
	FOUR(FLOATS, op) \
	NEXT

#define COMPARISON(name, STEP, op) \
OP(name) \
	D(R11) \
	X(R8) \
	Y(R8) \
	FOUR(STEP, op) \
	VERDICT \
	NEXT

#define COMPARISON64(name, STEP, op) \
OP(name) \
	D(R11) \
	X(R10) \
	Y(R10) \
	EIGHT(STEP, op) \
	VERDICT \
	NEXT

#define PREDICATES(name, op) \
OP(name) \
	DXY(R11) \
	MOVL (SI), AX \
	op (DX), AX \
	MOVL AX, (DI) \
	NEXT

// func run(r32 *[32]uint32, r64 *[32]uint64, p *uint32, params *byte, list *Op)
TEXT ·run(SB), NOSPLIT, $0-40
	MOVQ r32+0(FP), R8
	MOVQ r64+8(FP), R10
	MOVQ p+16(FP), R11
	MOVQ params+24(FP), R12
	MOVQ list+32(FP), R9
	LEAQ table<>(SB), BX
	VPCMPEQD Y15, Y15, Y15
	VPSRLD $1, Y15, Y15
	VMOVDQU lanes32<>(SB), Y14
	VPMOVZXDQ lanes32<>(SB), Y13
	GO

OP(end)
	VZEROUPPER
	RET

INTEGERS(add, VPADDD)
INTEGERS(sub, VPSUBD)
INTEGERS(and, VPAND)
INTEGERS(or, VPOR)
INTEGERS(xor, VPXOR)
INTEGERS(mulLo, VPMULLD)
INTEGERS(minU, VPMINUD)
INTEGERS(maxU, VPMAXUD)
INTEGERS(minS, VPMINSD)
INTEGERS(maxS, VPMAXSD)
INTEGERS(shl, VPSLLVD)
INTEGERS(shrU, VPSRLVD)
INTEGERS(shrS, VPSRAVD)

#define MULHI(op, at) \
	HIGH(at) \
	VMOVDQU Y0, at(DI)

OP(mulHiU)
	DXY(R8)
	FOUR(MULHI, 0)
	NEXT

#define MADLO(op, at) \
	VMOVDQU at(SI), Y0 \
	VPMULLD at(DX), Y0, Y0 \
	VPADDD at(CX), Y0, Y0 \
	VMOVDQU Y0, at(DI)

OP(madLo)
	DXY(R8)
	Z(R8)
	FOUR(MADLO, 0)
	NEXT

#define MADHI(op, at) \
	HIGH(at) \
	VPADDD at(CX), Y0, Y0 \
	VMOVDQU Y0, at(DI)

OP(madHiU)
	DXY(R8)
	Z(R8)
	FOUR(MADHI, 0)
	NEXT

ARITHMETIC(addF, VADDPS)
ARITHMETIC(subF, VSUBPS)
ARITHMETIC(mulF, VMULPS)

#define FUSED(op, at) \
	VMOVUPS at(SI), Y0 \
	VMOVUPS at(DX), Y2 \
	VFMADD213PS at(CX), Y2, Y0 \
	NUMBER(at)

OP(fmaF)
	DXY(R8)
	Z(R8)
	FOUR(FUSED, 0)
	NEXT

#define MAGNITUDE(op, at) \
	VPAND at(SI), Y15, Y0 \
	VMOVDQU Y0, at(DI)

OP(absF)
	D(R8)
	X(R8)
	FOUR(MAGNITUDE, 0)
	NEXT

#define NEGATED(op, at) \
	VPXOR at(SI), Y1, Y0 \
	VMOVDQU Y0, at(DI)

OP(negF)
	D(R8)
	X(R8)
	VPSLLD $31, Y15, Y1
	FOUR(NEGATED, 0)
	NEXT

#define CONVERTED(op, at) \
	VCVTDQ2PS at(SI), Y0 \
	VMOVUPS Y0, at(DI)

OP(fromS)
	D(R8)
	X(R8)
	FOUR(CONVERTED, 0)
	NEXT

INTEGERS64(add64, VPADDQ)
INTEGERS64(sub64, VPSUBQ)
INTEGERS64(and64, VPAND)
INTEGERS64(or64, VPOR)
INTEGERS64(xor64, VPXOR)

#define SHIFT64(op, at, half) \
	VMOVDQU at(SI), Y0 \
	VPMOVZXDQ half(DX), Y1 \
	op Y1, Y0, Y0 \
	VMOVDQU Y0, at(DI)

OP(shl64)
	D(R10)
	X(R10)
	Y(R8)
	EIGHT(SHIFT64, VPSLLVQ)
	NEXT

OP(shrU64)
	D(R10)
	X(R10)
	Y(R8)
	EIGHT(SHIFT64, VPSRLVQ)
	NEXT

#define MULWIDE(op, at, half) \
	PRODUCT(op, half) \
	VMOVDQU Y0, at(DI)

OP(mulWideU)
	D(R10)
	X(R8)
	Y(R8)
	EIGHT(MULWIDE, VPMULUDQ)
	NEXT

OP(mulWideS)
	D(R10)
	X(R8)
	Y(R8)
	EIGHT(MULWIDE, VPMULDQ)
	NEXT

#define MADWIDE(op, at, half) \
	PRODUCT(op, half) \
	VPADDQ at(CX), Y0, Y0 \
	VMOVDQU Y0, at(DI)

OP(madWideU)
	D(R10)
	X(R8)
	Y(R8)
	Z(R10)
	EIGHT(MADWIDE, VPMULUDQ)
	NEXT

OP(madWideS)
	D(R10)
	X(R8)
	Y(R8)
	Z(R10)
	EIGHT(MADWIDE, VPMULDQ)
	NEXT

#define WIDEN(op, at, half) \
	op half(SI), Y0 \
	VMOVDQU Y0, at(DI)

OP(widenU)
	D(R10)
	X(R8)
	EIGHT(WIDEN, VPMOVZXDQ)
	NEXT

OP(widenS)
	D(R10)
	X(R8)
	EIGHT(WIDEN, VPMOVSXDQ)
	NEXT

#define COPY(op, at) \
	VMOVDQU at(SI), Y0 \
	VMOVDQU Y0, at(DI)

#define COPY64(op, at, half) COPY(op, at)

OP(move)
	D(R8)
	X(R8)
	FOUR(COPY, 0)
	NEXT

OP(move64)
	D(R10)
	X(R10)
	EIGHT(COPY64, 0)
	NEXT

#define STORE(op, at) VMOVDQU Y0, at(DI)

#define STORE64(op, at, half) STORE(op, at)

OP(param)
	D(R8)
	X(R12)
	VPBROADCASTD (SI), Y0
	FOUR(STORE, 0)
	NEXT

OP(param64)
	D(R10)
	X(R12)
	VPBROADCASTQ (SI), Y0
	EIGHT(STORE64, 0)
	NEXT

// Lanes whose bits in Y2 are set take X; Y2 goes on to the following lanes.
#define CHOICE(op, at) \
	VPAND Y14, Y2, Y1 \
	VPCMPEQD Y14, Y1, Y1 \
	VMOVDQU at(DX), Y0 \
	VBLENDVPS Y1, at(SI), Y0, Y0 \
	VMOVDQU Y0, at(DI) \
	VPSRLD $8, Y2, Y2

OP(select)
	DXY(R8)
	Z(R11)
	VPBROADCASTD (CX), Y2
	FOUR(CHOICE, 0)
	NEXT

#define CHOICE64(op, at, half) \
	VPAND Y13, Y2, Y1 \
	VPCMPEQQ Y13, Y1, Y1 \
	VMOVDQU at(DX), Y0 \
	VBLENDVPD Y1, at(SI), Y0, Y0 \
	VMOVDQU Y0, at(DI) \
	VPSRLQ $4, Y2, Y2

OP(select64)
	DXY(R10)
	Z(R11)
	MOVL (CX), AX
	VMOVQ AX, X2
	VPBROADCASTQ X2, Y2
	EIGHT(CHOICE64, 0)
	NEXT

#define COMPARED(op, at) \
	VMOVDQU at(SI), Y0 \
	op at(DX), Y0, Y0 \
	COLLECT

#define COMPARED64(op, at, half) \
	VMOVDQU at(SI), Y0 \
	op at(DX), Y0, Y0 \
	COLLECT64

#define NOGREATER(op, at) \
	VMOVDQU at(SI), Y0 \
	VPMINUD at(DX), Y0, Y1 \
	VPCMPEQD Y1, Y0, Y0 \
	COLLECT

#define COMPAREDF(op, at) \
	VMOVUPS at(SI), Y0 \
	VCMPPS op, at(DX), Y0, Y0 \
	COLLECT

COMPARISON(equal, COMPARED, VPCMPEQD)
COMPARISON(greaterS, COMPARED, VPCMPGTD)
COMPARISON(atMostU, NOGREATER, 0)
COMPARISON(equalF, COMPAREDF, $0)
COMPARISON(lessF, COMPAREDF, $17)
COMPARISON(atMostF, COMPAREDF, $18)
COMPARISON(unordered, COMPAREDF, $3)
COMPARISON64(equal64, COMPARED64, VPCMPEQQ)
COMPARISON64(greaterS64, COMPARED64, VPCMPGTQ)

#define GREATERU(op, at, half) \
	VPXOR at(SI), Y2, Y0 \
	VPXOR at(DX), Y2, Y1 \
	VPCMPGTQ Y1, Y0, Y0 \
	COLLECT64

OP(greaterU64)
	D(R11)
	X(R10)
	Y(R10)
	VPCMPEQD Y2, Y2, Y2
	VPSLLQ $63, Y2, Y2
	EIGHT(GREATERU, 0)
	VERDICT
	NEXT

PREDICATES(andP, ANDL)
PREDICATES(orP, ORL)
PREDICATES(xorP, XORL)

OP(notP)
	D(R11)
	X(R11)
	MOVL (SI), AX
	NOTL AX
	MOVL AX, (DI)
	NEXT

DATA lanes32<>+0(SB)/4, $1
DATA lanes32<>+4(SB)/4, $2
DATA lanes32<>+8(SB)/4, $4
DATA lanes32<>+12(SB)/4, $8
DATA lanes32<>+16(SB)/4, $16
DATA lanes32<>+20(SB)/4, $32
DATA lanes32<>+24(SB)/4, $64
DATA lanes32<>+28(SB)/4, $128
GLOBL lanes32<>(SB), RODATA|NOPTR, $32

DATA table<>+0(SB)/8, $end<>(SB)
DATA table<>+8(SB)/8, $add<>(SB)
DATA table<>+16(SB)/8, $sub<>(SB)
DATA table<>+24(SB)/8, $and<>(SB)
DATA table<>+32(SB)/8, $or<>(SB)
DATA table<>+40(SB)/8, $xor<>(SB)
DATA table<>+48(SB)/8, $mulLo<>(SB)
DATA table<>+56(SB)/8, $minU<>(SB)
DATA table<>+64(SB)/8, $maxU<>(SB)
DATA table<>+72(SB)/8, $minS<>(SB)
DATA table<>+80(SB)/8, $maxS<>(SB)
DATA table<>+88(SB)/8, $shl<>(SB)
DATA table<>+96(SB)/8, $shrU<>(SB)
DATA table<>+104(SB)/8, $shrS<>(SB)
DATA table<>+112(SB)/8, $mulHiU<>(SB)
DATA table<>+120(SB)/8, $madLo<>(SB)
DATA table<>+128(SB)/8, $madHiU<>(SB)
DATA table<>+136(SB)/8, $addF<>(SB)
DATA table<>+144(SB)/8, $subF<>(SB)
DATA table<>+152(SB)/8, $mulF<>(SB)
DATA table<>+160(SB)/8, $fmaF<>(SB)
DATA table<>+168(SB)/8, $absF<>(SB)
DATA table<>+176(SB)/8, $negF<>(SB)
DATA table<>+184(SB)/8, $fromS<>(SB)
DATA table<>+192(SB)/8, $add64<>(SB)
DATA table<>+200(SB)/8, $sub64<>(SB)
DATA table<>+208(SB)/8, $and64<>(SB)
DATA table<>+216(SB)/8, $or64<>(SB)
DATA table<>+224(SB)/8, $xor64<>(SB)
DATA table<>+232(SB)/8, $shl64<>(SB)
DATA table<>+240(SB)/8, $shrU64<>(SB)
DATA table<>+248(SB)/8, $mulWideU<>(SB)
DATA table<>+256(SB)/8, $mulWideS<>(SB)
DATA table<>+264(SB)/8, $madWideU<>(SB)
DATA table<>+272(SB)/8, $madWideS<>(SB)
DATA table<>+280(SB)/8, $widenU<>(SB)
DATA table<>+288(SB)/8, $widenS<>(SB)
DATA table<>+296(SB)/8, $move<>(SB)
DATA table<>+304(SB)/8, $move64<>(SB)
DATA table<>+312(SB)/8, $param<>(SB)
DATA table<>+320(SB)/8, $param64<>(SB)
DATA table<>+328(SB)/8, $select<>(SB)
DATA table<>+336(SB)/8, $select64<>(SB)
DATA table<>+344(SB)/8, $equal<>(SB)
DATA table<>+352(SB)/8, $greaterS<>(SB)
DATA table<>+360(SB)/8, $atMostU<>(SB)
DATA table<>+368(SB)/8, $equalF<>(SB)
DATA table<>+376(SB)/8, $lessF<>(SB)
DATA table<>+384(SB)/8, $atMostF<>(SB)
DATA table<>+392(SB)/8, $unordered<>(SB)
DATA table<>+400(SB)/8, $equal64<>(SB)
DATA table<>+408(SB)/8, $greaterS64<>(SB)
DATA table<>+416(SB)/8, $greaterU64<>(SB)
DATA table<>+424(SB)/8, $andP<>(SB)
DATA table<>+432(SB)/8, $orP<>(SB)
DATA table<>+440(SB)/8, $xorP<>(SB)
DATA table<>+448(SB)/8, $notP<>(SB)
GLOBL table<>(SB), RODATA|NOPTR, $456
