package dist

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/dist/internal/mpi"
)

// World is the group of all processes of a job.
type World struct {
	*Group
	info     Info
	finalize func(stop <-chan struct{}) error // leaves the engine; nil in a world of one
	close    sync.Once
	err      error
}

// Info describes a world.
type Info struct {
	Engine    string `json:"engine"`             // EngineMPI, EngineNCCL or EngineNone
	Launcher  string `json:"launcher,omitempty"` // empty if there is none
	Library   string `json:"library,omitempty"`  // as it was loaded
	Family    string `json:"family,omitempty"`   // its binary interface: "Open MPI", "MPICH" or "MPI 5 ABI"
	Version   string `json:"version,omitempty"`  // the library's own words
	Rank      int    `json:"rank"`
	Size      int    `json:"size"`
	LocalRank int    `json:"local_rank"`
}

// Init joins the processes that were started together, finding out how. All of them call it, once: MPI cannot be started again in a
// process.
//
// Handlers of signals that the MPI library replaces are put back, so that Go's panics, profiles and package os/signal go on working.
//
// The error wraps [compute.ErrUnavailable] where there is no library, naming what was tried, and [ErrLauncher] where the library found does not
// know the launcher that started the process. It does not wait for ctx once MPI is being initialised, which waits for all processes. With NCCL
// it waits for them until ctx ends or, if that is sooner, for the time of [WithTimeout].
func Init(ctx context.Context, options ...Option) (*World, error) {
	if err := compute.CheckContext(ctx); err != nil {
		return nil, err
	}
	var c config
	if name := os.Getenv(EngineVariable); name != "" {
		if err := WithEngine(name)(&c); err != nil {
			return nil, fmt.Errorf("%s: %w", EngineVariable, err)
		}
	}
	fromEnvironment := c.engine
	if err := c.set(options); err != nil {
		return nil, err
	}
	if fromEnvironment != "" { // whoever starts a program decides, not who has written it
		c.engine = fromEnvironment
	}
	l := findLauncher(os.Getenv)
	if c.engine == "" {
		switch {
		case l.mpi:
			c.engine = EngineMPI
		case l.size == 1:
			c.engine = EngineNone
		case cudaDevice(c.device) != nil:
			c.engine = EngineNCCL
		default:
			return nil, fmt.Errorf("dist: %s started %d processes, which have no MPI between them: start them with mpirun or srun, give a CUDA device by WithDevice, "+
				"or choose the engine %q: %w", l.name, l.size, EngineNone, compute.ErrUnsupported)
		}
	}
	if c.engine == EngineNone {
		g := newGroup(newJob(c, nil), localTransport{newHub(1), 0}, "world", 0, c.device)
		return &World{Group: g, info: Info{Engine: EngineNone, Launcher: l.name, Size: 1}}, nil
	}
	if c.engine == EngineNCCL {
		return initNCCL(ctx, c, l)
	}
	return initMPI(c, l)
}

func initMPI(c config, l launcher) (*World, error) {
	if name := os.Getenv(LibraryVariable); name != "" {
		l.libraries = []string{name}
	}
	p, err := mpi.Start(l.libraries)
	if errors.Is(err, mpi.ErrMissing) {
		return nil, fmt.Errorf("dist: install Open MPI or MPICH, or name the library in %s: %w: %w", LibraryVariable, compute.ErrUnavailable, err)
	}
	if err != nil {
		return nil, fmt.Errorf("dist: %w", err)
	}
	of := p.World()
	if of.Size() != l.size {
		p.Finalize(nil)
		return nil, fmt.Errorf("dist: %s started %d processes, but %s (%s) finds %d: %s, or name another library in %s: %w",
			l.name, l.size, p.Info().Path, p.Info().Family, of.Size(), l.advice(), LibraryVariable, ErrLauncher)
	}
	w := &World{finalize: p.Finalize}
	near := false
	err = p.Run(nil, func() error {
		shared, err := of.SplitShared()
		if err != nil {
			return err
		}
		w.info.LocalRank, near = shared.Rank(), shared.Size() == of.Size()
		return shared.Free()
	})
	if err != nil {
		return nil, fmt.Errorf("dist: %w", err)
	}
	i := p.Info()
	w.info.Engine, w.info.Launcher, w.info.Rank, w.info.Size = EngineMPI, l.name, of.Rank(), of.Size()
	w.info.Library, w.info.Family, w.info.Version = i.Path, i.Family, i.Version
	w.Group = newGroup(newJob(c, p.Abort), mpiTransport{p, of, near}, "world", w.info.LocalRank, c.device)
	return w, nil
}

// Info returns what the world consists of.
func (w *World) Info() Info { return w.info }

// Abort ends all processes of the world, this one included, with a status other than 0. In a world of one it ends the process.
func (w *World) Abort(status int) {
	if w.job.abort != nil {
		w.job.abort(status)
	}
	os.Exit(status)
}

// CloseTimeout is how long [World.Close] waits for the other processes, unless [WithTimeout] says otherwise.
const CloseTimeout = time.Minute

var closeTimeout = CloseTimeout // shorter in tests

// Close leaves the world, whose groups return [compute.ErrClosed] after it. It waits for collectives of this process that are going on and for the
// other processes to close as well, for [CloseTimeout]; if they do not, as one is lost that the launcher does not know to be, it returns a
// [*BrokenError] that wraps context.DeadlineExceeded. With [WithTimeout] it waits for that time instead and then ends the job, as every call does.
//
// It is idempotent. Print results before: launchers may lose what is printed after it. A broken world cannot be left: the error is its
// [*BrokenError], and the process should end with a status other than 0, at which the launcher ends the others, or call [World.Abort].
func (w *World) Close() error {
	at := caller()
	w.close.Do(func() { w.err = w.leave(at) })
	return w.err
}

func (w *World) leave(at string) error {
	wait := closeTimeout
	if w.job.timeout > 0 {
		wait = w.job.timeout
	}
	late := make(chan struct{})
	timer := time.AfterFunc(wait, func() { close(late) })
	defer timer.Stop()
	broken := func(err error) *BrokenError {
		return &BrokenError{w.name, w.Rank(), "Close", w.sequence.Load() + 1, at, err}
	}
	select {
	case w.turn <- struct{}{}:
		defer func() { <-w.turn }()
	case <-late:
		return w.fail(broken(timedOut{wait}))
	case <-w.job.done.Done():
	}
	if w.job.done.Err() != nil {
		return context.Cause(w.job.done)
	}
	if w.finalize == nil {
		w.job.finish(errClosed)
		return nil
	}
	// All processes meet in a barrier first: that can be abandoned, while MPI_Finalize blocks the thread on which the job is ended.
	err := w.transport.barrier(late)
	if errors.Is(err, errAbandoned) {
		err = timedOut{wait}
	}
	if err != nil {
		return w.fail(broken(err))
	}
	w.job.finish(errClosed) // no call comes after this one
	err = w.finalize(late)
	if errors.Is(err, errAbandoned) {
		late := broken(timedOut{wait})
		w.endLate(late)
		return late
	}
	return err
}

var errClosed = fmt.Errorf("dist: %w", compute.ErrClosed)
