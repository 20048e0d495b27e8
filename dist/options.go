package dist

import (
	"fmt"
	"time"

	"github.com/wavelane/wavelane/compute"
)

// Environment variables that override what [Init] would choose.
const (
	EngineVariable  = "WAVELANE_DIST_ENGINE" // as WithEngine
	LibraryVariable = "WAVELANE_MPI_LIBRARY" // path or name of the MPI library, instead of those that are searched

	NCCLLibraryVariable = "WAVELANE_NCCL_LIBRARY" // path or name of the NCCL library
	SecretVariable      = "WAVELANE_DIST_SECRET"  // what ranks of one job know, when NCCL's id is handed to them
)

// Names of engines.
const (
	EngineMPI  = "mpi"  // processes, by an MPI library
	EngineNCCL = "nccl" // processes with an NVIDIA GPU each, by NCCL
	EngineNone = "none" // a world of one, whatever the environment says
)

// engineLocal is how groups in one process name themselves.
const engineLocal = "local"

// Option changes what [Init] does.
type Option func(*config) error

type config struct {
	engine    string
	timeout   time.Duration
	rankOrder bool
	device    Device
}

func (c *config) set(options []Option) error {
	for _, o := range options {
		if o == nil {
			return fmt.Errorf("dist: nil option: %w", compute.ErrArgument)
		}
		if err := o(c); err != nil {
			return fmt.Errorf("dist: %w", err)
		}
	}
	return nil
}

// WithEngine chooses the engine: [EngineMPI], also where no launcher is found, [EngineNCCL], which wants a CUDA device by [WithDevice], or
// [EngineNone]. [EngineVariable] in the environment overrides it.
func WithEngine(name string) Option {
	return func(c *config) error {
		if name != EngineMPI && name != EngineNCCL && name != EngineNone {
			return fmt.Errorf("engine %q: there are %q, %q and %q: %w", name, EngineMPI, EngineNCCL, EngineNone, compute.ErrArgument)
		}
		c.engine = name
		return nil
	}
}

// WithTimeout limits the time of every call. One that takes longer is reported on standard error with its group, sequence number and
// caller, and the stacks of all goroutines; then the job is ended on all machines: a call that waits for a member that does not
// come cannot be taken back. Without it calls wait until their context ends.
func WithTimeout(d time.Duration) Option {
	return func(c *config) error {
		if d <= 0 {
			return fmt.Errorf("timeout %v: %w", d, compute.ErrArgument)
		}
		c.timeout = d
		return nil
	}
}

// WithRankOrder adds in the order of ranks: the same bits for any library, size of message and number of processes on a machine. Float32 then is
// sent as bytes and added here, at 1 to 1.7 times the cost of the library's own all-reduce where that was measured (4 MiB, two ranks).
func WithRankOrder() Option {
	return func(c *config) error {
		c.rankOrder = true
		return nil
	}
}

// WithDevice gives the device on which results of collectives on tensors lie, and which NCCL uses: [LocalRank] says which of several GPUs to
// open for it.
func WithDevice(d Device) Option {
	return func(c *config) error {
		if d == nil {
			return fmt.Errorf("nil device: %w", compute.ErrArgument)
		}
		c.device = d
		return nil
	}
}
