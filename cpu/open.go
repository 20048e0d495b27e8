package cpu

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"weak"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/device"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/simd/kernels"
	"github.com/wavelane/wavelane/internal/simd/pool"
	"github.com/wavelane/wavelane/simd"
)

// Option configures [Open].
type Option func(*config) error

type config struct {
	workers int
	memory  uint64
	log     compute.Logger
}

const maxWorkers = 1024

// WithWorkers sets how many goroutines compute. The default is GOMAXPROCS at the time of opening.
func WithWorkers(n int) Option {
	return func(c *config) error {
		if n < 1 || n > maxWorkers {
			return fmt.Errorf("%d workers, possible are 1 to %d: %w", n, maxWorkers, compute.ErrArgument)
		}
		c.workers = n
		return nil
	}
}

// WithMemoryLimit bounds the bytes that the device holds for tensors and temporaries, free ones kept for reuse included;
// beyond it operations fail with compute.ErrOutOfMemory. Host slices do not count. Without a limit, that is so beyond
// what the system has, as far as it tells: on Linux with the limits of control groups, and on Windows.
func WithMemoryLimit(bytes uint64) Option {
	return func(c *config) error {
		if bytes == 0 {
			return fmt.Errorf("memory limit 0: %w", compute.ErrArgument)
		}
		c.memory = bytes
		return nil
	}
}

// WithLogger sets the logger, such as a [log/slog.Logger], for the device's events. By default nothing is logged.
func WithLogger(l compute.Logger) Option {
	return func(c *config) error {
		c.log = l
		return compute.CheckLogger(l)
	}
}

// Info describes a CPU device.
type Info struct {
	Name    string `json:"name"`    // operating system and architecture
	Tier    string `json:"tier"`    // instruction set of the kernels; "scalar" is portable Go
	Workers int    `json:"workers"` // goroutines that compute
	Cores   int    `json:"cores"`   // logical processors that the process may use
}

// Device is an open CPU device. It is safe for concurrent use.
type Device struct {
	compute.Ops // one method per operation of the catalogue, on slices of host memory
	sealed

	info    Info
	log     compute.Logger
	workers *pool.Pool
	memory  *memory
	locking sync.Mutex // held while a run takes the locks of all its tensors
	life    *device.Lifetime
	tensors device.Children[weak.Pointer[Tensor]] // open ones; weak, so that forgotten tensors are collected
}

// Open opens the CPU as a device. Its errors are
//   - compute.ErrArgument: an invalid option, or an instruction set in WAVELANE_SIMD that does not exist;
//   - compute.ErrUnavailable: an instruction set in WAVELANE_SIMD that this machine does not have;
//   - that of ctx, if it has ended.
func Open(ctx context.Context, opts ...Option) (*Device, error) {
	if err := compute.CheckContext(ctx); err != nil {
		return nil, fmt.Errorf("cpu.Open: %w", err)
	}
	c := &config{workers: runtime.GOMAXPROCS(0), log: compute.Silence{}}
	for _, o := range opts {
		if o == nil {
			return nil, fmt.Errorf("cpu.Open: nil option: %w", compute.ErrArgument)
		}
		if err := o(c); err != nil {
			return nil, fmt.Errorf("cpu.Open: %w", err)
		}
	}
	if err := kernels.Err(); err != nil {
		return nil, fmt.Errorf("cpu.Open: %w", err)
	}
	d := &Device{
		info: Info{Name: runtime.GOOS + "/" + runtime.GOARCH, Tier: simd.Tier(), Workers: c.workers, Cores: runtime.NumCPU()},
		log:  c.log, workers: pool.New(c.workers), memory: newMemory(c.memory),
	}
	d.life = device.NewLifetime("cpu", nil, d.teardown)
	d.Ops, d.sealed = device.NewOps(executor{d}), program.Seal(executor{d})
	runtime.AddCleanup(d, func(p *pool.Pool) { p.Close() }, d.workers) // a net under a forgotten Close
	d.log.Debug("cpu: device open", "name", d.info.Name, "tier", d.info.Tier, "workers", d.info.Workers)
	return d, nil
}

// Info describes the device.
func (d *Device) Info() Info { return d.info }

// Memory returns the current use of memory by tensors and temporaries.
func (d *Device) Memory() Memory {
	if d.memory == nil {
		return Memory{} // the zero Device
	}
	return d.memory.figures()
}

// Trim returns cached memory to the Go runtime.
func (d *Device) Trim() {
	if d.memory != nil {
		d.memory.trim()
	}
}

// Close closes the device with all its tensors; later use fails with compute.ErrClosed. Work in flight finishes and
// delivers its results. Close does not wait for it, not for a kernel without end either: it returns nil at once. It is idempotent.
func (d *Device) Close() error {
	d.life.Close()
	return nil
}

func (d *Device) teardown() {
	for _, w := range d.tensors.All() {
		if t := w.Value(); t != nil {
			t.Close()
		}
	}
	d.workers.Close()
	d.memory.close()
	d.log.Debug("cpu: device closed")
}
