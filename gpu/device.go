package gpu

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/gpu/internal/webgpu"
	"github.com/wavelane/wavelane/internal/device"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/tune"
	"github.com/wavelane/wavelane/wgsl"
)

// Device is an open WebGPU device. It is safe for concurrent use.
type Device struct {
	compute.Ops // one method per operation of the catalogue, on slices of host memory

	*core
}

// core is the part of a Device that runs in flight, tensors and compiled programs refer to. It is separate so that the garbage
// collector finds a Device unreachable that was not closed.
type core struct {
	drv        webgpu.Driver
	info       AdapterInfo
	kernelCaps wgsl.Caps // of info
	log        compute.Logger
	pool       *pool
	pipelines  *pipelines
	tuner      *tune.Tuner
	firstUse   bool // measure variants when a program is compiled
	timed      bool
	threshold  uint64                                                                                                     // maximal number of dispatches in a command buffer
	lowerStep  func(s *program.Step, in, out []program.Type, caps *wgsl.Caps, choose wgsl.Chooser) (wgsl.Lowering, error) // wgsl.Lower

	mu          sync.Mutex
	closed      bool
	lost        error
	users       int // calls and runs that need the driver; it is closed when none is left
	executables map[*compiled]bool
	stats       Stats
}

// Stats counts what a device has done since it was opened.
type Stats struct {
	Runs           uint64        `json:"runs"` // submissions
	Dispatches     uint64        `json:"dispatches"`
	GPUTime        time.Duration `json:"gpu_time"` // of completed runs, measured WithTimestamps
	PipelineHits   uint64        `json:"pipeline_hits"`
	PipelineMisses uint64        `json:"pipeline_misses"` // compilations
	Pipelines      int           `json:"pipelines"`       // compiled and kept
}

func newDevice(drv webgpu.Driver, info AdapterInfo, c *config) *Device {
	d := &core{
		drv: drv, info: info, kernelCaps: info.Caps(), log: c.log, tuner: newTuner(info, c), firstUse: c.tune == TuneFirstUse, timed: c.timestamps, threshold: uint64(c.threshold),
		lowerStep: wgsl.Lower, executables: map[*compiled]bool{}, pipelines: newPipelines(drv, mostPipelines),
	}
	d.pool = newPool(drv, info.Limits.MaxBuffer, c.memory, d.dropIdle)
	dev := &Device{core: d}

	dev.Ops = device.NewOps(executor{dev})
	runtime.AddCleanup(dev, func(d *core) { d.close() }, d) // in case Close is forgotten
	d.log.Debug("gpu: device open", "adapter", info.String())
	return dev
}

// Info describes the adapter, with the limits and features that were granted.
func (d *core) Info() AdapterInfo { return d.info }

// Memory returns the current use of device memory.
func (d *core) Memory() Memory { return d.pool.memory() }

// Trim frees the memory that is cached for reuse.
func (d *core) Trim() {
	if d.enter() != nil {
		return // closing has given everything back
	}
	defer d.end()
	d.dropIdle()
	d.pool.trim(0)
}

// Stats returns counters.
func (d *core) Stats() Stats {
	d.mu.Lock()
	s := d.stats
	d.mu.Unlock()
	s.PipelineHits, s.PipelineMisses, s.Pipelines = d.pipelines.counts()
	return s
}

// Close closes the device with all its tensors, kernels and compiled programs; later use of any of them fails with
// compute.ErrClosed. Work in flight finishes and delivers its results; the memory is freed after that. Close does not wait
// and is idempotent.
func (d *Device) Close() error {
	d.core.close()
	return nil
}

func (d *core) close() {
	d.mu.Lock()
	first := !d.closed
	d.closed = true
	last := first && d.users == 0
	d.mu.Unlock()
	if last {
		d.teardown()
	}
}

// begin keeps the driver open for a call or a run, until end.
func (d *core) begin() error {
	if err := d.enter(); err != nil {
		return err
	}
	if err := d.lostReason(); err != nil {
		d.end()
		return fmt.Errorf("gpu device: %w", err)
	}
	return nil
}

// enter is begin for calls that only free something, which is possible on a lost device too.
func (d *core) enter() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return fmt.Errorf("gpu device: %w", compute.ErrClosed)
	}
	d.users++
	return nil
}

func (d *core) lostReason() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lost == nil {
		d.lost = d.drv.Lost()
	}
	return d.lost
}

func (d *core) end() {
	d.mu.Lock()
	d.users--
	last := d.closed && d.users == 0
	d.mu.Unlock()
	if last {
		d.teardown()
	}
}

func (d *core) teardown() {
	d.mu.Lock()
	executables := d.executables
	d.executables = nil
	d.mu.Unlock()
	for e := range executables {
		e.dropIdle()
	}
	d.pool.close()
	d.pipelines.close()
	d.drv.Close()
	d.log.Debug("gpu: device closed", "adapter", d.info.Name)
}

// dropIdle makes compiled programs free the memory that they hold between runs.
func (d *core) dropIdle() {
	d.mu.Lock()
	list := make([]*compiled, 0, len(d.executables))
	for e := range d.executables {
		list = append(list, e)
	}
	d.mu.Unlock()
	for _, e := range list {
		e.dropIdle()
	}
}

// failed returns the error of a driver call, and records a loss of the device.
func (d *core) failed(err error) error {
	if err == nil {
		return nil
	}
	lost := d.drv.Lost()
	if lost == nil && errors.Is(err, compute.ErrDeviceLost) {
		lost = err
	}
	if lost != nil {
		d.mu.Lock()
		if d.lost == nil {
			d.lost = lost
			d.log.Error("gpu: device lost", "adapter", d.info.Name, "reason", lost)
		}
		d.mu.Unlock()
	}
	return err
}

func (d *core) caps() *wgsl.Caps { return &d.kernelCaps }
