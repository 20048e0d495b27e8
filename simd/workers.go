package simd

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// workers are the goroutines that compute. A worker takes a run and executes it from end to end; where a phase of the run
// has many parts it publishes them as a loop, and other workers help while no run waits. Since whoever publishes a loop works
// on it too, no run ever depends on a second worker being free.
type workers struct {
	count   int
	waiting atomic.Int32 // runs in the queue; read without the mutex

	mu     sync.Mutex
	wake   sync.Cond
	loops  []*loop // being worked on
	first  *run    // of the queue, in order of submission
	last   *run
	closed bool
}

func startWorkers(n int) *workers {
	w := &workers{count: n}
	w.wake.L = &w.mu
	for range n {
		go w.work()
	}
	return w
}

func (w *workers) work() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		// Runs go first: a worker to each is the least to coordinate, and short runs do not wait for long loops.
		if r := w.first; r != nil {
			w.first, r.next = r.next, nil
			w.waiting.Add(-1)
			w.mu.Unlock()
			r.execute()
			w.mu.Lock()
			continue
		}
		if l := w.open(); l != nil {
			l.helpers++
			w.mu.Unlock()
			l.work(&w.waiting)
			w.mu.Lock()
			if l.helpers--; l.helpers == 0 {
				l.left.Signal()
			}
			continue
		}
		if w.closed {
			return
		}
		w.wake.Wait()
	}
}

// open returns a loop that has chunks left.
func (w *workers) open() *loop {
	for _, l := range w.loops {
		if l.next.Load() < l.chunks && !l.args.stop.Load() {
			return l
		}
	}
	return nil
}

// submit queues a run.
func (w *workers) submit(r *run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed { // what was started before the device was closed still finishes
		go r.execute()
		return
	}
	if w.first == nil {
		w.first = r
	} else {
		w.last.next = r
	}
	w.last = r
	w.waiting.Add(1)
	w.wake.Signal()
}

// close lets the workers end when the queue is empty.
func (w *workers) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.wake.Broadcast()
}

// each runs all chunks of a loop and returns when they are done.
func (w *workers) each(l *loop) {
	if l.chunks < 2 || w.count < 2 {
		l.work(nil)
		return
	}
	w.mu.Lock()
	w.loops = append(w.loops, l)
	for range min(int(l.chunks), w.count) - 1 {
		w.wake.Signal()
	}
	w.mu.Unlock()
	l.work(nil)
	w.mu.Lock()
	for i, x := range w.loops {
		if x == l {
			last := len(w.loops) - 1
			w.loops[i], w.loops[last] = w.loops[last], nil
			w.loops = w.loops[:last]
			break
		}
	}
	for l.helpers > 0 {
		l.left.Wait()
	}
	w.mu.Unlock()
}

// loop is the chunks of one phase of a run. Each run has one, used for phase after phase.
type loop struct {
	phase  *phase
	args   *args
	chunks int64
	next   atomic.Int64 // first chunk that nobody has taken

	helpers int       // workers in work, beside the publisher; guarded by workers.mu
	left    sync.Cond // signalled when the last helper leaves
}

// work does chunks until none is left, or for a helper until there is a run in the queue.
func (l *loop) work(queue *atomic.Int32) {
	for !l.args.stop.Load() && (queue == nil || queue.Load() == 0) {
		c := l.next.Add(1) - 1
		if c >= l.chunks {
			return
		}
		lo := int(c) * l.phase.grain
		l.phase.do(l.args, lo, min(lo+l.phase.grain, l.phase.units))
		if runtime.GOOS == "js" { // one thread without preemption: let timers and other goroutines have a turn
			runtime.Gosched()
		}
	}
}
