package ptx

// LUT is the table of a function of three bits for [Lop3]. f is applied to whole bytes.
func LUT(f func(a, b, c uint8) uint8) uint8 { return f(0xf0, 0xcc, 0xaa) }

func byteType[T S8x4 | U8x4]() string {
	if typeOf[T]() == &infos.s8x4 {
		return "s32"
	}
	return "u32"
}

// bitwise emits an instruction on the bits of values.
func (x Reg[T]) bitwise(name string, others ...any) Reg[T] {
	return x.op(name+"."+typeOf[T]().bits.String(), others...)
}

// And is x & y.
func (x Reg[T]) And(y any) Reg[T] { return x.bitwise("and", y) }

// Or is x | y.
func (x Reg[T]) Or(y any) Reg[T] { return x.bitwise("or", y) }

// Xor is x ^ y.
func (x Reg[T]) Xor(y any) Reg[T] { return x.bitwise("xor", y) }

// Not is ^x, or !x.
func (x Reg[T]) Not() Reg[T] { return x.bitwise("not") }

// Cnot is 1 if x is 0, and 0 otherwise.
func (x Reg[T]) Cnot() Reg[T] { return x.bitwise("cnot") }

// counted emits an instruction whose further operands are of type uint32.
func (x Reg[T]) counted(code string, counts ...any) Reg[T] {
	k := kernelOf(append([]any{x}, counts...)...)
	if k == nil {
		return noKernel[T]()
	}
	k.admit(code, typeOf[T]())
	args := []arg{x}
	for _, n := range counts {
		args = append(args, lift[uint32](k, n))
	}
	return def[T](k, code, args...)
}

// Shl is x << n, 0 from the width on; n is a uint32.
func (x Reg[T]) Shl(n any) Reg[T] { return x.counted("shl."+typeOf[T]().bits.String(), n) }

// Shr is x >> n, of signed integers with copies of the sign; n is a uint32.
func (x Reg[T]) Shr(n any) Reg[T] { return x.counted(x.plain("shr"), n) }

// Bfe is the field of length bits at start, of signed integers with copies of its sign; start and length are of type uint32.
func (x Reg[T]) Bfe(start, length any) Reg[T] { return x.counted(x.plain("bfe"), start, length) }

// Bfi is y with the lower length bits of x at start; start and length are of type uint32.
func (x Reg[T]) Bfi(y, start, length any) Reg[T] {
	k := kernelOf(x, y, start, length)
	if k == nil {
		return noKernel[T]()
	}
	k.admit("bfi", typeOf[T]())
	return def[T](k, "bfi."+typeOf[T]().bits.String(), x, lift[T](k, y), lift[uint32](k, start), lift[uint32](k, length))
}

// ShfL is the upper half of hi:x << n. n counts modulo 32, or with clamp up to 32.
func (x Reg[T]) ShfL(hi, n any, clamp bool) Reg[T] { return x.funnel("l", hi, n, clamp) }

// ShfR is the lower half of hi:x >> n. n counts modulo 32, or with clamp up to 32.
func (x Reg[T]) ShfR(hi, n any, clamp bool) Reg[T] { return x.funnel("r", hi, n, clamp) }

func (x Reg[T]) funnel(direction string, hi, n any, clamp bool) Reg[T] {
	mode := "wrap"
	if clamp {
		mode = "clamp"
	}
	return x.op("shf."+direction+"."+mode+".b32", hi, n)
}

// Lop3 is any function of three bits: bit a<<2|b<<1|c of table, as [LUT] makes it.
func (x Reg[T]) Lop3(y, z any, table uint8) Reg[T] {
	k := kernelOf(x, y, z)
	if k == nil {
		return noKernel[T]()
	}
	k.admit("lop3", typeOf[T]())
	return def[T](k, "lop3.b32", x, lift[T](k, y), lift[T](k, z), lit(table))
}

// Prmt picks the four bytes that the lower four hexadecimal digits of selector name, out of the eight of hi:x. Bit 3 of
// a digit picks copies of the byte's sign.
func (x Reg[T]) Prmt(hi, selector any) Reg[T] { return x.op("prmt.b32", hi, selector) }

// Popc is the number of ones.
func (x Reg[T]) Popc() Reg[uint32] { return to[uint32](x, "popc."+typeOf[T]().bits.String()) }

// Clz is the number of zeros above the highest one.
func (x Reg[T]) Clz() Reg[uint32] { return to[uint32](x, "clz."+typeOf[T]().bits.String()) }

// Bfind is the position of the highest bit that is not a copy of the sign, 0xffffffff if there is none.
func (x Reg[T]) Bfind() Reg[uint32] { return to[uint32](x, x.plain("bfind")) }

// BfindShift is by how much x has to be shifted left to bring that bit to the top.
func (x Reg[T]) BfindShift() Reg[uint32] { return to[uint32](x, x.plain("bfind.shiftamt")) }

// Brev is x with its bits in reverse.
func (x Reg[T]) Brev() Reg[T] { return x.bitwise("brev") }

// Fns is the position of the n-th one of x from base on, downwards for negative n; 0xffffffff if there is none. base is a uint32, n
// an int32.
func (x Reg[T]) Fns(base, n any) Reg[T] {
	k := kernelOf(x, base, n)
	if k == nil {
		return noKernel[T]()
	}
	k.admit("fns", typeOf[T]())
	return def[T](k, "fns.b32", x, lift[uint32](k, base), lift[int32](k, n))
}

// Dp4a is the sum of the four products of bytes, plus c.
func Dp4a[A, B S8x4 | U8x4, C int32 | uint32](x Reg[A], y Reg[B], c Reg[C]) Reg[C] {
	k := kernelOf(x, y, c)
	if k == nil {
		return noKernel[C]()
	}
	return def[C](k, "dp4a."+byteType[A]()+"."+byteType[B](), x, y, c)
}
