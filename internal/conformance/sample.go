package conformance

import (
	"sync/atomic"

	"github.com/wavelane/wavelane/compute"
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

// NewQuantCase is a case of a product of x, m × k, with weights of given numbers of rows, or of columns if they are column-major.
func NewQuantCase(e *program.Entry, options any, m, k int, n ...int) Case {
	c := (&builder{Entry: e}).quantised("", options, m, k, n...)
	call := Call{Attr: c.attr}
	for _, x := range c.inputs(newSource(Seed(), e.Name, c.number)) {
		call.In = append(call.In, x.Type)
	}
	return Case{call, e, c}
}
