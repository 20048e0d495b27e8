package cuda

import (
	"fmt"
	"sync"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/cuda/internal/libcuda"
	"github.com/wavelane/wavelane/cuda/internal/softgpu"
	"github.com/wavelane/wavelane/ptx/sim"
)

// Option configures [Open].
type Option func(*config) error

type config struct {
	load    func() (driver.Driver, error)
	ordinal int
	log     compute.Logger
	debug   bool
	cache   string // directory of compiled modules and measured choices; "" for the user's own, "-" for none
	forced  map[string]string
	tune    compute.TuneMode
	memory  uint64 // bytes of device memory that may be taken from the driver; 0 for all there is
}

func newConfig(opts []Option) (*config, error) {
	c := &config{load: func() (driver.Driver, error) { return libcuda.Open("") }, log: compute.Silence{}, forced: map[string]string{}}
	for _, o := range opts {
		if o == nil {
			return nil, fmt.Errorf("nil option: %w", compute.ErrArgument)
		}
		if err := o(c); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// WithLibrary loads NVIDIA's driver from another path than the system's: libcuda.so.1, or nvcuda.dll.
func WithLibrary(path string) Option {
	return func(c *config) error {
		if path == "" {
			return fmt.Errorf("a library without a path: %w", compute.ErrArgument)
		}
		c.load = func() (driver.Driver, error) { return libcuda.Open(path) }
		return nil
	}
}

// WithDevice chooses a GPU by its ordinal, as the driver counts them (CUDA_VISIBLE_DEVICES applies). The default is 0.
func WithDevice(ordinal int) Option {
	return func(c *config) error {
		if ordinal < 0 {
			return fmt.Errorf("device %d, they are counted from 0: %w", ordinal, compute.ErrArgument)
		}
		c.ordinal = ordinal
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

// WithDebug waits for each launch to end, so that a fault names the kernel that caused it. It applies to the context, which
// all devices that are open on the same GPU share. Slow.
func WithDebug() Option {
	return func(c *config) error { c.debug = true; return nil }
}

// WithCache keeps compiled kernels and measured choices of variants in a directory instead of the user's cache directory. It is
// created when needed.
func WithCache(dir string) Option {
	return func(c *config) error {
		if dir == "" {
			return fmt.Errorf("a cache without a directory: %w", compute.ErrArgument)
		}
		c.cache = dir
		return nil
	}
}

// noCache is config.cache without a cache.
const noCache = "-"

// WithoutCache compiles kernels anew in every process, and keeps no choices of variants for later ones.
func WithoutCache() Option {
	return func(c *config) error { c.cache = noCache; return nil }
}

// WithVariant forces a kernel variant wherever a class of operations ("matmul") offers it, instead of the measured or default
// one. Where a problem does not offer the variant, the operation fails with compute.ErrUnsupported.
func WithVariant(class, name string) Option {
	return func(c *config) error {
		if class == "" || name == "" {
			return fmt.Errorf("variant %q of class %q: %w", name, class, compute.ErrArgument)
		}
		c.forced[class] = name
		return nil
	}
}

// WithAutotune says when kernel variants are measured. The default is [compute.TuneCached].
func WithAutotune(m compute.TuneMode) Option {
	return func(c *config) error {
		if m > compute.TuneFirstUse {
			return fmt.Errorf("tune mode %d: %w", m, compute.ErrArgument)
		}
		c.tune = m
		return nil
	}
}

// WithMemoryLimit bounds the device memory taken from the driver, in bytes: in use, pending and cached, see [Memory].
// Requests beyond it fail with compute.ErrOutOfMemory. Memory is taken in segments and may be fragmented, so a request can
// fail although fewer bytes are in use. Kernels, streams and graphs, which the driver keeps for itself, do not count.
func WithMemoryLimit(bytes uint64) Option {
	return func(c *config) error {
		if bytes == 0 {
			return fmt.Errorf("a memory limit of 0: %w", compute.ErrArgument)
		}
		c.memory = bytes
		return nil
	}
}

// SoftwareOptions describe a software GPU. The zero value is one GPU without checks.
type SoftwareOptions struct {
	Devices int    // 0 means 1
	Memory  uint64 // bytes of each; 0 means 4 GiB
	// Checked finds races, uninitialised reads and asynchronous copies that are not awaited, in any kernel; see package
	// ptx/sim. It is many times slower.
	Checked bool
	Seed    uint64 // of the schedule; 0 is a fixed one
	Perturb bool   // approximate instructions have their largest allowed error
}

// WithSoftware takes a software GPU, which executes PTX on any machine, instead of NVIDIA's driver: the same code runs above it.
// Devices opened with the same option value are those of one machine.
func WithSoftware(o ...SoftwareOptions) Option {
	machine := sync.OnceValue(func() driver.Driver {
		var s SoftwareOptions
		if len(o) > 0 {
			s = o[0]
		}
		c := softgpu.Config{Devices: s.Devices, Memory: s.Memory, Sim: sim.Config{Seed: s.Seed, Perturb: s.Perturb}}
		if s.Checked {
			c.Sim.Checks = sim.AllChecks
		}
		return softgpu.New(c)
	})
	return func(c *config) error {
		if len(o) > 1 {
			return fmt.Errorf("%d sets of options for one software GPU: %w", len(o), compute.ErrArgument)
		}
		if len(o) == 1 && o[0].Devices < 0 {
			return fmt.Errorf("%d software GPUs: %w", o[0].Devices, compute.ErrArgument)
		}
		c.load = func() (driver.Driver, error) { return machine(), nil }
		return nil
	}
}
