package batch

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// withCollectives returns a device for a program in which there may be collectives.
func withCollectives(d program.Executor, p *program.Program) program.Executor {
	if c := p.Collective(); c != nil {
		return c.Batch.Device(d)
	}
	return d
}

// collectives is a device that has programs cut into segments, between which collectives are carried out.
type collectives struct{ program.Executor }

// segment is steps that run as one program. All of them may run when the first level collectives are done, and no collective before the one
// numbered need uses what they compute.
type segment struct {
	level, need int
	steps       []int // of the whole program
	program     *program.Program
	host        []program.Slot // of program.Host
	tensors     []program.Slot // of program.Tensor
	reads       []program.Slot // of program.Read
	keeps       []int          // of the whole program's Keep
	cross       []program.Slot // of program.Keep, after those: values for other segments
	exec        program.Executable
}

// cut is a program in segments.
type cut struct {
	whole    *program.Program
	segments []*segment // by level, and then by need
	calls    []int      // steps that are collectives, in order
	alias    map[program.Slot]program.Slot
}

// order finds the numbers of the collectives by step and the step that makes each value, and for each step how many collectives must be done
// before it, its level, and the first collective that needs it. Levels follow from operands, needs from who uses results; a step that
// updates a value in place comes after all that read it.
func order(p *program.Program, calls []int) (number map[int]int, maker map[program.Slot]int, level, need []int) {
	number = map[int]int{}
	for j, i := range calls {
		number[i] = j
	}
	after := make([][]int, len(p.Steps)) // the steps that each has to come after
	maker, readers := map[program.Slot]int{}, map[program.Slot][]int{}
	for i := range p.Steps {
		s := &p.Steps[i]
		for k, in := range s.In {
			if m, made := maker[in]; made {
				after[i] = append(after[i], m)
			}
			if k < s.Entry.Updates {
				after[i] = append(after[i], readers[in]...)
			}
		}
		for _, in := range s.In {
			readers[in] = append(readers[in], i)
		}
		for _, out := range s.Out {
			maker[out] = i
		}
	}
	level, need = make([]int, len(p.Steps)), make([]int, len(p.Steps))
	for i := range p.Steps {
		need[i] = len(calls)
		for _, m := range after[i] {
			if j, collective := number[m]; collective {
				level[i] = max(level[i], j+1)
			} else {
				level[i] = max(level[i], level[m])
			}
		}
	}
	for i := len(p.Steps) - 1; i >= 0; i-- {
		n := need[i]
		if j, collective := number[i]; collective {
			n = j
		}
		for _, m := range after[i] {
			need[m] = min(need[m], n)
		}
	}
	return number, maker, level, need
}

// newCut finds out which steps may run when.
func newCut(p *program.Program) *cut {
	c := &cut{whole: p, calls: p.Collectives(), alias: map[program.Slot]program.Slot{}}
	number, maker, level, need := order(p, c.calls)
	found := map[[2]int]*segment{}
	at := func(level, need int) *segment {
		g := found[[2]int{level, need}]
		if g == nil {
			g = &segment{level: level, need: need}
			found[[2]int{level, need}] = g
		}
		return g
	}
	by := map[program.Slot]*segment{} // who computes a value
	for i := range p.Steps {
		if _, collective := number[i]; collective {
			continue
		}
		g := at(level[i], need[i])
		g.steps = append(g.steps, i)
		for _, out := range p.Steps[i].Out {
			by[out] = g
		}
	}
	// Results that no step computes, and those of collectives that stay on the device.
	for _, s := range p.Read {
		if _, made := maker[s]; !made {
			g := at(0, len(c.calls))
			g.reads = append(g.reads, s)
		} else if g := by[s]; g != nil {
			g.reads = append(g.reads, s)
		}
	}
	for k, s := range p.Keep {
		g := by[s]
		if g == nil {
			g = at(0, len(c.calls))
			if m, made := maker[s]; made {
				g = at(number[m]+1, len(c.calls))
			}
		}
		g.keeps = append(g.keeps, k)
	}
	for _, i := range c.calls {
		for _, s := range p.Steps[i].In {
			if g := by[s]; g != nil {
				g.reads = append(g.reads, s)
			}
		}
	}
	c.segments = slices.SortedFunc(maps.Values(found), func(a, b *segment) int {
		return cmp.Or(cmp.Compare(a.level, b.level), cmp.Compare(a.need, b.need))
	})
	c.programs(by)
	return c
}

// programs makes the segments' programs, in which values keep their slots. A value of another segment is a tensor, and of a collective a
// slice.
func (c *cut) programs(by map[program.Slot]*segment) {
	updated := map[program.Slot]bool{}
	for i := range c.whole.Steps {
		s := &c.whole.Steps[i]
		for k := range s.Entry.Updates {
			updated[s.In[k]] = true
		}
	}
	for _, g := range c.segments {
		q := &program.Program{Values: slices.Clone(c.whole.Values), Variables: c.whole.Variables, NoReuse: c.whole.NoReuse}
		g.program = q
		known := map[program.Slot]bool{}
		get := func(s program.Slot) {
			if known[s] || by[s] == g {
				return
			}
			known[s] = true
			v := &q.Values[s]
			if v.Source == program.FromStep {
				v.Source = program.FromTensor
				switch from := by[s]; {
				case from == nil: // a collective's
					v.Source = program.FromHost
				case updated[s] && slices.Contains(c.whole.Keep, s): // the caller's tensor must not change
					v.Source = program.FromHost
					from.reads = distinct(append(from.reads, s))
					from.program.Read = from.reads
				}
			}
			if v.Source == program.FromHost {
				q.Host, g.host = append(q.Host, s), append(g.host, s)
			} else {
				q.Tensor, g.tensors = append(q.Tensor, s), append(g.tensors, s)
			}
		}
		for _, i := range g.steps {
			q.Steps = append(q.Steps, c.whole.Steps[i])
			for _, s := range c.whole.Steps[i].In {
				get(s)
			}
		}
		g.reads = distinct(g.reads)
		for _, s := range g.reads {
			get(s)
		}
		for _, k := range g.keeps {
			get(c.whole.Keep[k])
			q.Keep = append(q.Keep, c.whole.Keep[k])
		}
		q.Read = g.reads
	}
	for _, g := range c.segments {
		for _, s := range g.tensors {
			from := by[s]
			if from == nil || slices.Contains(from.cross, s) {
				continue
			}
			// What lies in a tensor of that segment's is this tensor.
			if at := from.program.Storage()[s]; at != s {
				c.alias[s] = at
				continue
			}
			from.cross = append(from.cross, s)
			from.program.Keep = append(from.program.Keep, s)
		}
	}
}

func distinct(slots []program.Slot) []program.Slot {
	slices.Sort(slots)
	return slices.Compact(slots)
}

// Streamed puts what a collective needs before it and other steps after it, in which it goes on.
func (collectiveBatch) Streamed(p *program.Program) *program.Program {
	calls := p.Collectives()
	number, _, level, need := order(p, calls)
	steps := make([]int, len(p.Steps))
	for i := range steps {
		steps[i] = i
	}
	at := func(i int) [3]int { // whose steps it is among, whether it is the collective, and after how many others
		if j, collective := number[i]; collective {
			return [3]int{j, 1, 0}
		}
		return [3]int{need[i], 0, level[i]}
	}
	slices.SortStableFunc(steps, func(i, j int) int {
		x, y := at(i), at(j)
		return slices.Compare(x[:], y[:])
	})
	q := *p
	q.Streams, q.Steps = true, make([]program.Step, 0, len(steps))
	for _, i := range steps {
		q.Steps = append(q.Steps, p.Steps[i])
	}
	return &q
}

// Compile compiles the segments.
func (d collectives) Compile(ctx context.Context, p *program.Program) (program.Executable, error) {
	if p.Streams {
		return d.Executor.Compile(ctx, p)
	}
	if err := p.Check(); err != nil {
		return nil, err
	}
	x := &collectiveExec{cut: newCut(p)}
	for _, g := range x.segments {
		exec, err := d.Executor.Compile(ctx, g.program)
		if err != nil {
			x.Close()
			return nil, err
		}
		g.exec = exec
	}
	return x, nil
}

// Code writes the sources of all segments.
func (d collectives) Code(w io.Writer, p *program.Program) error {
	if p.Streams {
		return d.Executor.Code(w, p)
	}
	for _, g := range newCut(p).segments {
		if err := d.Executor.Code(w, g.program); err != nil {
			return err
		}
	}
	return nil
}

// Tune measures the variants of all segments.
func (d collectives) Tune(ctx context.Context, p *program.Program) ([]program.Measurement, error) {
	if p.Streams {
		return d.Executor.Tune(ctx, p)
	}
	var all []program.Measurement
	for _, g := range newCut(p).segments {
		list, err := d.Executor.Tune(ctx, g.program)
		if all = append(all, list...); err != nil {
			return all, err
		}
	}
	return all, nil
}

// collectiveExec is a compiled program with collectives.
type collectiveExec struct {
	*cut

	mu   sync.Mutex
	last chan struct{} // closed when the latest run is done
}

// Memory sums the segments' peaks: those of neighbours are in use at the same time.
func (x *collectiveExec) Memory() program.Memory {
	m, most := program.Memory{Step: -1}, -1
	m.Inputs, m.Results = x.whole.Traffic()
	for _, g := range x.segments {
		part := g.exec.Memory()
		m.Peak += part.Peak
		if part.Step >= 0 && part.Peak > most {
			m.Step, most = g.steps[part.Step], part.Peak
		}
		for _, s := range g.cross {
			m.Peak += x.whole.Values[s].Bytes()
		}
	}
	return m
}

// Launches lists those of the segments; a collective launches nothing.
func (x *collectiveExec) Launches() [][]program.Launch {
	all := make([][]program.Launch, len(x.whole.Steps))
	for _, g := range x.segments {
		part := g.exec.Launches()
		if part == nil && len(g.steps) > 0 {
			return nil
		}
		for k, i := range g.steps {
			all[i] = part[k]
		}
	}
	return all
}

// Close closes the segments when the latest run is done, which may have some of them still to start.
func (x *collectiveExec) Close() error {
	x.mu.Lock()
	last := x.last
	x.mu.Unlock()
	if last != nil {
		select {
		case <-last:
		default:
			go func() {
				<-last
				_ = x.release()
			}()
			return nil
		}
	}
	return x.release()
}

func (x *collectiveExec) release() error {
	var first error
	for _, g := range x.segments {
		if g.exec != nil {
			if err := g.exec.Close(); first == nil {
				first = err
			}
		}
	}
	return first
}

// Start begins a run when the one before it is done.
func (x *collectiveExec) Start(given *program.IO) *compute.Future {
	if err := x.whole.CheckIO(given, nil); err != nil {
		return compute.Failed(err)
	}
	r := &collectiveRun{x: x, host: map[program.Slot]any{}, tensor: map[program.Slot]compute.Tensor{}, read: map[program.Slot]any{},
		future: map[*segment]*compute.Future{}, scalars: slices.Clone(given.Scalars), keep: make([]compute.Tensor, len(x.whole.Keep)),
		kept: make(chan struct{})}
	for i, s := range x.whole.Host {
		r.host[s] = clone(given.Host[i])
	}
	for i, s := range x.whole.Tensor {
		r.tensor[s] = given.Tensors[i]
	}
	if given.Times != nil {
		r.times = make([]time.Duration, len(x.whole.Steps))
	}
	x.mu.Lock()
	before, done := x.last, make(chan struct{})
	x.last = done
	x.mu.Unlock()
	future, resolve := compute.NewFuture(nil)
	result, times := given.Read, given.Times
	go func() {
		if before != nil {
			<-before
		}
		err := r.run()
		r.release(err)
		close(done)
		resolve(err, func() {
			for i, s := range x.whole.Read {
				copy(program.Bytes(result[i]), program.Bytes(r.read[s]))
			}
			copy(times, r.times)
		})
	}()
	if len(x.whole.Keep) == 0 {
		return future
	}
	<-r.kept
	if slices.Contains(r.keep, nil) { // the run has failed before it made all
		for _, t := range r.keep {
			if t != nil {
				t.Close()
			}
		}
		return future
	}
	given.Keep = append(given.Keep[:0], r.keep...)
	return future
}

func clone(data any) any {
	switch s := data.(type) {
	case []float32:
		return slices.Clone(s)
	case []int32:
		return slices.Clone(s)
	case []uint32:
		return slices.Clone(s)
	case []uint8:
		return slices.Clone(s)
	case []compute.F16:
		return slices.Clone(s)
	case []compute.BF16:
		return slices.Clone(s)
	}
	return data
}

// collectiveRun is a run of a program with collectives.
type collectiveRun struct {
	x       *collectiveExec
	host    map[program.Slot]any            // inputs, and results of collectives
	read    map[program.Slot]any            // what segments have read back, and results of collectives
	tensor  map[program.Slot]compute.Tensor // of the caller, and between segments
	own     []compute.Tensor                // those of them that are closed at the end
	future  map[*segment]*compute.Future
	ends    []func() // takes times of segments
	scalars []float32
	times   []time.Duration // nil unless asked for
	keep    []compute.Tensor
	kept    chan struct{} // closed when keep is complete, or will not be
	begun   int           // segments
	done    int           // collectives
}

// run starts segments as soon as they may run, and carries out the collectives in their order.
func (r *collectiveRun) run() error {
	defer func() {
		select {
		case <-r.kept:
		default:
			close(r.kept)
		}
	}()
	ctx := context.Background()
	for {
		for ; r.begun < len(r.x.segments) && r.x.segments[r.begun].level <= r.done; r.begun++ {
			if err := r.begin(r.x.segments[r.begun]); err != nil {
				return err
			}
		}
		if r.begun == len(r.x.segments) && len(r.keep) > 0 {
			select {
			case <-r.kept:
			default:
				close(r.kept)
			}
		}
		if r.done == len(r.x.calls) {
			break
		}
		if err := r.collective(ctx, r.x.calls[r.done]); err != nil {
			return err
		}
		r.done++
	}
	for _, g := range r.x.segments {
		if err := r.future[g].Await(ctx); err != nil {
			return err
		}
	}
	for _, end := range r.ends {
		end()
	}
	return nil
}

// at returns the tensor in which a value lies.
func (r *collectiveRun) at(s program.Slot) compute.Tensor {
	for {
		if t, ok := r.tensor[s]; ok {
			return t
		}
		to, ok := r.x.alias[s]
		if !ok {
			return nil
		}
		s = to
	}
}

// begin starts a segment.
func (r *collectiveRun) begin(g *segment) error {
	io := &program.IO{Scalars: r.scalars, Keep: make([]compute.Tensor, len(g.program.Keep))}
	for _, s := range g.host {
		data, given := r.host[s]
		if !given {
			var err error
			if data, err = r.readBack(s); err != nil {
				return err
			}
		}
		io.Host = append(io.Host, data)
	}
	for _, s := range g.tensors {
		io.Tensors = append(io.Tensors, r.at(s))
	}
	for _, s := range g.reads {
		r.read[s] = program.MakeSlice(r.x.whole.Values[s].Type)
		io.Read = append(io.Read, r.read[s])
	}
	if r.times != nil {
		io.Times = make([]time.Duration, len(g.steps))
		r.ends = append(r.ends, func() {
			for k, i := range g.steps {
				r.times[i] = io.Times[k]
			}
		})
	}
	f := g.exec.Start(io)
	r.future[g] = f
	if f.Err() != nil {
		return f.Err()
	}
	for k, i := range g.keeps {
		r.keep[i] = io.Keep[k]
	}
	for k, s := range g.cross {
		r.tensor[s] = io.Keep[len(g.keeps)+k]
		r.own = append(r.own, r.tensor[s])
	}
	return nil
}

// readBack waits for the segment that reads a value, if one does: results of collectives are there.
func (r *collectiveRun) readBack(s program.Slot) (any, error) {
	for _, g := range r.x.segments[:r.begun] {
		if slices.Contains(g.reads, s) {
			if err := r.future[g].Await(context.Background()); err != nil {
				return nil, err
			}
		}
	}
	return r.read[s], nil
}

// collective carries one out: of its operand what segments have read, or what the caller has given.
func (r *collectiveRun) collective(ctx context.Context, i int) error {
	p := r.x.whole
	s := &p.Steps[i]
	c := s.Collective()
	var src any
	for _, in := range s.In {
		switch p.Values[in].Source {
		case program.FromHost:
			src = r.host[in]
		case program.FromTensor:
			src = program.MakeSlice(p.Values[in].Type)
			if err := r.tensor[in].ReadAsync(src).Await(ctx); err != nil {
				return fmt.Errorf("%s: %w", c.Name(), err)
			}
		default:
			var err error
			if src, err = r.readBack(in); err != nil {
				return err
			}
		}
	}
	start := time.Now()
	dst := program.MakeSlice(p.Values[s.Out[0]].Type)
	if err := c.Members.Carry(ctx, c, dst, src); err != nil {
		return fmt.Errorf("%s, recorded at %s: %w", c.Name(), c.Site, err)
	}
	if r.times != nil {
		r.times[i] = time.Since(start)
	}
	r.host[s.Out[0]], r.read[s.Out[0]] = dst, dst
	return nil
}

// release closes the tensors between segments, once none runs. After an error others will wait for what does not come.
func (r *collectiveRun) release(err error) {
	if err != nil {
		for _, i := range r.x.calls[r.done:] {
			c := r.x.whole.Steps[i].Collective()
			c.Members.Fail(c, err)
		}
	}
	for _, f := range r.future {
		_ = f.Await(context.Background())
	}
	for _, t := range r.own {
		if t != nil {
			t.Close()
		}
	}
}
