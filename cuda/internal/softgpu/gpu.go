package softgpu

import (
	"maps"
	"runtime"
	"sync"

	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/ptx/roofline"
	"github.com/wavelane/wavelane/ptx/sim"
)

// Config is what the driver and its devices are like. The zero value is one device of compute capability 9.0.
type Config struct {
	Devices         int    // 0: 1
	Multiprocessors int    // of each device; 0: 4
	Memory          uint64 // bytes of each device; 0: 4 GiB
	SM              int    // compute capability times ten; 0: 90. One that package roofline has no limits for: no device
	// Sim is how kernels run. Workers is GOMAXPROCS if it is 0; SharedLimit follows from SM, and Base from the context.
	Sim sim.Config
	// Version is that of the driver API, which limits the version of PTX; 0: 12080.
	Version int
	// Inject is asked at the beginning of each call that returns a Result, with the method's name. If it returns something else
	// than Success, that is the call's result, and nothing happens. It may be called from several goroutines at once.
	Inject func(call string) driver.Result
}

// GPU is a driver with its devices. It is safe for concurrent use.
type GPU struct {
	cfg     Config
	limits  roofline.Limits
	devices []*device

	mu       sync.Mutex
	handles  map[uintptr]any
	next     uintptr // the next handle
	contexts uint64  // made so far
	current  map[uint64]*primary
	captures map[uint64][]*capture // that a thread has begun
	host     ranges[*hostMemory]
	pinned   uint64 // bytes of it
	calls    map[string]uint64
	leaked   Live
}

// device is one of a GPU's devices.
type device struct {
	ordinal int
	retains int
	flags   uint32
	context *primary // nil while nobody retains it
}

var _ driver.Driver = (*GPU)(nil)

// New returns a driver whose devices have no context yet.
func New(cfg Config) *GPU {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	def(&cfg.Devices, 1)
	def(&cfg.Multiprocessors, 4)
	def(&cfg.SM, 90)
	def(&cfg.Version, 12080)
	def(&cfg.Sim.Workers, runtime.GOMAXPROCS(0))
	if cfg.Memory == 0 {
		cfg.Memory = 4 << 30
	}
	g := &GPU{cfg: cfg, handles: map[uintptr]any{}, next: 0x1000, current: map[uint64]*primary{},
		captures: map[uint64][]*capture{}, calls: map[string]uint64{}}
	limits, err := roofline.LimitsOf(cfg.SM)
	if err != nil {
		return g
	}
	g.limits = limits
	g.cfg.Sim.SharedLimit = limits.MaxShared
	if !threads { // the current context could not be told from another device's
		cfg.Devices = 1
	}
	for i := range cfg.Devices {
		g.devices = append(g.devices, &device{ordinal: i})
	}
	return g
}

// Kind is "software".
func (g *GPU) Kind() string { return "software" }

// Calls counts the calls by name, injected failures included.
func (g *GPU) Calls() map[string]uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return maps.Clone(g.calls)
}

// begin is the beginning of every call. It returns with the lock held if the result is Success.
func (g *GPU) begin(call string) driver.Result {
	r := driver.Success
	if g.cfg.Inject != nil {
		r = g.cfg.Inject(call)
	}
	g.mu.Lock()
	g.calls[call]++
	if r == driver.Success {
		return r
	}
	if c := g.current[thread()]; c != nil && c.open && c.fault == driver.Success && r.Sticky() {
		c.fault, c.detail = r, "injected into "+call
	}
	g.mu.Unlock()
	return r
}

// use says what a call may meet.
type use uint8

const (
	anyCall     use = 0
	unsafeCall  use = 1 << iota // not on a thread that captures
	destroyCall                 // takes effect on dead contexts too
)

// enter is the beginning of a call that needs a context: it returns the current one, and the lock is held if the result is
// Success. With destroyCall it is held as well where the context is dead, and the context is not nil then.
func (g *GPU) enter(call string, u use) (*primary, driver.Result) {
	if r := g.begin(call); r != driver.Success {
		return nil, r
	}
	id := thread()
	c := g.current[id]
	if c == nil || !c.open {
		g.mu.Unlock()
		return nil, driver.InvalidContext
	}
	r := c.fault
	switch {
	case r != driver.Success && u&destroyCall != 0:
		return c, r
	case r == driver.Success && u&unsafeCall != 0 && len(g.captures[id]) > 0:
		for _, k := range g.captures[id] {
			k.invalid = true
		}
		r = driver.CaptureUnsupported
	case r == driver.Success:
		return c, r
	}
	g.mu.Unlock()
	return nil, r
}

// add gives a new handle to an object. Handles are never used twice, so that one that is out of date is seen.
func (g *GPU) add(object any) uintptr {
	g.next += 16
	g.handles[g.next] = object
	return g.next
}

// lookup is the object of a kind with a handle.
func lookup[T any](g *GPU, handle uintptr) (T, bool) {
	o, ok := g.handles[handle].(T)
	return o, ok
}
