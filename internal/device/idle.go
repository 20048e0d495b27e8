package device

import "sync"

// Idle keeps what the runs of a compiled program use, from one run to the next. The zero value is empty. It is safe for concurrent use.
type Idle[T any] struct {
	mu     sync.Mutex
	closed bool
	list   []T
}

// Take returns the one that was put last; false if there is none. The error wraps compute.ErrClosed.
func (p *Idle[T]) Take() (x T, ok bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return x, false, Closed("compiled program")
	}
	n := len(p.list) - 1
	if n < 0 {
		return x, false, nil
	}
	x, p.list = p.list[n], p.list[:n]
	return x, true, nil
}

// Put keeps x, unless there are that many or the program is closed: then it returns false.
func (p *Idle[T]) Put(x T, most int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.list) >= most {
		return false
	}
	p.list = append(p.list, x)
	return true
}

// Drop returns all for the caller to free.
func (p *Idle[T]) Drop() []T {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.list
	p.list = nil
	return list
}

// Close makes Take and Put fail. It keeps nothing that Drop would not return.
func (p *Idle[T]) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
}
