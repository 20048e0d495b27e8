package lanes

// Op is an instruction of a warp all of whose lanes execute it: what it computes, and where its operands are, in bytes from the first
// register of their bank. Registers may be the same.
type Op struct {
	Code
	D, X, Y, Z uint32
}

// Code is what an [Op] computes. Types are those of PTX; an operand is a register of 32 bits where nothing else is said.
type Code uint32

// What there is.
const (
	end Code = iota // of a list

	OpAdd // d = x + y
	OpSub
	OpAnd
	OpOr
	OpXor
	OpMulLo
	OpMinU
	OpMaxU
	OpMinS
	OpMaxS
	OpShl // by 32 or more: 0
	OpShrU
	OpShrS // by 32 or more: the sign
	OpMulHiU
	OpMadLo // d = x·y + z
	OpMadHiU

	OpAddF // with PTX's one NaN, as the others of f32
	OpSubF
	OpMulF
	OpFMAF
	OpAbsF
	OpNegF
	OpFromS // a float from an integer with a sign, rounded to nearest

	OpAdd64 // d, x and y of 64 bits
	OpSub64
	OpAnd64
	OpOr64
	OpXor64
	OpShl64 // by y, of 32 bits
	OpShrU64
	OpMulWideU // d of 64 bits
	OpMulWideS
	OpMadWideU // d and z of 64 bits
	OpMadWideS
	OpWidenU // d of 64 bits
	OpWidenS

	OpMove
	OpMove64
	OpParam // d = the word at x in the parameters
	OpParam64
	OpSelect // d = x where the predicate z is true, else y
	OpSelect64

	OpEqual // the predicate d = x == y, with its bits inverted where they are set in z
	OpGreaterS
	OpAtMostU
	OpEqualF // false for NaN, as the two that follow
	OpLessF
	OpAtMostF
	OpUnordered
	OpEqual64
	OpGreaterS64
	OpGreaterU64

	OpAndP // of predicates
	OpOrP
	OpXorP
	OpNotP
)

// End makes a list of what [Run] executes.
func End(list []Op) []Op { return append(list[:len(list):len(list)], Op{Code: end}) }
