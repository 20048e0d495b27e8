// Package pool runs work on persistent goroutines: parts of a loop, which its caller shares with idle workers, and jobs,
// which a worker does from end to end.
//
// The caller of a loop works on it too, so no loop ever depends on a worker being free, and loops may be nested. Workers
// prefer jobs: one worker for each needs no coordination, and short jobs do not wait for long loops.
//
// Goroutines start when there is work for them and stay. A pool is safe for concurrent use.
package pool

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wavelane/wavelane/internal/monotime"
)

// Task is a loop's body. Do may run for several parts at the same time.
type Task interface{ Do(part int) }

// Job is work for one worker. Only the pool uses a job between Submit and the start of Do.
type Job struct {
	Do   func()
	next *Job
}

// Pool is a set of workers.
type Pool struct {
	size    int          // workers; 0 for as many as loops ask for
	waiting atomic.Int32 // jobs in the queue; read without the mutex
	posts   atomic.Int32 // changes when there is new work; likewise
	asked   atomic.Int64 // when Awake was, a monotime.Time

	mu      sync.Mutex
	wake    sync.Cond
	started int     // goroutines
	watch   int     // of them, watching posts since its last change
	idle    int     // waiting and not yet signalled
	loops   []*loop // being worked on
	free    *loop   // for reuse
	first   *Job    // of the queue, in order of submission
	last    *Job
	closed  bool
}

// New makes a pool of n ≥ 1 workers.
func New(n int) *Pool {
	p := &Pool{size: n}
	p.wake.L = &p.mu
	return p
}

var shared = New(0)

// Shared is the process's pool for work on behalf of goroutines that wait for it. It has as many workers as GOMAXPROCS, or as
// the widest EachN needs.
func Shared() *Pool { return shared }

// Workers is the number of threads that a loop may have.
func (p *Pool) Workers() int {
	if p.size > 0 {
		return p.size
	}
	return runtime.GOMAXPROCS(0)
}

// Submit queues a job. After Close it runs on a goroutine of its own.
func (p *Pool) Submit(j *Job) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		go j.Do()
		return
	}
	if p.first == nil {
		p.first = j
	} else {
		p.last.next = j
	}
	p.last = j
	p.waiting.Add(1)
	p.call(1, p.Workers())
}

// call wakes up to n more workers. Workers that are still spinning all come.
func (p *Pool) call(n, workers int) {
	p.posts.Add(1)
	n -= p.watch
	p.watch = 0
	for ; n > 0; n-- {
		switch {
		case p.idle > 0:
			p.idle--
			p.wake.Signal()
		case p.started < workers && !p.closed:
			p.started++
			go p.work()
		}
	}
}

// Close lets the workers end when the queue is empty. Loops continue on their callers.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.posts.Add(1)
	p.watch, p.idle = 0, 0
	p.wake.Broadcast()
}

// linger is how long a worker that has nothing to do, or a caller whose helpers are not done, spins before it sleeps: about
// the time that waking a thread takes. Loops that follow each other find the workers awake.
const linger = 100 * time.Microsecond

// until spins on a condition while that is worth it, yielding to other goroutines.
func until(done func() bool) {
	if runtime.GOOS == "js" { // one thread
		return
	}
	for start := time.Now(); ; runtime.Gosched() {
		for range 64 {
			if done() {
				return
			}
		}
		if time.Since(start) > linger {
			return
		}
	}
}

// Awake is for loops that take hardly longer than waking a thread does. It reports whether it was called a short time ago, so that
// such a loop is one of several: from the second on workers are awake.
func (p *Pool) Awake() bool {
	if runtime.GOOS == "js" { // one thread
		return false
	}
	now := monotime.Now()
	return now.Sub(monotime.Time(p.asked.Swap(int64(now)))) < linger
}

func (p *Pool) work() {
	p.mu.Lock()
	for rested := false; ; {
		if j := p.first; j != nil {
			p.first, j.next = j.next, nil
			p.waiting.Add(-1)
			p.mu.Unlock()
			j.Do()
			p.mu.Lock()
			rested = false
			continue
		}
		if l := p.open(); l != nil {
			l.helpers.Add(1)
			p.mu.Unlock()
			l.help(p)
			p.mu.Lock()
			if l.helpers.Add(-1) == 0 {
				l.left.Signal()
			}
			rested = false
			continue
		}
		if p.closed {
			p.mu.Unlock()
			return
		}
		if !rested {
			seen := p.posts.Load()
			p.watch++
			p.mu.Unlock()
			until(func() bool { return p.posts.Load() != seen })
			p.mu.Lock()
			if p.posts.Load() != seen {
				continue
			}
			p.watch--
		}
		rested = true
		p.idle++
		p.wake.Wait()
	}
}

// open returns a loop that has parts left and room for a helper.
func (p *Pool) open() *loop {
	for _, l := range p.loops {
		if int(l.helpers.Load())+1 < l.threads && l.next.Load() < l.parts {
			return l
		}
	}
	return nil
}
