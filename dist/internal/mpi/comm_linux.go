//go:build !android && (amd64 || arm64)

package mpi

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Comm is a group of processes. Its methods are for functions that [Process.Run] calls, except Rank, Size, Send and Receive.
type Comm struct {
	p          *Process
	handle     uintptr
	rank, size int
}

func (p *Process) comm(handle uintptr) (*Comm, error) {
	c, n := &Comm{p: p, handle: handle}, new([2]int32)
	if err := p.call("MPI_Comm_set_errhandler", p.fn.Comm_set_errhandler, handle, p.abi.errorsReturn); err != nil {
		return nil, err
	}
	if err := p.call("MPI_Comm_rank", p.fn.Comm_rank, handle, uintptr(unsafe.Pointer(&n[0]))); err != nil {
		return nil, err
	}
	if err := p.call("MPI_Comm_size", p.fn.Comm_size, handle, uintptr(unsafe.Pointer(&n[1]))); err != nil {
		return nil, err
	}
	c.rank, c.size = int(n[0]), int(n[1])
	return c, nil
}

// Rank returns the number of this process in the group.
func (c *Comm) Rank() int { return c.rank }

// Size returns the number of processes.
func (c *Comm) Size() int { return c.size }

// Barrier waits for all.
func (c *Comm) Barrier() error { return c.p.call("MPI_Barrier", c.p.fn.Barrier, c.handle) }

// AllReduce reduces n elements in place.
func (c *Comm) AllReduce(b *Buffer, n int, t Type, o Op) error {
	a := &c.p.abi
	return c.p.call("MPI_Allreduce", c.p.fn.Allreduce, a.inPlace, uintptr(b.p), uintptr(n), a.types[t], a.ops[o], c.handle)
}

// AllGather sends n bytes to all and receives as many from each.
func (c *Comm) AllGather(dst, src *Buffer, n int) error {
	t := c.p.abi.types[Byte]
	return c.p.call("MPI_Allgather", c.p.fn.Allgather, uintptr(src.p), uintptr(n), t, uintptr(dst.p), uintptr(n), t, c.handle)
}

// AllToAll sends n other bytes to each and receives as many from each.
func (c *Comm) AllToAll(dst, src *Buffer, n int) error {
	t := c.p.abi.types[Byte]
	return c.p.call("MPI_Alltoall", c.p.fn.Alltoall, uintptr(src.p), uintptr(n), t, uintptr(dst.p), uintptr(n), t, c.handle)
}

// Broadcast sends n bytes of root to all.
func (c *Comm) Broadcast(b *Buffer, n, root int) error {
	return c.p.call("MPI_Bcast", c.p.fn.Bcast, uintptr(b.p), uintptr(n), c.p.abi.types[Byte], uintptr(root), c.handle)
}

// Split returns the group of the processes with this color, ordered by key.
func (c *Comm) Split(color, key int) (*Comm, error) {
	handle := new(uintptr)
	err := c.p.call("MPI_Comm_split", c.p.fn.Comm_split, c.handle, uintptr(color), uintptr(key), uintptr(unsafe.Pointer(handle)))
	if err != nil {
		return nil, err
	}
	return c.p.comm(*handle)
}

// SplitShared returns the group of the processes on this machine.
func (c *Comm) SplitShared() (*Comm, error) {
	handle := new(uintptr)
	err := c.p.call("MPI_Comm_split_type", c.p.fn.Comm_split_type, c.handle, uintptr(c.p.abi.shared), 0, c.p.abi.infoNull,
		uintptr(unsafe.Pointer(handle)))
	if err != nil {
		return nil, err
	}
	return c.p.comm(*handle)
}

// Free ends the group.
func (c *Comm) Free() error {
	handle := new(uintptr)
	*handle = c.handle
	return c.p.call("MPI_Comm_free", c.p.fn.Comm_free, uintptr(unsafe.Pointer(handle)))
}

// message is one that is being sent or received. Its memory is not moved: MPI keeps no address of it between calls.
type message struct {
	request uintptr
	flag    int32
	count   int32
	status  [64]byte
	want    int // bytes, of one that is received
	receive bool
	done    chan error
}

// Send sends n bytes to a process and waits until the buffer can be used again. The thread of MPI does other work meanwhile.
func (c *Comm) Send(stop <-chan struct{}, b *Buffer, n, to int) error {
	return c.transfer(stop, "MPI_Isend", c.p.fn.Isend, b, n, to, false)
}

// Receive receives n bytes from a process.
func (c *Comm) Receive(stop <-chan struct{}, b *Buffer, n, from int) error {
	return c.transfer(stop, "MPI_Irecv", c.p.fn.Irecv, b, n, from, true)
}

func (c *Comm) transfer(stop <-chan struct{}, name string, function uintptr, b *Buffer, n, peer int, receive bool) error {
	m := &message{want: n, receive: receive, done: make(chan error, 1)}
	err := c.p.Run(stop, func() error {
		err := c.p.call(name, function, uintptr(b.p), uintptr(n), c.p.abi.types[Byte], uintptr(peer), 0, c.handle, uintptr(unsafe.Pointer(&m.request)))
		if err == nil {
			c.p.pending = append(c.p.pending, m)
		}
		return err
	})
	if err != nil {
		return err
	}
	select {
	case err := <-m.done:
		return err
	case <-stop:
		return ErrAbandoned
	}
}

// poll asks for the messages that are on their way and reports whether one has arrived.
func (p *Process) poll() bool {
	before := len(p.pending)
	p.pending = slices.DeleteFunc(p.pending, func(m *message) bool {
		r, _, _ := purego.SyscallN(p.fn.Test, uintptr(unsafe.Pointer(&m.request)), uintptr(unsafe.Pointer(&m.flag)), uintptr(unsafe.Pointer(&m.status)))
		if code := int32(r); code != 0 {
			m.done <- p.failure("MPI_Test", code)
			return true
		}
		if m.flag == 0 {
			return false
		}
		m.done <- p.received(m)
		return true
	})
	return len(p.pending) < before
}

// received checks the length of a message.
func (p *Process) received(m *message) error {
	if !m.receive {
		return nil
	}
	err := p.call("MPI_Get_count", p.fn.Get_count, uintptr(unsafe.Pointer(&m.status)), p.abi.types[Byte], uintptr(unsafe.Pointer(&m.count)))
	if err == nil && int(m.count) != m.want {
		err = fmt.Errorf("received %d bytes where %d were expected", m.count, m.want)
	}
	return err
}
