//go:build !android && (amd64 || arm64)

package mpi

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"
)

// functions are addresses of the library's, by the name after MPI_.
type functions struct {
	Init_thread, Finalize, Abort, Get_library_version, Error_string, Comm_set_errhandler uintptr
	Comm_rank, Comm_size, Comm_split, Comm_split_type, Comm_free                         uintptr
	Alloc_mem, Free_mem                                                                  uintptr
	Allreduce                                                                            uintptr
	Ibarrier, Iallreduce, Iallgather, Ialltoall, Ibcast, Isend, Irecv, Test, Get_count   uintptr
}

func (f *functions) table() map[string]*uintptr {
	return map[string]*uintptr{
		"Init_thread": &f.Init_thread, "Finalize": &f.Finalize, "Abort": &f.Abort, "Get_library_version": &f.Get_library_version,
		"Error_string": &f.Error_string, "Comm_set_errhandler": &f.Comm_set_errhandler, "Comm_rank": &f.Comm_rank, "Comm_size": &f.Comm_size,
		"Comm_split": &f.Comm_split, "Comm_split_type": &f.Comm_split_type, "Comm_free": &f.Comm_free, "Alloc_mem": &f.Alloc_mem,
		"Free_mem": &f.Free_mem, "Allreduce": &f.Allreduce, "Ibarrier": &f.Ibarrier, "Iallreduce": &f.Iallreduce, "Iallgather": &f.Iallgather, "Ialltoall": &f.Ialltoall,
		"Ibcast": &f.Ibcast, "Isend": &f.Isend, "Irecv": &f.Irecv, "Test": &f.Test, "Get_count": &f.Get_count,
	}
}

// Process is the process's part of MPI. Its methods are safe for concurrent use.
type Process struct {
	fn    functions
	abi   abi
	info  Info
	world *Comm

	turn     chan struct{} // whoever has sent to it may call MPI
	finalize chan chan error

	mu   sync.Mutex
	free []*Buffer
}

var started atomic.Bool

// Start loads the first library of these names that exists and initialises it.
func Start(names []string) (*Process, error) {
	if !started.CompareAndSwap(false, true) {
		return nil, ErrTwice
	}
	p := &Process{turn: make(chan struct{}, 1), finalize: make(chan chan error)}
	result := make(chan error)
	go p.serve(names, result)
	if err := <-result; err != nil {
		if errors.Is(err, ErrMissing) {
			started.Store(false)
		}
		return nil, err
	}
	return p, nil
}

// serve initialises MPI and ends it, which must be done by one thread.
func (p *Process) serve(names []string, result chan error) {
	runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
	before := readActions()
	err := p.load(names)
	if err == nil {
		err = p.initialise()
	}
	before.restore()
	result <- err
	if err != nil {
		return
	}
	done := <-p.finalize
	done <- p.call("MPI_Finalize", p.fn.Finalize)
}

func (p *Process) load(names []string) error {
	var tried []error
	for _, name := range names {
		handle, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_GLOBAL)
		if err != nil {
			tried = append(tried, err)
			continue
		}
		for symbol, address := range p.fn.table() {
			if *address, err = purego.Dlsym(handle, "MPI_"+symbol); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		p.info.Path = name
		return p.identify(handle)
	}
	return fmt.Errorf("%w: %w", ErrMissing, errors.Join(tried...))
}

// identify finds out which binary interface the library has.
func (p *Process) identify(handle uintptr) error {
	symbol := func(name string) uintptr {
		address, err := purego.Dlsym(handle, name)
		if err != nil {
			return 0
		}
		return address
	}
	switch world, version := symbol("ompi_mpi_comm_world"), symbol("MPI_Abi_get_version"); {
	case world != 0:
		p.abi = openMPI
		p.abi.world, p.abi.errorsReturn = world, symbol("ompi_mpi_errors_return")
		p.abi.infoNull = symbol("ompi_mpi_info_null")
		for i, name := range openMPITypes {
			p.abi.types[i] = symbol(name)
		}
		for i, name := range openMPIOps {
			p.abi.ops[i] = symbol(name)
		}
		all := append([]uintptr{p.abi.errorsReturn, p.abi.infoNull}, p.abi.types[:]...)
		if slices.Contains(append(all, p.abi.ops[:]...), 0) {
			return fmt.Errorf("%s looks like Open MPI but lacks some of its globals", p.info.Path)
		}
	case version != 0 && p.abiVersion(version) >= 1:
		p.abi = standard
	default:
		p.abi = mpich
	}
	p.info.Family = p.abi.family
	text, n := make([]byte, 8192), new(int32)
	if err := p.call("MPI_Get_library_version", p.fn.Get_library_version, uintptr(unsafe.Pointer(&text[0])), uintptr(unsafe.Pointer(n))); err != nil {
		return err
	}
	p.info.Version = oneLine(text)
	return nil
}

// abiVersion returns 0 for libraries that have the function but not the interface.
func (p *Process) abiVersion(function uintptr) int32 {
	major, minor := new(int32), new(int32)
	purego.SyscallN(function, uintptr(unsafe.Pointer(major)), uintptr(unsafe.Pointer(minor)))
	return *major
}

// oneLine shortens a description to its first line, without tabs.
func oneLine(text []byte) string {
	s, _, _ := strings.Cut(string(text[:max(0, bytes.IndexByte(text, 0))]), "\n")
	return strings.Join(strings.Fields(s), " ")
}

func (p *Process) initialise() error {
	provided := new(int32)
	err := p.call("MPI_Init_thread", p.fn.Init_thread, 0, 0, uintptr(p.abi.serialized), uintptr(unsafe.Pointer(provided)))
	if err != nil {
		return err
	}
	p.world, err = p.comm(p.abi.world)
	return err
}

// call makes a call whose result is an error code. Nothing in it points into a goroutine's stack.
//
//go:uintptrescapes
func (p *Process) call(name string, function uintptr, args ...uintptr) error {
	r, _, _ := purego.SyscallN(function, args...)
	if code := int32(r); code != 0 {
		return p.failure(name, code)
	}
	return nil
}

func (p *Process) failure(name string, code int32) error {
	text, n := make([]byte, 8192), new(int32)
	purego.SyscallN(p.fn.Error_string, uintptr(code), uintptr(unsafe.Pointer(&text[0])), uintptr(unsafe.Pointer(n)))
	return &Error{name, int(code), oneLine(text)}
}

// Info returns what library this is.
func (p *Process) Info() Info { return p.info }

// World returns the group of all processes.
func (p *Process) World() *Comm { return p.world }

// Run calls do, which may call MPI and block, and returns its error, or ErrAbandoned when stop is closed first.
func (p *Process) Run(stop <-chan struct{}, do func() error) error {
	if !p.take(stop) {
		return ErrAbandoned
	}
	done := make(chan error, 1)
	go func() {
		err := do()
		<-p.turn
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-stop:
		return ErrAbandoned
	}
}

// take waits for the turn to call MPI and reports whether it has come before stop was closed.
func (p *Process) take(stop <-chan struct{}) bool {
	select {
	case p.turn <- struct{}{}:
		return true
	default:
	}
	select {
	case p.turn <- struct{}{}:
		return true
	case <-stop:
		return false
	}
}

// Buffer returns memory for messages. Release gives it back; that of calls that were abandoned must not be.
func (p *Process) Buffer(stop <-chan struct{}) (*Buffer, error) {
	p.mu.Lock()
	if n := len(p.free); n > 0 {
		b := p.free[n-1]
		p.free = p.free[:n-1]
		p.mu.Unlock()
		return b, nil
	}
	p.mu.Unlock()
	b := new(Buffer)
	err := p.Run(stop, func() error {
		return p.call("MPI_Alloc_mem", p.fn.Alloc_mem, BufferSize, p.abi.infoNull, uintptr(unsafe.Pointer(&b.p)))
	})
	if err != nil {
		return nil, err
	}
	b.Data = unsafe.Slice((*byte)(b.p), BufferSize)
	return b, nil
}

// Release takes a buffer back.
func (p *Process) Release(b *Buffer) {
	p.mu.Lock()
	p.free = append(p.free, b)
	p.mu.Unlock()
}

// Abort ends all processes of the world. If another call blocks, it does so beside it.
func (p *Process) Abort(status int) {
	late := make(chan struct{})
	time.AfterFunc(abortWait, func() { close(late) })
	p.take(late)
	p.call("MPI_Abort", p.fn.Abort, p.abi.world, uintptr(status))
}

// abortWait is how long Abort waits for its turn.
const abortWait = 2 * time.Second

// Finalize waits for all processes of the world and ends MPI. There must be no calls after it.
func (p *Process) Finalize(stop <-chan struct{}) error {
	return p.Run(stop, func() error {
		for _, b := range p.free {
			p.call("MPI_Free_mem", p.fn.Free_mem, uintptr(b.p))
		}
		p.free = nil
		done := make(chan error)
		p.finalize <- done
		return <-done
	})
}
