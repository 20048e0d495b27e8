package pool

import (
	"sync"
	"sync/atomic"
)

// loop is the parts of one call of Each.
type loop struct {
	task    Task
	parts   int64
	threads int
	next    atomic.Int64 // first part that nobody has taken

	helpers atomic.Int32 // workers in help, beside the caller; changes under Pool.mu

	// Guarded by Pool.mu.
	left    sync.Cond // signalled when the last helper leaves
	failure any       // what a helper's task panicked with
	spare   *loop     // next in Pool.free
}

// Each does all parts 0 ≤ part < parts of a task on the caller and on idle workers, in no order, and returns when they are
// done. It allocates nothing. A task may call Each. If a task panics Each panics with its value, on the caller, when all who
// work on the loop have left it; parts that nobody had begun are then left out.
func (p *Pool) Each(t Task, parts int) { p.EachN(t, parts, p.Workers()) }

// EachN is Each on at most n threads, the caller's included.
func (p *Pool) EachN(t Task, parts, threads int) {
	if p.size > 0 {
		threads = min(threads, p.size)
	}
	threads = min(threads, parts)
	if threads < 2 {
		for i := range parts {
			t.Do(i)
		}
		return
	}
	l := p.publish(t, parts, threads)
	defer p.retire(l)
	for i := l.next.Add(1) - 1; i < l.parts; i = l.next.Add(1) - 1 {
		t.Do(int(i))
	}
}

func (p *Pool) publish(t Task, parts, threads int) *loop {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.free
	if l == nil {
		l = &loop{}
		l.left.L = &p.mu
	} else {
		p.free = l.spare
	}
	l.task, l.parts, l.threads = t, int64(parts), threads
	l.next.Store(0)
	p.loops = append(p.loops, l)
	p.call(threads-1, max(p.size, threads))
	return l
}

// retire waits until all helpers have left the loop.
func (p *Pool) retire(l *loop) {
	p.mu.Lock()
	l.next.Store(l.parts) // a caller that panicked wants no more
	for i, x := range p.loops {
		if x == l {
			last := len(p.loops) - 1
			p.loops[i], p.loops[last] = p.loops[last], nil
			p.loops = p.loops[:last]
			break
		}
	}
	if l.helpers.Load() > 0 {
		p.mu.Unlock()
		until(func() bool { return l.helpers.Load() == 0 })
		p.mu.Lock()
	}
	for l.helpers.Load() > 0 {
		l.left.Wait()
	}
	failure := l.failure
	l.task, l.failure = nil, nil
	l.spare, p.free = p.free, l
	p.mu.Unlock()
	if failure != nil {
		panic(failure)
	}
}

// help does parts until none is left or there is a job in the queue.
func (l *loop) help(p *Pool) {
	defer func() {
		if v := recover(); v != nil {
			p.mu.Lock()
			l.next.Store(l.parts)
			l.failure = v
			p.mu.Unlock()
		}
	}()
	for p.waiting.Load() == 0 {
		i := l.next.Add(1) - 1
		if i >= l.parts {
			return
		}
		l.task.Do(int(i))
	}
}
