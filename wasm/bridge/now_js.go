package main

import (
	"fmt"
	"syscall/js"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
)

// immediate are the calls that return, by their numbers in wasm/js/instance.js.
var immediate = [...]func(m *message) (any, error){
	cancelCall, releaseHandle, newBatch, uploadValue, recordStep, recordKernel, wantValue, describeValue, setInput, deviceMemory,
	adoptBuffer, bufferOf, gpuDevice,
}

// now is now(what, numbers, arrays): it returns an array, of the failure if there is one.
func now(_ js.Value, args []js.Value) (result any) {
	defer func() {
		if v := recover(); v != nil {
			result = failure(fmt.Errorf("panic: %v", v))
		}
	}()
	m := newMessage(args[1], args[2])
	x, err := immediate[args[0].Int()](m)
	if err != nil {
		return failure(err)
	}
	return x
}

func cancelCall(m *message) (any, error) {
	if cancel := calls[m.int()]; cancel != nil {
		cancel()
	}
	return nil, nil
}

func releaseHandle(m *message) (any, error) {
	release(m.int())
	return nil, nil
}

func newBatch(m *message) (any, error) {
	d, err := held[*opened](m.int())
	if err != nil {
		return nil, err
	}
	return hold(&record{device: d, batch: batch.New(d)}), nil
}

// add gives values their numbers, and returns that of the first.
func (r *record) add(values ...batch.Value) (any, error) {
	if err := r.err(); err != nil {
		return nil, err
	}
	r.values = append(r.values, values...)
	return len(r.values) - len(values), nil
}

// batchOf reads the handle of a batch; more is to be read before the message is judged.
func batchOf(handle int, m *message, in []operand) (*record, error) {
	r, err := held[*record](handle)
	if err != nil {
		return nil, err
	}
	if m.err == nil {
		m.err = r.device.own(in)
	}
	if m.err != nil && r.failed == nil {
		r.failed = m.err
	}
	return r, r.err()
}

func uploadValue(m *message) (any, error) {
	handle, x := m.int(), m.operand()
	r, err := batchOf(handle, m, []operand{x})
	if err != nil {
		return nil, err
	}
	return r.add(x.record(r.batch, r.values))
}

func recordStep(m *message) (any, error) {
	handle := m.int()
	e, err := entry(m.int())
	if err != nil {
		return nil, err
	}
	in, scalars, options := m.operands(), m.floats32(), m.options(e)
	r, err := batchOf(handle, m, in)
	if err != nil {
		return nil, err
	}
	return r.add(r.batch.Apply(e.Name, r.operands(in), scalars, options)...)
}

func recordKernel(m *message) (any, error) {
	handle, l, in := m.int(), m.launch(), m.operands()
	r, err := batchOf(handle, m, in)
	if err != nil {
		return nil, err
	}
	return r.add(r.batch.Kernel(l.kernel, l.Launch, l.result.DType, l.result.Shape, r.operands(in)...))
}

func (r *record) value(i int) (batch.Value, error) {
	if i < 0 || i >= len(r.values) {
		return batch.Value{}, fmt.Errorf("value %d: %w", i, compute.ErrArgument)
	}
	return r.values[i], nil
}

func wantValue(m *message) (any, error) {
	handle, value, keep := m.int(), m.int(), m.bool()
	r, err := batchOf(handle, m, nil)
	if err != nil {
		return nil, err
	}
	v, err := r.value(value)
	if err != nil {
		return nil, err
	}
	r.want(v, keep)
	return nil, r.err()
}

// describeValue returns element type and shape.
func describeValue(m *message) (any, error) {
	r, err := held[*record](m.int()) // errors want to name shapes of what was recorded before
	value := m.int()
	if err != nil {
		return nil, err
	}
	v, err := r.value(value)
	if err != nil {
		return nil, err
	}
	result := []any{int(r.batch.DType(v))}
	for _, n := range r.batch.Shape(v) {
		result = append(result, n)
	}
	return js.ValueOf(result), nil
}

// setInput replaces data from the next run on, which may wait in the queue.
func setInput(m *message) (any, error) {
	p, err := held[*plan](m.int())
	if err != nil {
		return nil, err
	}
	value, x := m.int(), m.operand()
	if m.err == nil {
		m.err = p.device.own([]operand{x})
	}
	if m.err != nil {
		return nil, m.err
	}
	if value < 0 || value >= len(p.values) {
		return nil, fmt.Errorf("value %d: %w", value, compute.ErrArgument)
	}
	v := p.values[value]
	set := func() error {
		if x.tensor != nil {
			return p.SetTensor(v, x.tensor.Tensor)
		}
		return p.SetInput(v, x.data)
	}
	if !p.device.draining {
		return nil, set()
	}
	p.device.enqueue(func() { // runs requested before have the old data
		if err := set(); err != nil {
			p.failed = err
		}
	})
	return nil, nil
}

func deviceMemory(m *message) (any, error) {
	d, err := held[*opened](m.int())
	if err != nil {
		return nil, err
	}
	return js.ValueOf(d.memory()), nil
}
