package conformance

import (
	"math"

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

// NewCase is a case of numbers at random from the entry's domain, for tests that need calls for which the suite has no use. Some of those
// to inspect are not finite.
// The element types are those of numbers with fractions.
func NewCase(e *program.Entry, a program.Attr, in ...program.Type) Case {
	return newCase(e, a, in, func(r *source, x operand) {
		for i := range x.Len() {
			if e == catalogue.Inspect && r.IntN(20) == 0 {
				x.set([]float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))}[r.IntN(3)], i)
			}
		}
	})
}

// NewCaseWith is [NewCase] with value somewhere in every fourth row of a matrix, from the second on. One that is not finite shows in sums that it
// has no part in, even if it is multiplied by 0.
func NewCaseWith(value float32, e *program.Entry, a program.Attr, in ...program.Type) Case {
	return newCase(e, a, in, func(r *source, x operand) {
		for row := 1; len(x.Shape) == 2 && row < x.Shape[0]; row += 4 {
			x.set(value, row*x.Shape[1]+r.IntN(x.Shape[1]))
		}
	})
}

// newCase is a case of numbers from the entry's domain after change.
func newCase(e *program.Entry, a program.Attr, in []program.Type, change func(r *source, x operand)) Case {
	b := &builder{Entry: e}
	shapes, types := make([][]int, len(in)), make([]compute.DType, len(in))
	for i, t := range in {
		shapes[i], types[i] = t.Shape, t.DType
	}
	numbers := b.numbers(false, shapes...)
	return Case{Call{in, a}, e, b.typed("", a, func(r *source) []operand {
		all := numbers(r)
		for _, x := range all {
			change(r, x)
		}
		return all
	}, types...)}
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

// NewAttentionBackwardCase is a case of the gradients of attention of so many queries to keys, of so many elements. There is a sequence for
// each length, or one of all keys.
func NewAttentionBackwardCase(o compute.AttentionOptions, queries, keys, elements int, lengths ...int32) Case {
	s := attentionSizes{max(1, len(lengths)), queries, keys, 1, 1, elements}
	b := &builder{Entry: catalogue.AttentionBackward}
	c := b.attendBack("", s, o, lengths...)
	q, k := program.F32(s.b, queries, 1, elements), program.F32(s.b, keys, 1, elements)
	in := []program.Type{q, k, k, q, program.F32(s.b, 1, queries), q}
	if lengths != nil {
		in = append(in, program.Type{DType: compute.Int32, Shape: []int{s.b}})
	}
	return Case{Call{in, c.attr}, b.Entry, c}
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

// NewAttentionCase is a case of attention of so many queries over a cache of one head, whose sequences have these lengths.
func NewAttentionCase(o compute.AttentionOptions, q, cache compute.DType, queries, keys, elements int, lengths ...int32) Case {
	s := attentionSizes{len(lengths), queries, keys, 1, 1, elements}
	return (&builder{Entry: catalogue.Attention}).attend("", s, o, attentionTypes{q, cache}, lengths...).alone()
}

// NewPagedAttentionCase is a case of attention of so many queries over two sequences of four pages, some of which do not exist. Of the last
// query an element is NaN.
func NewPagedAttentionCase(cache compute.DType, queries, elements, page int) Case {
	b := &builder{Entry: catalogue.PagedAttention}
	return b.add("pages that do not exist", program.Attr{Options: compute.AttentionOptions{}}, func(r *source) []operand {
		keys := []int{7, page, 1, elements}
		q := r.domain(b.Entry, 2, queries, 1, elements)
		q.set(float32(math.NaN()), (2*queries-1)*elements)
		table := operand{program.Type{DType: compute.Int32, Shape: []int{2, 4}}, []int32{2, -1, 0, 3, math.MinInt32, 6, 7, 4}}
		lengths := lengthsOf([]int32{int32(4 * page), int32(4*page - page/2 + 1)})
		return []operand{q, r.domain(b.Entry, keys...).as(cache), r.domain(b.Entry, keys...).as(cache), table, lengths}
	}).alone()
}

// NewQuantCase is a case of a product of x, m × k, with weights of given numbers of rows, or of columns if they are column-major.
// Of an odd number of rows, those of [catalogue.QuantQKV] have biases. Little cancels, and rows of x and their parts differ in
// magnitude: what a lane leaves out is more than what Q8 may change, as is the scale of another part.
func NewQuantCase(e *program.Entry, options any, m, k int, n ...int) Case {
	c := (&builder{Entry: e}).quantised("", options, m, k, n...)
	if e == catalogue.QuantQKV && m%2 == 1 {
		c.biased(n...)
	}
	out := c.alone()
	if e != catalogue.QuantMatMulColMajor {
		c.aligned(k)
	}
	return out
}

// alone is a case that the suite does not have.
func (c *testCase) alone() Case {
	call := Call{Attr: c.attr}
	for _, x := range c.inputs(newSource(Seed(), c.entry.Name, c.number)) {
		call.In = append(call.In, x.Type)
	}
	return Case{call, c.entry, c}
}
