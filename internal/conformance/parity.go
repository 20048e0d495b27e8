package conformance

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// Pairing is a call over a batch and the same call of one item, each of which has to give what the batch gives for it.
type Pairing struct {
	Call
	Entry   *program.Entry
	Batched []bool // operands whose first axis is the batch; others are shared, as weights are
	// Exact says that no device may give other bits: nothing is summed, or always in one order. Elsewhere both are within
	// the entry's tolerance of the reference.
	Exact bool
}

// Single is the call of one item.
func (p Pairing) Single() Call {
	c := Call{Attr: p.Attr}
	for i, t := range p.In {
		if p.Batched[i] {
			t.Shape = append([]int{1}, t.Shape[1:]...)
		}
		c.In = append(c.In, t)
	}
	return c
}

// Pairings are the batched calls that have a reference of one item: norms, positions, activations, residuals, products with a
// few vectors, and attention.
func Pairings() (all []Pairing) {
	add := func(entry string, options any, exact bool, shared int, shapes ...[]int) {
		e := catalogue.Lookup(entry)
		p := Pairing{Entry: e, Exact: exact}
		p.Attr = attrs(e, options)[0]
		for i, s := range shapes {
			p.In = append(p.In, program.F32(s...))
			p.Batched = append(p.Batched, i < len(shapes)-shared)
		}
		all = append(all, p)
	}
	for _, cols := range []int{64, 257} {
		add("rms_norm", nil, false, 1, []int{7, cols}, []int{cols})
		add("layer_norm", nil, false, 2, []int{7, cols}, []int{cols}, []int{cols})
		add("softmax", nil, false, 0, []int{7, cols})
		add("add_rms_norm", nil, false, 1, []int{7, cols}, []int{7, cols}, []int{cols})
		add("swiglu", nil, true, 0, []int{7, cols}, []int{7, cols})
		add("add", nil, true, 0, []int{7, cols}, []int{7, cols})
	}
	for batch := 2; batch <= 8; batch += 3 {
		add("matmul", compute.MatMulOptions{TransB: true}, false, 1, []int{batch, 130}, []int{33, 130})
		add("matmul", compute.MatMulOptions{}, false, 1, []int{batch, 130}, []int{130, 33})
	}
	add("attention", compute.AttentionOptions{Causal: true}, false, 0, []int{3, 2, 4, 32}, []int{3, 19, 2, 32}, []int{3, 19, 2, 32})
	add("rope", compute.RopeOptions{}, true, 1, []int{3, 5, 2, 16}, []int{5})
	all[len(all)-1].In[1].DType = compute.Int32
	return all
}

// RunParity executes every pairing on a device, and compares.
func RunParity(t *testing.T, name string, dev program.Executor) {
	d := newDevice(name, dev)
	t.Cleanup(func() { d.log(t) })
	for i, p := range Pairings() {
		t.Run(fmt.Sprint(p.Entry.Name, p.In), func(t *testing.T) { d.parity(t, p, i) })
	}
}

func (d *testDevice) parity(t *testing.T, p Pairing, number int) {
	r := newSource(Seed(), "parity "+p.Entry.Name, number)
	var in []operand
	for _, x := range p.In {
		o := operand{Type: x, data: program.MakeSlice(x)}
		if ids, ok := o.data.([]int32); ok {
			for i := range ids {
				ids[i] = int32(r.IntN(1000))
			}
		} else {
			o = r.domain(p.Entry, x.Shape...)
		}
		in = append(in, o)
	}
	batch := d.apply(t, p.Entry, p.Attr, in)
	items := p.In[0].Shape[0]
	for i := range items {
		one := make([]operand, len(in))
		for j, o := range in {
			if one[j] = o; p.Batched[j] {
				one[j] = o.item(i)
			}
		}
		for j, alone := range d.apply(t, p.Entry, p.Attr, one) {
			same := !p.Exact || sameBits(batch[j].item(i).data, alone.data)
			require.True(t, same, "%s: item %d of %d gives other bits alone, seed %d", d.name, i, items, Seed())
		}
	}
}

// item is one of a batch.
func (o operand) item(i int) operand {
	n := program.Len(o.Shape[1:])
	return operand{program.Type{DType: o.DType, Shape: append([]int{1}, o.Shape[1:]...)}, subslice(o.data, i*n, n)}
}

// apply executes a step by itself and judges its results.
func (d *testDevice) apply(t *testing.T, e *program.Entry, a program.Attr, in []operand) (results []operand) {
	d.count.Add(1)
	p, io := &program.Program{}, &program.IO{}
	var slots []program.Slot
	for _, o := range in {
		slots = append(slots, p.Add(o.Type, program.FromHost))
		io.Host = append(io.Host, o.clone().data)
	}
	out, err := p.ApplyAll(e, a, slots...)
	require.NoError(t, err)
	p.Read = out
	for _, s := range out {
		results = append(results, operand{p.Values[s].Type, program.MakeSlice(p.Values[s].Type)})
		io.Read = append(io.Read, results[len(results)-1].data)
	}
	require.NoError(t, d.execute(p, io))
	for i, x := range expect(e, a, in, p.Types(out)) {
		require.NoError(t, x.judge(io.Read[i]), "%s %v: result %d, seed %d", e.Name, types(in), i, Seed())
	}
	return results
}
