package dist

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/dist/internal/mpi"
)

// World is the group of all processes of a job.
type World struct {
	*Group
	info    Info
	process *mpi.Process // nil in a world of one
	close   sync.Once
	err     error
}

// Info describes a world.
type Info struct {
	Engine    string `json:"engine"`             // EngineMPI or EngineNone
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
// know the launcher that started the process. It does not wait for ctx once MPI is being initialised, which waits for all processes.
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
	for _, o := range options {
		if o == nil {
			return nil, fmt.Errorf("dist: nil option: %w", compute.ErrArgument)
		}
		if err := o(&c); err != nil {
			return nil, fmt.Errorf("dist: %w", err)
		}
	}
	if fromEnvironment != "" {
		c.engine = fromEnvironment
	}
	l := findLauncher(os.Getenv)
	if c.engine == "" {
		switch {
		case l.mpi:
			c.engine = EngineMPI
		case l.size == 1:
			c.engine = EngineNone
		default:
			return nil, fmt.Errorf("dist: %s started %d processes, which have no MPI between them: start them with mpirun or srun, or choose the engine %q: %w",
				l.name, l.size, EngineNone, compute.ErrUnsupported)
		}
	}
	if c.engine == EngineNone {
		g := &Group{job: newJob(c, nil), transport: localTransport{newHub(1), 0}, name: "world", device: c.device}
		return &World{Group: g, info: Info{Engine: EngineNone, Launcher: l.name, Size: 1}}, nil
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
		return nil, fmt.Errorf("dist: %s started %d processes, but %s (%s) finds %d: start the program with the mpirun of that library, or name another in %s: %w",
			l.name, l.size, p.Info().Path, p.Info().Family, of.Size(), LibraryVariable, ErrLauncher)
	}
	w := &World{process: p}
	err = p.Run(nil, func() error {
		shared, err := of.SplitShared()
		if err != nil {
			return err
		}
		w.info.LocalRank = shared.Rank()
		return shared.Free()
	})
	if err != nil {
		return nil, fmt.Errorf("dist: %w", err)
	}
	i := p.Info()
	w.info.Engine, w.info.Launcher, w.info.Rank, w.info.Size = EngineMPI, l.name, of.Rank(), of.Size()
	w.info.Library, w.info.Family, w.info.Version = i.Path, i.Family, i.Version
	w.Group = &Group{job: newJob(c, p.Abort), transport: mpiTransport{p, of}, name: "world", localRank: w.info.LocalRank, device: c.device}
	return w, nil
}

// Info returns what the world consists of.
func (w *World) Info() Info { return w.info }

// Abort ends all processes of the world, this one included, with a status other than 0. In a world of one it ends the process.
func (w *World) Abort(status int) {
	if w.process != nil {
		w.process.Abort(status)
	}
	os.Exit(status)
}

// Close leaves the world, whose groups return [compute.ErrClosed] after it. It waits for the other processes to do the same, and is
// idempotent. Print results before: launchers may lose what is printed after it. A broken world cannot be left: the error is its [*BrokenError], and the
// process should end with a status other than 0, at which the launcher ends the others, or call [World.Abort].
func (w *World) Close() error {
	w.close.Do(func() {
		if w.job.done.Err() != nil {
			w.err = context.Cause(w.job.done)
			return
		}
		w.turn.Lock()
		defer w.turn.Unlock()
		w.job.finish(fmt.Errorf("dist: %w", compute.ErrClosed))
		if w.process != nil {
			w.err = w.process.Finalize(nil)
		}
	})
	return w.err
}
