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
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/measured"
	"github.com/wavelane/wavelane/internal/program"
)

// Sizes of what is measured: large enough to tell a rate from the clock's grain, small enough for slow devices.
const (
	fewElements  = 64
	manyElements = 1 << 19
	rowLength    = 256
	matrixEdge   = 256
	moreSteps    = 4
)

// calibration measures a device by running small programs on it until its time is over.
type calibration struct {
	device program.Executor
	end    time.Time
	err    error // the first; nothing is measured after it
}

var errOutOfTime = errors.New("out of time")

// calibrate replaces costs by measured ones; on the host itself, nothing is transferred. An error tells why some of them are still
// what they were.
func (c *Costs) calibrate(d program.Executor, host bool, end time.Time) error {
	m := &calibration{device: d, end: end}
	launch, step := m.step(catalogue.Add, program.Attr{}, fewElements)
	if m.err != nil {
		return m.err
	}
	c.Step, c.Launch = step, max(0, launch-step)
	one, step := m.step(catalogue.Add, program.Attr{}, manyElements)
	if m.err != nil {
		return m.err
	}
	// A step has 12 bytes per element: two operands, which are one here, and the result. Both are transferred.
	memory := rate(12*manyElements, step)
	// What there is no time to measure is as much faster or slower as memory is.
	c.Product, c.Math = c.Product*memory/c.Memory, c.Math*memory/c.Memory
	c.Memory, c.Transfer = memory, 0
	if !host {
		c.Transfer = rate(8*manyElements, max(one-step-c.Launch, one/noise))
	}
	if _, step = m.step(catalogue.MatMul, program.Attr{Options: compute.MatMulOptions{}}, matrixEdge, matrixEdge); m.err == nil {
		c.Product = rate(2*matrixEdge*matrixEdge*matrixEdge, step)
	}
	if _, step = m.step(catalogue.Softmax, program.Attr{}, manyElements/rowLength, rowLength); m.err == nil {
		x := []program.Type{program.F32(manyElements)}
		c.Math = rate(catalogue.Softmax.Flops(x, x, program.Attr{}), step)
	}
	return m.err
}

// noise bounds how much faster than a whole run on average a part of it may look, because other work has disturbed one of two
// measurements: what is measured on a busy machine is kept for long.
const noise = 4

// step is the time of a program of one step on an operand of a shape, which all its operands are, and what a further step adds.
func (m *calibration) step(e *program.Entry, a program.Attr, shape ...int) (one, more time.Duration) {
	one = m.run(chain(e, a, 1, shape...))
	all := m.run(chain(e, a, 1+moreSteps, shape...))
	return one, max(all-one, all/noise) / moreSteps
}

// chain is a program that applies an entry to its results again and again.
func chain(e *program.Entry, a program.Attr, steps int, shape ...int) *program.Program {
	p := &program.Program{}
	x := p.Add(program.F32(shape...), program.FromHost)
	y := x
	for range steps {
		in := []program.Slot{y, x}
		var err error
		if y, err = p.Apply(e, a, in[:min(2, len(e.Inputs))]...); err != nil {
			panic(fmt.Sprint("calibration: ", err)) // the shapes are written above
		}
	}
	p.Read = []program.Slot{y}
	return p
}

// rate is in 10⁹ a second. What has taken no time that can be measured has taken a little.
func rate(n float64, took time.Duration) float64 {
	return n / float64(max(took, time.Microsecond))
}

// run is the time of a program on slices: the least of several runs after the first, which compiles kernels.
func (m *calibration) run(p *program.Program) time.Duration {
	if m.err != nil {
		return 0
	}
	x, err := m.device.Compile(p)
	if err != nil {
		m.err = err
		return 0
	}
	defer x.Close()
	io := &program.IO{}
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
	begun := time.Now()
	for i := 0; i < mostRuns && (i < 2 || time.Since(begun) < enough); i++ {
		start := time.Now()
		if start.After(m.end) {
			m.err = errOutOfTime
			break
		}
		if m.err = x.Start(io).Await(context.Background()); m.err != nil {
			return 0
		}
		if took := time.Since(start); i < 2 || took < least {
			least = took
		}
	}
	return least
}

// A program runs so often, but no further time after it has run long enough.
const (
	mostRuns = 8
	enough   = 40 * time.Millisecond
)

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
	costs, end, complete := map[string]Costs{}, time.Now().Add(r.limit), true
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
