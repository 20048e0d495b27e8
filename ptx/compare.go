package ptx

// Cmp is a comparison.
type Cmp string

// The comparisons. Those of floating-point numbers are false if one is NaN, but NE and those that end in U, which are
// true then.
const (
	EQ  Cmp = "eq"
	NE  Cmp = "ne"
	LT  Cmp = "lt"
	LE  Cmp = "le"
	GT  Cmp = "gt"
	GE  Cmp = "ge"
	EQU Cmp = "equ"
	NEU Cmp = "neu"
	LTU Cmp = "ltu"
	LEU Cmp = "leu"
	GTU Cmp = "gtu"
	GEU Cmp = "geu"
	Num Cmp = "num" // neither is NaN
	Nan Cmp = "nan" // one is NaN
)

// Scalar is what comparisons take.
type Scalar interface {
	Integer | Real
}

// cmpOf is the comparison as PTX has it: its ne of floating-point numbers is false for NaN, unlike Go's.
func cmpOf[T Type](c Cmp) string {
	if c == NE && typeOf[T]().op.IsFloat() {
		return "neu"
	}
	return string(c)
}

// Class is a class of floating-point numbers.
type Class string

// The classes.
const (
	Finite    Class = "finite"
	Infinite  Class = "infinite"
	IsNumber  Class = "number"
	NotNumber Class = "notanumber"
	Normal    Class = "normal"
	Subnormal Class = "subnormal"
)

// SetP compares x with y.
func (x Reg[T]) SetP(c Cmp, y any, mods ...Mod) Reg[bool] {
	return to[bool](x, x.plain("setp."+cmpOf[T](c), mods...), y)
}

// SetPWith compares x with y and combines the result with p by [OpAnd], [OpOr] or [OpXor].
func (x Reg[T]) SetPWith(c Cmp, y any, op Op, p Reg[bool], mods ...Mod) Reg[bool] {
	k := kernelOf(x, y, p)
	if k == nil {
		return noKernel[bool]()
	}
	k.admit("setp", typeOf[T]())
	return def[bool](k, x.plain("setp."+cmpOf[T](c)+"."+string(op), mods...), x, lift[T](k, y), p)
}

// SetP2 compares the halves of x with those of y.
func (x Reg[T]) SetP2(c Cmp, y any, mods ...Mod) (lo, hi Reg[bool]) {
	k := kernelOf(x, y)
	if k == nil {
		return noKernel[bool](), noKernel[bool]()
	}
	lo, hi = Reg[bool]{k.fresh(&infos.pred)}, Reg[bool]{k.fresh(&infos.pred)}
	k.emit(x.plain("setp."+cmpOf[T](c), mods...), pair{result{lo.v}, result{hi.v}}, x, lift[T](k, y))
	return lo, hi
}

// Eq is x == y.
func (x Reg[T]) Eq(y any) Reg[bool] { return x.SetP(EQ, y) }

// Ne is x != y.
func (x Reg[T]) Ne(y any) Reg[bool] { return x.SetP(NE, y) }

// Lt is x < y.
func (x Reg[T]) Lt(y any) Reg[bool] { return x.SetP(LT, y) }

// Le is x <= y.
func (x Reg[T]) Le(y any) Reg[bool] { return x.SetP(LE, y) }

// Gt is x > y.
func (x Reg[T]) Gt(y any) Reg[bool] { return x.SetP(GT, y) }

// Ge is x >= y.
func (x Reg[T]) Ge(y any) Reg[bool] { return x.SetP(GE, y) }

// TestP tells whether x is of the class.
func (x Reg[T]) TestP(c Class) Reg[bool] { return to[bool](x, x.plain("testp."+string(c))) }

// Select is x if p, else y.
func Select[T Elem](p Reg[bool], x Reg[T], y any) Reg[T] {
	k := kernelOf(p, x, y)
	if k == nil {
		return noKernel[T]()
	}
	return def[T](k, "selp."+moveType(typeOf[T]()), x, lift[T](k, y), p)
}

// Slct is x if c >= 0, else y.
func Slct[T Elem](x Reg[T], y any, c Reg[int32]) Reg[T] {
	k := kernelOf(x, y, c)
	if k == nil {
		return noKernel[T]()
	}
	return def[T](k, "slct."+moveType(typeOf[T]())+".s32", x, lift[T](k, y), c)
}
