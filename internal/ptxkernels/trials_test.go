package ptxkernels

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"reflect"
	"slices"
	"sync"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/conformance"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kerneltest"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/sim"
)

// trial is a case of the suite as a lowering that launches a kernel.
type trial struct {
	conformance.Case
	caps    kit.Caps
	variant int      // of those that the lowering offers
	extra   bool     // one of coverageCases
	blocks  int      // of the kernel's largest launch
	params  []uint32 // words of the kernel's launches: grid and parameters
	cost    int      // about the threads and elements that executing it takes
	example *example // in place of the case; nil if there is none
	expect  func() error
}

// Run is that of the case or the example.
func (t trial) Run(dev program.Executor) error {
	if t.example == nil {
		return t.Case.Run(dev)
	}
	if err := t.expect(); err != nil {
		return err
	}
	return t.example.Run(dev)
}

// trialsOf are the calls of the suite that launch each kernel, the cheapest first: in all variants, on GPUs large and small.
// What an entry lacks is an error beside them.
var trialsOf = sync.OnceValues(func() (trials map[*kit.Kernel][]trial, err error) {
	trials = map[*kit.Kernel][]trial{}
	add := func(t trial, l kit.Lowering, of func(k *kit.Kernel) bool) {
		blocks, params := map[*kit.Kernel]int{}, map[*kit.Kernel][]uint32{}
		for _, a := range l.Actions {
			if a.Launch != nil {
				g := a.Launch.Grid
				n := int(g[0]) * int(g[1]) * int(g[2])
				t.cost += n * threads(a.Launch.Kernel)
				blocks[a.Launch.Kernel] = max(blocks[a.Launch.Kernel], n)
				words := append(params[a.Launch.Kernel], g[:]...)
				for p := a.Launch.Params; len(p) >= 4; p = p[4:] {
					words = append(words, binary.LittleEndian.Uint32(p))
				}
				params[a.Launch.Kernel] = words
			}
		}
		for k, n := range blocks {
			if of(k) {
				t.blocks, t.params = n, params[k]
				trials[k] = append(trials[k], t)
			}
		}
	}
	err = exampleTrials(func(t trial, l kit.Lowering) { add(t, l, func(k *kit.Kernel) bool { return k.Family == "" }) })
	entries := lowered()
	found, failed := make([][]loweredTrial, len(entries)), make([]error, len(entries))
	var all sync.WaitGroup
	for i, e := range entries {
		all.Go(func() { found[i], failed[i] = trialsOfEntry(e) })
	}
	all.Wait()
	for _, list := range found {
		for _, x := range list {
			add(x.trial, x.Lowering, func(*kit.Kernel) bool { return true })
		}
	}
	err = errors.Join(append(failed, err)...)
	for _, list := range trials {
		slices.SortStableFunc(list, func(a, b trial) int { return cmp.Compare(a.cost, b.cost) })
	}
	return trials, err
})

type loweredTrial struct {
	trial
	kit.Lowering
}

// trialsOfEntry are the suite's cases of an entry and those that tell more, each in all ways to lower it.
func trialsOfEntry(e *program.Entry) (trials []loweredTrial, err error) {
	cases, err := conformance.Cases(e)
	ofSuite := len(cases)
	for i, c := range append(cases, coverageCases(e)...) {
		err = errors.Join(err, eachLowering(c, func(t trial, l kit.Lowering) {
			t.extra = i >= ofSuite
			trials = append(trials, loweredTrial{t, l})
		}))
	}
	return trials, err
}

// eachLowering calls f for each way to lower a case that differs from the others.
func eachLowering(c conformance.Case, f func(t trial, l kit.Lowering)) error {
	size := 0
	for _, in := range c.In {
		size += in.Len()
	}
	var seen []kit.Lowering
	for _, caps := range capsTried {
		for variant, variants := 0, 1; variant < variants; variant++ {
			l, n, err := lowerCall(c.Entry, c.Call, &caps, variant)
			if err != nil {
				return err
			}
			variants = max(variants, n)
			if !slices.ContainsFunc(seen, func(o kit.Lowering) bool { return reflect.DeepEqual(o, l) }) {
				seen = append(seen, l)
				f(trial{Case: c, caps: caps, variant: variant, cost: size}, l)
			}
		}
	}
	return nil
}

// capsTried are GPUs that lowerings treat differently.
var capsTried = []kit.Caps{kit.DefaultCaps, {Multiprocessors: 1, MaxGrid: kit.DefaultCaps.MaxGrid},
	{Multiprocessors: 1, MaxGrid: kit.DefaultCaps.MaxGrid, Target: ir.Target{SM: 75}},
	{Multiprocessors: 1, MaxGrid: kit.DefaultCaps.MaxGrid, Target: kit.DefaultCaps.Target}}

func threads(k *kit.Kernel) int { return k.Block[0] * k.Block[1] * k.Block[2] }

// all are the kernels of every family.
func all() (kernels []*kit.Kernel) {
	for _, f := range kit.Families() {
		kernels = append(kernels, f.Kernels...)
	}
	return kernels
}

// setUp prepares a rig for a trial.
func (t trial) setUp(r *kerneltest.Rig) {
	r.Caps = t.caps
	r.Pick = func(_, _ string, candidates []string) int { return min(t.variant, len(candidates)-1) }
}

// recorder is a rig that keeps the results of its last run.
type recorder struct {
	*kerneltest.Rig
	results []byte
}

func (r *recorder) Compile(ctx context.Context, p *program.Program) (program.Executable, error) {
	x, err := r.Rig.Compile(ctx, p)
	if err != nil {
		return nil, err
	}
	return recording{x, r}, nil
}

type recording struct {
	program.Executable
	r *recorder
}

func (x recording) Start(io *program.IO) *compute.Future {
	f := x.Executable.Start(io)
	x.r.results = nil
	if f.Err() == nil {
		for _, y := range io.Read {
			x.r.results = append(x.r.results, program.Bytes(y)...)
		}
	}
	return f
}

// newTrialRig is a rig without a size of its own: trials say what they need.
func newTrialRig(c sim.Config) *kerneltest.Rig {
	return kerneltest.Large(c, Lower)
}

// small are the cheapest call of a kernel, and one of several blocks if there is a cheap one.
func small(list []trial) []trial {
	several := slices.IndexFunc(list, func(t trial) bool { return t.blocks > 1 })
	if several > 0 && list[several].cost <= max(16*list[0].cost, 1<<12) {
		return []trial{list[0], list[several]}
	}
	return list[:1]
}
