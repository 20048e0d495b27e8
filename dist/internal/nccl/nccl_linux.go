//go:build !android && (amd64 || arm64)

package nccl

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"
)

// functions are addresses of the library's, by the name after nccl. Prototypes are in the test.
type functions struct {
	GetVersion, GetUniqueId, GetErrorString, GetLastError              uintptr
	CommInitRankScalable                                               uintptr // since 2.23
	CommFinalize, CommDestroy, CommAbort, CommGetAsyncError, CommSplit uintptr
	GroupStart, GroupEnd                                               uintptr
	AllReduce, ReduceScatter, AllGather, Broadcast, Send, Recv         uintptr
	initByValue                                                        func(comm *uintptr, ranks int32, id byValue, rank int32, c *config) int32 // ncclCommInitRankConfig
}

// byValue is an ID as an argument.
type byValue struct{ Bytes [128]byte }

func (f *functions) table() map[string]*uintptr {
	return map[string]*uintptr{
		"GetVersion": &f.GetVersion, "GetUniqueId": &f.GetUniqueId, "GetErrorString": &f.GetErrorString, "GetLastError": &f.GetLastError,
		"CommFinalize": &f.CommFinalize, "CommDestroy": &f.CommDestroy, "CommAbort": &f.CommAbort, "CommGetAsyncError": &f.CommGetAsyncError,
		"CommSplit": &f.CommSplit, "GroupStart": &f.GroupStart, "GroupEnd": &f.GroupEnd, "AllReduce": &f.AllReduce, "ReduceScatter": &f.ReduceScatter, "AllGather": &f.AllGather,
		"Broadcast": &f.Broadcast, "Send": &f.Send, "Recv": &f.Recv,
	}
}

// config is ncclConfig_t as of 2.17. Later libraries know by the version that there is no more of it.
type config struct {
	size                                       uint64
	magic, version                             uint32
	blocking, cgaClusterSize, minCTAs, maxCTAs int32
	netName                                    uintptr
	splitShare                                 int32
	_                                          int32
}

const (
	configMagic   = 0xcafebeef
	configVersion = 21700
	undefined     = math.MinInt32
	oldest        = 21800 // has CommSplit
)

// Results.
const (
	success    = 0
	inProgress = 7
)

// Library is a loaded library. Its methods are safe for concurrent use.
type Library struct {
	fn      functions
	path    string
	version int
}

// Open loads the first library of these names that exists.
func Open(names ...string) (*Library, error) {
	runtime.LockOSThread() // dlerror is a thread's
	defer runtime.UnlockOSThread()
	var tried []error
	for _, name := range names {
		handle, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
		if err != nil {
			tried = append(tried, err)
			continue
		}
		l := &Library{path: name}
		for symbol, address := range l.fn.table() {
			if *address, err = purego.Dlsym(handle, "nccl"+symbol); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
		if l.fn.CommInitRankScalable, err = purego.Dlsym(handle, "ncclCommInitRankScalable"); err != nil {
			purego.RegisterLibFunc(&l.fn.initByValue, handle, "ncclCommInitRankConfig")
		}
		version := new(int32)
		if err := l.call("ncclGetVersion", l.fn.GetVersion, uintptr(unsafe.Pointer(version))); err != nil {
			return nil, err
		}
		if l.version = int(*version); l.version < oldest {
			return nil, fmt.Errorf("%s has version %s: 2.18 or newer is needed", name, l.Version())
		}
		return l, nil
	}
	return nil, fmt.Errorf("%w: %w", ErrMissing, errors.Join(tried...))
}

// Path returns the name by which the library was loaded.
func (l *Library) Path() string { return l.path }

// Version returns the library's version, such as 2.27.3.
func (l *Library) Version() string {
	return fmt.Sprintf("%d.%d.%d", l.version/10000, l.version/100%100, l.version%100)
}

// call makes a call whose result is an error code. Nothing in it points into a goroutine's stack.
//
//go:uintptrescapes
func (l *Library) call(name string, function uintptr, args ...uintptr) error {
	r, _, _ := purego.SyscallN(function, args...)
	return l.failure(name, int32(r))
}

// failure is nil for calls that go on.
func (l *Library) failure(name string, code int32) error {
	if code == success || code == inProgress {
		return nil
	}
	text, _, _ := purego.SyscallN(l.fn.GetErrorString, uintptr(code))
	last, _, _ := purego.SyscallN(l.fn.GetLastError, 0)
	e := &Error{name, int(code), goString(text)}
	if more := goString(last); more != "" {
		e.Text += ": " + more
	}
	return e
}

// goString copies a C string, of which there may be none.
func goString(at uintptr) string {
	p := *(*unsafe.Pointer)(unsafe.Pointer(&at)) // the library's memory, not Go's
	if p == nil {
		return ""
	}
	n := 0
	for *(*byte)(unsafe.Add(p, n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(p), n))
}

// UniqueID makes an id, on the rank that hands it to the others.
func (l *Library) UniqueID() (ID, error) {
	id := new(ID)
	err := l.call("ncclGetUniqueId", l.fn.GetUniqueId, uintptr(unsafe.Pointer(id)))
	return *id, err
}

// Comm is a communicator. Its methods may be called at any time, also Abort while others wait.
type Comm struct {
	l          *Library
	handle     uintptr
	rank, size int

	mu   sync.Mutex
	gone bool
}

// errGone is what calls return after Abort and Close.
var errGone = errors.New("the communicator is closed or aborted")

// call makes a call with the handle, which is the first argument, unless that is gone.
//
//go:uintptrescapes
func (c *Comm) call(name string, function uintptr, args ...uintptr) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return fmt.Errorf("%s: %w", name, errGone)
	}
	return c.l.call(name, function, args...)
}

// end makes the call after which there is no communicator.
func (c *Comm) end(name string, function uintptr) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone || c.handle == 0 {
		return nil
	}
	c.gone = true
	return c.l.call(name, function, c.handle)
}

func newConfig() *config {
	return &config{size: uint64(unsafe.Sizeof(config{})), magic: configMagic, version: configVersion, blocking: 0,
		cgaClusterSize: undefined, minCTAs: undefined, maxCTAs: undefined, splitShare: undefined}
}

// NewComm begins to make a communicator with the other ranks, on the device that is current. It is made when Settle returns.
func (l *Library) NewComm(id ID, rank, size int) (*Comm, error) {
	c := &Comm{l: l, rank: rank, size: size}
	o := newConfig()
	if l.fn.CommInitRankScalable == 0 {
		return c, l.failure("ncclCommInitRankConfig", l.fn.initByValue(&c.handle, int32(size), byValue{id}, int32(rank), o))
	}
	return c, l.call("ncclCommInitRankScalable", l.fn.CommInitRankScalable, uintptr(unsafe.Pointer(&c.handle)), uintptr(size), uintptr(rank), 1,
		uintptr(unsafe.Pointer(&id)), uintptr(unsafe.Pointer(o)))
}

// Split begins to make communicators of those ranks that give the same color, by key and then rank. The caller knows the new rank and size.
func (c *Comm) Split(color, key, rank, size int) (*Comm, error) {
	made := &Comm{l: c.l, rank: rank, size: size}
	return made, c.call("ncclCommSplit", c.l.fn.CommSplit, c.handle, uintptr(color), uintptr(key), uintptr(unsafe.Pointer(&made.handle)),
		uintptr(unsafe.Pointer(newConfig())))
}

// Rank returns this member's number.
func (c *Comm) Rank() int { return c.rank }

// Size returns the number of members.
func (c *Comm) Size() int { return c.size }

// Intervals between the calls that ask whether something is done.
const (
	shortest = 20 * time.Microsecond
	longest  = 10 * time.Millisecond
)

// Settle waits until the calls that were made have taken effect, or ctx ends: then only Abort may follow.
func (c *Comm) Settle(ctx context.Context) error {
	state := new(int32)
	for wait := shortest; ; wait = min(2*wait, longest) {
		if err := c.call("ncclCommGetAsyncError", c.l.fn.CommGetAsyncError, c.handle, uintptr(unsafe.Pointer(state))); err != nil {
			return err
		}
		if *state != inProgress {
			return c.l.failure("NCCL", *state)
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}

// Check returns what has failed since, without waiting.
func (c *Comm) Check() error {
	state := new(int32)
	if err := c.call("ncclCommGetAsyncError", c.l.fn.CommGetAsyncError, c.handle, uintptr(unsafe.Pointer(state))); err != nil {
		return err
	}
	return c.l.failure("NCCL", *state)
}

// Abort ends what the device does for the communicator, and the communicator.
func (c *Comm) Abort() error { return c.end("ncclCommAbort", c.l.fn.CommAbort) }

// Close waits until all members have closed it, or ctx ends.
func (c *Comm) Close(ctx context.Context) error {
	if err := c.call("ncclCommFinalize", c.l.fn.CommFinalize, c.handle); err != nil {
		return err
	}
	if err := c.Settle(ctx); err != nil {
		return err
	}
	return c.end("ncclCommDestroy", c.l.fn.CommDestroy)
}

// Group has the calls that do makes begin together.
func (l *Library) Group(do func() error) error {
	if err := l.call("ncclGroupStart", l.fn.GroupStart); err != nil {
		return err
	}
	return errors.Join(do(), l.call("ncclGroupEnd", l.fn.GroupEnd))
}

// AllReduce reduces n elements.
func (c *Comm) AllReduce(dst, src unsafe.Pointer, n int, t Type, op Op, stream uintptr) error {
	return c.call("ncclAllReduce", c.l.fn.AllReduce, uintptr(src), uintptr(dst), uintptr(n), uintptr(t), uintptr(op), c.handle, stream)
}

// AllGather gathers n bytes of each member.
func (c *Comm) AllGather(dst, src unsafe.Pointer, n int, stream uintptr) error {
	return c.call("ncclAllGather", c.l.fn.AllGather, uintptr(src), uintptr(dst), uintptr(n), uintptr(Uint8), c.handle, stream)
}

// ReduceScatter reduces n elements for each member.
func (c *Comm) ReduceScatter(dst, src unsafe.Pointer, n int, t Type, op Op, stream uintptr) error {
	return c.call("ncclReduceScatter", c.l.fn.ReduceScatter, uintptr(src), uintptr(dst), uintptr(n), uintptr(t), uintptr(op), c.handle, stream)
}

// Broadcast sends n bytes of root to all. Src is read on that rank only.
func (c *Comm) Broadcast(dst, src unsafe.Pointer, n, root int, stream uintptr) error {
	return c.call("ncclBroadcast", c.l.fn.Broadcast, uintptr(src), uintptr(dst), uintptr(n), uintptr(Uint8), uintptr(root), c.handle, stream)
}

// Send sends n bytes.
func (c *Comm) Send(data unsafe.Pointer, n, to int, stream uintptr) error {
	return c.call("ncclSend", c.l.fn.Send, uintptr(data), uintptr(n), uintptr(Uint8), uintptr(to), c.handle, stream)
}

// Recv receives n bytes.
func (c *Comm) Recv(data unsafe.Pointer, n, from int, stream uintptr) error {
	return c.call("ncclRecv", c.l.fn.Recv, uintptr(data), uintptr(n), uintptr(Uint8), uintptr(from), c.handle, stream)
}
