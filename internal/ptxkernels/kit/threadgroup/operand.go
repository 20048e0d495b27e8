package threadgroup

import (
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/ptx"
)

// Operand is the task's row of an operand: a [Row] of memory, or what a [Prologue] computes.
type Operand interface {
	// One is element i.
	One(i ptx.Reg[uint32]) scalar.Float
	// OneIf is element i if it is inside, else neutral.
	OneIf(inside ptx.Reg[bool], i ptx.Reg[uint32], neutral scalar.Float) scalar.Float
	// Fours returns what finds units of four elements, of which number 0 begins with the first, to read them.
	Fours(first ptx.Reg[uint32]) func(unit ptx.Reg[uint32]) (read func() [4]scalar.Float)
	// guard runs f, which reads elements, if p.
	guard(p ptx.Reg[bool], f func())
}

// Row is the task's row of a matrix in memory.
type Row struct {
	k *ptx.Kernel
	ptx.Ptr[ptx.Global, float32]
}

// RowParam is the row of a matrix that is a parameter.
func RowParam(t Group, field *kit.Buffer) Row {
	return Row{t.K, RowOf(t, kit.Ptr[float32](t.Params, field))}
}

// One is element i.
func (r Row) One(i ptx.Reg[uint32]) scalar.Float { return r.At(i).Load() }

// OneIf is element i if it is inside, else neutral.
func (r Row) OneIf(inside ptx.Reg[bool], i ptx.Reg[uint32], neutral scalar.Float) scalar.Float {
	return ptx.LoadIf(inside, r.At(i), neutral)
}

// Fours is an [Operand]'s.
func (r Row) Fours(first ptx.Reg[uint32]) func(unit ptx.Reg[uint32]) func() [4]scalar.Float {
	p := r.At(first)
	return func(unit ptx.Reg[uint32]) func() [4]scalar.Float {
		p := p.Bytes(unit.MulWide(16))
		return func() [4]scalar.Float { return p.Load4() }
	}
}

func (r Row) guard(p ptx.Reg[bool], f func()) { r.k.When(p, f) }

// Fours is an [Operand]'s.
func (e *Prologue) Fours(first ptx.Reg[uint32]) func(unit ptx.Reg[uint32]) func() [4]scalar.Float {
	return func(unit ptx.Reg[uint32]) func() [4]scalar.Float {
		return func() [4]scalar.Float { return e.Four(unit.Mad(4, first)) }
	}
}

func (e *Prologue) guard(p ptx.Reg[bool], f func()) { e.k.If(p, f) }

// FourIf is what read gives of the operand if inside, else neutral elements.
func FourIf(k *ptx.Kernel, o Operand, inside ptx.Reg[bool], neutral scalar.Float, read func() [4]scalar.Float) [4]scalar.Float {
	v := scalar.VariablesOf(k, []scalar.Float{neutral, neutral, neutral, neutral})
	o.guard(inside, func() {
		x := read()
		v.Set(x[:])
	})
	return [4]scalar.Float(v.Get())
}

// Batch is the number of accesses that a lane has under way where it does not know how many there are.
const Batch = 4

// Elements are a batch of a lane's, neighbours in neighbouring lanes: the first is inside the row, the others may not be.
type Elements struct {
	At     [Batch]ptx.Reg[uint32]
	inside [Batch]ptx.Reg[bool]
}

// EachBatch walks over the elements of the task.
func (t Group) EachBatch(f func(e Elements)) {
	at := ptx.VarOf(t.K, t.Start.Add(t.Lane))
	t.K.While(func() ptx.Reg[bool] { return at.Get().Lt(t.End) }, func() {
		e := Elements{At: [Batch]ptx.Reg[uint32]{at.Get()}}
		for j := 1; j < Batch; j++ {
			e.At[j] = t.Lanes.Mad(j, e.At[0])
			e.inside[j] = e.At[j].Lt(t.End)
		}
		f(e)
		at.Set(t.Lanes.Mad(Batch, at.Get()))
	})
}

// Load is the batch of an operand, neutral where it is not inside.
func (e Elements) Load(o Operand, neutral scalar.Float) []scalar.Float {
	x := []scalar.Float{o.One(e.At[0])}
	for j := 1; j < Batch; j++ {
		x = append(x, o.OneIf(e.inside[j], e.At[j], neutral))
	}
	return x
}

// Store writes element j of the batch if it is inside.
func (e Elements) Store(j int, r Row, v scalar.Float) {
	if j == 0 {
		r.At(e.At[0]).Store(v)
		return
	}
	ptx.StoreIf(e.inside[j], r.At(e.At[j]), v)
}

// OrZero is v where element j of the batch is inside, else 0.
func (e Elements) OrZero(j int, v scalar.Float) scalar.Float {
	if j == 0 {
		return v
	}
	return ptx.Select(e.inside[j], v, 0)
}
