package conformance

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// operand is one input of a case.
type operand struct {
	program.Type
	data any
}

// testCase is one call of an entry. It is the same on every device.
type testCase struct {
	entry  *program.Entry
	number int // among the cases of its entry
	note   string
	attr   program.Attr
	exact  bool    // rounding has no excuse: the inputs are small integers
	loose  float64 // multiplies the tolerance where inputs leave the entry's domain; 0 means 1
	same   bool    // all operands are one value
	alias  alias
	inputs func(r *source) []operand

	mu   sync.Mutex
	want []*expectation // one per result
}

// alias says how the destination lies in memory with respect to the operands.
type alias uint8

const (
	apart   alias = iota
	inPlace       // begins where the operands begin
	shifted       // overlaps them halfway
)

// keep bounds the size of results whose expectation is kept for the next device.
const keep = 1 << 16

// expectations computes the reference once for all devices, unless it is large.
func (c *testCase) expectations(in []operand) ([]*expectation, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.want != nil {
		return c.want, nil
	}
	out, err := c.entry.Check(types(in), c.attr)
	if err != nil {
		return nil, err
	}
	all, size := expect(c.entry, c.attr, in, out), 0
	for _, x := range all {
		if c.exact {
			x.tol = program.Tolerance{}
		}
		if c.loose > 0 {
			x.tol.Abs, x.tol.Rel, x.tol.Mag = x.tol.Abs*c.loose, x.tol.Rel*c.loose, x.tol.Mag*c.loose
		}
		size += len(x.want)
	}
	if size <= keep {
		c.want = all
	}
	return all, nil
}

func (c *testCase) describe(in []operand) string {
	s := fmt.Sprintf("%s #%d %v", c.entry.Name, c.number, types(in))
	for i, p := range c.attr.Scalars {
		s += fmt.Sprintf(" %s=%v", c.entry.Scalars[i].Name, p)
	}
	if c.attr.Options != nil {
		s += fmt.Sprintf(" %+v", c.attr.Options)
	}
	if c.note != "" {
		s += " (" + c.note + ")"
	}
	return s
}

func types(in []operand) []program.Type {
	ts := make([]program.Type, len(in))
	for i, o := range in {
		ts[i] = o.Type
	}
	return ts
}

// source makes the inputs of one case from the seed of the run.
type source struct{ *rand.Rand }

func newSource(seed uint64, name string, number int) *source {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d", name, number)
	return &source{rand.New(rand.NewPCG(seed, h.Sum64()))}
}

// between returns a number in [low, high]; one in four is drawn by magnitude, so that small ones occur.
func (r *source) between(low, high float64) float32 {
	v := low + (high-low)*r.Float64()
	if r.IntN(4) == 0 {
		v *= math.Exp(-12 * r.Float64())
	}
	return float32(min(max(v, low), high))
}

func (r *source) floats(low, high float64, shape ...int) operand {
	data := make([]float32, program.Len(shape))
	const cycle = 99991 // prime; long enough to look random, short enough to be quick at any size
	for i := range min(cycle, len(data)) {
		data[i] = r.between(low, high)
	}
	for i := cycle; i < len(data); {
		i += copy(data[i:], data[:i])
	}
	return operand{program.F32(shape...), data}
}

// domain draws from the interval for which an entry promises its tolerance.
func (r *source) domain(e *program.Entry, shape ...int) operand {
	low, high := domainOf(e)
	return r.floats(low, high, shape...)
}

func domainOf(e *program.Entry) (low, high float64) {
	if e.Domain != [2]float64{} {
		return e.Domain[0], e.Domain[1]
	}
	return -4, 4
}

// integers returns float32 values without fraction, so that sums and products are exact.
func (r *source) integers(low, high int, shape ...int) operand {
	o := r.floats(0, 0, shape...)
	for i := range o.data.([]float32) {
		o.data.([]float32)[i] = float32(low + r.IntN(high-low+1))
	}
	return o
}

// words returns arbitrary values of any element type; words that would be NaN as floats are among the integers.
func (r *source) words(d compute.DType, shape ...int) operand {
	t := program.Type{DType: d, Shape: shape}
	data := program.MakeSlice(t)
	switch s := data.(type) {
	case []float32:
		return r.floats(-1e6, 1e6, shape...)
	case []int32:
		for i := range s {
			s[i] = int32(r.word())
		}
	case []uint32:
		for i := range s {
			s[i] = r.word()
		}
	case []compute.F16:
		for i := range s {
			if s[i] = compute.F16(r.word()); s[i] == poisonF16 {
				s[i] = 0
			}
		}
	case []uint8:
		for i := range s {
			s[i] = uint8(r.word())
		}
	case []compute.BF16:
		for i := range s {
			if s[i] = compute.BF16(r.word()); s[i] == poisonBF16 {
				s[i] = 0
			}
		}
	}
	return operand{t, data}
}

func (r *source) word() uint32 {
	edges := []uint32{0, 1, 0x80000000, 0x7fffffff, 0xffffffff, 0x7fc00001, 0xffbfffff, 0x00000123, 0x807fffff, 0x7f800000}
	if r.IntN(8) == 0 {
		return edges[r.IntN(len(edges))]
	}
	if w := r.Uint32(); w != poison {
		return w
	}
	return 0
}

func f32s(shape []int, data ...float32) operand { return operand{program.F32(shape...), data} }

func vector(data ...float32) operand { return f32s([]int{len(data)}, data...) }

// set changes single elements, counted in row-major order.
func (o operand) set(value float32, at ...int) operand {
	for _, i := range at {
		o.data.([]float32)[i] = value
	}
	return o
}

func (o operand) clone() operand {
	switch s := o.data.(type) {
	case []float32:
		o.data = slices.Clone(s)
	case []int32:
		o.data = slices.Clone(s)
	case []uint32:
		o.data = slices.Clone(s)
	case []compute.F16:
		o.data = slices.Clone(s)
	case []uint8:
		o.data = slices.Clone(s)
	case []compute.BF16:
		o.data = slices.Clone(s)
	}
	return o
}

// builder collects the cases of one entry.
type builder struct {
	*program.Entry
	cases []*testCase
}

func (b *builder) add(note string, a program.Attr, inputs func(r *source) []operand) *testCase {
	c := &testCase{entry: b.Entry, number: len(b.cases), note: note, attr: a, inputs: inputs}
	b.cases = append(b.cases, c)
	return c
}

// given adds a case of fixed operands.
func (b *builder) given(note string, a program.Attr, in ...operand) *testCase {
	return b.add(note, a, func(*source) []operand { return clones(in) })
}

func clones(in []operand) []operand {
	out := make([]operand, len(in))
	for i := range in {
		out[i] = in[i].clone()
	}
	return out
}

// random adds a case of float32 operands of these shapes from the entry's domain.
func (b *builder) random(note string, a program.Attr, shapes ...[]int) *testCase {
	return b.add(note, a, func(r *source) []operand {
		in := make([]operand, len(shapes))
		for i, s := range shapes {
			in[i] = r.domain(b.Entry, s...)
		}
		return in
	})
}

// again adds a case of the same operands and attributes with another placement of the destination.
func (b *builder) again(c *testCase, a alias) {
	n := b.add(c.note+[]string{"", ", in place", ", overlapping"}[a], c.attr, c.inputs)
	n.alias, n.exact, n.loose, n.same = a, c.exact, c.loose, c.same
}

// attrs returns attributes with the scalars that the entry wants tried: the first value of each together, then the next.
func attrs(e *program.Entry, options any) []program.Attr {
	variants := 1
	for _, s := range e.Scalars {
		variants = max(variants, len(s.Test))
	}
	out := make([]program.Attr, variants)
	for i := range out {
		out[i].Options = options
		for _, s := range e.Scalars {
			out[i].Scalars = append(out[i].Scalars, s.Test[i%len(s.Test)])
		}
	}
	return out
}

// generators make the cases of an entry, by name or else by class.
var (
	byName  = map[string]func(b *builder){}
	byClass = map[program.Class]func(b *builder){}
)

// leastCases is the number below which an entry counts as untested.
const leastCases = 12

// casesOf returns the cases of an entry, shared by all devices so that references are computed once.
func casesOf(e *program.Entry) ([]*testCase, error) {
	v, _ := allCases.LoadOrStore(e, sync.OnceValue(func() []*testCase {
		generate := byName[e.Name]
		if generate == nil {
			generate = byClass[e.Class]
		}
		b := &builder{Entry: e}
		if generate != nil {
			generate(b)
		}
		return b.cases
	}))
	cases := v.(func() []*testCase)()
	if len(cases) < leastCases {
		return nil, fmt.Errorf("%s has %d cases, needs at least %d: say in package conformance how to test it", e.Name, len(cases), leastCases)
	}
	return cases, nil
}

var allCases sync.Map // *program.Entry → func() []*testCase

// Call is a call of an entry: the types of the operands, and the attributes.
type Call struct {
	In   []program.Type
	Attr program.Attr
}

// Calls returns the calls that the suite's cases of an entry make, without the large ones: for tests of what devices prepare,
// which execute nothing.
func Calls(e *program.Entry) ([]Call, error) {
	v, _ := allCalls.LoadOrStore(e, sync.OnceValues(func() (calls []Call, err error) {
		cases, err := casesOf(e)
		for _, c := range cases {
			calls = append(calls, Call{types(c.inputs(newSource(Seed(), e.Name, c.number))), c.attr})
		}
		return calls, err
	}))
	return v.(func() ([]Call, error))()
}

// allCalls keeps calls: the operands that tell the types are made once.
var allCalls sync.Map // *program.Entry → func() ([]Call, error)
