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

// SetP compares x with y.
func SetP[T Scalar](k *Kernel, c Cmp, x, y Reg[T], mods ...Mod) Reg[bool] {
	return def[bool](k, withMods("setp."+cmpOf[T](c), "", mods, typeOf[T]().op.String()), x, y)
}

// SetPWith compares x with y and combines the result with p by [OpAnd], [OpOr] or [OpXor].
func SetPWith[T Scalar](k *Kernel, c Cmp, op Op, x, y Reg[T], p Reg[bool], mods ...Mod) Reg[bool] {
	return def[bool](k, withMods("setp."+cmpOf[T](c)+"."+string(op), "", mods, typeOf[T]().op.String()), x, y, p)
}

// SetP2 compares the halves of x with those of y.
func SetP2[T F16x2 | BF16x2](k *Kernel, c Cmp, x, y Reg[T], mods ...Mod) (lo, hi Reg[bool]) {
	lo, hi = Reg[bool]{k.fresh(&infos.pred)}, Reg[bool]{k.fresh(&infos.pred)}
	k.emit(withMods("setp."+cmpOf[T](c), "", mods, typeOf[T]().op.String()), pair{result{lo.v}, result{hi.v}}, x, y)
	return lo, hi
}

// Eq is x == y.
func Eq[T Scalar](k *Kernel, x, y Reg[T]) Reg[bool] { return SetP(k, EQ, x, y) }

// Ne is x != y.
func Ne[T Scalar](k *Kernel, x, y Reg[T]) Reg[bool] { return SetP(k, NE, x, y) }

// Lt is x < y.
func Lt[T Scalar](k *Kernel, x, y Reg[T]) Reg[bool] { return SetP(k, LT, x, y) }

// Le is x <= y.
func Le[T Scalar](k *Kernel, x, y Reg[T]) Reg[bool] { return SetP(k, LE, x, y) }

// Gt is x > y.
func Gt[T Scalar](k *Kernel, x, y Reg[T]) Reg[bool] { return SetP(k, GT, x, y) }

// Ge is x >= y.
func Ge[T Scalar](k *Kernel, x, y Reg[T]) Reg[bool] { return SetP(k, GE, x, y) }

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

// TestP tells whether x is of the class.
func TestP[T float32 | float64](k *Kernel, c Class, x Reg[T]) Reg[bool] {
	return def[bool](k, "testp."+string(c)+"."+typeOf[T]().op.String(), x)
}

// Select is x if p, else y.
func Select[T Elem](k *Kernel, p Reg[bool], x, y Reg[T]) Reg[T] {
	return def[T](k, "selp."+moveType(typeOf[T]()), x, y, p)
}

// Slct is x if c >= 0, else y.
func Slct[T Elem](k *Kernel, x, y Reg[T], c Reg[int32]) Reg[T] {
	return def[T](k, "slct."+moveType(typeOf[T]())+".s32", x, y, c)
}
