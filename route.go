package wavelane

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wavelane/wavelane/internal/program"
)

// router gives each program to the device that, by the costs of all, is done with it first. Tensors are on its first device, so
// programs that use or keep tensors, and those with kernels of the user's, run there.
type router struct {
	devices []*routed
	measure func(*router) // sets the costs, when they are first needed
	limit   time.Duration // for that
	once    sync.Once
	source  string // of the costs
	dir     string // of the file that keeps them, "" for that of the user
	log     *slog.Logger
}

// calibrationTime is for all devices together.
const calibrationTime = 900 * time.Millisecond

// newRouter returns the router of devices that are open, the first of them the one for tensors.
func newRouter(c *config, devices ...*routed) *router {
	r := &router{devices: devices, measure: measureCosts, limit: calibrationTime, source: "default", dir: c.costsDir, log: c.log}
	for _, d := range devices {
		d.costs = defaultCosts(d.info.Kind)
	}
	return r
}

// routed is one of a router's devices.
type routed struct {
	backend
	info  Info
	costs Costs
}

// Compile compiles a program for the device that it is placed on.
func (r *router) Compile(p *program.Program) (program.Executable, error) {
	return r.Place(p).Compile(p)
}

// Place chooses the device of a program.
func (r *router) Place(p *program.Program) program.Executor { return r.choose(p).backend }

func (r *router) choose(p *program.Program) *routed {
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

func (r *router) ready() { r.once.Do(func() { r.measure(r) }) }

// bound says what binds a program to the device of tensors, or nothing.
func bound(p *program.Program) string {
	switch {
	case len(p.Tensor) > 0:
		return "tensors that the program uses are there"
	case len(p.Keep) > 0:
		return "tensors that the program makes stay there"
	case slices.ContainsFunc(p.Steps, func(s program.Step) bool { return s.Kernel != nil }):
		return "the program has a kernel for it"
	}
	return ""
}

// ExplainPlace says where a program runs, and what it would take elsewhere.
func (r *router) ExplainPlace(p *program.Program) string {
	best := r.choose(p)
	if why := bound(p); why != "" {
		return best.info.Kind + ": " + why
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: the least by %s costs\n", best.info.Kind, r.source)
	l := loadOf(p)
	for _, d := range r.devices {
		total, transfer := d.costs.estimate(&l)
		fmt.Fprintf(&b, "  %s: %v", d.info.Kind, short(total))
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

// Close closes all devices.
func (r *router) Close() error {
	var failed error
	for _, d := range r.devices {
		if err := d.Close(); failed == nil {
			failed = err
		}
	}
	return failed
}
