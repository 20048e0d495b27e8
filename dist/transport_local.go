package dist

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
)

// hub is where the members of a group in one process meet.
type hub struct {
	size  int
	pipes []chan []byte // from member i to member j at i*size+j

	mu      sync.Mutex
	arrived int
	posts   []post
	gate    chan struct{} // closed when all have arrived
}

// post is what a member brings along.
type post struct {
	call       string // what it was called for; all must agree
	data       []byte
	color, key int
	hub        *hub
}

func newHub(size int) *hub {
	h := &hub{size: size, posts: make([]post, size), gate: make(chan struct{}), pipes: make([]chan []byte, size*size)}
	for i := range h.pipes {
		h.pipes[i] = make(chan []byte)
	}
	return h
}

// meet waits for all members. Between a meeting with posts and the next, which has none, they can read those of all.
func (h *hub) meet(stop <-chan struct{}, rank int, p *post) error {
	h.mu.Lock()
	if p != nil {
		h.posts[rank] = *p
	}
	gate := h.gate
	if h.arrived++; h.arrived == h.size {
		h.arrived, h.gate = 0, make(chan struct{})
		close(gate)
	}
	h.mu.Unlock()
	select {
	case <-gate:
		return nil
	case <-stop:
		return errAbandoned
	}
}

// localTransport is a member of a hub.
type localTransport struct {
	hub    *hub
	member int
}

var buffers = sync.Pool{New: func() any { return &buffer{data: make([]byte, bufferSize)} }}

func (t localTransport) rank() int                               { return t.member }
func (t localTransport) size() int                               { return t.hub.size }
func (t localTransport) buffer(<-chan struct{}) (*buffer, error) { return buffers.Get().(*buffer), nil }
func (t localTransport) release(b *buffer)                       { buffers.Put(b) }
func (t localTransport) reduces(element, Reduction) bool         { return false }
func (t localTransport) messages() bool                          { return true }
func (t localTransport) ordered() bool                           { return false }
func (t localTransport) streams() *ncclTransport                 { return nil }
func (t localTransport) direct() bool                            { return false }
func (t localTransport) free(<-chan struct{}) error              { return nil }
func (t localTransport) barrier(stop <-chan struct{}) error {
	return t.exchange(stop, "Barrier", nil, func([]post) {})
}
func (t localTransport) allReduce(_ <-chan struct{}, _, _ []byte, _ element, _ Reduction) error {
	panic("dist: not called, see reduces")
}

// exchange brings data, and calls copy when those of all can be read.
func (t localTransport) exchange(stop <-chan struct{}, call string, data []byte, copy func(all []post)) error {
	if err := t.hub.meet(stop, t.member, &post{call: call, data: data}); err != nil {
		return err
	}
	all, err := t.hub.posts, error(nil)
	if i := slices.IndexFunc(all, func(p post) bool { return p.call != call }); i >= 0 {
		err = fmt.Errorf("member %d: %s, member %d: %s: %w", t.member, call, i, all[i].call, ErrMismatch)
	} else {
		copy(all)
	}
	if gone := t.hub.meet(stop, t.member, nil); err == nil {
		err = gone
	}
	return err
}

func (t localTransport) allGather(stop <-chan struct{}, dst, src *buffer, n int) error {
	return t.exchange(stop, fmt.Sprintf("gather of %d bytes", n), src.data[:n], func(all []post) {
		for i, p := range all {
			copy(dst.data[i*n:], p.data)
		}
	})
}

func (t localTransport) allToAll(stop <-chan struct{}, dst, src *buffer, n int) error {
	return t.exchange(stop, fmt.Sprintf("exchange of %d bytes", n), src.data[:n*t.hub.size], func(all []post) {
		for i, p := range all {
			copy(dst.data[i*n:(i+1)*n], p.data[t.member*n:])
		}
	})
}

func (t localTransport) broadcast(stop <-chan struct{}, b *buffer, n, root int) error {
	return t.exchange(stop, fmt.Sprintf("broadcast of %d bytes by %d", n, root), b.data[:n], func(all []post) {
		if t.member != root {
			copy(b.data, all[root].data)
		}
	})
}

func (t localTransport) send(stop <-chan struct{}, b *buffer, n, to int) error {
	select {
	case t.hub.pipes[t.member*t.hub.size+to] <- slices.Clone(b.data[:n]):
		return nil
	case <-stop:
		return errAbandoned
	}
}

func (t localTransport) receive(stop <-chan struct{}, b *buffer, n, from int) error {
	select {
	case data := <-t.hub.pipes[from*t.hub.size+t.member]:
		if len(data) != n {
			return fmt.Errorf("received %d bytes where %d were expected", len(data), n)
		}
		copy(b.data, data)
		return nil
	case <-stop:
		return errAbandoned
	}
}

func (t localTransport) split(stop <-chan struct{}, color, key int) (transport, error) {
	if err := t.hub.meet(stop, t.member, &post{color: color, key: key}); err != nil {
		return nil, err
	}
	var members []int
	for i, p := range t.hub.posts {
		if p.color == color {
			members = append(members, i)
		}
	}
	slices.SortStableFunc(members, func(i, j int) int { return cmp.Compare(t.hub.posts[i].key, t.hub.posts[j].key) })
	if err := t.hub.meet(stop, t.member, nil); err != nil { // all have read
		return nil, err
	}
	var p post
	if members[0] == t.member {
		p.hub = newHub(len(members))
	}
	if err := t.hub.meet(stop, t.member, &p); err != nil {
		return nil, err
	}
	made := t.hub.posts[members[0]].hub
	if err := t.hub.meet(stop, t.member, nil); err != nil {
		return nil, err
	}
	return localTransport{made, slices.Index(members, t.member)}, nil
}
