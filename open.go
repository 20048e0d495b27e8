package wavelane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/route"
)

// Option configures [Open].
type Option func(*config) error

type config struct {
	kind     string // "" for automatic, "cuda", "gpu", "cpu"
	index    int    // of the adapter or GPU, −1 for the best
	software bool
	log      compute.Logger
	wish     string // who asked for kind
	alone    bool   // no routing
}

// WithDevice selects one device, and Open fails if it is not available: "cpu"; "cuda" for NVIDIA's first GPU, or
// "cuda:<ordinal>"; "gpu" for WebGPU's best hardware adapter, or "gpu:<index>" for an adapter of gpu.Adapters, software ones
// included. It takes precedence over the environment variable WAVELANE_DEVICE, which takes the same values.
func WithDevice(name string) Option {
	return func(c *config) error { return c.setDevice(name, "WithDevice asks for it") }
}

// WithSoftware lets "gpu" and the automatic choice take a software adapter before the CPU, and makes "cuda" the software GPU
// of package cuda. It is meant for tests.
func WithSoftware() Option {
	return func(c *config) error { c.software = true; return nil }
}

// WithoutRouting makes Open's device run every program itself, as after [WithDevice]. Otherwise, where the best device of the
// machine is not the CPU, a program on slices runs on the CPU if it is expected to finish there first. The expectation comes
// from costs of transfer, launch, memory and arithmetic on both devices. The first such program measures them in less than a
// second, and a file in the user's cache directory keeps them until hardware or driver change; in browsers they are fixed.
// [Device.Costs] returns them. Programs with tensors always run on the device that holds the tensors.
func WithoutRouting() Option {
	return func(c *config) error { c.alone = true; return nil }
}

// WithLogger sets the logger, such as a [log/slog.Logger], for the choice of the device and for the device's events. By default nothing is
// logged.
func WithLogger(l compute.Logger) Option {
	return func(c *config) error {
		c.log = l
		return compute.CheckLogger(l)
	}
}

func (c *config) setDevice(name, wish string) error {
	kind, index, indexed := strings.Cut(name, ":")
	c.kind, c.index, c.wish = kind, -1, wish
	if kind != "cpu" && kind != "gpu" && kind != "cuda" || indexed && kind == "cpu" {
		return fmt.Errorf(`device %q is none of "cuda", "cuda:<ordinal>", "gpu", "gpu:<index>", "cpu": %w`, name, compute.ErrArgument)
	}
	if indexed {
		i, err := strconv.Atoi(index)
		if err != nil || i < 0 {
			return fmt.Errorf("device %q: %q is no index: %w", name, index, compute.ErrArgument)
		}
		c.index = i
	}
	return nil
}

const environment = "WAVELANE_DEVICE"

// candidate is a kind of device that Open may choose.
type candidate struct {
	kind string
	open func(ctx context.Context, c *config) (*opened, error)
}

// candidates are tried in this order.
var candidates = []candidate{cudaCandidate, gpuCandidate, cpuCandidate}

// Open opens a device: the one that [WithDevice] or else the environment variable WAVELANE_DEVICE asks for, or the best of
// the machine. If that device is not available, the error wraps [ErrUnavailable]; Open never falls back to another one.
func Open(ctx context.Context, opts ...Option) (*Device, error) {
	if err := compute.CheckContext(ctx); err != nil {
		return nil, fmt.Errorf("wavelane.Open: %w", err)
	}
	c := &config{index: -1, log: compute.Silence{}}
	if name := os.Getenv(environment); name != "" {
		if err := c.setDevice(name, environment+" asks for it"); err != nil {
			return nil, fmt.Errorf("wavelane.Open: %s: %w", environment, err)
		}
	}
	for _, o := range opts {
		if o == nil {
			return nil, fmt.Errorf("wavelane.Open: nil option: %w", compute.ErrArgument)
		}
		if err := o(c); err != nil {
			return nil, fmt.Errorf("wavelane.Open: %w", err)
		}
	}
	return c.open(ctx)
}

func (c *config) open(ctx context.Context) (*Device, error) {
	var passed []string
	for _, cand := range candidates {
		if c.kind != "" && c.kind != cand.kind {
			continue
		}
		d, err := cand.open(ctx, c)
		if err == nil {
			info := &d.info
			info.Kind = cand.kind
			info.Reason = strings.Join(append(passed, "chosen as the best device available"), "\n")
			if c.kind != "" {
				info.Reason = "chosen because " + c.wish
			}
			c.log.Info("device opened", "kind", info.Kind, "name", info.Name, "backend", info.Backend, "reason", info.Reason)
			if c.kind == "" && !c.alone && cand.kind != "cpu" {
				info.Routed = true
				return c.routed(ctx, d)
			}
			return newDevice(nil, d), nil
		}
		// Only absence lets the next candidate have a try: a device that exists and fails is reported.
		if c.kind != "" || !errors.Is(err, compute.ErrUnavailable) {
			return nil, fmt.Errorf("wavelane.Open: %w", err)
		}
		passed = append(passed, "not "+cand.kind+": "+strings.TrimPrefix(err.Error(), cand.kind+": "))
	}
	return nil, fmt.Errorf("wavelane.Open: %s: %w", strings.Join(passed, "; "), compute.ErrUnavailable)
}

// routed also opens the CPU, and routes programs between it and a device.
func (c *config) routed(ctx context.Context, d *opened) (*Device, error) {
	cpu, err := cpuCandidate.open(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("wavelane.Open: %w", errors.Join(err, d.Close()))
	}
	cpu.info.Kind = cpuCandidate.kind
	return newDevice(route.New(route.Config{Log: c.log}, routes(d, cpu)...), d, cpu), nil
}

func routes(devices ...*opened) (to []route.Device) {
	for _, d := range devices {
		to = append(to, route.Device{Executor: program.ExecutorOf(d), Kind: d.info.Kind, Identity: d.identity})
	}
	return to
}
