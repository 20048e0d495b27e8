package gpu

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/wgsl"
)

// Option configures [Open].
type Option func(*config) error

type config struct {
	adapter    int // −1: choose
	software   bool
	preference PowerPreference
	limits     wgsl.Caps // zero fields: the adapter's maximum
	memory     uint64    // 0: no limit of our own
	log        compute.Logger
	variants   map[string]string
	tune       compute.TuneMode
	tuneDir    string // empty: the user's cache
	timestamps bool
	threshold  int
	library    string // path, empty for the environment's or the first
}

// defaultThreshold is how many dispatches a command buffer has at most.
const defaultThreshold = 256

func newConfig(opts []Option) (*config, error) {
	c := &config{adapter: -1, threshold: defaultThreshold, log: compute.Silence{}, variants: map[string]string{}}
	var errs []error
	for _, o := range opts {
		if o == nil {
			errs = append(errs, fmt.Errorf("nil option: %w", compute.ErrArgument))
		} else if err := o(c); err != nil {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("gpu.Open: %w", err)
	}
	return c, nil
}

// WithAdapter opens the adapter of that index in the list of [Adapters]. A software adapter needs [WithSoftware] as well. Adapters of
// Direct3D 12 are opened in no other way.
func WithAdapter(index int) Option {
	return func(c *config) error {
		if index < 0 {
			return fmt.Errorf("adapter index %d is negative: %w", index, compute.ErrArgument)
		}
		c.adapter = index
		return nil
	}
}

// PowerPreference says which of several GPUs to choose.
type PowerPreference uint8

// Power preferences.
const (
	HighPerformance PowerPreference = iota // discrete before integrated; the default
	LowPower                               // integrated before discrete
)

// WithPowerPreference sets the preference among hardware adapters when [WithAdapter] does not name one.
func WithPowerPreference(p PowerPreference) Option {
	return func(c *config) error {
		if p > LowPower {
			return fmt.Errorf("power preference %d: %w", p, compute.ErrArgument)
		}
		c.preference = p
		return nil
	}
}

// WithSoftware opens a software adapter, and only that: for tests, as it is slower than the CPU device.
func WithSoftware() Option {
	return func(c *config) error {
		c.software = true
		return nil
	}
}

// WithLimits requests these limits instead of the adapter's maxima. Zero fields mean the maximum.
func WithLimits(l wgsl.Caps) Option {
	return func(c *config) error {
		if l.StorageAlign&(l.StorageAlign-1) != 0 || l.StorageAlign != 0 && l.StorageAlign < 32 {
			return fmt.Errorf("storage alignment %d is no power of two of at least 32: %w", l.StorageAlign, compute.ErrArgument)
		}
		c.limits = l
		return nil
	}
}

// WithDefaultLimits requests the limits that every WebGPU implementation grants, to test what a program does elsewhere.
func WithDefaultLimits() Option { return WithLimits(wgsl.DefaultCaps) }

// WithMemoryLimit bounds the bytes of all buffers of the device together, free ones kept for reuse included; beyond it
// operations fail with compute.ErrOutOfMemory.
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

// WithVariant forces a kernel variant wherever a class of operations ("matmul") offers it, instead of the tuned or default
// one. Where a problem does not offer the variant, the operation fails with compute.ErrUnsupported.
func WithVariant(class, name string) Option {
	return func(c *config) error {
		if class == "" || name == "" {
			return fmt.Errorf("variant %q of class %q: %w", name, class, compute.ErrArgument)
		}
		c.variants[class] = name
		return nil
	}
}

// WithAutotune says when kernel variants are measured. The default is [compute.TuneCached].
func WithAutotune(m compute.TuneMode) Option {
	return func(c *config) error {
		if m > compute.TuneFirstUse {
			return fmt.Errorf("tune mode %d: %w", m, compute.ErrArgument)
		}
		if m == compute.TuneFirstUse && runtime.GOOS == "js" {
			return fmt.Errorf("measuring at the first use waits for the device, which a browser's functions cannot: %w", compute.ErrUnsupported)
		}
		c.tune = m
		return nil
	}
}

// WithTuneCache sets the directory in which measured choices are kept; the default is "wavelane" in [os.UserCacheDir]. In browsers,
// which have no files, they last as long as the device.
func WithTuneCache(dir string) Option {
	return func(c *config) error {
		if dir == "" {
			return fmt.Errorf("empty directory for the tune cache: %w", compute.ErrArgument)
		}
		c.tuneDir = dir
		return nil
	}
}

// WithTimestamps measures the GPU's time of every run, for [Device.Stats]. It fails with
// compute.ErrUnsupported where the adapter has no timestamps. The first run takes some 20 ms longer, to find the length of
// a tick.
func WithTimestamps() Option {
	return func(c *config) error {
		c.timestamps = true
		return nil
	}
}

// WithLibrary drives the device by the wgpu-native library of that path, which is loaded at run time and stays loaded. By default it is
// that of the environment variable WAVELANE_WGPU; else the first that fits of those beside the executable and on the system's search path;
// else, in programs built with cgo, the archive that is part of the program, whose name in place of a path is "linked". Open fails with
// compute.ErrUnavailable where there is none, or where the library's version does not fit. In browsers the option has no effect.
func WithLibrary(path string) Option {
	return func(c *config) error {
		if path == "" {
			return fmt.Errorf("empty path of a library: %w", compute.ErrArgument)
		}
		c.library = path
		return nil
	}
}

// WithSubmitThreshold sets the largest number of kernels in a command buffer. Longer programs are cut into several command
// buffers, so that the device can begin with the first while the others are recorded. The default is 256; on a software
// adapter, programs of 3000 small kernels took the same time with 128 to 1024, and some 15% more with 32.
func WithSubmitThreshold(kernels int) Option {
	return func(c *config) error {
		if kernels < 1 {
			return fmt.Errorf("command buffers of %d kernels: %w", kernels, compute.ErrArgument)
		}
		c.threshold = kernels
		return nil
	}
}
