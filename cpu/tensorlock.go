package cpu

import "sync"

// tensorLock orders the runs that use a tensor's memory: those that change it run alone, in the order of their starts, and
// all others see it before or after a change. No goroutine waits: a run that does not get the lock counts one pending
// condition more.
type tensorLock struct {
	mu       sync.Mutex
	readers  int
	changing bool
	waiting  []lockRequest
}

type lockRequest struct {
	run     *run
	changes bool
}

// tensorHold is a run's hold on the lock of a block.
type tensorHold struct {
	block   *block
	changes bool
}

// acquire gives the run the lock, or queues it.
func (t *tensorLock) acquire(r *run, changes bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 && t.grant(changes) {
		return
	}
	r.pending.Add(1)
	t.waiting = append(t.waiting, lockRequest{r, changes})
}

func (t *tensorLock) grant(changes bool) bool {
	if t.changing || changes && t.readers > 0 {
		return false
	}
	if changes {
		t.changing = true
	} else {
		t.readers++
	}
	return true
}

// release gives the lock back and starts the runs that waited for it.
func (t *tensorLock) release(changes bool) {
	t.mu.Lock()
	if changes {
		t.changing = false
	} else {
		t.readers--
	}
	var next []lockRequest
	for len(t.waiting) > 0 && t.grant(t.waiting[0].changes) {
		next = append(next, t.waiting[0])
		t.waiting = t.waiting[1:]
	}
	t.mu.Unlock()
	for _, w := range next {
		w.run.ready(false)
	}
}

// unlockTensors releases the run's locks on its tensors.
func (r *run) unlockTensors() {
	for _, t := range r.locks {
		t.block.lock.release(t.changes)
		t.block.release()
	}
	clear(r.locks)
	r.locks = r.locks[:0]
}
