package dist

import "github.com/wavelane/wavelane/dist/internal/mpi"

var errAbandoned = mpi.ErrAbandoned

// mpiTransport is a group of processes.
type mpiTransport struct {
	p    *mpi.Process
	c    *mpi.Comm
	near bool // all processes of the world are on one machine
}

func (t mpiTransport) rank() int { return t.c.Rank() }
func (t mpiTransport) size() int { return t.c.Size() }

func (t mpiTransport) buffer(stop <-chan struct{}) (*buffer, error) {
	b, err := t.p.Buffer(stop)
	if err != nil {
		return nil, err
	}
	return &buffer{b.Data, b}, nil
}

func (t mpiTransport) release(b *buffer) { t.p.Release(b.native) }

func (t mpiTransport) messages() bool                      { return true }
func (t mpiTransport) ordered() bool                       { return false }
func (t mpiTransport) streams() *ncclTransport             { return nil }
func (t mpiTransport) direct() bool                        { return t.near }
func (t mpiTransport) reduces(e element, r Reduction) bool { return reducedByLibraries(e, r) }

func (t mpiTransport) allReduce(stop <-chan struct{}, dst, src []byte, e element, r Reduction) error {
	typ, op := mpi.Float32, mpi.Sum
	if e == int32s {
		typ = mpi.Int32
	}
	switch r {
	case Max:
		op = mpi.Max
	case Min:
		op = mpi.Min
	}
	return t.c.AllReduce(stop, dst, src, typ, op)
}

func (t mpiTransport) allGather(stop <-chan struct{}, dst, src *buffer, n int) error {
	return t.c.AllGather(stop, dst.native, src.native, n)
}

func (t mpiTransport) allToAll(stop <-chan struct{}, dst, src *buffer, n int) error {
	return t.c.AllToAll(stop, dst.native, src.native, n)
}

func (t mpiTransport) broadcast(stop <-chan struct{}, b *buffer, n, root int) error {
	return t.c.Broadcast(stop, b.native, n, root)
}

func (t mpiTransport) send(stop <-chan struct{}, b *buffer, n, to int) error {
	return t.c.Send(stop, b.native, n, to)
}

func (t mpiTransport) receive(stop <-chan struct{}, b *buffer, n, from int) error {
	return t.c.Receive(stop, b.native, n, from)
}

func (t mpiTransport) barrier(stop <-chan struct{}) error { return t.c.Barrier(stop) }

func (t mpiTransport) split(stop <-chan struct{}, color, key int) (transport, error) {
	made := make(chan *mpi.Comm, 1) // not a variable, which an abandoned call would write to
	err := t.p.Run(stop, func() error {
		c, err := t.c.Split(color, key)
		made <- c
		return err
	})
	if err != nil {
		return nil, err
	}
	return mpiTransport{t.p, <-made, t.near}, nil
}

func (t mpiTransport) free(stop <-chan struct{}) error { return t.p.Run(stop, t.c.Free) }
