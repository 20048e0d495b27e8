// Package route gives each program to the device that is expected to finish it first.
package route

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// Device is one of the devices of a router.
type Device struct {
	program.Executor
	Kind     string // "cuda", "gpu" or "cpu"
	Identity string // of hardware and driver; measured costs are valid for it
}

// Config says where a router takes its costs from.
type Config struct {
	Costs map[string]Costs // by kind of device; nil to measure them, which in browsers means the default costs
	Dir   string           // of the file of measured costs, "" for the user's cache directory
	Log   compute.Logger
}

// Router is an executor that gives each program to the device that runs it in the least time, by the costs of all. Tensors are on the
// first device, so programs that use or retain tensors, and those with the user's kernels, run there. A router is safe for concurrent
// use; it does not close its devices.
type Router struct {
	devices []*routed
	config  Config
	limit   time.Duration // for measuring
	once    sync.Once     // for setting the costs, when they are first needed
	set     atomic.Bool   // they are
	source  string        // of the costs
}

type routed struct {
	Device
	costs Costs
}

// calibrationTime is the limit for all devices together.
const calibrationTime = 900 * time.Millisecond

// New returns a router between open devices. Tensors are on the first.
func New(c Config, devices ...Device) *Router {
	r := &Router{config: c, limit: calibrationTime, source: "default"}
	for _, d := range devices {
		r.devices = append(r.devices, &routed{d, defaultCosts(d.Kind)})
	}
	return r
}

// ready sets the costs.
func (r *Router) ready() {
	r.once.Do(func() {
		defer r.set.Store(true)
		if r.config.Costs == nil {
			r.measure()
			return
		}
		for _, d := range r.devices {
			d.costs = r.config.Costs[d.Kind]
		}
		r.source = "given"
	})
}

// Compile compiles a program on the device that it is given to.
func (r *Router) Compile(ctx context.Context, p *program.Program) (program.Executable, error) {
	d, err := r.Place(ctx, p)
	if err != nil {
		return nil, err
	}
	return d.Compile(ctx, p)
}

// Fuses implements program.Executor. Programs are rewritten for the device that Place gives them to, which answers itself.
func (r *Router) Fuses(s *program.Step, in, out []program.Type) bool {
	return r.devices[0].Fuses(s, in, out)
}

// Code writes the code of a program on the device that it is given to.
func (r *Router) Code(w io.Writer, p *program.Program) error { return r.choose(p).Code(w, p) }

// Tune implements program.Executor, on the device that the program is placed on.
func (r *Router) Tune(ctx context.Context, p *program.Program) ([]program.Measurement, error) {
	d, err := r.Place(ctx, p)
	if err != nil {
		return nil, err
	}
	return d.Tune(ctx, p)
}

// Place returns the device for a program. The first program that could run on several has their costs measured, until ctx ends.
func (r *Router) Place(ctx context.Context, p *program.Program) (program.Executor, error) {
	if !measures || r.config.Costs != nil || r.set.Load() || bound(p) != "" {
		return r.choose(p).Executor, nil
	}
	return program.Within(ctx, func() (program.Executor, error) { return r.choose(p).Executor, nil }, func(program.Executor) {})
}

func (r *Router) choose(p *program.Program) *routed {
	best := r.devices[0]
	if bound(p) != "" {
		return best
	}
	r.ready()
	l := loadOf(p)
	least, _ := best.costs.estimate(&l)
	for _, d := range r.devices[1:] {
		if t, _ := d.costs.estimate(&l); t < least {
			best, least = d, t
		}
	}
	return best
}

// bound says why a program has to run on the device of its tensors, or "".
func bound(p *program.Program) string {
	switch {
	case len(p.Tensor) > 0:
		return "tensors that the program uses are there"
	case len(p.Keep) > 0:
		return "tensors that the program makes stay there"
	case p.Collective() != nil:
		return "the program has collectives, between which its values stay there"
	case slices.ContainsFunc(p.Steps, func(s program.Step) bool { return s.Kernel != nil }):
		return "the program has a kernel for it"
	}
	return ""
}

// ExplainPlace says which device a program is given to and why, with the estimates for all.
func (r *Router) ExplainPlace(p *program.Program) string {
	best := r.choose(p)
	if why := bound(p); why != "" {
		return best.Kind + ": " + why
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: the least by %s costs\n", best.Kind, r.source)
	l := loadOf(p)
	for _, d := range r.devices {
		total, transfer := d.costs.estimate(&l)
		fmt.Fprintf(&b, "  %s: %v", d.Kind, short(total))
		if transfer > 0 {
			fmt.Fprintf(&b, ", of which transfer %v", short(transfer))
		}
		fmt.Fprintf(&b, " (%v)\n", d.costs)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// short rounds to three digits.
func short(d time.Duration) time.Duration {
	for unit := time.Second; unit > 1; unit /= 10 {
		if d >= unit {
			return d.Round(unit / 100)
		}
	}
	return d
}

// Costs returns the costs of the devices by kind, measuring them if no program has needed them yet.
func (r *Router) Costs() map[string]Costs {
	r.ready()
	costs := map[string]Costs{}
	for _, d := range r.devices {
		costs[d.Kind] = d.costs
	}
	return costs
}

// Peaks returns the rates by which programs are given to a device, zero for one that is not the router's.
func (r *Router) Peaks(of program.Executor) program.Peaks {
	r.ready()
	for _, d := range r.devices {
		if d.Executor == of {
			return program.Peaks{Memory: 1e9 * d.costs.Memory, Math: 1e9 * d.costs.Math, Product: 1e9 * d.costs.Product}
		}
	}
	return program.Peaks{}
}
