package ptx

// AddWords is x + y of numbers of several words, the lowest first, without the last carry.
func AddWords[T Index](k *Kernel, x, y []Reg[T]) []Reg[T] { return words(k, "add", x, y) }

// SubWords is x − y of numbers of several words, the lowest first, without the last borrow.
func SubWords[T Index](k *Kernel, x, y []Reg[T]) []Reg[T] { return words(k, "sub", x, y) }

// words emits the whole chain at once, so that nothing can come between that changes the hidden carry.
func words[T Index](k *Kernel, op string, x, y []Reg[T]) []Reg[T] {
	if len(x) != len(y) || len(x) < 2 {
		k.fail("%s of %d and %d words; wanted as many, two or more", op, len(x), len(y))
		return x
	}
	z := make([]Reg[T], len(x))
	for i := range x {
		code := op
		if i > 0 {
			code += "c"
		}
		if i < len(x)-1 {
			code += ".cc"
		}
		z[i] = def[T](k, code+"."+typeOf[T]().op.String(), x[i], y[i])
		k.regs[z[i].v.reg].ignore = true
	}
	return z
}
