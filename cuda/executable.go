package cuda

import (
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/internal/device"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/ptx/tensormap"
)

// executable is a compiled program. It is safe for concurrent use; runs may overlap.
type executable struct {
	dev *Device
	*compiled
}

// compiled is the part of an executable that runs in flight refer to.
type compiled struct {
	d *state
	*plan

	mu       sync.Mutex
	closed   bool
	starting int // calls of Start that use the plan
	runs     int
	graphs   []*replay // idle ones
	made     int       // graphs that there are, idle or not
	missed   []driver.Ptr
	refused  bool // by the driver, which makes no graph of the program

	together *together // of a program with collectives
}

func newExecutable(dev *Device, pl *plan) *executable {
	e := &compiled{d: dev.state, plan: pl, together: newTogether(pl.prog)}
	x := &executable{dev, e}
	e.d.executables.Add(e)
	runtime.AddCleanup(x, func(e *compiled) { e.close() }, e) // a net under a forgotten Close
	return x
}

// Close releases the executable's memory. Runs in flight finish. It is idempotent.
func (x *executable) Close() error {
	x.close()
	return nil
}

func (e *compiled) close() {
	if e.d.life.Hold() != nil {
		return // the device has freed everything, or will
	}
	defer e.d.life.End()
	e.d.executables.Remove(e)
	e.mu.Lock()
	e.closed = true
	if e.starting == 0 {
		e.plan.release()
	}
	e.mu.Unlock()
	e.dropGraphs()
}

// begin holds the plan for a start; end releases it. warm reports that the program has run a few times.
func (e *compiled) begin() (warm bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false, device.Closed("compiled program")
	}
	e.starting++
	e.runs++
	return e.runs > warmUp, nil
}

func (e *compiled) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.starting--; e.closed && e.starting == 0 {
		e.plan.release()
	}
}

// memory is what one run uses.
type memory struct {
	arena        *block
	upload, read *hostBlock
	kept         []*block // by the program's retained outputs; nil for those that are tensors or retained twice
	tensors      []located
	clock        *clock    // nil for a run that is not profiled
	scalars      []float32 // during a start
}

// located is a part of a block.
type located struct {
	block  *block
	offset uint64
}

func (s located) retain() located {
	s.block.retain()
	return s
}

func (s located) release() { s.block.release() }

func (s located) ptr() driver.Ptr { return s.block.ptr + driver.Ptr(s.offset) }

// acquire reserves the memory of a run; the caller has entered the context.
func (e *compiled) acquire() (*memory, error) {
	m := &memory{kept: make([]*block, len(e.prog.Keep))}
	err := func() (err error) {
		if e.arena > 0 {
			if m.arena, err = e.d.pool.get(e.arena); err != nil {
				return err
			}
		}
		for i, s := range e.prog.Keep {
			if at := e.layout.Values[s]; at.Kind == device.InRetained && at.Index == i {
				if m.kept[i], err = e.d.pool.get(max(e.bytes(s), 1)); err != nil {
					return fmt.Errorf("result of shape %v: %w", e.prog.Values[s].Shape, err)
				}
			}
		}
		if e.upload > 0 {
			if m.upload, err = e.d.host.get(e.upload); err != nil {
				return err
			}
		}
		if e.read > 0 {
			m.read, err = e.d.host.get(e.read)
		}
		return err
	}()
	if err != nil {
		m.release()
		return nil, err
	}
	return m, nil
}

// release gives the memory of the device back, for work that the default stream does later, and that of the host, which must
// not be in use any more.
func (m *memory) release() {
	m.releaseDevice()
	for _, h := range []*hostBlock{m.upload, m.read} {
		if h != nil {
			h.release()
		}
	}
	m.upload, m.read = nil, nil
}

func (m *memory) releaseDevice() {
	if m.arena != nil {
		m.arena.release()
	}
	for _, b := range m.kept {
		if b != nil {
			b.release()
		}
	}
	for _, t := range m.tensors {
		t.block.release()
	}
	m.arena, m.kept, m.tensors = nil, nil, nil
}

// where is the part of a block that a value has.
func (e *compiled) where(m *memory, s program.Slot) located {
	return m.at(e.layout.Values[s])
}

func (m *memory) at(a device.Allocation) located {
	s := located{block: m.arena}
	switch a.Kind {
	case device.InTensor:
		s = m.tensors[a.Index]
	case device.InRetained:
		s.block = m.kept[a.Index]
	}
	s.offset += uint64(a.Offset)
	return s
}

func (m *memory) address(a device.Allocation) driver.Ptr { return m.at(a).ptr() }

// bindTensors takes hold of the tensors of a run.
func (e *compiled) bindTensors(m *memory, io *program.IO) error {
	for i := range e.prog.Tensor {
		b, err := io.Tensors[i].(*Tensor).acquire()
		if err != nil {
			return fmt.Errorf("tensor %d: %w", i, err)
		}
		m.tensors = append(m.tensors, b)
	}
	return nil
}

// fillUpload copies the inputs to the staging memory.
func (e *compiled) fillUpload(m *memory, io *program.IO) {
	if m.scalars = io.Scalars; m.scalars == nil {
		m.scalars = e.plan.scalars
	}
	e.fillWords(m, m.scalars)
	for i := range e.prog.Host {
		if data := program.Bytes(io.Host[i]); len(data) > 0 && !e.large[i] {
			copyHost(m.upload.bytes()[e.uploadAt[i]:], data)
		}
	}
}

// stage brings the large inputs to the device, ahead of the program on the default stream. The caller has entered the context.
func (e *compiled) stage(m *memory, io *program.IO) error {
	for i, v := range e.prog.Host {
		if !e.large[i] {
			continue
		}
		if err := e.d.stager.upload(e.where(m, v).ptr(), program.Bytes(io.Host[i]), e.d.defaultStream.handle); err != nil {
			return fmt.Errorf("input %d: %w", i, err)
		}
	}
	return nil
}

// enqueue gives the whole program to a stream, which captures it if there is a graph to make. The caller has entered the context
// and holds the device's submit lock, which guards the parameter blocks of the plan.
func (e *compiled) enqueue(m *memory, s driver.Stream, graph *replay) error {
	d := e.d
	if e.inputs > 0 {
		r := d.drv.MemcpyHtoDAsync(m.arena.ptr, m.upload.pointer(0), e.inputs, s)
		if err := d.check("cuMemcpyHtoDAsync", r); err != nil {
			return err
		}
	}
	for i, v := range e.prog.Host {
		if n := e.bytes(v); e.layout.Values[v].Kind != device.InArena && n > 0 && !e.large[i] {
			r := d.drv.MemcpyHtoDAsync(e.where(m, v).ptr(), m.upload.pointer(e.uploadAt[i]), n, s)
			if err := d.check("cuMemcpyHtoDAsync", r); err != nil {
				return err
			}
		}
	}
	var t transit
	defer func() { t.release(d) }()
	for i := range e.actions {
		if err := m.clock.reach(e, i, s); err != nil {
			return err
		}
		a := &e.actions[i]
		err := t.join(d, a.join, s)
		switch {
		case err != nil:
		case a.kind == transferring:
			err = t.give(e, m, a, s)
		default:
			err = e.act(m, a, s, graph != nil)
		}
		if err == nil && m.clock != nil { // steps are measured one after the other
			err = t.join(d, len(t.ends), s)
		}
		if err != nil {
			return err
		}
		if graph != nil {
			if err := e.note(graph, i, s); err != nil {
				return err
			}
		}
	}
	if err := t.join(d, len(t.ends), s); err != nil {
		return err
	}
	if err := m.clock.reach(e, len(e.actions), s); err != nil {
		return err
	}
	for i, v := range e.prog.Read {
		if n := e.bytes(v); n > 0 {
			r := d.drv.MemcpyDtoHAsync(m.read.pointer(e.readAt[i]), e.where(m, v).ptr(), n, s)
			if err := d.check("cuMemcpyDtoHAsync", r); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *compiled) act(m *memory, a *action, s driver.Stream, capturing bool) error {
	d := e.d
	switch a.kind {
	case uploading:
		return d.check("cuMemcpyHtoDAsync", d.drv.MemcpyHtoDAsync(m.address(a.to), m.upload.pointer(a.staged), 4, s))
	case copying:
		return d.check("cuMemcpyDtoDAsync", d.drv.MemcpyDtoDAsync(m.address(a.to), m.address(a.from), a.n, s))
	case filling:
		a.vary(m.scalars)
		return d.check("cuMemsetD32Async", d.drv.MemsetD32Async(m.address(a.to), a.word, a.n, s))
	}
	if err := e.patch(m, a); err != nil {
		return err
	}
	return d.launched(a.name, &a.launch, s, d.drv.LaunchKernel(a.function, &a.launch, s), capturing)
}

// patch puts the addresses of a run into a launch, and its scalars.
func (e *compiled) patch(m *memory, a *action) error {
	a.vary(m.scalars)
	for _, q := range a.patches {
		putAddress(a.launch.Params[q.at:], m.address(q.to))
	}
	for i := range a.maps {
		t := &a.maps[i]
		at := uint64(m.address(t.to))
		if t.Address == at {
			continue
		}
		t.Address = at
		if r := e.d.drv.TensorMapEncode(a.launch.Params[t.at:t.at+tensormap.Size], &t.Map); r != driver.Success {
			t.Address = 0
			return e.d.check(encoder(&t.Map), r)
		}
	}
	return nil
}

// transfers counts the actions that are collectives.
func (pl *plan) transfers() (n int) {
	for i := range pl.actions {
		if pl.actions[i].kind == transferring {
			n++
		}
	}
	return n
}

// launches counts the kernels of the program.
func (e *compiled) launches() (n int) {
	for i := range e.actions {
		if e.actions[i].kind == launching {
			n++
		}
	}
	return n
}

// Launches lists the launches, copies and fills of each step; see [program.Executable].
func (x *executable) Launches() [][]program.Launch {
	steps, at := make([][]program.Launch, len(x.ends)), 0
	for i, end := range x.ends {
		for ; at < end; at++ {
			l := program.Launch{Kernel: "copy"}
			switch a := &x.actions[at]; a.kind {
			case launching:
				l = program.Launch{Kernel: a.name, Grid: a.launch.Grid, Block: a.launch.Block}
			case filling:
				l.Kernel = "fill"
			case transferring:
				l.Kernel = a.name
			}
			steps[i] = append(steps[i], l)
		}
	}
	return steps
}

// deliver copies the results to the caller.
func (e *compiled) deliver(read *hostBlock, dst []any) {
	for i := range e.prog.Read {
		if to := program.Bytes(dst[i]); len(to) > 0 {
			copyHost(to, read.bytes()[e.readAt[i]:])
		}
	}
}

// keep makes the tensors of the retained outputs, nil if there are none.
func (e *compiled) keep(m *memory, dev *Device) (all []compute.Tensor) {
	for _, s := range e.prog.Keep {
		all = append(all, newTensor(dev, e.prog.Values[s].Type, e.where(m, s).retain()))
	}
	return all
}

func putAddress(to []byte, p driver.Ptr) {
	_ = to[7]
	for i := range 8 {
		to[i] = byte(p >> (8 * i))
	}
}

// snapshot is the addresses of the tensors of a run.
func snapshot(m *memory) []driver.Ptr {
	var all []driver.Ptr
	for _, t := range m.tensors {
		all = append(all, t.ptr())
	}
	return all
}

func sameTensors(a []driver.Ptr, m *memory) bool {
	return slices.EqualFunc(a, m.tensors, func(p driver.Ptr, t located) bool { return p == t.ptr() })
}
