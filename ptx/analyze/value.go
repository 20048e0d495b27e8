package analyze

import (
	"encoding/binary"
	"hash/fnv"
	"math/bits"

	"github.com/wavelane/wavelane/ptx/ir"
)

// level says among which threads a value is the same.
type level uint8

// The levels.
const (
	perBlock  level = iota // the same in all threads of the block
	perWarp                // the same in the lanes of each warp
	perThread              // different, as far as is known
)

// symbolKind says what a symbol stands for.
type symbolKind uint8

const (
	anySymbol     symbolKind = iota
	paramSymbol              // the value of a parameter
	addressSymbol            // the address of a variable; its space says which
)

// symbol is a quantity that is not known.
type symbol struct {
	id    int
	name  string
	kind  symbolKind
	level level
	align int64    // what its value is a multiple of
	v     *ir.Var  // addressSymbol, and the parameter of a paramSymbol
	space ir.Space // of addressSymbol
	data  bool     // comes from memory (parameters do not count)
	block bool     // comes from %ctaid
	// few tells a condition that may hold for single threads only, such as an equality or an elected lane.
	few bool
	// same is the set of xor masks of lanes under which the value does not change: what a butterfly of shuffles makes uniform.
	same uint8
	// args are what the value is a function of, if it is one: equal ones give equal values.
	args []*vec
	// partner and by: the value is partner's in the lane xor by.
	partner *vec
	by      uint8
	// decides is the by of partners whose values a condition compares with their own, and with nothing else; 0 if it does not.
	// strict: by less or greater, so that of two lanes with different values one finds what the other does not.
	decides uint8
	strict  bool
	chosen  *vec // the value is this, or the same in the lane xor by, as such a condition decides
}

// term is a symbol with a factor, one for all threads or one for each.
type term struct {
	sym *symbol
	k   []int64
}

// vec is the value of a register in all threads of a block: Σ k·symbol + c. Factors and constants have one element if they are
// the same for all threads, else one for each. Constants are sign-extended from the width of the register. It is never changed
// once made.
type vec struct {
	terms   []term // by id of the symbol
	c       []int64
	generic ir.Space // the space whose address cvta made generic
	lvl     level
	known   bool // lvl is
	// truth is the condition of a choice between two numbers: the value is yes where it holds, else no.
	truth   *vec
	yes, no int64
}

func at(k []int64, t int) int64 {
	if len(k) == 1 {
		return k[0]
	}
	return k[t]
}

func constant(c int64) *vec { return &vec{c: []int64{c}, known: true} }

func of(s *symbol) *vec { return &vec{terms: []term{{s, one}}, c: zero} }

var (
	zero = []int64{0}
	one  = []int64{1}
)

// shrink gives one element for all if they are equal.
func shrink(k []int64) []int64 {
	for _, v := range k[1:] {
		if v != k[0] {
			return k
		}
	}
	return k[:1:1]
}

func zip(a, b []int64, f func(x, y int64) int64) []int64 {
	n := max(len(a), len(b))
	out := make([]int64, n)
	for t := range out {
		out[t] = f(at(a, t), at(b, t))
	}
	return shrink(out)
}

func isZero(k []int64) bool { return len(k) == 1 && k[0] == 0 }

// isConst tells that there are no symbols.
func (v *vec) isConst() bool { return len(v.terms) == 0 }

// scalar is the value if it is one known number.
func (v *vec) scalar() (int64, bool) {
	if v.isConst() && len(v.c) == 1 {
		return v.c[0], true
	}
	return 0, false
}

// only is the symbol if the value is that symbol.
func (v *vec) only() *symbol {
	if len(v.terms) == 1 && len(v.terms[0].k) == 1 && v.terms[0].k[0] == 1 && isZero(v.c) {
		return v.terms[0].sym
	}
	return nil
}

// combine is a·fa + b·fb.
func combine(a, b *vec, fa, fb int64) *vec {
	lin := func(x, y int64) int64 { return x*fa + y*fb }
	out := &vec{c: zip(a.c, b.c, lin), generic: a.generic}
	if out.generic == ir.NoSpace {
		out.generic = b.generic
	}
	i, j := 0, 0
	for i < len(a.terms) || j < len(b.terms) {
		var t term
		switch {
		case j == len(b.terms) || i < len(a.terms) && a.terms[i].sym.id < b.terms[j].sym.id:
			t = term{a.terms[i].sym, zip(a.terms[i].k, zero, lin)}
			i++
		case i == len(a.terms) || b.terms[j].sym.id < a.terms[i].sym.id:
			t = term{b.terms[j].sym, zip(zero, b.terms[j].k, lin)}
			j++
		default:
			t = term{a.terms[i].sym, zip(a.terms[i].k, b.terms[j].k, lin)}
			i, j = i+1, j+1
		}
		if !isZero(t.k) {
			out.terms = append(out.terms, t)
		}
	}
	return out
}

// scale is a·f where f has no symbols.
func scale(a *vec, f []int64) *vec {
	mul := func(x, y int64) int64 { return x * y }
	out := &vec{c: zip(a.c, f, mul)}
	for _, t := range a.terms {
		if k := zip(t.k, f, mul); !isZero(k) {
			out.terms = append(out.terms, term{t.sym, k})
		}
	}
	return out
}

// pick is a where from is true and b elsewhere.
func pick(from []bool, a, b *vec) *vec {
	masked := func(v *vec, want bool) *vec {
		f := make([]int64, len(from))
		for t, x := range from {
			if x == want {
				f[t] = 1
			}
		}
		return scale(v, f)
	}
	out := combine(masked(a, true), masked(b, false), 1, 1)
	if a.generic == b.generic {
		out.generic = a.generic
	}
	return out
}

// equalAt tells whether the two are certainly equal in thread t.
func equalAt(a, b *vec, t int) bool {
	if a == b {
		return true
	}
	if at(a.c, t) != at(b.c, t) {
		return false
	}
	i, j := 0, 0
	for {
		for i < len(a.terms) && at(a.terms[i].k, t) == 0 {
			i++
		}
		for j < len(b.terms) && at(b.terms[j].k, t) == 0 {
			j++
		}
		switch {
		case i == len(a.terms) || j == len(b.terms):
			return i == len(a.terms) && j == len(b.terms)
		case a.terms[i].sym != b.terms[j].sym || at(a.terms[i].k, t) != at(b.terms[j].k, t):
			return false
		}
		i, j = i+1, j+1
	}
}

// level says among which threads the value is the same.
func (v *vec) level() level {
	if v.known {
		return v.lvl
	}
	l := varies(v.c)
	for _, t := range v.terms {
		l = max(l, t.sym.level, varies(t.k))
	}
	v.lvl, v.known = l, true
	return l
}

func varies(k []int64) level {
	if len(k) == 1 {
		return perBlock
	}
	for t := range k {
		if k[t] != k[t&^31] {
			return perThread
		}
	}
	for t := 32; t < len(k); t += 32 {
		if k[t] != k[0] {
			return perWarp
		}
	}
	return perBlock
}

// symmetric is the set of xor masks of lanes under which the value does not change.
func (v *vec) symmetric() uint8 {
	if v.level() < perThread {
		return 31
	}
	s := uint8(31)
	for _, t := range v.terms {
		if varies(t.k) == perThread {
			return 0
		}
		if t.sym.level == perThread {
			s &= t.sym.same
		}
	}
	if varies(v.c) == perThread {
		return 0
	}
	return s
}

// from tells what the value depends on.
func (v *vec) from() (data, block bool) {
	for _, t := range v.terms {
		data = data || t.sym.data
		block = block || t.sym.block
	}
	return data, block
}

// aligned is the largest power of two that all symbols with their factors are multiples of, at most 2^62.
func (v *vec) aligned() int64 {
	n := 62
	for _, t := range v.terms {
		for _, k := range t.k {
			if k != 0 {
				n = min(n, bits.TrailingZeros64(uint64(k))+bits.TrailingZeros64(uint64(max(1, t.sym.align))))
			}
		}
	}
	return 1 << n
}

// base is the symbol that the value is an offset from: a variable's address or else the one parameter with factor one; nil if
// there is none or more than one.
func (v *vec) base() *symbol {
	var found *symbol
	for _, kind := range []symbolKind{addressSymbol, paramSymbol} {
		n := 0
		for _, t := range v.terms {
			wide := kind == addressSymbol || t.sym.v != nil && t.sym.v.Type.Bits() == 64 || t.sym.v != nil && t.sym.v.Dims != nil
			if t.sym.kind == kind && len(t.k) == 1 && t.k[0] == 1 && wide {
				found = t.sym
				n++
			}
		}
		if n == 1 {
			return found
		}
		if n > 1 && kind == paramSymbol {
			for _, t := range v.terms {
				if t.sym.kind == kind && t.sym.v.Ptr {
					return t.sym
				}
			}
		}
	}
	return nil
}

// offset is the constant part in thread t if there is no symbol but s in that thread.
func (v *vec) offset(s *symbol, t int) (int64, bool) {
	for _, e := range v.terms {
		if e.sym != s && at(e.k, t) != 0 {
			return 0, false
		}
	}
	return at(v.c, t), true
}

// signature is a number for the symbols and factors of thread t: equal for values that differ by a constant. It is not ok if a
// symbol is not the same for all threads.
func (v *vec) signature(t int) (sig uint64, ok bool) {
	h := fnv.New64a()
	var b [16]byte
	for _, e := range v.terms {
		k := at(e.k, t)
		if k == 0 {
			continue
		}
		if e.sym.level != perBlock {
			return 0, false
		}
		binary.LittleEndian.PutUint64(b[:], uint64(e.sym.id))
		binary.LittleEndian.PutUint64(b[8:], uint64(k))
		h.Write(b[:])
	}
	return h.Sum64(), true
}

// key is a string that is the same for equal values only (up to a collision of 64-bit hashes).
func (v *vec) key(b []byte) []byte {
	add := func(k []int64) {
		if len(k) == 1 {
			b = binary.AppendVarint(append(b, 's'), k[0])
			return
		}
		h := fnv.New64a()
		var w [8]byte
		for _, x := range k {
			binary.LittleEndian.PutUint64(w[:], uint64(x))
			h.Write(w[:])
		}
		b = h.Sum(append(b, 'v'))
	}
	for _, t := range v.terms {
		b = binary.AppendVarint(b, int64(t.sym.id))
		add(t.k)
	}
	b = append(b, '+')
	add(v.c)
	return b
}
