package cuda

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/wavelane/wavelane/cuda/internal/driver"
)

// primary is the primary context of a device, which all its users in the process share: a fault kills it for all of them.
//
// The driver keeps the current context per OS thread, and goroutines move between threads: every use is between enter and
// leave, which hold the goroutine on its thread. There is no thread that calls are sent to; that would cost microseconds.
type primary struct {
	drv     driver.Driver
	device  driver.Device
	handle  driver.Context
	users   int // guarded by primaries.mu
	debug   atomic.Bool
	poison  atomic.Pointer[PoisonedError]
	history history
	// capture is held for reading while a graph is captured. Who synchronises the context, which would break captures, holds it
	// for writing; by TryLock alone, so that nobody waits for a lock in a capture.
	capture sync.RWMutex
}

// primaries are the contexts in use.
var primaries struct {
	mu   sync.Mutex
	byID map[primaryID]*primary
}

type primaryID struct {
	drv    driver.Driver
	device driver.Device
}

// retainPrimary returns the context of a device, for release when it is no longer needed.
func retainPrimary(drv driver.Driver, d driver.Device) (*primary, error) {
	primaries.mu.Lock()
	defer primaries.mu.Unlock()
	id := primaryID{drv, d}
	if p := primaries.byID[id]; p != nil {
		p.users++
		return p, nil
	}
	p := &primary{drv: drv, device: d, users: 1}
	// Threads that wait for the GPU sleep: they would take a core from the program otherwise. A context that is active already,
	// through another library, keeps its flags, which the driver reports as an error or not, by its version.
	drv.PrimaryCtxSetFlags(d, driver.ScheduleBlockingSync)
	handle, r := drv.PrimaryCtxRetain(d)
	if err := p.check("cuDevicePrimaryCtxRetain", r); err != nil {
		return nil, err
	}
	p.handle = handle
	if primaries.byID == nil {
		primaries.byID = map[primaryID]*primary{}
	}
	primaries.byID[id] = p
	return p, nil
}

// release gives the context back. The last user's release destroys it with everything in it.
func (p *primary) release() error {
	primaries.mu.Lock()
	defer primaries.mu.Unlock()
	p.users--
	if p.users > 0 {
		return nil
	}
	delete(primaries.byID, primaryID{p.drv, p.device})
	r := p.drv.PrimaryCtxRelease(p.device)
	if p.poison.Load() != nil {
		return nil // everybody knows
	}
	return p.check("cuDevicePrimaryCtxRelease", r)
}

// enter makes the context current on the goroutine's thread, and keeps the goroutine there until leave. It fails, without a
// need for leave, if the context is dead.
func (p *primary) enter() error {
	if dead := p.poison.Load(); dead != nil {
		return dead
	}
	runtime.LockOSThread()
	if err := p.setCurrent(); err != nil {
		runtime.UnlockOSThread()
		return err
	}
	return nil
}

// enterDead is enter for what gives something back, which has to be tried on a dead context as well.
func (p *primary) enterDead() {
	runtime.LockOSThread()
	_ = p.setCurrent() // the calls that follow say what is wrong
}

func (p *primary) leave() { runtime.UnlockOSThread() }

// setCurrent does not ask which context is current: the driver compares by itself, and asking takes as long.
func (p *primary) setCurrent() error {
	return p.check("cuCtxSetCurrent", p.drv.CtxSetCurrent(p.handle))
}

// check turns a result into an error, and marks the context dead if the result says so. Success costs nothing.
func (p *primary) check(call string, r driver.Result) error {
	if r == driver.Success {
		return nil
	}
	return p.failed(call, r, "")
}

// failed is check for calls with a log.
func (p *primary) failed(call string, r driver.Result, log string) error {
	e := newError(p.drv, call, r)
	e.Log = log
	if !r.Sticky() {
		return e
	}
	e.Detail = p.drv.Detail(p.handle)
	dead := &PoisonedError{Cause: e, Launches: p.history.last()}
	p.poison.CompareAndSwap(nil, dead)
	return p.poison.Load()
}

func newError(drv driver.Driver, call string, r driver.Result) *Error {
	e := &Error{Call: call, Code: int(r), Name: r.Name(), Text: drv.ResultText(r)}
	if r == driver.CaptureUnsupported {
		e.Detail = "not while a stream captures, see Stream.Capture"
	}
	return e
}

// launched notes a launch and, in debug mode, waits for it, so that its fault is charged to it; unless it is captured.
func (p *primary) launched(kernel string, l *driver.Launch, s driver.Stream, r driver.Result, capturing bool) error {
	if r != driver.Success {
		return fmt.Errorf("launch of %s, grid %v, block %v, %d bytes of shared memory: %w", kernel, l.Grid, l.Block, l.Shared,
			p.check("cuLaunchKernel", r))
	}
	if capturing {
		return nil
	}
	p.history.add(kernel, l)
	if p.debug.Load() {
		if err := p.check("cuStreamSynchronize", p.drv.StreamSynchronize(s)); err != nil {
			return fmt.Errorf("kernel %s, grid %v, block %v: %w", kernel, l.Grid, l.Block, err)
		}
	}
	return nil
}

// remembered is how many launches a context knows for its obituary.
const remembered = 16

// history is the last launches.
type history struct {
	mu   sync.Mutex
	n    uint64
	ring [remembered]LaunchRecord
}

func (h *history) add(kernel string, l *driver.Launch) {
	h.mu.Lock()
	r := &h.ring[h.n%remembered]
	r.Number, r.Kernel, r.Grid, r.Block = h.n, kernel, l.Grid, l.Block
	h.n++
	h.mu.Unlock()
}

// last are the remembered launches, the latest last.
func (h *history) last() []LaunchRecord {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []LaunchRecord
	for i := h.n - min(h.n, remembered); i < h.n; i++ {
		all = append(all, h.ring[i%remembered])
	}
	return all
}
