package batch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/rewrite"
)

// Plan is a compiled batch. Each run uses the slices and tensors that the batch was recorded with, or others set since. One
// run may be in flight; [Plan.Fork] makes a plan for another at the same time.
type Plan struct {
	recorded *program.Program // before rewrites
	batch    *Batch           // whose values name inputs

	mu      sync.Mutex // guards what follows
	exec    *shared
	program *program.Program // that it executes
	io      program.IO
	results []*Result
	kept    []*Kept
	flight  *compute.Future // of the latest Start
	running bool            // a Run
	closed  bool
}

// compiled tells whether the plan was made by Compile: the zero Plan was not.
func (p *Plan) compiled() error {
	if p.exec == nil {
		return fmt.Errorf("plan that no batch was compiled to: %w", compute.ErrArgument)
	}
	return nil
}

// usable tells why the plan cannot be used. The caller holds its lock.
func (p *Plan) usable() error {
	if p.closed {
		return fmt.Errorf("plan: %w", compute.ErrClosed)
	}
	return p.compiled()
}

// idle tells why no run can be started. The caller holds the plan's lock.
func (p *Plan) idle() error {
	if err := p.usable(); err != nil {
		return err
	}
	if p.running || p.flight != nil && p.flight.InFlight() {
		return fmt.Errorf("plan: %w: wait for its end, or use a fork", compute.ErrInFlight)
	}
	return nil
}

// shared is the compiled program of a plan and its forks.
type shared struct {
	program.Executable
	device program.Executor
	plans  atomic.Int32
}

func (x *shared) release() error {
	if x.plans.Add(-1) > 0 {
		return nil
	}
	return x.Close()
}

var errNoDevice = fmt.Errorf("a batch for a nil device does not run: %w", compute.ErrArgument)

// Compile prepares the batch to be run again and again. The batch may be recorded further afterwards; the plan does not change.
func (rec *Batch) Compile(ctx context.Context) (*Plan, error) {
	if err := compute.CheckContext(ctx); err != nil {
		return nil, err
	}
	return rec.plan(ctx)
}

// plan is Compile with a context that may be program.Now.
func (rec *Batch) plan(ctx context.Context) (*Plan, error) {
	if err := rec.complete(); err != nil {
		return nil, err
	}
	if rec.device == nil {
		return nil, errNoDevice
	}
	recorded := rec.snapshot()
	streams, err := rec.agree(ctx, recorded)
	if err != nil {
		return nil, err
	}
	exec, p, err := rec.compile(ctx, rec.device, recorded, streams)
	if err != nil {
		return nil, err
	}
	rec.makeResults()
	return newPlan(exec, p, recorded, rec, program.IO{Host: rec.host, Tensors: rec.tensors, Scalars: rec.scalars},
		slices.Clone(rec.results), slices.Clone(rec.kept)), nil
}

// makeResults allocates the results that have no slice yet.
func (rec *Batch) makeResults() {
	for _, r := range rec.results {
		if r.data == nil {
			r.data = program.MakeSlice(r.typ)
		}
	}
}

// compile prepares what was recorded for a device, whose streams may carry collectives out.
func (rec *Batch) compile(ctx context.Context, device program.Executor, recorded *program.Program, streams bool) (*shared, *program.Program, error) {
	d, err := placed(ctx, device, recorded)
	if err != nil {
		return nil, nil, err
	}
	p, wraps, err := rec.rewritten(recorded, d)
	if err != nil {
		return nil, nil, err
	}
	if streams {
		p = p.Collective().Batch.Streamed(p)
	}
	exec, err := withCollectives(d, p).Compile(ctx, p)
	if err == nil {
		if err = rec.checkMemory(exec, p, recorded); err != nil {
			exec.Close()
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("batch of %d steps: %w", len(p.Steps), err)
	}
	if rec.options.profiled != nil {
		exec = rec.options.profiled(&rec.options, exec, p, d, device)
	}
	for _, wrap := range wraps {
		exec = wrap(exec)
	}
	return &shared{Executable: exec, device: device}, p, nil
}

// newPlan makes a plan with these inputs.
func newPlan(x *shared, p, recorded *program.Program, b *Batch, io program.IO, results []*Result, kept []*Kept) *Plan {
	x.plans.Add(1)
	io = program.IO{Host: slices.Clone(io.Host), Tensors: slices.Clone(io.Tensors), Scalars: slices.Clone(io.Scalars),
		Keep: make([]compute.Tensor, len(kept))}
	for _, r := range results {
		io.Read = append(io.Read, r.data)
	}
	return &Plan{exec: x, program: p, recorded: recorded, batch: b, io: io, results: results, kept: kept}
}

// Fork returns another plan of the same compiled program, so that both can run at the same time: the inputs of one can be set
// while the other computes. It begins with the inputs and tensors that this one has now. Its results are its own, also those
// of [Batch.ReadInto]; get them with Result and Kept. Tensors that the program updates in place are changed by the runs of
// both, in the order of their starts. Each plan is closed separately.
func (p *Plan) Fork() (*Plan, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.usable(); err != nil {
		return nil, fmt.Errorf("fork: %w", err)
	}
	results, kept := make([]*Result, len(p.results)), make([]*Kept, len(p.kept))
	for i, r := range p.results {
		results[i] = &Result{typ: r.typ, data: program.MakeSlice(r.typ), recorded: r.origin()}
	}
	for i, k := range p.kept {
		kept[i] = &Kept{recorded: k.origin()}
	}
	return newPlan(p.exec, p.program, p.recorded, p.batch, p.io, results, kept), nil
}

// Result returns this plan's own result for what [Batch.Read] or another plan of the same program returned.
func (p *Plan) Result(r *Result) (*Result, error) {
	if r != nil {
		for _, own := range p.results {
			if own.origin() == r.origin() {
				return own, nil
			}
		}
	}
	return nil, fmt.Errorf("result of another plan: %w", compute.ErrForeignTensor)
}

// Kept returns this plan's own tensor for what [Batch.Keep] returned.
func (p *Plan) Kept(k *Kept) (*Kept, error) {
	if k != nil {
		for _, own := range p.kept {
			if own.origin() == k.origin() {
				return own, nil
			}
		}
	}
	return nil, fmt.Errorf("value of Keep from another plan: %w", compute.ErrForeignTensor)
}

// complete reports why the batch cannot run.
func (rec *Batch) complete() error {
	if rec.err == nil && len(rec.parameters) > 0 {
		return fmt.Errorf("a batch with %d parameters runs as a part of others, see Include: %w", len(rec.parameters), compute.ErrArgument)
	}
	return rec.err
}

// rewritten runs all passes on a program for a device. The wraps apply to its executable in order, the first innermost.
func (rec *Batch) rewritten(p *program.Program, device program.Executor) (q *program.Program, wraps []wrap, err error) {
	var guard wrap
	if rec.options.guarded != nil {
		q, guard, err = rec.options.guarded(rec, device, p)
	} else {
		q = rec.rewrite(p, device)
	}
	if err == nil && rec.options.repeated != nil {
		var twice wrap
		q, twice, err = rec.options.repeated(rec, q)
		wraps = append(wraps, twice)
	}
	if guard != nil {
		wraps = append(wraps, guard)
	}
	if err == nil && rec.options.apart {
		apart := *q
		apart.NoReuse = true
		q = &apart
	}
	return q, wraps, err
}

// rewrite runs the passes for a device.
func (rec *Batch) rewrite(p *program.Program, device program.Executor) *program.Program {
	return rewrite.Program(p, rewrite.Options{Device: device, Unfused: rec.options.unfused})
}

func (rec *Batch) snapshot() *program.Program {
	p := &rec.program
	return &program.Program{Values: slices.Clone(p.Values), Steps: slices.Clone(p.Steps), Host: slices.Clone(p.Host),
		Tensor: slices.Clone(p.Tensor), Read: slices.Clone(p.Read), Keep: slices.Clone(p.Keep), Variables: p.Variables}
}

// SetInput replaces the slice of a value made by Upload, from the next run on. Its type and length must be the same.
// Converting a slice to any allocates; to set inputs in a loop without allocating, convert them once before it.
func (p *Plan) SetInput(v Value, data any) error {
	i, err := p.input(v, func(r *program.Program) []program.Slot { return r.Host })
	if err != nil {
		return err
	}
	if err := program.CheckSlice(data, p.recorded.Values[v.slot].Type); err != nil {
		return fmt.Errorf("set input: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.io.Host[i] = data
	return nil
}

// SetTensor replaces the tensor of a value made by Import, from the next run on. Its type and shape must be the same.
func (p *Plan) SetTensor(v Value, t compute.Tensor) error {
	i, err := p.input(v, func(r *program.Program) []program.Slot { return r.Tensor })
	if err != nil {
		return err
	}
	if !present(t) {
		return fmt.Errorf("set tensor: nil: %w", compute.ErrArgument)
	}
	if want := p.recorded.Values[v.slot].Type; t.DType() != want.DType || !program.EqualShape(t.Shape(), want.Shape) {
		return fmt.Errorf("set tensor: %v for %v: %w", program.Type{DType: t.DType(), Shape: t.Shape()}, want, compute.ErrShape)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.io.Tensors[i] = t
	return nil
}

func (p *Plan) input(v Value, slots func(*program.Program) []program.Slot) (int, error) {
	if v.batch == nil || v.batch != p.batch {
		return 0, fmt.Errorf("value of another batch: %w", compute.ErrForeignTensor)
	}
	for i, s := range slots(p.recorded) {
		if s == v.slot {
			return i, nil
		}
	}
	return 0, fmt.Errorf("value is no such input of this plan: %w", compute.ErrArgument)
}

// Start begins a run and returns at once. When the future is done, results hold the run's data. Start the next run after
// that, or one of a [Plan.Fork]: results belong to the plan, and a run beside one in flight is compute.ErrInFlight.
func (p *Plan) Start() *compute.Future {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.idle(); err != nil {
		return compute.Failed(err)
	}
	p.drop()
	f := p.exec.Start(&p.io)
	p.flight = f
	p.started(f)
	return f
}

// drop closes retained tensors of earlier runs that nobody took.
func (p *Plan) drop() {
	for _, k := range p.kept {
		k.set(nil)
	}
	clear(p.io.Keep)
}

// started notes which run results and retained tensors belong to: nil for a run without a future.
func (p *Plan) started(f *compute.Future) {
	for _, r := range p.results {
		r.run.Store(f)
	}
	for i, k := range p.kept {
		k.set(p.io.Keep[i])
	}
}

// Close releases what the plan holds on its device, unless it has forks that are open: also the tensors of [Batch.Keep] that nobody
// took. It is idempotent; a run in flight finishes.
func (p *Plan) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.usable() != nil {
		return nil
	}
	p.drop()
	return p.release()
}

// release is Close for a batch that runs once, whose tensors are to be taken yet.
func (p *Plan) release() error {
	p.closed = true
	return p.exec.release()
}

// Start compiles and begins the batch and returns at once. When the future is done, results hold their data. Slices belong to the batch
// until then.
//
// A batch with tensors, of [Batch.Import] or [Batch.Keep], is in the order of other work with them, and one with collectives in that of its
// group, so that Start returns when the code has been compiled, which takes long at the first use. Where that must not be, Compile takes a context, and [Plan.Start] does not compile.
func (rec *Batch) Start() *compute.Future {
	ctx := program.Now
	if len(rec.tensors)+len(rec.kept) > 0 || rec.program.Collective() != nil {
		ctx = context.Background()
	}
	p, err := rec.plan(ctx)
	switch {
	case errors.Is(err, program.ErrLater):
		return rec.startLater()
	case err != nil:
		return compute.Failed(err)
	}
	f := p.Start()
	p.release() // the run in flight finishes
	return f
}

// startLater compiles the batch in a goroutine, which then starts it. What is recorded meanwhile does not count.
func (rec *Batch) startLater() *compute.Future {
	rec.makeResults()
	recorded, then := rec.snapshot(), *rec
	then.sites, then.guards = maps.Clone(rec.sites), slices.Clone(rec.guards)
	io := program.IO{Host: slices.Clone(rec.host), Scalars: slices.Clone(rec.scalars)}
	results := slices.Clone(rec.results)
	for _, r := range results {
		io.Read = append(io.Read, r.data)
	}
	f := program.Later(func() (program.Executable, error) {
		x, _, err := then.compile(context.Background(), then.device, recorded, false)
		if err != nil {
			return nil, err
		}
		return x.Executable, nil
	}, &io)
	for _, r := range results {
		r.run.Store(f)
	}
	return f
}

// placed returns the device that a program runs on: the batch's, or the one that a routing device chooses.
func placed(ctx context.Context, d program.Executor, p *program.Program) (program.Executor, error) {
	if r, ok := d.(program.Placer); ok {
		return r.Place(ctx, p)
	}
	return d, nil
}

// Explain says on which device the plan runs, and why.
func (p *Plan) Explain() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.compiled(); err != nil {
		return err.Error()
	}
	if r, ok := p.exec.device.(program.Placer); ok {
		return r.ExplainPlace(p.recorded)
	}
	return "the batch's device"
}
