//go:build !js

package route

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
	"github.com/wavelane/wavelane/internal/monotime"
	"github.com/wavelane/wavelane/internal/program"
)

// Sizes of the measured programs: large enough for the clock's resolution, small enough for slow devices.
const (
	fewElements  = 64
	manyElements = 1 << 19
	rowLength    = 256
	matrixEdge   = 256
	moreSteps    = 4
)

// calibration measures a device by running small programs on it, until end.
type calibration struct {
	device program.Executor
	end    monotime.Time
	err    error // the first one, after which nothing is measured
}

var errOutOfTime = errors.New("out of time")

// calibrate replaces costs by measured ones; the host itself has no transfer. If it returns an error, some of them are unchanged.
func (c *Costs) calibrate(d program.Executor, host bool, end monotime.Time) error {
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
	// A step moves 12 bytes per element: two operands and the result. The operands are the same slice here, so 8 are transferred.
	memory := rate(12*manyElements, step)
	// Rates that there is no time to measure change by the same factor as that of memory.
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

// measures tells whether costs are measured here.
const measures = true

// noise bounds how much faster the difference of two measurements may look than their mean, since other work may have disturbed one
// of them, and costs measured on a busy machine stay in the file.
const noise = 4

// step returns the time of a program of one step, whose operands have the given shape, and the time that each further step adds.
func (m *calibration) step(e *program.Entry, a program.Attr, shape ...int) (one, more time.Duration) {
	one = m.run(chain(e, a, 1, shape...))
	all := m.run(chain(e, a, 1+moreSteps, shape...))
	return one, max(all-one, all/noise) / moreSteps
}

// chain returns a program that applies an entry to its own result steps times.
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

// rate returns n per nanosecond. Times too short to measure count as a microsecond.
func rate(n float64, took time.Duration) float64 {
	return n / float64(max(took, time.Microsecond))
}

// run returns the time of a program on slices: the least of several runs after the first, which compiles kernels.
func (m *calibration) run(p *program.Program) time.Duration {
	if m.err != nil {
		return 0
	}
	x, err := m.device.Compile(context.Background(), p)
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
	begun := monotime.Now()
	for i := 0; i < mostRuns && (i < 2 || monotime.Since(begun) < enough); i++ {
		start := monotime.Now()
		if start > m.end {
			m.err = errOutOfTime
			break
		}
		if m.err = x.Start(io).Await(context.Background()); m.err != nil {
			return 0
		}
		if took := monotime.Since(start); i < 2 || took < least {
			least = took
		}
	}
	return least
}

// A program runs at most mostRuns times, and not again once enough time has passed.
const (
	mostRuns = 8
	enough   = 40 * time.Millisecond
)

// costsVersion is raised when kernels or measurements change so much that old costs mislead.
const costsVersion = 1

// measure measures the costs of all devices, unless a file has those of an earlier process.
func (r *Router) measure() {
	log := r.config.Log
	identity, kinds := []string{}, map[string]bool{}
	for _, d := range r.devices {
		identity = append(identity, d.Kind+": "+d.Identity)
		kinds[d.Kind] = true
	}
	file, err := measured.New[map[string]Costs](r.config.Dir, "costs", costsVersion, strings.Join(identity, "; "))
	if err != nil {
		log.Debug("wavelane: costs of devices cannot be saved", "error", err)
	} else if known, ok, err := file.Read(); err != nil {
		log.Warn("wavelane: costs of devices are measured anew", "file", file.Path(), "error", err)
	} else if ok && len(known) == len(kinds) {
		r.source = "measured"
		for _, d := range r.devices {
			d.costs = known[d.Kind]
		}
		return
	}
	costs, end, complete := map[string]Costs{}, monotime.Now().Add(r.limit), true
	for _, d := range slices.Backward(r.devices) { // the last is the host, which is fast at this
		if err := d.costs.calibrate(d, d.Kind == "cpu", end); err != nil {
			log.Warn("wavelane: costs of a device are not all measured", "device", d.Kind, "error", err)
			complete = false
		}
		costs[d.Kind] = d.costs
		log.Debug("wavelane: costs", "device", d.Kind, "costs", d.costs)
	}
	if r.source = "measured"; !complete {
		r.source = "measured and default"
		return
	}
	if file != nil {
		if err := file.Write(costs); err != nil {
			log.Warn("wavelane: costs of devices cannot be saved", "file", file.Path(), "error", err)
		}
	}
}
