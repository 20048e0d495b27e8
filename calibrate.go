//go:build !js

package wavelane

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/measured"
	"github.com/wavelane/wavelane/internal/op"
)

// calibrationTime is for all devices together.
const calibrationTime = 900 * time.Millisecond

// Sizes of what is measured: large enough to tell a rate from the clock's grain, small enough for slow devices.
const (
	fewElements  = 64
	manyElements = 1 << 19
	rowLength    = 256
	matrixEdge   = 256
	moreSteps    = 8
)

// calibration measures a device by running small programs on it until its time is over.
type calibration struct {
	device op.Executor
	end    time.Time
	err    error // the first; nothing is measured after it
}

var errOutOfTime = errors.New("out of time")

// calibrate replaces costs by measured ones; on the host itself, nothing is transferred. An error tells why some of them are still
// what they were.
func (c *Costs) calibrate(d op.Executor, host bool, end time.Time) error {
	m := &calibration{device: d, end: end}
	launch, longer := m.run(sums(fewElements, 1)), m.run(sums(fewElements, 1+moreSteps))
	if m.err != nil {
		return m.err
	}
	c.Step = max(0, longer-launch) / moreSteps
	c.Launch = max(0, launch-c.Step)
	one, more := m.run(sums(manyElements, 1)), m.run(sums(manyElements, 1+moreSteps))
	if m.err != nil {
		return m.err
	}
	// A step has 12 bytes per element: two operands, which are one here, and the result; both are transferred.
	step := max(0, more-one) / moreSteps
	c.Memory, c.Transfer = rate(12*manyElements, step), 0
	if !host {
		c.Transfer = rate(8*manyElements, one-step-c.Launch)
	}
	c.Product = c.rate(m, program(op.F32(matrixEdge, matrixEdge), func(p *op.Program, x op.Slot) op.Slot {
		return apply(p, op.MatMul, op.Attr{Options: compute.MatMulOptions{}}, x, x)
	}), c.Product)
	c.Math = c.rate(m, program(op.F32(manyElements/rowLength, rowLength), func(p *op.Program, x op.Slot) op.Slot {
		return apply(p, op.Softmax, op.Attr{}, x)
	}), c.Math)
	return m.err
}

// rate is that of the operations of a program of one step, or the one given where it cannot be measured.
func (c *Costs) rate(m *calibration, p *op.Program, given float64) float64 {
	took := m.run(p)
	if m.err != nil {
		return given
	}
	l := loadOf(p)
	rest, _ := c.estimate(&load{transfer: l.transfer})
	return rate(l.steps[0].flops, took-rest)
}

// rate is in 10⁹ a second. What has taken no time that can be measured has taken a little.
func rate(n float64, took time.Duration) float64 {
	return n / float64(max(took, time.Microsecond))
}

// run is the time of a program on slices: the least of several runs after the first, which compiles kernels.
func (m *calibration) run(p *op.Program) time.Duration {
	if m.err != nil {
		return 0
	}
	x, err := m.device.Compile(p)
	if err != nil {
		m.err = err
		return 0
	}
	defer x.Close()
	io := &op.IO{}
	for _, s := range p.Host {
		data := make([]float32, p.Values[s].Len())
		for i := range data {
			data[i] = rand.Float32()
		}
		io.Host = append(io.Host, data)
	}
	for _, s := range p.Read {
		io.Read = append(io.Read, make([]float32, p.Values[s].Len()))
	}
	var least time.Duration
	const runs = 8
	for i := range runs {
		if time.Now().After(m.end) {
			break
		}
		start := time.Now()
		if m.err = x.Start(io).Await(context.Background()); m.err != nil {
			return 0
		}
		if took := time.Since(start); i == 1 || i > 1 && took < least {
			least = took
		}
	}
	if least == 0 {
		m.err = errOutOfTime
	}
	return least
}

// sums is a chain of sums.
func sums(elements, steps int) *op.Program {
	return program(op.F32(elements), func(p *op.Program, x op.Slot) op.Slot {
		y := x
		for range steps {
			y = apply(p, op.Add, op.Attr{}, y, x)
		}
		return y
	})
}

// program makes a program of one operand and one result.
func program(t op.Type, record func(p *op.Program, x op.Slot) op.Slot) *op.Program {
	p := &op.Program{}
	p.Read = []op.Slot{record(p, p.Add(t, op.FromHost))}
	return p
}

func apply(p *op.Program, e *op.Entry, a op.Attr, in ...op.Slot) op.Slot {
	y, err := p.Apply(e, a, in...)
	if err != nil {
		panic(fmt.Sprint("calibration: ", err)) // the shapes are written above
	}
	return y
}

// costsVersion is raised when kernels, or what is measured, change so much that old costs mislead.
const costsVersion = 1

// measureCosts measures the costs of a router's devices, unless they were measured before on this machine.
func measureCosts(r *router) {
	identity, kinds := []string{}, map[string]bool{}
	for _, d := range r.devices {
		identity = append(identity, d.info.Kind+": "+d.info.identity)
		kinds[d.info.Kind] = true
	}
	file, err := measured.New[map[string]Costs](r.dir, "costs", costsVersion, strings.Join(identity, "; "))
	if err != nil {
		r.log.Debug("wavelane: costs of devices are not kept", "error", err)
	} else if known, ok, err := file.Read(); err != nil {
		r.log.Warn("wavelane: costs of devices are measured anew", "file", file.Path(), "error", err)
	} else if ok && len(known) == len(kinds) {
		r.source = "measured"
		for _, d := range r.devices {
			d.costs = known[d.info.Kind]
		}
		return
	}
	costs, end, complete := map[string]Costs{}, time.Now().Add(calibrationTime), true
	for _, d := range slices.Backward(r.devices) { // the last is the host, which is fast at this
		if err := d.costs.calibrate(d, d.info.Kind == "cpu", end); err != nil {
			r.log.Warn("wavelane: costs of a device are not all measured", "device", d.info.Kind, "error", err)
			complete = false
		}
		costs[d.info.Kind] = d.costs
		r.log.Debug("wavelane: costs", "device", d.info.Kind, "costs", d.costs)
	}
	if r.source = "measured"; !complete {
		r.source = "measured and default"
		return
	}
	if file != nil {
		if err := file.Write(costs); err != nil {
			r.log.Warn("wavelane: costs of devices are not kept", "file", file.Path(), "error", err)
		}
	}
}
