//go:build !android && (amd64 || arm64)

package mpi

import (
	"fmt"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Comm is a group of processes. Split, SplitShared and Free are for functions that [Process.Run] calls. The other methods that communicate
// return ErrAbandoned when stop is closed first. While one waits, others may be called.
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
func (c *Comm) Barrier(stop <-chan struct{}) error {
	return c.begin(stop, "MPI_Ibarrier", c.p.fn.Ibarrier, &operation{}, c.handle)
}

// AllReduce sets dst to the reduction of src, which may be dst itself: memory of a Buffer, or, from LeastBlocking on, of the caller, in which
// an abandoned call may still write. There it waits for all processes first, so that the call that blocks waits for no other of theirs.
func (c *Comm) AllReduce(stop <-chan struct{}, dst, src []byte, t Type, o Op) error {
	a, n := &c.p.abi, uintptr(len(src)/t.size())
	to, from := unsafe.Pointer(unsafe.SliceData(dst)), unsafe.Pointer(unsafe.SliceData(src))
	if len(src) < LeastBlocking {
		return c.begin(stop, "MPI_Iallreduce", c.p.fn.Iallreduce, &operation{}, c.source(to, from), uintptr(to), n, a.types[t], a.ops[o], c.handle)
	}
	if err := c.Barrier(stop); err != nil {
		return err
	}
	return c.p.Run(stop, func() error {
		err := c.p.call("MPI_Allreduce", c.p.fn.Allreduce, c.source(to, from), uintptr(to), n, a.types[t], a.ops[o], c.handle)
		runtime.KeepAlive(src)
		runtime.KeepAlive(dst)
		return err
	})
}

// source is what says where the operand of an all-reduce is.
func (c *Comm) source(to, from unsafe.Pointer) uintptr {
	if to == from {
		return c.p.abi.inPlace
	}
	return uintptr(from)
}

// AllGather sends n bytes to all and receives as many from each.
func (c *Comm) AllGather(stop <-chan struct{}, dst, src *Buffer, n int) error {
	t := c.p.abi.types[Byte]
	return c.begin(stop, "MPI_Iallgather", c.p.fn.Iallgather, &operation{}, uintptr(src.p), uintptr(n), t, uintptr(dst.p), uintptr(n), t, c.handle)
}

// AllToAll sends n other bytes to each and receives as many from each.
func (c *Comm) AllToAll(stop <-chan struct{}, dst, src *Buffer, n int) error {
	t := c.p.abi.types[Byte]
	return c.begin(stop, "MPI_Ialltoall", c.p.fn.Ialltoall, &operation{}, uintptr(src.p), uintptr(n), t, uintptr(dst.p), uintptr(n), t, c.handle)
}

// Broadcast sends n bytes of root to all.
func (c *Comm) Broadcast(stop <-chan struct{}, b *Buffer, n, root int) error {
	return c.begin(stop, "MPI_Ibcast", c.p.fn.Ibcast, &operation{}, uintptr(b.p), uintptr(n), c.p.abi.types[Byte], uintptr(root), c.handle)
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

// operation is a call of MPI that has begun. It is in Go's heap, not on a stack, which could move: test has SyscallN let it escape.
type operation struct {
	request uintptr
	flag    int32
	count   int32
	status  [64]byte
	want    int // bytes, of a message that is received
	receive bool
}

// Send sends n bytes to a process and waits until the buffer can be used again.
func (c *Comm) Send(stop <-chan struct{}, b *Buffer, n, to int) error {
	return c.begin(stop, "MPI_Isend", c.p.fn.Isend, &operation{}, uintptr(b.p), uintptr(n), c.p.abi.types[Byte], uintptr(to), 0, c.handle)
}

// Receive receives n bytes from a process.
func (c *Comm) Receive(stop <-chan struct{}, b *Buffer, n, from int) error {
	o := &operation{want: n, receive: true}
	return c.begin(stop, "MPI_Irecv", c.p.fn.Irecv, o, uintptr(b.p), uintptr(n), c.p.abi.types[Byte], uintptr(from), 0, c.handle)
}

// How often a caller asks whether its operation is done before it lets other threads run after each time, and how often before it sleeps
// in between. The first takes some microseconds, as small messages on one machine do.
const (
	pollsBeforeYield = 100
	pollsBeforeSleep = 2000
	pollInterval     = 20 * time.Microsecond
)

// begin makes a call whose last argument is where a request is put, and waits until that is done: MPI makes progress only while it is
// called. The turn passes between those who wait.
func (c *Comm) begin(stop <-chan struct{}, name string, function uintptr, o *operation, args ...uintptr) error {
	p := c.p
	if !p.take(stop) {
		return ErrAbandoned
	}
	err := p.call(name, function, append(args, uintptr(unsafe.Pointer(&o.request)))...)
	if err != nil {
		<-p.turn
		return err
	}
	for polls := 0; ; polls++ {
		done, err := p.test(o)
		<-p.turn
		if done || err != nil {
			return err
		}
		switch {
		case polls > pollsBeforeSleep:
			time.Sleep(pollInterval)
		case polls > pollsBeforeYield:
			runtime.Gosched()
			syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0)
		}
		select {
		case <-stop:
			return ErrAbandoned
		default:
		}
		if !p.take(stop) {
			return ErrAbandoned
		}
	}
}

// test reports whether an operation is done.
func (p *Process) test(o *operation) (bool, error) {
	r, _, _ := purego.SyscallN(p.fn.Test, uintptr(unsafe.Pointer(&o.request)), uintptr(unsafe.Pointer(&o.flag)), uintptr(unsafe.Pointer(&o.status)))
	if code := int32(r); code != 0 {
		return true, p.failure("MPI_Test", code)
	}
	if o.flag == 0 {
		return false, nil
	}
	return true, p.received(o)
}

// received checks the length of a message.
func (p *Process) received(o *operation) error {
	if !o.receive {
		return nil
	}
	err := p.call("MPI_Get_count", p.fn.Get_count, uintptr(unsafe.Pointer(&o.status)), p.abi.types[Byte], uintptr(unsafe.Pointer(&o.count)))
	if err == nil && int(o.count) != o.want {
		err = fmt.Errorf("received %d bytes where %d were expected", o.count, o.want)
	}
	return err
}
