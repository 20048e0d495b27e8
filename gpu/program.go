package gpu

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/device"
	"github.com/wavelane/wavelane/internal/lowering"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/wgslkernels"
	"github.com/wavelane/wavelane/wgsl"
)

// plan is a program made ready for this device: everything that does not depend on the data of a run.
type plan struct {
	prog    *program.Program
	layout  *device.Layout
	actions []action
	ends    []int // how many actions there are after each step
	now     bool  // it is made of what has been compiled before

	// The uniform arena has a slot of uniformSlot bytes for each distinct parameter block, then one for each block with run-time
	// scalars.
	arena    int // its allocation
	uniform  []byte
	varying  int    // where those begin
	own      []byte // they
	variable []variable
	scalars  []float32 // of a run that is given none, see program.IO.Scalars

	dispatches uint64
	piece      uint64 // dispatches in a command buffer

	// Memory. Places are buffers of a run: blocks that values and scratch memory share, those of tensors and retained outputs, the arena.
	sizes  []uint64 // bytes of each allocation, if it is stable
	stable []bool   // the same buffer in every run of an instance, as opposed to tensors and retained outputs

	uploads, reads packing // of the host values and of the results
}

// action is a dispatch, or a copy if pipeline is nil.
type action struct {
	pipeline *pipeline
	kernel   *wgsl.Kernel
	bind     []region // of a copy: from, to
	dynamic  uint32
	grid     [3]uint32
	volatile bool // some allocation is not stable
	varies   bool // its parameters are among those that vary
}

// region is a part of an allocation.
type region struct {
	allocation   int
	offset, size uint64
}

// uniformSlot is the size of one parameter block: every WebGPU implementation allows dynamic offsets at its multiples.
const uniformSlot = 256

type sealed = program.Sealed

// executor is a device as batches see it.
type executor struct{ *Device }

// Compile validates a program and prepares it: code, pipelines and memory plan. Errors wrap compute.ErrUnsupported,
// compute.ErrTooLarge, compute.ErrForeignTensor (a kernel of another device), compute.ErrClosed or compute.ErrDeviceLost.
func (d executor) Compile(ctx context.Context, p *program.Program) (program.Executable, error) {
	if ctx == program.Now {
		return d.compile(p, compilerWaits)
	}
	return program.Within(ctx, func() (program.Executable, error) { return d.compile(p, false) }, func(x program.Executable) { x.Close() })
}

// compile is Compile without a context. Where it must not wait it fails with program.ErrLater instead.
func (d executor) compile(p *program.Program, now bool) (program.Executable, error) {
	if err := d.life.Begin(); err != nil {
		return nil, err
	}
	defer d.life.End()
	if d.tuner.FirstUse() {
		if now {
			return nil, program.ErrLater
		}
		if _, err := d.variants().Measure(context.Background(), p, false); err != nil {
			return nil, d.failed(err)
		}
	}
	choices := d.tuner.Compilation()
	pl, err := d.plan(p, choices.Choose, now)
	if err := cmp.Or(choices.Err(), err); err != nil {
		return nil, d.failed(err)
	}
	choices.Count()
	return newExecutable(d.Device, pl), nil
}

// plan prepares a program, with choose deciding between variants of kernels. Now is whether it must not wait for pipelines.
func (d *core) plan(p *program.Program, choose lowering.Chooser, now bool) (*plan, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	pl := &plan{prog: p, layout: device.NewLayout(p), scalars: p.Recorded(), now: now}
	lowerings := make([]wgslkernels.Lowering, len(p.Steps))
	for i := range p.Steps {
		if pl.layout.View(i) {
			continue
		}
		var err error
		if lowerings[i], err = d.lower(p, &p.Steps[i], choose); err != nil {
			return nil, err
		}
	}
	if err := d.allocate(pl, lowerings); err != nil {
		return nil, err
	}
	uniforms := map[string]uint32{}
	for i := range p.Steps {
		s := &p.Steps[i]
		scalars, err := lowering.FindScalars(s, lowerings[i], func(s *program.Step) (wgslkernels.Lowering, error) { return d.lower(p, s, choose) })
		if err == nil {
			err = d.addStep(pl, i, lowerings[i], uniforms, scalars)
		}
		if err != nil {
			return nil, fmt.Errorf("%s %v: %w", s.Name(), p.Types(s.In), err)
		}
		pl.ends = append(pl.ends, len(pl.actions))
	}
	pl.addArena()
	pl.piece = pieces(pl.dispatches, d.threshold)
	for _, s := range p.Host {
		pl.uploads.add(uint64(p.Values[s].Bytes()), d.caps().MaxBuffer)
	}
	for _, s := range p.Read {
		pl.reads.add(uint64(p.Values[s].Bytes()), d.caps().MaxBuffer)
	}
	return pl, nil
}

// pieces returns how many dispatches each command buffer has of a program that is cut into equal ones of a limited size.
func pieces(dispatches, threshold uint64) uint64 {
	n := max(1, (dispatches+threshold-1)/threshold)
	return max(1, (dispatches+n-1)/n)
}

// packing lays out data in staging buffers, of which more than one is needed only for data beyond the largest buffer.
type packing struct {
	at    []placement
	sizes []uint64 // of the staging buffers
}

type placement struct {
	buffer int
	offset uint64
}

func (k *packing) add(n, maxBuffer uint64) {
	const stagingAlign = 16
	n = (n + stagingAlign - 1) &^ (stagingAlign - 1)
	last := len(k.sizes) - 1
	if last < 0 || k.sizes[last]+n > maxBuffer {
		k.sizes = append(k.sizes, 0)
		last++
	}
	k.at = append(k.at, placement{last, k.sizes[last]})
	k.sizes[last] += n
}

// lower returns the code of a step: of the user's kernel, or of the catalogue's.
func (d *core) lower(p *program.Program, s *program.Step, choose lowering.Chooser) (wgslkernels.Lowering, error) {
	in, out := p.Types(s.In), p.Types(s.Out)
	if s.Kernel == nil {
		return d.lowerStep(s, in, out, d.caps(), choose)
	}
	k, ok := s.Kernel.(*Kernel)
	if !ok || k.dev.core != d {
		return wgslkernels.Lowering{}, fmt.Errorf("kernel %s: %w", s.Kernel.Name(), compute.ErrForeignTensor)
	}
	if err := k.check(in, out[0], s.Attr); err != nil {
		return wgslkernels.Lowering{}, err
	}
	return k.lower(len(in), s.Attr.Options.(Launch)), nil
}

// addStep appends the actions of a step after checking them against the device's limits: the library must not fail later,
// because some of its failures end the process.
func (d *core) addStep(pl *plan, step int, l wgslkernels.Lowering, uniforms map[string]uint32, scalars [][]lowering.ScalarWord) error {
	s := &pl.prog.Steps[step]
	locate := func(b lowering.Buffer) (region, error) {
		r, size := region{offset: uint64(b.Offset), size: uint64(b.Size)}, uint64(0) // the allocation may be larger than what it is used for
		value := func(v program.Slot) { r.allocation, size = pl.allocation(v), pl.bytes(v) }
		switch {
		case b.Role == lowering.Operand && b.Index < len(s.In):
			value(s.In[b.Index])
		case b.Role == lowering.Result && b.Index < len(s.Out):
			value(s.Out[b.Index])
		case b.Role == lowering.Scratch && b.Index < len(l.Scratch):
			r.allocation, size = pl.layout.Scratch[step][b.Index], uint64(l.Scratch[b.Index])
		default:
			return region{}, fmt.Errorf("internal error: no buffer %+v", b)
		}
		if r.size == 0 && r.offset < size {
			r.size = size - r.offset
		}
		if r.size == 0 || r.offset > size || r.size > size-r.offset {
			return region{}, fmt.Errorf("internal error: %+v lies outside its %d bytes", b, size)
		}
		return r, nil
	}
	for k := range s.Entry.Updates {
		from, to := pl.allocation(s.In[k]), pl.allocation(s.Out[k])
		if n := pl.bytes(s.Out[k]); from != to {
			pl.actions = append(pl.actions, action{bind: []region{{from, 0, n}, {to, 0, n}},
				volatile: !pl.stable[from] || !pl.stable[to]})
		}
	}
	for i, x := range l.Actions {
		var a action
		var bind []lowering.Buffer
		if x.Launch != nil {
			bind = x.Launch.Bind
		} else {
			bind = []lowering.Buffer{x.Copy.From, x.Copy.To}
		}
		for _, b := range bind {
			r, err := locate(b)
			if err != nil {
				return err
			}
			a.bind = append(a.bind, r)
			a.volatile = a.volatile || !pl.stable[r.allocation]
		}
		if x.Launch == nil {
			if err := checkCopy(a.bind[0], a.bind[1]); err != nil {
				return err
			}
			pl.actions = append(pl.actions, a)
			continue
		}
		if grid := x.Launch.Grid; grid[0] == 0 || grid[1] == 0 || grid[2] == 0 {
			continue // nothing to do, which is legal
		}
		if err := d.checkDispatch(x.Launch, a.bind); err != nil {
			return err
		}
		p, err := d.pipelines.get(x.Launch.Kernel, pl.now)
		if err != nil {
			return err
		}
		a.pipeline, a.kernel, a.grid = p, x.Launch.Kernel, x.Launch.Grid
		pl.dispatches++
		if a.kernel.Uniform > 0 {
			if scalars != nil && scalars[i] != nil {
				pl.ownParams(&a, x.Launch.Params, scalars[i])
			} else {
				a.dynamic = pl.params(x.Launch.Params, uniforms)
			}
		}
		pl.actions = append(pl.actions, a)
	}
	return nil
}

// block is parameters in their slot.
func block(words []uint32) (slot [uniformSlot]byte) {
	for i, w := range words {
		binary.LittleEndian.PutUint32(slot[4*i:], w)
	}
	return slot
}

// params returns the offset of a parameter block in the uniform arena.
func (pl *plan) params(words []uint32, known map[string]uint32) uint32 {
	slot := block(words)
	key := string(slot[:])
	at, ok := known[key]
	if !ok {
		at = uint32(len(pl.uniform))
		known[key] = at
		pl.uniform = append(pl.uniform, slot[:]...)
	}
	return at
}

func checkCopy(from, to region) error {
	switch {
	case from.size != to.size || from.size%4 != 0 || from.offset%4 != 0 || to.offset%4 != 0:
		return fmt.Errorf("internal error: copy %+v to %+v", from, to)
	case from.allocation == to.allocation:
		return fmt.Errorf("internal error: copy within a buffer")
	}
	return nil
}

func (d *core) checkDispatch(x *wgslkernels.Dispatch, bind []region) error {
	k, l := x.Kernel, d.caps()
	if err := checkKernel(k, l); err != nil {
		return err
	}
	if len(bind) != len(k.Bindings) {
		return fmt.Errorf("kernel %s has %d bindings, got %d: %w", k.Key, len(k.Bindings), len(bind), compute.ErrArgument)
	}
	if 4*len(x.Params) > k.Uniform {
		return fmt.Errorf("kernel %s has a uniform of %d bytes, got %d parameters: %w", k.Key, k.Uniform, len(x.Params),
			compute.ErrArgument)
	}
	for _, n := range x.Grid {
		if n > l.MaxWorkgroups {
			return fmt.Errorf("kernel %s: grid %v, the device allows %d workgroups along an axis: %w", k.Key, x.Grid,
				l.MaxWorkgroups, compute.ErrTooLarge)
		}
	}
	for i, r := range bind {
		switch {
		case r.size > l.MaxBinding:
			return fmt.Errorf("kernel %s: binding %d of %d bytes, the device allows %d: %w", k.Key, i, r.size, l.MaxBinding,
				compute.ErrTooLarge)
		case r.offset%uint64(l.StorageAlign) != 0 || r.size%4 != 0:
			return fmt.Errorf("internal error: kernel %s: binding %d is not aligned: %+v", k.Key, i, r)
		}
		for j, q := range bind[:i] {
			if q.allocation == r.allocation && (k.Bindings[i] == wgsl.ReadWrite || k.Bindings[j] == wgsl.ReadWrite) {
				return fmt.Errorf("internal error: kernel %s: bindings %d and %d share a buffer that one writes", k.Key, j, i)
			}
		}
	}
	return nil
}

// checkKernel validates a kernel's declaration against the device's limits.
func checkKernel(k *wgsl.Kernel, l *wgsl.Caps) error {
	size := k.Workgroup
	threads := uint64(size[0]) * uint64(size[1]) * uint64(size[2])
	switch {
	case len(k.Bindings) > int(l.MaxStorageBuffers):
		return fmt.Errorf("kernel %s: %d storage buffers, the device allows %d: %w", k.Key, len(k.Bindings), l.MaxStorageBuffers,
			compute.ErrTooLarge)
	case k.Uniform < 0 || k.Uniform > uniformSlot || k.Uniform%16 != 0:
		return fmt.Errorf("kernel %s: uniform of %d bytes, must be a multiple of 16 up to %d: %w", k.Key, k.Uniform, uniformSlot,
			compute.ErrArgument)
	case threads == 0:
		return fmt.Errorf("kernel %s: workgroup %v is empty: %w", k.Key, size, compute.ErrArgument)
	case size[0] > l.MaxWorkgroupSize[0] || size[1] > l.MaxWorkgroupSize[1] || size[2] > l.MaxWorkgroupSize[2] ||
		threads > uint64(l.MaxInvocations):
		return fmt.Errorf("kernel %s: workgroup %v, the device allows %v and %d threads: %w", k.Key, size, l.MaxWorkgroupSize,
			l.MaxInvocations, compute.ErrTooLarge)
	case k.Shared < 0 || uint64(k.Shared) > uint64(l.MaxShared):
		return fmt.Errorf("kernel %s: %d bytes of workgroup memory, the device allows %d: %w", k.Key, k.Shared, l.MaxShared,
			compute.ErrTooLarge)
	}
	return nil
}

// Fuses reports whether the device runs a step that is an expression, or has a prologue or epilogue, as one step: see [program.Executor].
func (d executor) Fuses(s *program.Step, in, out []program.Type) bool {
	return wgslkernels.Fuses(s, in, out, d.caps(), d.tuner.Choose)
}
