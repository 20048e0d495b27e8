package engine

import "sync"

// FreeList pools memory of calls. Unlike a sync.Pool it never drops values, so that calls allocate nothing; it holds as many
// as there were calls at the same time.
type FreeList[T any] struct {
	mu   sync.Mutex
	free []*T
}

func (l *FreeList[T]) Take() *T {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.free); n > 0 {
		t := l.free[n-1]
		l.free = l.free[:n-1]
		return t
	}
	return new(T)
}

func (l *FreeList[T]) Give(t *T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free = append(l.free, t)
}
