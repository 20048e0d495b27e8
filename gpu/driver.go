package gpu

import (
	"context"
	"time"

	"github.com/wavelane/wavelane/wgsl"
)

// driver is the seam between this package and a WebGPU implementation: wgpu-native through cgo, or the browser's. It knows
// neither tensors nor programs. Everything it is asked has been validated, so that an error means the machine said no:
// errors wrap compute.ErrOutOfMemory or compute.ErrDeviceLost, or are *ShaderError, or are plain where this package or the
// implementation is at fault. Methods are safe for concurrent use, and none waits for anything: the browser tells only later
// whether something came into being, see ready.
type driver interface {
	newBuffer(kind bufferKind, size uint64) (object, error)
	newPipeline(k *wgsl.Kernel) (object, error)
	// newGroup binds buffers to a pipeline's storage bindings, then to its uniform if it has one.
	newGroup(pipeline object, bind []binding) (object, error)
	// together calls f, which makes many groups and nothing else: where outcomes come later, they share one.
	together(f func() error) error
	// ready calls f, which must not block, when it is known whether o came into being; at once if it is already. Until then o
	// may be used like any other. Submissions that use one that failed fail; it must be freed, and not be used again.
	ready(o object, f func(error))

	// write copies into an upload buffer that no submission uses.
	write(upload object, offset uint64, data []byte)
	// read copies out of a readback buffer between its submission's completion and unmap.
	read(readback object, offset uint64, dst []byte)
	unmap(readback object) error

	// submit records and submits. If it returns nil, s.done will be called once, when the work has finished or failed, also to be
	// recorded to the end, and after the outcome of everything made before is known; else nothing was submitted.
	submit(s *submission) error

	// lost returns the reason once the device is lost, for ever after.
	lost() error
	// close releases the device. All objects have been freed and nothing is in flight.
	close()
}

// object is something that a driver made. Free is called once, when no submission in flight uses it.
type object interface{ free() }

// bufferKind is what a buffer is for.
type bufferKind uint8

const (
	storageBuffer  bufferKind = iota
	uniformBuffer             // filled by copies, read by kernels
	uploadBuffer              // mapped for writing whenever no submission uses it
	readbackBuffer            // mapped for reading from its submission's completion to unmap
	bufferKinds
)

func (k bufferKind) String() string {
	return [...]string{"storage", "uniform", "upload", "readback"}[k]
}

type binding struct {
	buffer       object
	offset, size uint64
}

// command is a dispatch if pipeline is set, a lap's end if that is, else a copy.
type command struct {
	lap             bool
	pipeline, group object
	dynamic         uint32 // offset of the uniform, if the pipeline has one
	uniform         bool
	grid            [3]uint32

	from, to             object
	fromOffset, toOffset uint64
	size                 uint64
}

// submission is the work of one run.
type submission struct {
	commands []command
	cuts     []int           // where command buffers end but the last; each is submitted before the next is recorded
	staging  []object        // the upload and readback buffers in commands; mapped at completion
	timed    bool            // measure gpuTime
	gpuTime  time.Duration   // from the first to the last command, valid in done
	laps     int             // how many commands end a lap; only if timed
	times    []time.Duration // between the ends of laps, one fewer than there are; valid in done
	done     func(error)     // called from any goroutine; must not block
}

// platform is what a build offers: a list of adapters and a way to open one.
type platform interface {
	adapters(ctx context.Context) ([]AdapterInfo, error)
	// open requests a device with the limits of want; the result's Info are the granted ones.
	open(ctx context.Context, want AdapterInfo) (driver, AdapterInfo, error)
}
