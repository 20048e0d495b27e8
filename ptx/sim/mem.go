package sim

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"sort"
	"sync"

	"github.com/wavelane/wavelane/ptx/ir"
)

// Where the state spaces lie in the generic address space. Global and constant memory have the same addresses in their own
// space; an address of the others is an offset in its window.
const (
	sharedWindow = uint64(1) << 40
	localWindow  = uint64(2) << 40
	paramWindow  = uint64(3) << 40
	funcWindow   = uint64(4) << 40 // functions, for calls by address
	globalWindow = uint64(0x7f) << 40
	windowSize   = uint64(1) << 32

	// Addresses in the .param space of parameters that lie in a thread's frames, those of device functions, begin here; a
	// kernel's at 0.
	frameParams = windowSize / 2

	// Inside the window of shared memory an address below rankSize belongs to the block's own memory; (r+1)*rankSize and above
	// to that of the block with rank r in the cluster, as mapa gives it.
	rankShift = 24
	rankSize  = uint64(1) << rankShift

	guardZone  = 64 << 10 // bytes of no-man's-land between allocations
	allocAlign = 256
)

// segment is memory in one piece: an allocation, a block's shared memory, a thread's frames, the kernel's parameters.
type segment struct {
	base     uint64 // address of data[0] in its space
	data     []byte
	space    ir.Space
	name     string // for reports
	size     int    // as allocated: also of freed memory, whose data is nil
	readOnly bool
	freed    bool
	opaque   bool      // a variable that holds a handle of a texture, sampler or surface
	fixed    bool      // belongs to a module: not to be freed alone
	heap     *Access   // the call of malloc that took it, nil if none did
	shadow   *shadowed // the monitor's
	words    *words    // what asynchronous operations have to do with it
}

// memOp is how an instruction accesses memory.
type memOp struct {
	space  ir.Space // NoSpace: generic addresses
	size   int      // bytes of one lane's access
	align  int      // what the address has to be a multiple of; 0: size
	write  bool     // store; reads and writes if atomic
	atomic bool
	sem    ir.Mod // "", "weak", "volatile", "relaxed", "acquire", "release", "acq_rel", "sc", "mmio"
	scope  ir.Mod // "", "cta", "cluster", "gpu", "sys"
	async  bool   // by the async proxy
	slot   int32  // of the worker's cache of segments; see compiler.memOp
}

// strong tells accesses that take part in synchronisation; where blocks run on several goroutines they hold a lock.
func (op *memOp) strong() bool { return op.atomic || op.sem != "" && op.sem != ir.Weak }

// bytes returns the memory of one lane's access: op.size bytes at addr. It checks bounds and alignment, asks the monitor, and
// ends the launch by a fault if something is wrong. undef is as in [monitor.access], which gives the result of the same name.
func (w *warp) bytes(lane int, op *memOp, addr uint64, undef uint32) ([]byte, uint32) {
	s, off := w.locate(lane, op, addr)
	if s == nil || off > uint64(len(s.data)) || off+uint64(op.size) > uint64(len(s.data)) {
		return w.refused(OutOfBounds, lane, op, addr, w.outside(op, addr, s))
	}
	align := uint64(op.align)
	if align == 0 {
		align = uint64(op.size)
	}
	if addr&(align-1) != 0 {
		return w.refused(Misaligned, lane, op, addr, fmt.Sprintf("%d bytes have to lie at a multiple of %d", op.size, align))
	}
	if s.readOnly && op.write {
		return w.refused(OutOfBounds, lane, op, addr, s.name+" can only be read")
	}
	if w.mon != nil {
		if w.prog.async {
			w.guard(lane, op, s, int(off))
		}
		undef = w.mon.access(w, lane, op, s, int(off), undef)
	}
	return s.data[off : off+uint64(op.size) : off+uint64(op.size)], undef
}

// refused reports an access that cannot be. Where the launch goes on, the access is to zeros that nothing else sees.
func (w *warp) refused(kind FaultKind, lane int, op *memOp, addr uint64, detail string) ([]byte, uint32) {
	f := w.faultOf(kind, lane, op.space, addr, detail)
	f.Size, f.Write = op.size, op.write
	w.report(f)
	return make([]byte, op.size), 0
}

// locate finds the segment that an access is about and the offset in it, nil if there is none at the address.
func (w *warp) locate(lane int, op *memOp, addr uint64) (*segment, uint64) {
	switch op.space {
	case ir.GlobalSpace, ir.ConstSpace:
		s := w.global(op, addr)
		if s == nil || op.space == ir.ConstSpace && s.space != ir.ConstSpace {
			return nil, 0
		}
		return s, addr - s.base
	case ir.SharedSpace, ir.SharedClusterSpace:
		return w.shared(op.space, addr)
	case ir.LocalSpace:
		return &w.lanes[lane].local, addr
	case ir.ParamSpace:
		if addr < windowSize {
			return w.params(lane, addr)
		}
	}
	switch addr / windowSize * windowSize {
	case sharedWindow:
		return w.shared(ir.SharedClusterSpace, addr-sharedWindow)
	case localWindow:
		return &w.lanes[lane].local, addr - localWindow
	case paramWindow:
		return w.params(lane, addr-paramWindow)
	}
	s := w.global(op, addr)
	if s == nil {
		return nil, 0
	}
	return s, addr - s.base
}

// params is where an address in the .param space lies: in the kernel's parameters, or in a thread's frames.
func (w *warp) params(lane int, addr uint64) (*segment, uint64) {
	if addr >= frameParams {
		return &w.lanes[lane].local, addr - frameParams
	}
	return &w.block.grid.params, addr
}

// global finds the allocation at an address, first where the instruction found its last one.
func (w *warp) global(op *memOp, addr uint64) *segment {
	if s := w.work.cache[op.slot]; s != nil && addr-s.base < uint64(len(s.data)) {
		return s
	}
	s := w.block.grid.gpu.mem.find(addr)
	w.work.cache[op.slot] = s
	return s
}

// shared finds the block's own or another block's shared memory.
func (w *warp) shared(space ir.Space, addr uint64) (*segment, uint64) {
	b := w.block
	if addr < rankSize {
		return &b.shared, addr
	}
	rank := addr>>rankShift - 1
	if rank >= uint64(len(b.cluster.blocks)) || space == ir.SharedSpace && int(rank) != b.rank {
		return nil, 0
	}
	return &b.cluster.blocks[rank].shared, addr & (rankSize - 1)
}

// outside says what lies near an address that an access cannot have.
func (w *warp) outside(op *memOp, addr uint64, s *segment) string {
	if s != nil {
		off := addr - s.base
		if op.space == ir.NoSpace {
			_, off = w.locate(0, op, addr)
		}
		return fmt.Sprintf("%d bytes at offset %d of %s, which has %d bytes", op.size, int64(off), s.name, len(s.data))
	}
	if op.space == ir.SharedSpace || op.space == ir.SharedClusterSpace || addr/windowSize*windowSize == sharedWindow {
		return fmt.Sprintf("%d bytes where no block that the instruction can reach has shared memory", op.size)
	}
	return fmt.Sprintf("%d bytes at %s", op.size, w.block.grid.gpu.mem.describe(addr))
}

// memory is a GPU's global and constant memory. Running kernels look for segments while the host adds and removes others.
type memory struct {
	mu       sync.RWMutex
	segments []*segment // by address
	freed    []*segment // by address, the most recent maxFreed of them, for reports
	next     uint64
}

const maxFreed = 256

// find returns the segment in whose bytes the address lies, or nil.
func (m *memory) find(addr uint64) *segment {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return findIn(m.segments, addr)
}

func findIn(list []*segment, addr uint64) *segment {
	i := sort.Search(len(list), func(i int) bool { return list[i].base > addr }) - 1
	if i >= 0 && addr-list[i].base < uint64(list[i].size) {
		return list[i]
	}
	return nil
}

// at returns the segment that begins at the address, or nil.
func (m *memory) at(base uint64) *segment {
	m.mu.RLock()
	defer m.mu.RUnlock()
	i, ok := slices.BinarySearchFunc(m.segments, base, func(s *segment, base uint64) int { return cmp.Compare(s.base, base) })
	if !ok {
		return nil
	}
	return m.segments[i]
}

// add makes a segment of n bytes. One without a name is an allocation, and named so.
func (m *memory) add(n int, align int, space ir.Space, name string) *segment {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := uint64(max(align, allocAlign))
	base := (m.next + guardZone + a - 1) &^ (a - 1)
	m.next = base + uint64(n)
	if name == "" {
		name = fmt.Sprintf("the allocation at %#x", base)
	}
	s := &segment{base: base, data: make([]byte, n), size: n, space: space, name: name}
	m.segments = append(m.segments, s)
	return s
}

func (m *memory) remove(s *segment) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.Index(m.segments, s)
	m.segments = slices.Delete(m.segments, i, i+1)
	s.freed, s.data = true, nil
	if len(m.freed) == maxFreed {
		m.freed = slices.Delete(m.freed, 0, 1)
	}
	i = sort.Search(len(m.freed), func(i int) bool { return m.freed[i].base > s.base })
	m.freed = slices.Insert(m.freed, i, s)
}

// describe says where an address lies.
func (m *memory) describe(addr uint64) string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if s := findIn(m.freed, addr); s != nil {
		return fmt.Sprintf("offset %d of %s, which has been freed", addr-s.base, s.name)
	}
	if addr < 1<<16 {
		return "a null pointer"
	}
	if s := findIn(m.segments, addr); s != nil {
		return fmt.Sprintf("offset %d of %s", addr-s.base, s.name)
	}
	var best *segment
	var dist uint64
	where := ""
	for _, s := range m.segments {
		d, rel := addr-s.base-uint64(s.size), "past the end of"
		if addr < s.base {
			d, rel = s.base-addr, "before"
		}
		if best == nil || d < dist {
			best, dist, where = s, d, rel
		}
	}
	if best == nil {
		return "an address where nothing is allocated"
	}
	return fmt.Sprintf("%d bytes %s %s of %d bytes", dist, where, best.name, best.size)
}

// generic makes a generic address of one in a space.
func generic(space ir.Space, addr uint64) uint64 {
	switch space {
	case ir.SharedSpace, ir.SharedClusterSpace:
		return addr + sharedWindow
	case ir.LocalSpace:
		return addr + localWindow
	case ir.ParamSpace:
		if addr < windowSize {
			return addr + paramWindow
		}
	}
	return addr
}

// ungeneric makes an address in a space of a generic one.
func ungeneric(space ir.Space, addr uint64) uint64 {
	switch space {
	case ir.SharedSpace, ir.SharedClusterSpace:
		return addr - sharedWindow
	case ir.LocalSpace:
		return addr - localWindow
	case ir.ParamSpace:
		return addr - paramWindow
	}
	return addr
}

// load reads the bits of an element of n bytes, little-endian.
func load(b []byte, n int) uint64 {
	_ = b[n-1]
	v := uint64(0)
	for i := n - 1; i >= 0; i-- {
		v = v<<8 | uint64(b[i])
	}
	return v
}

// store writes the bits of an element of n bytes, little-endian.
func store(b []byte, n int, v uint64) {
	_ = b[n-1]
	for i := range n {
		b[i] = byte(v)
		v >>= 8
	}
}

// byteMask has a bit for each of n bytes from byte i.
func byteMask(i, n int) uint32 { return (1<<n - 1) << i }

// lock excludes other blocks' synchronising accesses to the same memory while blocks run on several goroutines.
func (w *warp) lock(addr uint64) func() {
	l := &w.block.grid.gpu.locks[bits.Reverse64(addr>>4*0x9e3779b97f4a7c15)%uint64(len(w.block.grid.gpu.locks))]
	l.Lock()
	return l.Unlock
}
