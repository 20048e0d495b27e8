package dist

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
	"unsafe"

	"github.com/wavelane/wavelane/cuda"
	"github.com/wavelane/wavelane/dist/internal/nccl"
)

// ncclEngine is what the groups of a process have in common, or of a device of one process. Data of slices and tensors go through pinned memory of
// the host, which GPUs read and write by themselves, as with every engine; those of batches need not, see stream_nccl.go.
type ncclEngine struct {
	library *nccl.Library
	device  *cuda.Device

	mu    sync.Mutex
	comms []*nccl.Comm // all that are open
	all   []*cuda.HostBuffer[byte]
	free  []*buffer
	gone  bool // aborted or finalized
}

// ncclTransport is a group of processes, each with a GPU.
type ncclTransport struct {
	e      *ncclEngine
	c      *nccl.Comm
	stream *cuda.Stream
	token  *cuda.HostBuffer[byte] // of barriers
}

// checkInterval is how often a wait for a GPU looks whether the network has failed.
const checkInterval = 100 * time.Millisecond

// join makes a group of what begin begins.
func (e *ncclEngine) join(ctx context.Context, begin func() (*nccl.Comm, error)) (ncclTransport, error) {
	t := ncclTransport{e: e}
	var err error
	if t.stream, err = e.device.NewStream(cuda.StreamOptions{}); err != nil {
		return t, err
	}
	if t.token, err = cuda.AllocHost[byte](e.device, 4); err != nil {
		return t, errors.Join(err, t.stream.Close())
	}
	err = t.carry(ctx, func(uintptr) (err error) {
		t.c, err = begin()
		return err
	})
	if err != nil {
		if t.c != nil {
			err = errors.Join(err, t.c.Abort())
		}
		return t, errors.Join(err, t.token.Close(), t.stream.Close())
	}
	e.mu.Lock()
	e.comms = append(e.comms, t.c)
	e.mu.Unlock()
	return t, nil
}

// carry has a call give work to the stream, and waits for that.
func (t *ncclTransport) carry(ctx context.Context, call func(stream uintptr) error) error {
	r, err := t.stream.Begin()
	if err != nil {
		return err
	}
	err = cuda.Foreign(r, func(stream uintptr) error {
		if err := call(stream); err != nil {
			return err
		}
		return t.c.Settle(ctx)
	})
	work, failed := r.Submit()
	if err != nil {
		return err
	}
	if failed != nil {
		return failed
	}
	for {
		select {
		case <-work.Done():
			_, err := work.Wait(ctx)
			return err
		case <-time.After(checkInterval):
			if err := t.c.Settle(ctx); err != nil {
				return err
			}
		}
	}
}

// do is carry for calls that may be abandoned: then all of the process's groups are, since what the GPU waits for holds up the rest.
func (t ncclTransport) do(stop <-chan struct{}, call func(stream uintptr) error) error {
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { done <- t.carry(ctx, call) }()
	select {
	case err := <-done:
		return err
	case <-stop:
		go t.e.abort()
		return errAbandoned
	}
}

// abort ends what the GPU waits for.
func (e *ncclEngine) abort() {
	e.mu.Lock()
	comms := e.comms
	e.comms, e.gone = nil, true
	e.mu.Unlock()
	for _, c := range comms {
		c.Abort()
	}
}

// finalize waits until the other processes do it, too, and frees what the engine has.
func (e *ncclEngine) finalize(stop <-chan struct{}) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	go func() {
		select {
		case <-stop:
			cancel(errAbandoned)
		case <-ctx.Done():
		}
	}()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range slices.Backward(e.comms) { // the first one is what the others were split from
		if err := c.Close(ctx); err != nil {
			return err
		}
	}
	e.comms, e.gone = nil, true
	for _, b := range e.all {
		b.Close()
	}
	return nil
}

func (t ncclTransport) rank() int      { return t.c.Rank() }
func (t ncclTransport) size() int      { return t.c.Size() }
func (t ncclTransport) messages() bool { return true }
func (t ncclTransport) ordered() bool  { return true }
func (t ncclTransport) direct() bool   { return false }

func (t ncclTransport) buffer(<-chan struct{}) (*buffer, error) {
	t.e.mu.Lock()
	defer t.e.mu.Unlock()
	if n := len(t.e.free); n > 0 {
		b := t.e.free[n-1]
		t.e.free = t.e.free[:n-1]
		return b, nil
	}
	host, err := cuda.AllocHost[byte](t.e.device, bufferSize)
	if err != nil {
		return nil, err
	}
	t.e.all = append(t.e.all, host)
	return &buffer{data: host.Slice()}, nil
}

func (t ncclTransport) release(b *buffer) {
	t.e.mu.Lock()
	t.e.free = append(t.e.free, b)
	t.e.mu.Unlock()
}

func (t ncclTransport) reduces(e element, r Reduction) bool { return reducedByLibraries(e, r) }

// at returns the address of memory, which has at least a byte.
func at(data []byte) unsafe.Pointer { return unsafe.Pointer(&data[0]) }

func (t ncclTransport) allReduce(stop <-chan struct{}, dst, src []byte, e element, r Reduction) error {
	typ, op := operation(e, r)
	return t.do(stop, func(stream uintptr) error { return t.c.AllReduce(at(dst), at(src), len(src)/e.size(), typ, op, stream) })
}

func (t ncclTransport) allGather(stop <-chan struct{}, dst, src *buffer, n int) error {
	return t.do(stop, func(stream uintptr) error { return t.c.AllGather(at(dst.data), at(src.data), n, stream) })
}

func (t ncclTransport) allToAll(stop <-chan struct{}, dst, src *buffer, n int) error {
	return t.do(stop, func(stream uintptr) error {
		return t.e.library.Group(func() error {
			for peer := range t.size() {
				if err := t.c.Send(at(src.data[peer*n:]), n, peer, stream); err != nil {
					return err
				}
				if err := t.c.Recv(at(dst.data[peer*n:]), n, peer, stream); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

func (t ncclTransport) broadcast(stop <-chan struct{}, b *buffer, n, root int) error {
	return t.do(stop, func(stream uintptr) error { return t.c.Broadcast(at(b.data), at(b.data), n, root, stream) })
}

func (t ncclTransport) send(stop <-chan struct{}, b *buffer, n, to int) error {
	if n == 0 {
		return nil
	}
	return t.do(stop, func(stream uintptr) error { return t.c.Send(at(b.data), n, to, stream) })
}

func (t ncclTransport) receive(stop <-chan struct{}, b *buffer, n, from int) error {
	if n == 0 {
		return nil
	}
	return t.do(stop, func(stream uintptr) error { return t.c.Recv(at(b.data), n, from, stream) })
}

func (t ncclTransport) barrier(stop <-chan struct{}) error {
	return t.do(stop, func(stream uintptr) error {
		token := at(t.token.Slice())
		return t.c.AllReduce(token, token, 1, nccl.Int32, nccl.Max, stream)
	})
}

// split gathers colors and keys first: NCCL does not say which rank it has given.
func (t ncclTransport) split(stop <-chan struct{}, color, key int) (transport, error) {
	type pair struct{ color, key int64 }
	const size = int(unsafe.Sizeof(pair{}))
	if t.size()*size > bufferSize {
		return nil, fmt.Errorf("a group of %d members", t.size())
	}
	dst, err := t.buffer(stop)
	if err != nil {
		return nil, err
	}
	src, err := t.buffer(stop)
	if err != nil {
		return nil, err
	}
	*(*pair)(at(src.data)) = pair{int64(color), int64(key)}
	if err := t.allGather(stop, dst, src, size); err != nil {
		return nil, err
	}
	pairs := slices.Clone(unsafe.Slice((*pair)(at(dst.data)), t.size()))
	t.release(dst)
	t.release(src)
	var members, colors []int
	for i, p := range pairs {
		if p.color == int64(color) {
			members = append(members, i)
		}
		if !slices.Contains(colors, int(p.color)) {
			colors = append(colors, int(p.color))
		}
	}
	slices.SortStableFunc(members, func(i, j int) int { return cmp.Compare(pairs[i].key, pairs[j].key) })
	type result struct {
		t   ncclTransport
		err error
	}
	done := make(chan result, 1)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		made, err := t.e.join(ctx, func() (*nccl.Comm, error) {
			// Colors and keys are 32 bits wide in NCCL, and colors not negative: their numbers are.
			rank := slices.Index(members, t.rank())
			c, err := t.c.Split(slices.Index(colors, color), rank, rank, len(members))
			if err == nil {
				err = t.c.Settle(ctx)
			}
			return c, err
		})
		done <- result{made, err}
	}()
	select {
	case r := <-done:
		return r.t, r.err
	case <-stop:
		go t.e.abort()
		return nil, errAbandoned
	}
}

func (t ncclTransport) free(<-chan struct{}) error { return nil }
