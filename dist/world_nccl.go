package dist

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda"
	"github.com/wavelane/wavelane/dist/internal/nccl"
	"github.com/wavelane/wavelane/dist/internal/rendezvous"
)

const libNCCL = "libnccl.so.2"

// cudaDevice returns the CUDA device that a device is, or nil.
func cudaDevice(d Device) *cuda.Device {
	if front, ok := d.(interface{ Unwrap() any }); ok {
		found, _ := front.Unwrap().(*cuda.Device)
		return found
	}
	found, _ := d.(*cuda.Device)
	return found
}

func initNCCL(ctx context.Context, c config, l launcher) (*World, error) {
	e := &ncclEngine{device: cudaDevice(c.device)}
	if e.device == nil {
		return nil, fmt.Errorf("dist: the engine %q without a CUDA device, see WithDevice: %w", EngineNCCL, compute.ErrArgument)
	}
	var err error
	if e.library, err = openNCCL(); err != nil {
		return nil, err
	}
	if c.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.timeout, timedOut{c.timeout})
		defer cancel()
	}
	id, err := e.shareID(ctx, l)
	if err != nil {
		return nil, fmt.Errorf("dist: %w", err)
	}
	return e.world(ctx, c, l, id)
}

func openNCCL() (*nccl.Library, error) {
	l, err := nccl.Open(cmp.Or(os.Getenv(NCCLLibraryVariable), libNCCL))
	if errors.Is(err, nccl.ErrMissing) {
		return nil, fmt.Errorf("dist: install NCCL, or name the library in %s: %w: %w", NCCLLibraryVariable, compute.ErrUnavailable, err)
	}
	if err != nil {
		return nil, fmt.Errorf("dist: %w", err)
	}
	return l, nil
}

// LocalNCCL makes a world of several CUDA devices of one process, between which NCCL moves data: member i is the world on device i. As with
// processes, each is for a goroutine of its own, Close waits for the others, and what breaks one leaves them waiting. Options other than
// [WithTimeout] and [WithRankOrder] do not matter. Errors are those of [Init].
func LocalNCCL(ctx context.Context, devices []Device, options ...Option) ([]*World, error) {
	if err := compute.CheckContext(ctx); err != nil {
		return nil, err
	}
	if len(devices) == 0 {
		return nil, fmt.Errorf("dist: a world without members: %w", compute.ErrArgument)
	}
	engines := make([]*ncclEngine, len(devices))
	for i, d := range devices {
		if d == nil || cudaDevice(d) == nil {
			return nil, fmt.Errorf("dist: device %d is no CUDA device: %w", i, compute.ErrArgument)
		}
		engines[i] = &ncclEngine{device: cudaDevice(d)}
	}
	var c config
	if err := c.set(options); err != nil {
		return nil, err
	}
	library, err := openNCCL()
	if err != nil {
		return nil, err
	}
	id, err := library.UniqueID()
	if err != nil {
		return nil, fmt.Errorf("dist: %w", err)
	}
	worlds, errs := make([]*World, len(devices)), make([]error, len(devices))
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for i, e := range engines {
		e.library = library
		own := c
		own.device = devices[i]
		wg.Go(func() {
			if worlds[i], errs[i] = e.world(ctx, own, launcher{rank: i, size: len(devices), local: i}, id); errs[i] != nil {
				cancel() // the others wait for it
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		for i, w := range worlds {
			if w != nil {
				engines[i].abort()
			}
		}
		return nil, err
	}
	return worlds, nil
}

// world joins the others who have the id.
func (e *ncclEngine) world(ctx context.Context, c config, l launcher, id nccl.ID) (*World, error) {
	t, err := e.join(ctx, func() (*nccl.Comm, error) { return e.library.NewComm(id, l.rank, l.size) })
	if err != nil {
		return nil, fmt.Errorf("dist: rank %d of %d: %w", l.rank, l.size, err)
	}
	w := &World{finalize: e.finalize}
	w.info = Info{Engine: EngineNCCL, Launcher: l.name, Library: e.library.Path(), Version: "NCCL " + e.library.Version(),
		Rank: l.rank, Size: l.size, LocalRank: max(0, l.local)}
	// The launcher ends the other processes when this one has ended with a status other than 0.
	w.Group = newGroup(newJob(c, os.Exit), t, "world", w.info.LocalRank, c.device)
	return w, nil
}

// shareID has rank 0 make an id and hand it to the others.
func (e *ncclEngine) shareID(ctx context.Context, l launcher) (id nccl.ID, err error) {
	if l.rank == 0 {
		if id, err = e.library.UniqueID(); err != nil {
			return id, err
		}
	}
	if l.size == 1 {
		return id, nil
	}
	m, err := meeting(os.Getenv)
	if err != nil {
		return id, err
	}
	m.Rank, m.Size = l.rank, l.size
	shared, err := m.Share(ctx, id[:])
	if err == nil && copy(id[:], shared) != len(shared) {
		err = fmt.Errorf("an id of %d bytes", len(shared))
	}
	return id, err
}

// meeting reads from the environment where rank 0 hands out the id. Under torchrun itself the port is that of its own store, unless told
// otherwise, and the next one is taken.
func meeting(getenv func(string) string) (m rendezvous.Meeting, err error) {
	host, text := getenv("MASTER_ADDR"), getenv("MASTER_PORT")
	port, err := strconv.ParseUint(text, 10, 16)
	if host == "" || err != nil {
		return m, fmt.Errorf("ranks meet at MASTER_ADDR and MASTER_PORT, which are %q and %q: set them to the machine of rank 0 and a free port there: %w",
			host, text, compute.ErrArgument)
	}
	if getenv("TORCHELASTIC_USE_AGENT_STORE") == "True" {
		port++
	}
	attempt, _ := strconv.ParseUint(getenv("TORCHELASTIC_RESTART_COUNT"), 10, 32) // 0 if there is none
	return rendezvous.Meeting{Address: net.JoinHostPort(host, strconv.FormatUint(port, 10)), Attempt: uint32(attempt),
		Secret: cmp.Or(getenv(SecretVariable), getenv("TORCHELASTIC_RUN_ID"))}, nil
}
