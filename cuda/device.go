package cuda

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/internal/device"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/tune"
)

// Device is an open GPU. It is safe for concurrent use.
type Device struct {
	compute.Ops // one method per operation of the catalogue, on slices of host memory
	sealed

	*state
}

// device is the part of a Device that runs in flight and everything made from it refer to. It is separate from Device, so
// that a forgotten Device becomes unreachable.
type state struct {
	*primary
	info          Info
	log           compute.Logger
	caps          kit.Caps
	large         uint64  // bytes of an input beyond which it does not go through pinned memory of its own
	defaultStream *Stream // that programs run on
	captures      *Stream // that programs are captured on; guarded by submit
	side          *Stream // of collectives; guarded by submit
	pool          *pool
	host          *hostPool
	stager        *stager
	loader        *loader
	tuner         *tune.Tuner
	events        events
	submit        sync.Mutex // one program at a time is put on the default stream

	life        *device.Lifetime
	streams     device.Children[*Stream]
	modules     device.Children[*Module]
	graphs      device.Children[*graph]
	executables device.Children[*compiled]

	mu    sync.Mutex
	stats Stats
}

// Stats counts what a device has done since it was opened.
type Stats struct {
	Runs     uint64 `json:"runs"`     // of programs
	Launches uint64 `json:"launches"` // of kernels by programs
	Replays  uint64 `json:"replays"`  // runs that were one launch of a graph
}

// Available returns nil if an NVIDIA GPU can be opened, else an error that says why not.
func Available(ctx context.Context) error {
	_, err := Devices(ctx)
	return err
}

// Devices describes the GPUs that can be opened: NVIDIA's, or those of [WithSoftware] if that is among the options. The error wraps
// compute.ErrUnavailable if there are none.
func Devices(ctx context.Context, opts ...Option) ([]Info, error) {
	list, err := devices(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("cuda: %w", err)
	}
	return list, nil
}

func devices(ctx context.Context, opts []Option) ([]Info, error) {
	c, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	drv, err := c.load()
	if err != nil {
		return nil, err
	}
	n, r := drv.DeviceCount()
	if r != driver.Success {
		return nil, newError(drv, "cuDeviceGetCount", r)
	}
	if n == 0 {
		return nil, fmt.Errorf("the driver knows no GPU: %w", compute.ErrUnavailable)
	}
	var list []Info
	for i := range n {
		info, _, err := describe(drv, i)
		if err != nil {
			return nil, err
		}
		list = append(list, info)
	}
	return list, ctx.Err()
}

// Open opens a GPU: the first of NVIDIA's driver, unless options say otherwise. Errors wrap compute.ErrUnavailable if there is no
// driver or no such GPU, and say what is missing. When ctx ends first it returns ctx.Err().
func Open(ctx context.Context, opts ...Option) (*Device, error) {
	err := compute.CheckContext(ctx)
	var d *Device
	if err == nil {
		d, err = program.Within(ctx, func() (*Device, error) { return open(opts) }, func(d *Device) { d.Close() })
	}
	if err != nil {
		return nil, fmt.Errorf("cuda: %w", err)
	}
	return d, nil
}

func open(opts []Option) (*Device, error) {
	c, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	drv, err := c.load()
	if err != nil {
		return nil, err
	}
	info, id, err := describe(drv, c.ordinal)
	if err != nil {
		return nil, err
	}
	p, err := retainPrimary(drv, id)
	if err != nil {
		return nil, err
	}
	if c.debug {
		p.debug.Store(true)
	}
	grid := info.MaxGrid
	d := &state{
		primary: p, info: info, log: c.log, events: events{p: p}, large: largeInput, tuner: newTuner(info, c),
		caps: kit.Caps{Multiprocessors: info.Multiprocessors, MaxGrid: [3]uint32{uint32(grid[0]), uint32(grid[1]), uint32(grid[2])},
			Target: info.CodeTarget()},
	}
	d.life = device.NewLifetime("cuda", d.fault, d.teardown)
	if err := d.start(c); err != nil {
		d.teardown()
		return nil, err
	}
	dev := &Device{state: d}
	dev.Ops, dev.sealed = device.NewOps(executor{dev}), program.Seal(executor{dev})
	runtime.AddCleanup(dev, func(d *state) { d.forgotten() }, d)
	d.log.Debug("cuda: device open", "device", info.String())
	return dev, nil
}

// start makes what a device always has.
func (d *state) start(c *config) (err error) {
	if d.defaultStream, err = d.newStream(StreamOptions{}); err != nil {
		return err
	}
	d.pool = newPool(d.primary, d.defaultStream.handle, c.memory)
	d.host = newHostPool(d.primary)
	d.pool.relief, d.host.relief = d.dropIdle, d.dropIdle
	if d.stager, err = newStager(d.primary, d.host); err != nil {
		return err
	}
	d.loader = newLoader(d.primary, d.info, c.cache, d.log)
	d.loader.busy = d.busy
	return nil
}

// lifetime returns nil for the zero Device.
func (d *state) lifetime() *device.Lifetime {
	if d == nil {
		return nil
	}
	return d.life
}

// Info describes the GPU.
func (d *state) Info() Info {
	if d == nil {
		return Info{}
	}
	return d.info
}

// Stats returns counters.
func (d *state) Stats() Stats {
	if d == nil {
		return Stats{}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stats
}

// Synchronize waits until all work that was submitted to the device so far is done. It returns the first fault if there was one.
func (d *state) Synchronize() error {
	// Events are used because the context must not be synchronised during a capture.
	return d.settled(context.Background(), func() error { return nil })
}

// Close closes the device with all its streams, modules, graphs, tensors, buffers and compiled programs; later use of any of
// them fails with compute.ErrClosed. Work in flight finishes and delivers its results, and a recording that is open can still be
// submitted; the memory is freed after that. Close does not wait for it, not for a kernel without end either: it returns nil at once. It
// is idempotent.
func (d *Device) Close() error {
	d.lifetime().Close()
	return nil
}

// forgotten closes a Device that was collected without Close. As long as streams, modules or graphs of it are in use, nothing
// is closed.
func (d *state) forgotten() {
	d.submit.Lock()
	own := 1 // the default stream
	for _, s := range []*Stream{d.captures, d.side} {
		if s != nil {
			own++
		}
	}
	d.submit.Unlock()
	if d.streams.Len() <= own && d.modules.Len()+d.graphs.Len() == 0 {
		d.life.Close()
	}
}

// busy reports whether a stream has work. The context has been entered, and nothing is captured.
func (d *state) busy() (bool, error) {
	for _, s := range d.streams.All() {
		s.mu.Lock()
		r := driver.Success
		if !s.closed {
			r = d.drv.StreamQuery(s.handle)
		}
		s.mu.Unlock()
		if r == driver.NotReady {
			return true, nil
		}
		if err := d.check("cuStreamQuery", r); err != nil {
			return false, err
		}
	}
	return false, nil
}

// fault returns what has killed the context, or nil.
func (d *state) fault() error {
	if dead := d.poison.Load(); dead != nil {
		return dead
	}
	return nil
}

// dropIdle frees the graphs that compiled programs keep for their next runs, but for those with collectives, which other members replay as
// well. It reports whether there were any.
func (d *state) dropIdle() bool {
	dropped := false
	for _, e := range d.executables.All() {
		if e.together != nil {
			continue
		}
		dropped = e.dropGraphs() || dropped
	}
	return dropped
}

// teardown destroys everything. The device is no longer in use.
func (d *state) teardown() {
	for _, e := range d.executables.All() {
		e.dropGraphs()
		e.plan.release()
	}
	for _, g := range d.graphs.All() {
		g.destroy()
	}
	d.enterDead()
	var errs []error
	for _, s := range d.streams.All() {
		errs = append(errs, s.destroy())
	}
	for _, m := range d.modules.All() {
		errs = append(errs, m.unload())
	}
	if d.loader != nil {
		errs = append(errs, d.loader.close())
	}
	d.events.close()
	if d.stager != nil {
		errs = append(errs, d.stager.close())
	}
	if d.pool != nil {
		errs = append(errs, d.pool.close())
	}
	if d.host != nil {
		errs = append(errs, d.host.close())
	}
	d.leave()
	errs = append(errs, d.release())
	if err := errors.Join(errs...); err != nil && d.poison.Load() == nil {
		d.log.Warn("cuda: closing the device", "device", d.info.Name, "error", err)
	}
	d.log.Debug("cuda: device closed", "device", d.info.Name)
}
