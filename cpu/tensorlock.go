package cpu

import "sync"

// turn orders the runs that use a tensor's memory: those that change it run alone, in the order of their starts, and all others
// see it before or after a change. It waits nowhere: a run whose turn has not come counts one condition more.
type turn struct {
	mu       sync.Mutex
	readers  int
	changing bool
	waiting  []turnOfRun
}

type turnOfRun struct {
	run     *run
	changes bool
}

// turnOf is a run's turn with a block.
type turnOf struct {
	block   *block
	changes bool
}

// Take gives the run its turn, or makes it wait.
func (t *turn) Take(r *run, changes bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 && t.grant(changes) {
		return
	}
	r.pending.Add(1)
	t.waiting = append(t.waiting, turnOfRun{r, changes})
}

func (t *turn) grant(changes bool) bool {
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

// end ends a turn and lets those begin that waited for it.
func (t *turn) end(changes bool) {
	t.mu.Lock()
	if changes {
		t.changing = false
	} else {
		t.readers--
	}
	var next []turnOfRun
	for len(t.waiting) > 0 && t.grant(t.waiting[0].changes) {
		next = append(next, t.waiting[0])
		t.waiting = t.waiting[1:]
	}
	t.mu.Unlock()
	for _, w := range next {
		w.run.ready(false)
	}
}

// endTurns ends the run's turns with its tensors.
func (r *run) endTurns() {
	for _, t := range r.turns {
		t.block.turn.end(t.changes)
		t.block.release()
	}
	clear(r.turns)
	r.turns = r.turns[:0]
}
