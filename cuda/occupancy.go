package cuda

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/ptx/roofline"
)

// Occupancy is the share of a multiprocessor that a kernel can fill.
type Occupancy struct {
	Blocks  int     // at once on a multiprocessor, by the driver
	Threads int     // of them
	Share   float64 // threads ÷ most threads
	// Model is the analyser's result for the same registers, shared memory and threads, with the limiting resource. It is nil
	// for an architecture that it does not know.
	Model *roofline.Occupancy
}

// Occupancy says how many blocks of the kernel a multiprocessor holds at once. Axes that are 0 are 1; a block of zeros is the
// one that the kernel requires. shared is bytes of dynamic shared memory. It returns compute.ErrTooLarge for a block that
// cannot be launched.
func (k *Kernel) Occupancy(block [3]uint32, shared uint32) (Occupancy, error) {
	leave, err := k.module.use()
	if err != nil {
		return Occupancy{}, err
	}
	defer leave()
	if block == ([3]uint32{}) {
		block = k.required
	}
	if block == ([3]uint32{}) {
		return Occupancy{}, fmt.Errorf("kernel %s: occupancy without a block: %w", k.name, compute.ErrArgument)
	}
	ones(&block)
	if err := k.checkBlock(block); err != nil {
		return Occupancy{}, err
	}
	if err := k.checkShared(shared); err != nil {
		return Occupancy{}, err
	}
	p, info := k.module.l.p, &k.module.l.info
	threads := int(block[0] * block[1] * block[2])
	n, r := p.drv.OccupancyMaxActiveBlocks(k.function, threads, uint64(shared))
	if err := k.failed("cuOccupancyMaxActiveBlocksPerMultiprocessor", r); err != nil {
		return Occupancy{}, err
	}
	o := Occupancy{Blocks: n, Threads: n * threads, Share: float64(n*threads) / float64(info.ThreadsMP)}
	if limits, err := roofline.LimitsOf(info.Target().SM); err == nil {
		m, err := limits.Occupancy(threads, k.attributes.Registers, k.attributes.Shared+int(shared))
		if err != nil {
			return o, fmt.Errorf("kernel %s: %w", k.name, err)
		}
		o.Model = &m
	}
	return o, nil
}

// BestBlock returns the number of threads of a block that fills a multiprocessor best, given the bytes of dynamic shared
// memory, and the number of blocks that fill the GPU. For a kernel that declares a block size it returns that.
func (k *Kernel) BestBlock(shared uint32) (threads, blocks int, err error) {
	leave, err := k.module.use()
	if err != nil {
		return 0, 0, err
	}
	defer leave()
	if err := k.checkShared(shared); err != nil {
		return 0, 0, err
	}
	p := k.module.l.p
	if b := k.required; b[0] > 0 {
		threads = int(b[0] * b[1] * b[2])
		n, r := p.drv.OccupancyMaxActiveBlocks(k.function, threads, uint64(shared))
		return threads, n * k.module.l.info.Multiprocessors, k.failed("cuOccupancyMaxActiveBlocksPerMultiprocessor", r)
	}
	blocks, threads, r := p.drv.OccupancyMaxPotentialBlockSize(k.function, uint64(shared), k.attributes.MaxThreads)
	return threads, blocks, k.failed("cuOccupancyMaxPotentialBlockSize", r)
}

// failed is the error of a call about the kernel.
func (k *Kernel) failed(call string, r driver.Result) error {
	if r == driver.Success {
		return nil
	}
	return fmt.Errorf("kernel %s: %w", k.name, k.module.l.p.check(call, r))
}
