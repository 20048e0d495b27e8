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
	"github.com/wavelane/wavelane/internal/lowering"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/tune"
	"github.com/wavelane/wavelane/internal/wgslkernels"
	"github.com/wavelane/wavelane/wgsl"
)

// Device is an open WebGPU device. It is safe for concurrent use.
type Device struct {
	compute.Ops // one method per operation of the catalogue, on slices of host memory
	sealed

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
	timed      bool
	threshold  uint64                                                                                                                // maximal number of dispatches in a command buffer
	lowerStep  func(s *program.Step, in, out []program.Type, caps *wgsl.Caps, choose lowering.Chooser) (wgslkernels.Lowering, error) // wgslkernels.Lower

	life        *device.Lifetime
	executables device.Children[*compiled]

	mu    sync.Mutex
	lost  error
	stats Stats
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
		drv: drv, info: info, kernelCaps: info.Caps(), log: c.log, tuner: newTuner(info, c), timed: c.timestamps, threshold: uint64(c.threshold),
		lowerStep: wgslkernels.Lower, pipelines: newPipelines(drv, mostPipelines),
	}
	d.life = device.NewLifetime("gpu", d.fault, d.teardown)
	d.pool = newPool(drv, info.Limits.MaxBuffer, c.memory, d.dropIdle)
	dev := &Device{core: d}

	dev.Ops, dev.sealed = device.NewOps(executor{dev}), program.Seal(executor{dev})
	runtime.AddCleanup(dev, (*device.Lifetime).Close, d.life) // in case Close is forgotten
	d.log.Debug("gpu: device open", "adapter", info.String())
	return dev
}

// lifetime returns nil for the zero Device.
func (d *core) lifetime() *device.Lifetime {
	if d == nil {
		return nil
	}
	return d.life
}

// Info describes the adapter, with the limits and features that were granted.
func (d *core) Info() AdapterInfo {
	if d == nil {
		return AdapterInfo{}
	}
	return d.info
}

// Memory returns the current use of device memory.
func (d *core) Memory() Memory {
	if d == nil {
		return Memory{}
	}
	return d.pool.memory()
}

// Trim frees the memory that is cached for reuse.
func (d *core) Trim() {
	if d.lifetime().Hold() != nil {
		return // closing has given everything back
	}
	defer d.life.End()
	d.dropIdle()
	d.pool.trim(0)
}

// Stats returns counters.
func (d *core) Stats() Stats {
	if d == nil {
		return Stats{}
	}
	d.mu.Lock()
	s := d.stats
	d.mu.Unlock()
	s.PipelineHits, s.PipelineMisses, s.Pipelines = d.pipelines.counts()
	return s
}

// Close closes the device with all its tensors, kernels and compiled programs; later use of any of them fails with
// compute.ErrClosed. Work in flight finishes and delivers its results; the memory is freed after that. Close does not wait for it, not
// for a kernel without end either: it returns nil at once. It is idempotent.
func (d *Device) Close() error {
	d.lifetime().Close()
	return nil
}

// fault returns the loss of the device, or nil.
func (d *core) fault() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lost == nil {
		d.lost = d.drv.Lost()
	}
	if d.lost != nil {
		return fmt.Errorf("gpu device: %w", d.lost)
	}
	return nil
}

func (d *core) teardown() {
	d.dropIdle()
	d.pool.close()
	d.pipelines.close()
	d.drv.Close()
	d.log.Debug("gpu: device closed", "adapter", d.info.Name)
}

// dropIdle makes compiled programs free the memory that they hold between runs.
func (d *core) dropIdle() {
	for _, e := range d.executables.All() {
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
