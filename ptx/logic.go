package ptx

func bitwise[T Type](k *Kernel, op string, args ...arg) Reg[T] {
	return def[T](k, op+"."+typeOf[T]().bits.String(), args...)
}

// And is x & y.
func And[T bool | Integer](k *Kernel, x, y Reg[T]) Reg[T] { return bitwise[T](k, "and", x, y) }

// Or is x | y.
func Or[T bool | Integer](k *Kernel, x, y Reg[T]) Reg[T] { return bitwise[T](k, "or", x, y) }

// Xor is x ^ y.
func Xor[T bool | Integer](k *Kernel, x, y Reg[T]) Reg[T] { return bitwise[T](k, "xor", x, y) }

// Not is ^x, or !x.
func Not[T bool | Integer](k *Kernel, x Reg[T]) Reg[T] { return bitwise[T](k, "not", x) }

// Cnot is 1 if x is 0, and 0 otherwise.
func Cnot[T Integer](k *Kernel, x Reg[T]) Reg[T] { return bitwise[T](k, "cnot", x) }

// Shl is x << n, 0 from the width on.
func Shl[T Integer](k *Kernel, x Reg[T], n Reg[uint32]) Reg[T] { return bitwise[T](k, "shl", x, n) }

// Shr is x >> n, of signed integers with copies of the sign.
func Shr[T Integer](k *Kernel, x Reg[T], n Reg[uint32]) Reg[T] {
	return def[T](k, "shr."+typeOf[T]().op.String(), x, n)
}

// ShfL is the upper half of hi:lo << n. n counts modulo 32, or with clamp up to 32.
func ShfL(k *Kernel, lo, hi, n Reg[uint32], clamp bool) Reg[uint32] {
	return funnel(k, "l", lo, hi, n, clamp)
}

// ShfR is the lower half of hi:lo >> n. n counts modulo 32, or with clamp up to 32.
func ShfR(k *Kernel, lo, hi, n Reg[uint32], clamp bool) Reg[uint32] {
	return funnel(k, "r", lo, hi, n, clamp)
}

func funnel(k *Kernel, dir string, lo, hi, n Reg[uint32], clamp bool) Reg[uint32] {
	mode := "wrap"
	if clamp {
		mode = "clamp"
	}
	return def[uint32](k, "shf."+dir+"."+mode+".b32", lo, hi, n)
}

// Lop3 is any function of three bits: bit a<<2|b<<1|c of table, as [LUT] makes it.
func Lop3(k *Kernel, x, y, z Reg[uint32], table uint8) Reg[uint32] {
	return def[uint32](k, "lop3.b32", x, y, z, lit(table))
}

// LUT is the table of a function of three bits for [Lop3]. f is applied to whole bytes.
func LUT(f func(a, b, c uint8) uint8) uint8 { return f(0xf0, 0xcc, 0xaa) }

// Bfe is the field of length bits at start, of signed integers with copies of its sign.
func Bfe[T Index](k *Kernel, x Reg[T], start, length Reg[uint32]) Reg[T] {
	return def[T](k, "bfe."+typeOf[T]().op.String(), x, start, length)
}

// Bfi is y with the lower length bits of x at start.
func Bfi[T Index](k *Kernel, x, y Reg[T], start, length Reg[uint32]) Reg[T] {
	return bitwise[T](k, "bfi", x, y, start, length)
}

// Popc is the number of ones.
func Popc[T Index](k *Kernel, x Reg[T]) Reg[uint32] { return count(k, "popc", x) }

// Clz is the number of zeros above the highest one.
func Clz[T Index](k *Kernel, x Reg[T]) Reg[uint32] { return count(k, "clz", x) }

func count[T Index](k *Kernel, op string, x Reg[T]) Reg[uint32] {
	return def[uint32](k, op+"."+typeOf[T]().bits.String(), x)
}

// Bfind is the position of the highest bit that is not a copy of the sign, 0xffffffff if there is none.
func Bfind[T Index](k *Kernel, x Reg[T]) Reg[uint32] {
	return def[uint32](k, "bfind."+typeOf[T]().op.String(), x)
}

// BfindShift is by how much x has to be shifted left to bring that bit to the top.
func BfindShift[T Index](k *Kernel, x Reg[T]) Reg[uint32] {
	return def[uint32](k, "bfind.shiftamt."+typeOf[T]().op.String(), x)
}

// Brev is x with its bits in reverse.
func Brev[T Index](k *Kernel, x Reg[T]) Reg[T] { return bitwise[T](k, "brev", x) }

// Fns is the position of the n-th one of mask from base on, downwards for negative n; 0xffffffff if there is none.
func Fns(k *Kernel, mask, base Reg[uint32], n Reg[int32]) Reg[uint32] {
	return def[uint32](k, "fns.b32", mask, base, n)
}

// Prmt picks the four bytes that the lower four hexadecimal digits of selector name, out of the eight of hi:lo. Bit 3 of
// a digit picks copies of the byte's sign.
func Prmt(k *Kernel, lo, hi, selector Reg[uint32]) Reg[uint32] {
	return def[uint32](k, "prmt.b32", lo, hi, selector)
}

// Dp4a is the sum of the four products of bytes, plus c.
func Dp4a[A, B S8x4 | U8x4, C int32 | uint32](k *Kernel, x Reg[A], y Reg[B], c Reg[C]) Reg[C] {
	return def[C](k, "dp4a."+byteType[A]()+"."+byteType[B](), x, y, c)
}

func byteType[T S8x4 | U8x4]() string {
	if typeOf[T]() == &infos.s8x4 {
		return "s32"
	}
	return "u32"
}
