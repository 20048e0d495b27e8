package main

import (
	"context"
	"fmt"
	"slices"
	"syscall/js"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/gpu"
	"github.com/wavelane/wavelane/internal/device"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/wgsl"
)

// waiting are the calls that are settled later, by their numbers in wasm/js/instance.js.
var waiting = append([]func(c *call, m *message, extra js.Value){
	(*call).open, (*call).upload, (*call).readTensor, (*call).apply, (*call).runBatch, (*call).compile, (*call).runPlan, (*call).newKernel,
	(*call).runKernel,
}, models...)

// begin begins a call: begin(number, what, numbers, arrays, extra).
func begin(_ js.Value, args []js.Value) any {
	c := newCall(args[0].Int())
	defer c.guard()
	waiting[args[1].Int()](c, newMessage(args[2], args[3]), args[4])
	return nil
}

func (c *call) open(m *message, extra js.Value) {
	w := wish{kind: m.int(), software: m.bool(), lowPower: m.bool(), adopted: extra}
	go func() {
		defer c.guard()
		d, info, err := openDevice(c.ctx, w)
		if err != nil {
			c.reject(err)
			return
		}
		c.resolve(hold(d), info)
	}()
}

// received gives the device of a message that was read to its end.
func received(handle int, m *message) (*opened, error) {
	d, err := held[*opened](handle)
	if m.err != nil {
		return nil, m.err
	}
	return d, err
}

func (c *call) upload(m *message, _ js.Value) {
	handle, x := m.int(), m.operand()
	d, err := received(handle, m)
	if err != nil {
		c.reject(err)
		return
	}
	c.start(d, func() (*compute.Future, func() ([]any, error), func()) {
		t, f := device.Upload(context.Background(), program.ExecutorOf(d), x.data, x.shape...)
		return f, func() ([]any, error) { return []any{tensorResult(d, t)}, nil }, func() {
			if t != nil {
				t.Close()
			}
		}
	})
}

func (c *call) readTensor(m *message, _ js.Value) {
	t, err := held[*tensor](m.int())
	if err == nil {
		err = reserve(program.Type{DType: t.DType(), Shape: t.Shape()}.Bytes())
	}
	if err != nil {
		c.reject(err)
		return
	}
	c.start(t.device, func() (*compute.Future, func() ([]any, error), func()) {
		data := program.MakeSlice(program.Type{DType: t.DType(), Shape: t.Shape()})
		return t.ReadAsync(data), func() ([]any, error) { return []any{arrayResult(t.DType(), data)}, nil }, func() {}
	})
}

// apply runs one operation: a batch of one step.
func (c *call) apply(m *message, _ js.Value) {
	handle := m.int()
	e, err := entry(m.int())
	if err != nil {
		c.reject(err)
		return
	}
	keep, in, scalars, options := m.bool(), m.operands(), m.floats32(), m.options(e)
	d, err := received(handle, m)
	if err == nil {
		err = d.own(in)
	}
	if err != nil {
		c.reject(err)
		return
	}
	r := &record{device: d, batch: batch.New(d)}
	values := r.batch.Apply(e.Name, r.operands(in), scalars, options)
	var updated []int // operands that are the results
	for i, v := range values {
		if i < e.Updates && in[i].tensor != nil {
			updated = append(updated, i)
			continue
		}
		r.want(v, keep)
	}
	c.runOnce(r, func(results []any) []any {
		for _, i := range updated {
			results = slices.Insert(results, i, any(js.Null())) // JavaScript knows the tensor
		}
		return results
	})
}

// operands makes values of operands.
func (r *record) operands(in []operand) []batch.Value {
	values := make([]batch.Value, len(in))
	for i, x := range in {
		values[i] = x.record(r.batch, r.values)
	}
	return values
}

// want requests a value as an array or as a tensor.
func (r *record) want(v batch.Value, keep bool) {
	if keep {
		r.outputs = append(r.outputs, output{keep: r.batch.Keep(v)})
		return
	}
	if t := (program.Type{DType: r.batch.DType(v), Shape: r.batch.Shape(v)}); r.batch.Err() == nil && r.failed == nil {
		r.failed = reserve(t.Bytes())
	}
	r.outputs = append(r.outputs, output{read: r.batch.Read(v)})
}

// err is the first error of recording.
func (r *record) err() error {
	if err := recorded(r.batch); err != nil {
		return err
	}
	return r.failed
}

// runOnce runs a batch and resolves to its results, after change if that is not nil.
func (c *call) runOnce(r *record, change func([]any) []any) {
	if err := r.err(); err != nil {
		c.reject(err)
		return
	}
	c.start(r.device, func() (*compute.Future, func() ([]any, error), func()) {
		f := r.batch.Start()
		outputs := started(r.outputs)
		return f, func() ([]any, error) {
			results, err := collect(r.device, outputs)
			if change != nil && err == nil {
				results = change(results)
			}
			return results, err
		}, func() { discard(outputs) }
	})
}

// started takes the tensors of a run.
func started(outputs []output) []output {
	outputs = slices.Clone(outputs)
	for i, o := range outputs {
		if o.keep != nil {
			outputs[i].tensor = o.keep.Tensor()
		}
	}
	return outputs
}

// collect makes the results of a batch.
func collect(d *opened, outputs []output) ([]any, error) {
	results := make([]any, len(outputs))
	for i, o := range outputs {
		if o.keep != nil {
			results[i] = tensorResult(d, o.tensor)
			continue
		}
		data, err := o.read.Data()
		if err != nil {
			return nil, err
		}
		results[i] = arrayResult(o.read.DType(), data)
	}
	return results, nil
}

// discard closes the tensors of a run that failed.
func discard(outputs []output) {
	for _, o := range outputs {
		if o.tensor != nil {
			o.tensor.Close()
		}
	}
}

// arrayResult is a result: element type and bytes.
func arrayResult(d compute.DType, data any) any {
	b := program.Bytes(data)
	to := page.uint8Array.New(len(b))
	js.CopyBytesToJS(to, b)
	return []any{int(d), to}
}

// tensorResult is a tensor as a result: element type, handle and shape.
func tensorResult(d *opened, t compute.Tensor) any {
	result := []any{int(t.DType()), hold(&tensor{t, d})}
	for _, n := range t.Shape() {
		result = append(result, n)
	}
	return result
}

// recordOf returns a batch and forgets it: it ends here.
func recordOf(m *message) (*record, error) {
	handle := m.int()
	r, err := held[*record](handle)
	delete(handles, handle)
	return r, err
}

func (c *call) runBatch(m *message, _ js.Value) {
	r, err := recordOf(m)
	if err != nil {
		c.reject(err)
		return
	}
	c.runOnce(r, nil)
}

func (c *call) compile(m *message, _ js.Value) {
	r, err := recordOf(m)
	tune := m.bool()
	if err == nil {
		err = r.err()
	}
	if err != nil {
		c.reject(err)
		return
	}
	r.device.enqueue(func() {
		defer c.guard()
		p, err := r.batch.Compile(c.ctx)
		if err != nil {
			c.reject(err)
			return
		}
		measured := []any{}
		if tune {
			if measured, err = tuned(c.ctx, p); err != nil {
				p.Close()
				c.reject(err)
				return
			}
		}
		c.resolve(hold(&plan{Plan: p, device: r.device, values: r.values, outputs: r.outputs}), measured)
	})
}

// tuned measures kernel variants for a plan; what it returns is in the form of Measurement in wavelane.d.ts.
func tuned(ctx context.Context, p *batch.Plan) ([]any, error) {
	measured := []any{}
	tuning, f := p.TuneAsync(ctx)
	if err := f.Await(ctx); err != nil {
		return nil, err
	}
	for _, m := range tuning.Measurements() {
		times := map[string]any{}
		for i, name := range m.Variants {
			if m.Median[i] > 0 {
				times[name] = m.Median[i].Seconds() * 1e3
			}
		}
		measured = append(measured, map[string]any{"kind": m.Class, "problem": m.Problem, "winner": m.Winner, "milliseconds": times})
	}
	return measured, nil
}

// runPlan starts a run when the one before has delivered.
func (c *call) runPlan(m *message, _ js.Value) {
	p, err := held[*plan](m.int())
	if err != nil {
		c.reject(err)
		return
	}
	c.start(p.device, func() (*compute.Future, func() ([]any, error), func()) {
		if p.latest != nil {
			<-p.latest
		}
		p.latest = c.done
		if p.failed != nil {
			return compute.Failed(p.failed), nil, func() {}
		}
		f := p.Start()
		outputs := started(p.outputs)
		return f, func() ([]any, error) { return collect(p.device, outputs) }, func() { discard(outputs) }
	})
}

func (c *call) newKernel(m *message, _ js.Value) {
	handle, n := m.int(), m.int()
	desc := gpu.KernelDesc{Uniform: m.int(), Workgroup: [3]uint32{m.uint32(), m.uint32(), m.uint32()}, Shared: m.int()}
	desc.WGSL, desc.Entry, desc.Label = m.text(), m.text(), m.text()
	d, err := received(handle, m)
	if err == nil && d.gpu == nil {
		err = fmt.Errorf("kernel %s: the CPU device runs no WGSL, open a WebGPU device: %w", desc.Label, compute.ErrUnsupported)
	}
	if err == nil && (n < 0 || n > 64) {
		err = fmt.Errorf("kernel %s: %d operands: %w", desc.Label, n, compute.ErrArgument)
	}
	if err != nil {
		c.reject(err)
		return
	}
	for range n {
		desc.Bindings = append(desc.Bindings, wgsl.Read)
	}
	desc.Bindings = append(desc.Bindings, wgsl.ReadWrite)
	c.start(d, func() (*compute.Future, func() ([]any, error), func()) {
		k, f := gpu.NewKernelAsync(d.gpu, desc)
		return f, func() ([]any, error) { return []any{hold(k)}, nil }, func() {}
	})
}

// launch is a kernel of the page's, and how it is to be run.
type launch struct {
	kernel *gpu.Kernel
	gpu.Launch
	result program.Type
}

func (m *message) launch() launch {
	var l launch
	k, err := held[*gpu.Kernel](m.int())
	if err != nil {
		m.fail(err)
	}
	l.kernel = k
	l.Grid = [3]uint32{m.uint32(), m.uint32(), m.uint32()}
	l.result.DType = m.dtype()
	l.result.Shape = m.shape()
	bytes := m.bytes()
	l.Params = make([]uint32, len(bytes)/4)
	copy(program.Bytes(l.Params), bytes)
	return l
}

func (c *call) runKernel(m *message, _ js.Value) {
	handle, keep := m.int(), m.bool()
	l, in := m.launch(), m.operands()
	d, err := received(handle, m)
	if err == nil {
		err = d.own(in)
	}
	if err != nil {
		c.reject(err)
		return
	}
	r := &record{device: d, batch: batch.New(d)}
	r.want(r.batch.Kernel(l.kernel, l.Launch, l.result.DType, l.result.Shape, r.operands(in)...), keep)
	c.runOnce(r, nil)
}
