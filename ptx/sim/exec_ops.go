package sim

import (
	"strings"

	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/sim/internal/lanes"
)

// vectorOps are the instructions that [lanes.Run] executes, by opcode: which operation they are, and the banks of d, x, y and z, as the types of
// registers that have all their bits: b32, b64 and pred.
var vectorOps = func() map[string]vectorOp {
	t := map[string]vectorOp{}
	add := func(code lanes.Code, banks, opcodes string) {
		for _, o := range strings.Fields(opcodes) {
			t[o] = vectorOp{code, strings.Fields(banks)}
		}
	}
	add(lanes.OpAdd, "b32 b32 b32", "add.u32 add.s32")
	add(lanes.OpSub, "b32 b32 b32", "sub.u32 sub.s32")
	add(lanes.OpAnd, "b32 b32 b32", "and.b32")
	add(lanes.OpOr, "b32 b32 b32", "or.b32")
	add(lanes.OpXor, "b32 b32 b32", "xor.b32")
	add(lanes.OpMulLo, "b32 b32 b32", "mul.lo.u32 mul.lo.s32")
	add(lanes.OpMinU, "b32 b32 b32", "min.u32")
	add(lanes.OpMaxU, "b32 b32 b32", "max.u32")
	add(lanes.OpMinS, "b32 b32 b32", "min.s32")
	add(lanes.OpMaxS, "b32 b32 b32", "max.s32")
	add(lanes.OpShl, "b32 b32 b32", "shl.b32")
	add(lanes.OpShrU, "b32 b32 b32", "shr.u32 shr.b32")
	add(lanes.OpShrS, "b32 b32 b32", "shr.s32")
	add(lanes.OpMulHiU, "b32 b32 b32", "mul.hi.u32")
	add(lanes.OpMadLo, "b32 b32 b32 b32", "mad.lo.u32 mad.lo.s32")
	add(lanes.OpMadHiU, "b32 b32 b32 b32", "mad.hi.u32")
	add(lanes.OpAddF, "b32 b32 b32", "add.f32 add.rn.f32")
	add(lanes.OpSubF, "b32 b32 b32", "sub.f32 sub.rn.f32")
	add(lanes.OpMulF, "b32 b32 b32", "mul.f32 mul.rn.f32")
	add(lanes.OpFMAF, "b32 b32 b32 b32", "fma.rn.f32 mad.rn.f32")
	add(lanes.OpAbsF, "b32 b32", "abs.f32")
	add(lanes.OpNegF, "b32 b32", "neg.f32")
	add(lanes.OpFromS, "b32 b32", "cvt.rn.f32.s32")
	add(lanes.OpAdd64, "b64 b64 b64", "add.u64 add.s64")
	add(lanes.OpSub64, "b64 b64 b64", "sub.u64 sub.s64")
	add(lanes.OpAnd64, "b64 b64 b64", "and.b64")
	add(lanes.OpOr64, "b64 b64 b64", "or.b64")
	add(lanes.OpXor64, "b64 b64 b64", "xor.b64")
	add(lanes.OpShl64, "b64 b64 b32", "shl.b64")
	add(lanes.OpShrU64, "b64 b64 b32", "shr.u64 shr.b64")
	add(lanes.OpMulWideU, "b64 b32 b32", "mul.wide.u32")
	add(lanes.OpMulWideS, "b64 b32 b32", "mul.wide.s32")
	add(lanes.OpMadWideU, "b64 b32 b32 b64", "mad.wide.u32")
	add(lanes.OpMadWideS, "b64 b32 b32 b64", "mad.wide.s32")
	add(lanes.OpWidenU, "b64 b32", "cvt.u64.u32 cvt.s64.u32")
	add(lanes.OpWidenS, "b64 b32", "cvt.u64.s32 cvt.s64.s32")
	add(lanes.OpSelect, "b32 b32 b32 pred", "selp.b32 selp.u32 selp.s32 selp.f32")
	add(lanes.OpSelect64, "b64 b64 b64 pred", "selp.b64 selp.u64 selp.s64 selp.f64")
	add(lanes.OpAndP, "pred pred pred", "and.pred")
	add(lanes.OpOrP, "pred pred pred", "or.pred")
	add(lanes.OpXorP, "pred pred pred", "xor.pred")
	add(lanes.OpNotP, "pred pred", "not.pred")
	return t
}()

type vectorOp struct {
	code  lanes.Code
	banks []string
}

// orders are the operations that compare numbers of a type: equal, and either less, at most or greater.
var orders = map[ir.Type]struct{ equal, order lanes.Code }{
	ir.B32: {lanes.OpEqual, lanes.OpAtMostU}, ir.U32: {lanes.OpEqual, lanes.OpAtMostU}, ir.S32: {lanes.OpEqual, lanes.OpGreaterS},
	ir.B64: {lanes.OpEqual64, lanes.OpGreaterU64}, ir.U64: {lanes.OpEqual64, lanes.OpGreaterU64}, ir.S64: {lanes.OpEqual64, lanes.OpGreaterS64},
	ir.F32: {lanes.OpEqualF, lanes.OpLessF},
}

// vector notes which operation the instruction being compiled is, if there is one and the processor has vectors.
func (c *compiler) vector(op lanes.Op, ok bool) {
	if ok && lanes.Vectors() {
		c.in.op = op
	}
}

// opOf is what an instruction without guard computes of registers, and whether there is such an operation.
func opOf(in *ir.Instr, d ref, s []ref) (op lanes.Op, ok bool) {
	if in.Op == "setp" {
		return compareOf(in, d, s)
	}
	opcode := string(in.Op)
	for _, m := range in.Mods {
		opcode += "." + string(m)
	}
	v, ok := vectorOps[opcode]
	if !ok || len(s) != len(v.banks)-1 {
		return op, false
	}
	op.Code = v.code
	at := [4]*uint32{&op.D, &op.X, &op.Y, &op.Z}
	for i, r := range append([]ref{d}, s...) {
		bank := map[string]uint8{"b32": bank32, "b64": bank64, "pred": bankP}[v.banks[i]]
		if r.i < 0 || r.bank != bank || i == 0 && bank == bank32 && r.bits != 32 {
			return op, false
		}
		*at[i] = r.offset()
	}
	return op, true
}

// offset is where the register is in its bank, in bytes.
func (r ref) offset() uint32 { return uint32(r.i) * [...]uint32{4 * warpSize, 8 * warpSize, 4}[r.bank] }

// compareOf is opOf of setp.
func compareOf(in *ir.Instr, d ref, s []ref) (op lanes.Op, ok bool) {
	t := in.Type(0)
	codes, ok := orders[t]
	if !ok || len(in.Mods) != 2 || len(s) != 2 || d.bank != bankP || d.i < 0 {
		return op, false
	}
	for _, r := range s {
		if r.i < 0 || r.bank == bankP || (r.bank == bank64) != (t.Bits() == 64) {
			return op, false
		}
	}
	cmp, x, y := in.Mods[0], s[0].offset(), s[1].offset()
	not := false
	if c, ok := complements[cmp]; ok && (t == ir.F32) != (cmp == "ne") {
		cmp, not = c, true
	}
	op.Code = codes.order
	switch cmp {
	case "eq":
		op.Code = codes.equal
	case "num":
		op.Code, not = lanes.OpUnordered, !not
	case "gt", "hi":
		x, y = y, x
		fallthrough
	case "lt", "lo":
		switch codes.order {
		case lanes.OpAtMostU:
			x, y, not = y, x, !not
		case lanes.OpGreaterS, lanes.OpGreaterS64, lanes.OpGreaterU64:
			x, y = y, x
		}
	case "ge", "hs":
		x, y = y, x
		fallthrough
	case "le", "ls":
		switch codes.order {
		case lanes.OpLessF:
			op.Code = lanes.OpAtMostF
		case lanes.OpGreaterS, lanes.OpGreaterS64, lanes.OpGreaterU64:
			not = !not
		}
	default:
		return op, false
	}
	op.D, op.X, op.Y = d.offset(), x, y
	if not {
		op.Z = full
	}
	return op, true
}

// opsStep executes operations together, or the steps of the same instructions where some lanes have no part.
//
//go:noinline
func opsStep(ops []lanes.Op, single []step) step {
	list := lanes.End(ops)
	return func(w *warp, m uint32) {
		if m == full {
			lanes.Run(w.r32, w.r64, w.p, w.block.grid.params.data, list)
			return
		}
		for _, s := range single {
			s(w, m)
		}
	}
}
