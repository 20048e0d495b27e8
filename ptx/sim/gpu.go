package sim

import (
	"fmt"
	"io"
	"runtime"
	"sync"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/ir"
)

// Checks is a set of checks.
type Checks uint8

// The checks. Whatever is set, every access must lie in an allocation, and be aligned.
const (
	CheckInit  Checks = 1 << iota // registers and memory are written before they matter
	CheckRace                     // conflicting accesses are ordered
	CheckAsync                    // asynchronous copies and products are awaited, proxies fenced
	AllChecks  = CheckInit | CheckRace | CheckAsync
)

// Config is how a GPU runs kernels. Its zero value is as fast as it can be on one core.
type Config struct {
	Checks Checks
	// Seed chooses the schedule: order of warps and blocks, which lanes of a divided warp run, when asynchronous copies complete.
	// 0 is one fixed schedule: in turn, and lanes at the lowest instruction first.
	Seed uint64
	// Perturb makes the results of approximating instructions err within their documented bounds, by Seed.
	Perturb bool
	// Workers is the number of goroutines that run blocks when Checks, Seed and Perturb are 0; otherwise blocks take turns on one.
	// Accesses that synchronise are atomic among them; a kernel with a data race between blocks has one of the process.
	Workers int
	// MaxSteps is the number of instructions of warps after which a launch is a Timeout; 0: 2^34.
	MaxSteps uint64
	// SharedLimit is the number of bytes of shared memory that a block may have; 0: 227 KiB, as sm_90 allows at most.
	SharedLimit int
	// Counters adds bank conflicts and sectors to what a launch's Stats count.
	Counters bool
	// Report, if not nil, is called with each fault after which a kernel can go on: races, values that nobody wrote, and accesses out of
	// bounds or misaligned, which then read zeros and write nothing. It says whether the kernel does; if not, the fault ends the
	// launch, as all others do. The host's Read of what nobody wrote is reported and goes on likewise. Blocks take turns.
	Report func(*Fault) bool
	// Output is what printf of kernels writes to, each call at once; nil: nowhere. An error of it is one of the launch.
	Output io.Writer
	// HeapLimit is the number of bytes that malloc of kernels can give together; 0: 8 MiB, as CUDA has it.
	HeapLimit uint64
	// Base is the address after which allocations begin, for GPUs whose addresses have to differ; 0: 0x7f0000000000. It is a
	// multiple of 256, and at least that.
	Base uint64
}

// GPU executes kernels in software. It is safe for concurrent use; one kernel runs at a time. Meanwhile the host may load modules and
// allocate, and without checks copy and free, which with checks waits until the kernel has ended.
type GPU struct {
	run   sync.Mutex // held by the launch that runs
	mu    sync.Mutex // of the modules
	known sync.Mutex // of what checks know of memory that kernels may use; held by a launch with checks
	cfg   Config
	mem   memory
	tex   textures
	mon   monitor
	locks [64]sync.Mutex

	print   sync.Mutex // held while a kernel prints
	printed error      // of Config.Output
	heap    uint64     // bytes that malloc of kernels has given
}

// New returns a GPU without memory in use.
func New(cfg Config) *GPU {
	if cfg.MaxSteps == 0 {
		cfg.MaxSteps = 1 << 34
	}
	if cfg.SharedLimit == 0 {
		cfg.SharedLimit = 227 << 10
	}
	if cfg.HeapLimit == 0 {
		cfg.HeapLimit = 8 << 20
	}
	if cfg.Workers <= 0 {
		cfg.Workers = 1
	}
	if cfg.Checks != 0 || cfg.Seed != 0 || cfg.Perturb || cfg.Counters || cfg.Report != nil {
		cfg.Workers = 1
	}
	cfg.Workers = min(cfg.Workers, 4*runtime.GOMAXPROCS(0))
	return &GPU{cfg: cfg, mon: newMonitor(cfg), mem: memory{next: max(cfg.Base, globalWindow)}}
}

// mostMemory bounds an allocation, and the variables of a module, in bytes.
const mostMemory = 16 << 30

// Alloc returns the address of n bytes of global memory, a multiple of 256. Nothing is written to them. n may be 0: then no
// byte may be accessed. Errors wrap [compute.ErrArgument] or, beyond 16 GiB, [compute.ErrTooLarge].
func (g *GPU) Alloc(n int) (uint64, error) {
	if n < 0 {
		return 0, fmt.Errorf("sim: Alloc of %d bytes: %w", n, compute.ErrArgument)
	}
	if uint64(n) > mostMemory {
		return 0, fmt.Errorf("sim: Alloc of %d bytes: %w", n, compute.ErrTooLarge)
	}
	s := g.mem.add(n, allocAlign, ir.GlobalSpace, "")
	if g.mon != nil {
		g.mon.allocated(s)
	}
	return s.base, nil
}

// Free gives back what Alloc returned; an address of 0 is no error.
func (g *GPU) Free(addr uint64) error {
	if addr == 0 {
		return nil
	}
	g.known.Lock()
	defer g.known.Unlock()
	if s := g.mem.at(addr); s != nil && !s.fixed && s.heap == nil {
		if g.mon != nil {
			g.mon.freed(s)
		}
		g.mem.remove(s)
		return nil
	}
	return fmt.Errorf("sim: Free(%#x): not the start of an allocation, but %s: %w", addr, g.mem.describe(addr),
		compute.ErrArgument)
}

// Label names an allocation, given by its address, in faults.
func (g *GPU) Label(addr uint64, name string) error {
	return g.host("Label", addr, 1, func(s *segment, off int) error {
		if off != 0 || s.fixed {
			return fmt.Errorf("sim: Label(%#x): not the start of an allocation: %w", addr, compute.ErrArgument)
		}
		s.name = name
		return nil
	})
}

// goesOn tells whether a kernel goes on after a fault.
func (g *GPU) goesOn(f *Fault) bool { return g.cfg.Report != nil && g.cfg.Report(f) }

// Write copies p to global or constant memory.
func (g *GPU) Write(addr uint64, p []byte) error {
	return g.host("Write", addr, len(p), func(s *segment, off int) error {
		copy(s.data[off:], p)
		if g.mon != nil {
			g.mon.wrote(s, off, len(p))
		}
		return nil
	})
}

// Fill sets n bytes to b.
func (g *GPU) Fill(addr uint64, n int, b byte) error {
	return g.host("Fill", addr, n, func(s *segment, off int) error {
		for i := range n {
			s.data[off+i] = b
		}
		if g.mon != nil {
			g.mon.wrote(s, off, n)
		}
		return nil
	})
}

// Read copies from global or constant memory to p. With CheckInit, bytes that nothing has written are a *Fault.
func (g *GPU) Read(p []byte, addr uint64) error {
	return g.host("Read", addr, len(p), func(s *segment, off int) error {
		if g.mon != nil {
			if f := g.mon.read(s, off, len(p)); f != nil && !g.goesOn(f) {
				return f
			}
		}
		copy(p, s.data[off:])
		return nil
	})
}

// Copy copies n bytes of global or constant memory, and with CheckInit what is known of them: bytes that nothing has written
// are no fault here, but stay unwritten. The two may not overlap.
func (g *GPU) Copy(dst, src uint64, n int) error {
	if n > 0 && dst-src+uint64(n)-1 < 2*uint64(n)-1 {
		return fmt.Errorf("sim: Copy of %d bytes from %#x to %#x, which overlap: %w", n, src, dst, compute.ErrArgument)
	}
	return g.host("Copy", dst, n, func(to *segment, at int) error {
		from := g.mem.find(src)
		if from == nil || uint64(n) > uint64(from.size)-(src-from.base) {
			return g.outside("Copy", src, n)
		}
		off := int(src - from.base)
		copy(to.data[at:at+n], from.data[off:])
		if g.mon != nil {
			g.mon.carry(to, at, from, off, n)
		}
		return nil
	})
}

func (g *GPU) outside(what string, addr uint64, n int) *Fault {
	return &Fault{Kind: OutOfBounds, Addr: addr, Space: ir.GlobalSpace,
		Detail: fmt.Sprintf("%s of %d bytes at %s", what, n, g.mem.describe(addr))}
}

// host finds the memory of an access by the host.
func (g *GPU) host(what string, addr uint64, n int, f func(s *segment, off int) error) error {
	if n < 0 {
		return fmt.Errorf("sim: %s of %d bytes: %w", what, n, compute.ErrArgument)
	}
	g.known.Lock()
	defer g.known.Unlock()
	if n == 0 {
		return nil
	}
	s := g.mem.find(addr)
	if s == nil || uint64(n) > uint64(s.size)-(addr-s.base) {
		return g.outside(what, addr, n)
	}
	return f(s, int(addr-s.base))
}
