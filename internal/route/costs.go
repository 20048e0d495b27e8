package route

import (
	"fmt"
	"runtime"
	"time"

	"github.com/wavelane/wavelane/internal/program"
)

// Costs predict the time of programs on a device: Launch, the transfer of slices, and for each step the largest of Step and the times
// for its memory and arithmetic. Rates are in 10⁹ bytes or operations a second.
type Costs struct {
	Launch   time.Duration `json:"launch_ns"`      // of a program, until its results are there
	Step     time.Duration `json:"step_ns"`        // of each step, at least
	Transfer float64       `json:"transfer_gb_s"`  // of operands and results on slices, to the device and back; 0 for none
	Memory   float64       `json:"memory_gb_s"`    // of operands and results of steps
	Math     float64       `json:"math_gflops"`    // of steps that compute anything but products
	Product  float64       `json:"product_gflops"` // of matrix products, convolutions, attention
}

// defaults are the costs where nothing was measured: those of a fast GPU on a slow bus, so that a GPU gets only programs that compute
// much for each byte. "wasm" is the CPU in a browser, "webgpu" the GPU there.
var defaults = map[string]Costs{
	"cpu":    {Launch: 2 * time.Microsecond, Step: time.Microsecond, Memory: 20, Math: 20, Product: 100},
	"cuda":   {Launch: 30 * time.Microsecond, Step: 3 * time.Microsecond, Transfer: 5, Memory: 500, Math: 2000, Product: 10000},
	"gpu":    {Launch: 200 * time.Microsecond, Step: 5 * time.Microsecond, Transfer: 3, Memory: 100, Math: 500, Product: 1000},
	"wasm":   {Launch: 5 * time.Microsecond, Step: time.Microsecond, Memory: 5, Math: 2, Product: 10},
	"webgpu": {Launch: 2 * time.Millisecond, Step: 20 * time.Microsecond, Transfer: 1, Memory: 50, Math: 200, Product: 500},
}

// browserKinds are the keys of defaults for the kinds of devices in browsers.
var browserKinds = map[string]string{"cpu": "wasm", "gpu": "webgpu"}

func defaultCosts(kind string) Costs {
	if runtime.GOOS == "js" {
		kind = browserKinds[kind]
	}
	return defaults[kind]
}

// load is the work of a program.
type load struct {
	transfer float64 // bytes
	steps    []stepLoad
}

type stepLoad struct {
	bytes, flops float64
	product      bool
}

func loadOf(p *program.Program) load {
	bytes := func(slots []program.Slot) (n float64) {
		for _, s := range slots {
			n += float64(p.Values[s].Bytes())
		}
		return n
	}
	l := load{bytes(p.Host) + bytes(p.Read), make([]stepLoad, len(p.Steps))}
	for i := range p.Steps {
		s := &p.Steps[i]
		l.steps[i] = stepLoad{bytes(s.In) + bytes(s.Out), s.Entry.Flops(p.Types(s.In), p.Types(s.Out), s.Attr), s.Entry.Products()}
	}
	return l
}

// estimate returns the time of a program, and the part of it that is transfer.
func (c *Costs) estimate(l *load) (total, transfer time.Duration) {
	seconds := 0.0
	if c.Transfer > 0 {
		seconds = l.transfer / (c.Transfer * 1e9)
	}
	transfer = duration(seconds)
	for _, s := range l.steps {
		rate := c.Math
		if s.product {
			rate = c.Product
		}
		seconds += max(c.Step.Seconds(), s.bytes/(c.Memory*1e9), s.flops/(rate*1e9))
	}
	return c.Launch + duration(seconds), transfer
}

// duration converts seconds, at most a day, since tiny rates may overflow.
func duration(seconds float64) time.Duration {
	return time.Duration(min(seconds, 86400) * 1e9)
}

func (c Costs) String() string {
	s := fmt.Sprintf("launch %v, step %v, memory %.3g GB/s, math %.3g GFLOPS, products %.3g GFLOPS", c.Launch, c.Step, c.Memory, c.Math,
		c.Product)
	if c.Transfer > 0 {
		s += fmt.Sprintf(", transfer %.3g GB/s", c.Transfer)
	}
	return s
}
