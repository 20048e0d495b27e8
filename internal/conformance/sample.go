package conformance

import (
	"sync/atomic"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// Case is one case of an entry, for tests that choose theirs.
type Case struct {
	Call
	Entry *program.Entry
	c     *testCase
}

// Cases returns the suite's cases of an entry, without the large ones.
func Cases(e *program.Entry) ([]Case, error) {
	calls, err := Calls(e)
	if err != nil {
		return nil, err
	}
	cases, err := casesOf(e)
	if err != nil {
		return nil, err
	}
	out := make([]Case, len(cases))
	for i, c := range cases {
		out[i] = Case{calls[i], e, c}
	}
	return out, nil
}

// Run executes the case on a device as a program of one step and judges its results, as [Run] does. It is safe for concurrent
// use.
func (c Case) Run(dev program.Executor) error {
	d := &testDevice{Executor: dev, count: new(atomic.Int64)}
	return d.run(c.c)
}

func (c Case) String() string {
	return c.c.describe(c.c.inputs(newSource(Seed(), c.Entry.Name, c.c.number)))
}

// NewCase is a case of numbers at random from the entry's domain, for tests that need calls for which the suite has no use.
// The element types are those of numbers with fractions.
func NewCase(e *program.Entry, a program.Attr, in ...program.Type) Case {
	shapes, types := make([][]int, len(in)), make([]compute.DType, len(in))
	for i, t := range in {
		shapes[i], types[i] = t.Shape, t.DType
	}
	b := &builder{Entry: e}
	return Case{Call{in, a}, e, b.typed("", a, b.numbers(false, shapes...), types...)}
}

// NewIntegerCase is NewCase with operands that are integers from −4 to 4, so that sums and products are exact, and the result is to be.
func NewIntegerCase(e *program.Entry, a program.Attr, in ...program.Type) Case {
	shapes, types := make([][]int, len(in)), make([]compute.DType, len(in))
	for i, t := range in {
		shapes[i], types[i] = t.Shape, t.DType
	}
	b := &builder{Entry: e}
	c := b.typed("small integers", a, b.numbers(true, shapes...), types...)
	c.exact = true
	return Case{Call{in, a}, e, c}
}

// NewAttentionBackwardCase is a case of the gradients of attention with n queries and keys, of so many elements.
func NewAttentionBackwardCase(queries, keys, elements int) Case {
	s := attentionSizes{1, queries, keys, 1, 1, elements}
	b := &builder{Entry: catalogue.AttentionBackward}
	c := b.attendBack("", s, compute.AttentionOptions{})
	q, k := s.shapes()
	return Case{Call{[]program.Type{program.F32(q...), program.F32(k...), program.F32(k...), program.F32(q...), program.F32(1, 1, queries),
		program.F32(q...)}, c.attr}, b.Entry, c}
}

// NewPackedAttentionCase is a case of attention to so many packed keys.
func NewPackedAttentionCase(queries, keys int) Case {
	b := &builder{Entry: catalogue.Attention}
	c := b.attend("packed", attentionSizes{1, queries, keys, 1, 1, catalogue.CacheBlock}, compute.AttentionOptions{}, attentionTypes{compute.Float32, compute.Uint32})
	kv := program.Type{DType: compute.Uint32, Shape: packedShape([]int{1, keys, 1, catalogue.CacheBlock})}
	return Case{Call{[]program.Type{program.F32(1, queries, 1, catalogue.CacheBlock), kv, kv}, c.attr}, b.Entry, c}
}

// HasLongCases reports whether there are [LongCases] of an entry.
func HasLongCases(e *program.Entry) bool { return longByName[e] != nil }

// LongCases returns the cases of an entry that [RunLong] chooses from.
func LongCases(e *program.Entry) (cases []Case) {
	for _, c := range longCases(e) {
		cases = append(cases, Case{Call{types(c.inputs(newSource(Seed(), e.Name, c.number))), c.attr}, e, c})
	}
	return cases
}

// NewQuantCase is a case of a product of x, m × k, with weights of given numbers of rows, or of columns if they are column-major.
// Of an odd number of rows, those of [catalogue.QuantQKV] have biases.
func NewQuantCase(e *program.Entry, options any, m, k int, n ...int) Case {
	c := (&builder{Entry: e}).quantised("", options, m, k, n...)
	if e == catalogue.QuantQKV && m%2 == 1 {
		c.biased(n...)
	}
	call := Call{Attr: c.attr}
	for _, x := range c.inputs(newSource(Seed(), e.Name, c.number)) {
		call.In = append(call.In, x.Type)
	}
	return Case{call, e, c}
}
