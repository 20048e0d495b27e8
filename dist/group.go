package dist

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// Device is what results on tensors lie on: a *wavelane.Device, *cpu.Device, *gpu.Device or *cuda.Device. Other packages cannot implement
// it.
type Device interface{ sealedDevice }

type (
	sealedDevice = program.Device
	sealed       = program.SealedGroup
)

// Group is a number of members, of which this is one. It is safe for concurrent use. Batches record collectives for it:
// [github.com/wavelane/wavelane/batch.Group].
type Group struct {
	sealed
	job       *job
	transport transport
	name      string
	localRank int
	device    Device
	splits    atomic.Int64

	turn     chan struct{} // of collectives: whoever has sent to it
	sequence atomic.Uint64
}

func newGroup(j *job, t transport, name string, localRank int, d Device) *Group {
	g := &Group{job: j, transport: t, name: name, localRank: localRank, device: d, turn: make(chan struct{}, 1)}
	g.sealed = program.SealGroup(members{g})
	return g
}

// job is what the groups of a world, or of Local, have in common.
type job struct {
	timeout   time.Duration
	rankOrder bool
	abort     func(status int) // ends all processes; nil if there is one only

	done   context.Context // ended when it is broken or closed
	finish context.CancelCauseFunc
}

func newJob(c config, abort func(int)) *job {
	j := &job{timeout: c.timeout, rankOrder: c.rankOrder, abort: abort}
	j.done, j.finish = context.WithCancelCause(context.Background())
	return j
}

// Rank returns the number of this member, from 0.
func (g *Group) Rank() int { return g.transport.rank() }

// Size returns the number of members.
func (g *Group) Size() int { return g.transport.size() }

// LocalRank returns the number of this process among those of the world on its machine, or of the device in the list that [Local] was given: which of
// several GPUs to take.
func (g *Group) LocalRank() int { return g.localRank }

// String returns the name of the group: "world", and for others what they were split from.
func (g *Group) String() string { return g.name }

// timedOut is the cause of contexts that the group's timeout has ended.
type timedOut struct{ after time.Duration }

func (t timedOut) Error() string { return fmt.Sprintf("not done after %v", t.after) }
func (timedOut) Unwrap() error   { return context.DeadlineExceeded }

// carryOut makes a call whose arguments are right: do gets a channel that is closed when it is not to wait any more. Its error breaks the group.
func (g *Group) carryOut(ctx context.Context, call func() string, collective bool, do func(stop <-chan struct{}) error) error {
	if err := compute.CheckContext(ctx); err != nil {
		return err
	}
	if g.job.done.Err() != nil {
		return context.Cause(g.job.done)
	}
	if collective {
		select {
		case g.turn <- struct{}{}:
			defer func() { <-g.turn }()
		case <-ctx.Done(): // nothing has been sent
			return ctx.Err()
		case <-g.job.done.Done():
			return context.Cause(g.job.done)
		}
	}
	sequence := g.sequence.Add(1)
	if g.job.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, g.job.timeout, timedOut{g.job.timeout})
		defer cancel()
	}
	stop := g.job.done.Done()
	if ctx.Done() != nil {
		either, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(g.job.done, func() { cancel(nil) })()
		stop = either.Done()
	}
	err := do(stop)
	if err == nil {
		return nil
	}
	if g.job.done.Err() != nil {
		return context.Cause(g.job.done)
	}
	if errors.Is(err, errAbandoned) {
		err = context.Cause(ctx)
	}
	return g.fail(&BrokenError{g.name, g.Rank(), call(), sequence, callerIn(ctx), err})
}

// fail breaks the group, and ends the job if the reason is its timeout. It returns what broke it first.
func (g *Group) fail(broken *BrokenError) error {
	g.job.finish(broken)
	g.endLate(broken)
	return context.Cause(g.job.done)
}

// endLate ends the job if what broke the group is its timeout.
func (g *Group) endLate(broken *BrokenError) {
	if late := (timedOut{}); g.job.timeout == 0 || g.job.abort == nil || !errors.As(broken.Err, &late) {
		return
	}
	stacks := make([]byte, 1<<20)
	fmt.Fprintf(os.Stderr, "wavelane: %v\nThis ends the job. All goroutines of rank %d:\n\n%s\n", broken, g.Rank(), stacks[:runtime.Stack(stacks, true)])
	g.job.abort(StatusTimeout)
}

// StatusTimeout is the status with which [WithTimeout] ends processes.
const StatusTimeout = 124

// caller returns the line outside of this package.
func caller() string {
	pc := make([]uintptr, 16)
	frames := runtime.CallersFrames(pc[:runtime.Callers(2, pc)])
	for {
		f, more := frames.Next()
		if !more || !within(f.Function) {
			return f.File + ":" + strconv.Itoa(f.Line)
		}
	}
}

// Split returns the group of the members that call it with the same color, ordered by key and then by rank. It is a collective. Colors are
// not negative.
func (g *Group) Split(ctx context.Context, color, key int) (*Group, error) {
	if color < 0 || int(int32(color)) != color || int(int32(key)) != key {
		return nil, fmt.Errorf("split with color %d and key %d: %w", color, key, compute.ErrArgument)
	}
	var t transport
	err := g.carryOut(ctx, func() string { return "Split" }, true, func(stop <-chan struct{}) (err error) {
		t, err = g.transport.split(stop, color, key)
		return err
	})
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("%s/%d:%d", g.name, g.splits.Add(1), color)
	return newGroup(g.job, t, name, g.localRank, g.device), nil
}

// Local makes a group of several devices of one process: group i is that of the member on device i, and is for a goroutine of its own. Devices may be the same, or
// nil where only slices are used. Data go through the memory of the host; for CUDA devices see [LocalNCCL]. Members who disagree about a call get [ErrMismatch].
func Local(devices ...Device) ([]*Group, error) {
	if len(devices) == 0 {
		return nil, fmt.Errorf("a group without members: %w", compute.ErrArgument)
	}
	j, h := newJob(config{}, nil), newHub(len(devices))
	groups := make([]*Group, len(devices))
	for i, d := range devices {
		groups[i] = newGroup(j, localTransport{h, i}, engineLocal, i, d)
	}
	return groups, nil
}
