package roofline

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
)

// WarpSize is the number of lanes in a warp.
const WarpSize = 32

// Limits are those of a multiprocessor of one architecture.
type Limits struct {
	SM                   int `json:"sm"`
	MaxWarps             int `json:"max_warps"`               // per multiprocessor
	MaxBlocks            int `json:"max_blocks"`              // per multiprocessor
	MaxThreads           int `json:"max_threads"`             // per multiprocessor
	MaxThreadsPerBlock   int `json:"max_threads_per_block"`   // 1024 throughout
	Registers            int `json:"registers"`               // 32-bit ones, per multiprocessor
	MaxRegisters         int `json:"max_registers"`           // per thread
	RegisterGranularity  int `json:"register_granularity"`    // registers are given to a warp in multiples of this
	Partitions           int `json:"partitions"`              // each has an equal part of the registers, and a warp lives in one
	Shared               int `json:"shared"`                  // bytes per multiprocessor
	MaxShared            int `json:"max_shared"`              // bytes per block, after opting in
	MaxStaticShared      int `json:"max_static_shared"`       // bytes per block without opting in
	SharedGranularity    int `json:"shared_granularity"`      // bytes
	SystemShared         int `json:"system_shared"`           // bytes that the system takes of each block's
	RegistersPerBlockMax int `json:"registers_per_block_max"` // per block
}

// architectures: CUDA C++ Programming Guide, "Compute Capabilities: Technical Specifications per Compute Capability", and for
// the granularities the rules of NVIDIA's occupancy calculator (the CUDA toolkit's cuda_occupancy.h).
var architectures = []struct{ sm, warps, blocks, sharedKiB, perBlockKiB, granularity, system int }{
	{70, 64, 32, 96, 96, 256, 0},
	{72, 64, 32, 96, 96, 256, 0},
	{75, 32, 16, 64, 64, 256, 0},
	{80, 64, 32, 164, 163, 128, 1024},
	{86, 48, 16, 100, 99, 128, 1024},
	{87, 48, 16, 164, 163, 128, 1024},
	{88, 48, 16, 100, 99, 128, 1024},
	{89, 48, 24, 100, 99, 128, 1024},
	{90, 64, 32, 228, 227, 128, 1024},
	{100, 64, 32, 228, 227, 128, 1024},
	{101, 48, 24, 228, 227, 128, 1024},
	{103, 64, 32, 228, 227, 128, 1024},
	{110, 48, 24, 228, 227, 128, 1024},
	{120, 48, 24, 100, 99, 128, 1024},
	{121, 48, 24, 100, 99, 128, 1024},
}

// LimitsOf are the limits of an architecture: 90 for sm_90. It returns compute.ErrUnsupported for one that is not known.
func LimitsOf(sm int) (Limits, error) {
	for _, a := range architectures {
		if a.sm == sm {
			return Limits{
				SM: sm, MaxWarps: a.warps, MaxBlocks: a.blocks, MaxThreads: a.warps * WarpSize, MaxThreadsPerBlock: 1024,
				Registers: 64 << 10, RegistersPerBlockMax: 64 << 10, MaxRegisters: 255, RegisterGranularity: 256, Partitions: 4,
				Shared: a.sharedKiB << 10, MaxShared: a.perBlockKiB << 10, MaxStaticShared: 48 << 10,
				SharedGranularity: a.granularity, SystemShared: a.system,
			}, nil
		}
	}
	return Limits{}, fmt.Errorf("roofline: sm_%d: no limits are known: %w", sm, compute.ErrUnsupported)
}

// Limiter is what keeps more blocks from a multiprocessor.
type Limiter string

// The limiters.
const (
	ByWarps     Limiter = "warps"
	ByBlocks    Limiter = "blocks"
	ByRegisters Limiter = "registers"
	ByShared    Limiter = "shared memory"
)

// Occupancy is how full a multiprocessor gets.
type Occupancy struct {
	Blocks   int       `json:"blocks"`   // at once on a multiprocessor; 0: the kernel cannot be launched
	Warps    int       `json:"warps"`    // of them
	Share    float64   `json:"share"`    // warps ÷ most warps
	Limiters []Limiter `json:"limiters"` // all that give this number of blocks
	// The blocks that each limit alone would allow.
	ByWarps, ByBlocks, ByRegisters, ByShared int
}

// String is such as "12 blocks, 48 of 64 warps (75 %), limited by registers".
func (o Occupancy) String() string {
	s := fmt.Sprintf("%d blocks, %d warps (%.0f %%)", o.Blocks, o.Warps, 100*o.Share)
	for i, l := range o.Limiters {
		s += map[bool]string{true: ", limited by ", false: " and "}[i == 0] + string(l)
	}
	return s
}

// Occupancy says how many blocks of a number of threads, each with a number of registers, and with bytes of shared memory per
// block, static and dynamic together, a multiprocessor holds. Registers 0 means that they do not limit. It returns
// compute.ErrArgument for what is no block, compute.ErrTooLarge for what exceeds what a block may have.
func (l Limits) Occupancy(threads, registers, shared int) (Occupancy, error) {
	switch {
	case threads <= 0 || registers < 0 || shared < 0:
		return Occupancy{}, fmt.Errorf("roofline: occupancy of %d threads, %d registers, %d bytes of shared memory: %w",
			threads, registers, shared, compute.ErrArgument)
	case threads > l.MaxThreadsPerBlock:
		return Occupancy{}, fmt.Errorf("roofline: %d threads in a block, at most %d: %w", threads, l.MaxThreadsPerBlock,
			compute.ErrTooLarge)
	case registers > l.MaxRegisters:
		return Occupancy{}, fmt.Errorf("roofline: %d registers per thread, at most %d: %w", registers, l.MaxRegisters,
			compute.ErrTooLarge)
	case shared > l.MaxShared:
		return Occupancy{}, fmt.Errorf("roofline: %d bytes of shared memory per block, at most %d on sm_%d: %w", shared, l.MaxShared,
			l.SM, compute.ErrTooLarge)
	}
	warps := ceilDiv(threads, WarpSize)
	o := Occupancy{ByWarps: l.MaxWarps / warps, ByBlocks: l.MaxBlocks, ByRegisters: l.MaxBlocks, ByShared: l.MaxBlocks}
	if registers > 0 {
		perWarp := roundUp(registers*WarpSize, l.RegisterGranularity)
		// A warp's registers lie in one partition, and a block's warps spread evenly over them: what a partition has left over
		// for less than a warp is lost, and a block must fit with its warps rounded up to the partitions.
		if perWarp*roundUp(warps, l.Partitions) > l.RegistersPerBlockMax {
			o.ByRegisters = 0
		} else {
			o.ByRegisters = l.Registers / l.Partitions / perWarp * l.Partitions / warps
		}
	}
	if used := roundUp(shared+l.SystemShared, l.SharedGranularity); used > 0 {
		o.ByShared = l.Shared / used
	}
	o.Blocks = min(o.ByWarps, o.ByBlocks, o.ByRegisters, o.ByShared)
	o.Warps = o.Blocks * warps
	o.Share = float64(o.Warps) / float64(l.MaxWarps)
	for _, e := range []struct {
		n    int
		name Limiter
	}{{o.ByWarps, ByWarps}, {o.ByBlocks, ByBlocks}, {o.ByRegisters, ByRegisters}, {o.ByShared, ByShared}} {
		// Registers and shared memory that would allow as many blocks as there may be do not limit.
		if e.n == o.Blocks && (e.n < l.MaxBlocks || e.name == ByBlocks || e.name == ByWarps) {
			o.Limiters = append(o.Limiters, e.name)
		}
	}
	return o, nil
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

func roundUp(a, b int) int { return ceilDiv(a, b) * b }
