package cuda

import (
	"context"
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/internal/device"
	"github.com/wavelane/wavelane/internal/lowering"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/ptx/tensormap"
)

// plan is a program made ready for this device: everything that does not depend on the data of a run.
type plan struct {
	prog    *program.Program
	layout  *device.Layout
	modules []*Module // of users' kernels and those made on demand, retained
	actions []action
	ends    []int // how many actions there are after each step
	now     bool  // it is made of modules that have been loaded before

	scalars  []float32 // of a run that is given none, see program.IO.Scalars
	fixed    bool      // it makes no graph, because that could not be given the scalars of a run
	arena    uint64    // bytes of the memory of a run
	inputs   uint64    // bytes at its beginning that one copy fills
	large    []bool    // by host value: it is copied in pieces, and is not in the staging memory
	uploadAt []uint64  // where each other host value lies in the staging memory; below inputs those that the one copy brings
	upload   uint64    // bytes of that
	readAt   []uint64  // where each result lies in its staging memory
	read     uint64
}

// largeInput is the largest number of bytes of pinned memory that an input may hold until its run is done. Larger inputs are
// copied through the stager, and starting a run takes as long as the copy while the device is not busy with something else.
const largeInput = 64 << 20

// action is a launch, a copy or a fill.
type action struct {
	kind     actionKind
	name     string // of the kernel
	function driver.Function
	launch   driver.Launch
	patches  []patch // addresses in launch.Params
	maps     []mapPatch
	scalars  []lowering.ScalarWord // in the parameter block, or the word of a fill
	staged   uint64                // where the staging memory has the word to upload
	from, to device.Allocation
	n        uint64 // bytes of a copy, words of a fill
	word     uint32

	transfers []transferred // more than one are messages
	join      int           // how many actions that are collectives must be done before
}

type actionKind uint8

const (
	launching actionKind = iota
	copying
	filling
	uploading    // a word
	transferring // by another library
)

// patch is an address in a parameter block.
type patch struct {
	at int
	to device.Allocation
}

// mapPatch is a tensor map in a parameter block. Its Address is the one that is encoded there; 0 at first.
type mapPatch struct {
	patch
	tensormap.Map
}

type sealed = program.Sealed

// executor is a device as batches see it.
type executor struct{ *Device }

// Compile validates a program and prepares it: code and memory plan. Errors wrap compute.ErrUnsupported, compute.ErrTooLarge,
// compute.ErrForeignTensor (a kernel of another device), compute.ErrClosed or compute.ErrDeviceLost.
func (d executor) Compile(ctx context.Context, p *program.Program) (program.Executable, error) {
	if ctx == program.Now {
		return d.compile(p, true)
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
			return nil, err
		}
	}
	choices := d.tuner.Compilation()
	pl, err := d.plan(p, choices.Choose, now)
	if forced := choices.Err(); forced != nil {
		if err == nil {
			pl.release()
		}
		return nil, forced
	}
	if err != nil {
		return nil, err
	}
	choices.Count()
	return newExecutable(d.Device, pl), nil
}

// plan prepares a program, with choose deciding between variants of kernels. Now is whether it must not wait for modules.
func (d *state) plan(p *program.Program, choose lowering.Chooser, now bool) (*plan, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	pl := &plan{prog: p, layout: device.NewLayout(p), scalars: p.Recorded(), now: now}
	steps, kernels, err := d.lowerAll(pl, choose)
	if err != nil {
		return nil, err
	}
	for _, k := range kernels {
		pl.modules = append(pl.modules, k.module)
	}
	var before []int // by step, collectives
	var until map[int]int
	if p.Streams {
		before, until = joins(p, pl.layout)
	}
	if err := pl.allocate(steps, d.large, until); err != nil {
		pl.release()
		return nil, err
	}
	given := make([]int, 0, len(until)) // by collective, the actions of collectives with it
	for i := range p.Steps {
		s := &p.Steps[i]
		from := len(pl.actions)
		if err := d.addStep(pl, i, steps[i], kernels, choose); err != nil {
			pl.release()
			return nil, fmt.Errorf("%s %v: %w", s.Name(), p.Types(s.In), err)
		}
		pl.ends = append(pl.ends, len(pl.actions))
		if before != nil && before[i] > 0 {
			for k := range pl.actions[from:] {
				pl.actions[from+k].join = given[before[i]-1]
			}
		}
		if s.Collective() != nil {
			given = append(given, pl.transfers())
		}
	}
	pl.stageWords()
	return pl, nil
}

// lowerAll returns the code of all steps and, by name, its kernels that were made on demand; the caller releases their
// modules.
func (d *state) lowerAll(pl *plan, choose lowering.Chooser) ([]kit.Lowering, map[string]*Kernel, error) {
	p := pl.prog
	steps, wanted := make([]kit.Lowering, len(p.Steps)), map[string]*kit.Kernel{}
	for i := range p.Steps {
		if pl.layout.View(i) {
			continue
		}
		var err error
		if steps[i], err = d.lower(p, &p.Steps[i], choose); err != nil {
			return nil, nil, err
		}
		for _, a := range steps[i].Actions {
			if a.Launch != nil && a.Launch.Kernel.Family == "" {
				wanted[a.Launch.Kernel.Name] = a.Launch.Kernel
			}
		}
	}
	kernels, err := d.loader.madeKernels(wanted, pl.now)
	return steps, kernels, err
}

// release lets go of the modules.
func (pl *plan) release() {
	for _, m := range pl.modules {
		m.release()
	}
	pl.modules = nil
}

// lower returns the code of a step of the catalogue; a user's kernel has its code already.
func (d *state) lower(p *program.Program, s *program.Step, choose lowering.Chooser) (kit.Lowering, error) {
	if s.Kernel != nil {
		return kit.Lowering{}, nil
	}
	return ptxkernels.Lower(s, p.Types(s.In), p.Types(s.Out), &d.caps, choose)
}

// addStep appends the actions of a step, but no copy of memory to itself.
func (d *state) addStep(pl *plan, step int, l kit.Lowering, made map[string]*Kernel, choose lowering.Chooser) error {
	p, s := pl.prog, &pl.prog.Steps[step]
	if c := s.Collective(); c != nil {
		if !p.Streams {
			return errStreams(s)
		}
		pl.addCollective(step)
		return nil
	}
	if s.Kernel != nil {
		a, err := d.custom(pl, p, s)
		if err != nil {
			return err
		}
		pl.actions = append(pl.actions, a)
		return nil
	}
	locate := func(b kit.Buffer) device.Allocation {
		at := device.Allocation{}
		switch b.Role {
		case lowering.Operand:
			at = pl.layout.Values[s.In[b.Index]]
		case lowering.Result:
			at = pl.layout.Values[s.Out[b.Index]]
		default:
			at.Offset = pl.layout.Scratch[step][b.Index]
		}
		return at.Plus(b.Offset)
	}
	for k := range s.Entry.Updates {
		from, to := pl.layout.Values[s.In[k]], pl.layout.Values[s.Out[k]]
		if n := p.Values[s.In[k]].Bytes(); n > 0 && from != to {
			pl.actions = append(pl.actions, action{kind: copying, from: from, to: to, n: uint64(n)})
		}
	}
	actions := make([]action, 0, len(l.Actions))
	for _, x := range l.Actions {
		var a action
		switch {
		case x.Launch != nil:
			k := x.Launch.Kernel
			f := made[k.Name]
			if k.Family != "" {
				var err error
				if f, err = d.catalogueKernel(k, pl.now); err != nil {
					return err
				}
			}
			a = action{kind: launching, name: k.Name, function: f.function, launch: driver.Launch{Grid: x.Launch.Grid, Shared: uint32(k.Shared),
				Block: [3]uint32{uint32(k.Block[0]), uint32(k.Block[1]), uint32(k.Block[2])}, Params: x.Launch.Params, Offsets: f.layout.Offsets()}}
			for _, t := range x.Launch.Maps {
				a.maps = append(a.maps, mapPatch{patch{t.At, locate(t.Buffer)}, t.Map})
			}
			for _, q := range x.Launch.Pointers {
				a.patches = append(a.patches, patch{q.At, locate(q.Buffer)})
			}
		case x.Copy != nil:
			a = action{kind: copying, from: locate(x.Copy.From), to: locate(x.Copy.To), n: uint64(x.Copy.From.Size)}
		default:
			a = action{kind: filling, to: locate(x.Fill.To), n: uint64(x.Fill.To.Size / 4), word: x.Fill.Word}
		}
		actions = append(actions, a)
	}
	scalars, err := lowering.FindScalars(s, l, func(s *program.Step) (kit.Lowering, error) { return d.lower(p, s, choose) })
	if err != nil {
		return err
	}
	for i := range scalars {
		actions[i].scalars = scalars[i]
	}
	for _, a := range actions {
		if a.kind != copying || a.from != a.to {
			pl.actions = append(pl.actions, a)
		}
	}
	return nil
}

// custom is the launch of a user's kernel.
func (d *state) custom(pl *plan, p *program.Program, s *program.Step) (action, error) {
	k, ok := s.Kernel.(*Kernel)
	if !ok || k.module.d != d {
		return action{}, fmt.Errorf("kernel %s: %w", s.Kernel.Name(), compute.ErrForeignTensor)
	}
	in, out := p.Types(s.In), p.Values[s.Out[0]].Type
	if err := k.check(in, out, s.Attr); err != nil {
		return action{}, err
	}
	l := s.Attr.Options.(Launch)
	a := action{kind: launching, name: k.name, function: k.function}
	if err := k.prepare(d, &l, &a.launch); err != nil {
		return a, err
	}
	pl.modules = append(pl.modules, k.module) // which prepare has retained
	a.launch.Params = make([]byte, k.layout.Size())
	for i, arg := range l.Args {
		slot, isSlot := arg.Slot()
		if !isSlot {
			if err := k.layout.Put(a.launch.Params, i, arg); err != nil {
				return a, fmt.Errorf("kernel %s: %w", k.name, err)
			}
			continue
		}
		value := s.Out[0]
		if slot != resultSlot {
			value = s.In[slot]
		}
		a.patches = append(a.patches, patch{k.layout.Param(i).Offset, pl.layout.Values[value]})
	}
	return a, nil
}

// check validates a call of the kernel as a step of a program, where a.Options is a [Launch].
func (k *Kernel) check(in []program.Type, out program.Type, a program.Attr) error {
	l, ok := a.Options.(Launch)
	switch {
	case !ok:
		return fmt.Errorf("kernel %s: options are %T, must be cuda.Launch: %w", k.name, a.Options, compute.ErrArgument)
	case len(a.Scalars) != 0:
		return fmt.Errorf("kernel %s: takes no scalars, use Launch.Args: %w", k.name, compute.ErrArgument)
	case len(l.Args) != k.layout.Len():
		return fmt.Errorf("kernel %s %v: %d parameters, Launch.Args has %d: %w", k.name, in, k.layout.Len(), len(l.Args),
			compute.ErrArgument)
	}
	used := make([]bool, len(in))
	results := 0
	for i, arg := range l.Args {
		slot, isSlot := arg.Slot()
		switch {
		case !isSlot:
			continue
		case slot == resultSlot:
			results++
		case slot < 0:
			return fmt.Errorf("kernel %s %v: argument %d is an operand below 0: %w", k.name, in, i, compute.ErrArgument)
		case slot >= len(in):
			return fmt.Errorf("kernel %s %v: argument %d is operand %d of %d: %w", k.name, in, i, slot, len(in), compute.ErrArgument)
		default:
			used[slot] = true
		}
		if p := k.layout.Param(i); p.Size != 8 || !p.Scalar {
			return fmt.Errorf("kernel %s %v: argument %d is an address, the parameter %s is a .%s of %d bytes: %w", k.name, in, i, p.Name,
				p.Type, p.Size, compute.ErrArgument)
		}
	}
	for i := range used {
		if !used[i] {
			return fmt.Errorf("kernel %s %v: no argument is operand %d: %w", k.name, in, i, compute.ErrArgument)
		}
	}
	if results != 1 {
		return fmt.Errorf("kernel %s %v: %d arguments are the result: %w", k.name, in, results, compute.ErrArgument)
	}
	return nil
}

// Fuses reports whether the device computes a step with expressions in one kernel; see program.Executor.
func (d executor) Fuses(s *program.Step, in, out []program.Type) bool {
	return ptxkernels.Fuses(s, in, out, &d.caps, d.tuner.Choose)
}
