package ptxkernels

import (
	"errors"
	"math"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/ptxkernels/kerneltest"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/analyze"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/parse"
	"github.com/wavelane/wavelane/ptx/sim"
)

// mutationHarness tries mutations of one kernel.
type mutationHarness struct {
	*kit.Kernel
	module *ir.Module  // each instruction has a line of its own
	source []ir.Instr  // the same instructions with the lines of Go that wrote them
	calls  []shown     // those known, what showed a mistake last first
	rest   []candidate // those to be drawn when nothing known shows a mistake
	traits traits      // of the calls drawn
	random bool        // draws the next one
	work   uint64      // instructions of warps that drawing calls has taken
	seed   uint64
	rigs   map[rigKey]*kerneltest.Rig
	bugs   map[analyze.Class]int // of the kernel as it is; nil before they are needed
}

type rigKey struct{ schedule, most uint64 }

// shown is a call with what it shows of the kernel.
type shown struct {
	trial
	lines map[int]bool // that it reaches: whether any lane executes them
	most  uint64       // instructions of warps after which a run counts as endless
	work  uint64       // that a run is, see harnessWork
}

const harnessCost = 1 << 17 // of the largest call that a harness draws, but when all are larger

// harnessWork is how many instructions of warps the calls that a harness draws may take, about; a matrix product counts for many.
// make proofs has more patience.
var harnessWork = func() uint64 {
	if everything {
		return 4_000_000
	}
	return 500_000
}()

// newMutationHarness has the calls that launch a kernel, but for the largest.
func newMutationHarness(t *testing.T, k *kit.Kernel, seed uint64) *mutationHarness {
	written, err := k.Module()
	require.NoError(t, err)
	module, err := parse.Module(k.Name, []byte(written.String()))
	require.NoError(t, err)
	h := &mutationHarness{Kernel: k, module: module, source: written.Funcs[0].Body, seed: seed, rigs: map[rigKey]*kerneltest.Rig{}}
	trials, err := trialsOf()
	require.NoError(t, err)
	require.NotEmpty(t, trials[k], "no call of the suite launches it")
	for _, c := range trials[k] {
		// What was made for tensor cores takes too long without them.
		if c.extra && c.Entry == catalogue.Attention && c.In[0].DType != compute.Float32 && c.In[0].Shape[1] > 40 && !strings.Contains(k.Name, "mma") {
			continue
		}
		if c.cost <= harnessCost || len(h.rest) == 0 {
			h.rest = append(h.rest, candidate{c, traitsOf(c.params)})
		}
	}
	ptxtest.Replay(seed).Shuffle(len(h.rest), func(i, j int) { h.rest[i], h.rest[j] = h.rest[j], h.rest[i] })
	return h
}

// mutations are so many of the kernel's mutations, any; 0 is all.
func (h *mutationHarness) mutations(n int) []ptxtest.Mutation {
	all := ptxtest.Mutations(h.module.Funcs[0])
	ptxtest.Replay(h.seed).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	if n == 0 {
		return all
	}
	return all[:min(n, len(all))]
}

// candidate is a call that nobody has looked at, with its traits.
type candidate struct {
	trial
	traits
}

// traits are hashes of how large the words of a launch are, two at a time: they decide on the ways that a kernel takes.
type traits [64]uint64

func traitsOf(words []uint32) (t traits) {
	kinds := make([]uint64, len(words))
	for i, w := range words {
		kind := min(w, 8)
		if w > 8 {
			kind = 2*uint32(bits.Len32(w)) + min(1, w%4)
		}
		kinds[i] = uint64(i)<<8 + uint64(kind)
		for _, other := range kinds[:i+1] {
			h := (kinds[i]<<32 + other) * 0x9e3779b97f4a7c15 >> 52
			t[h>>6] |= 1 << (h & 63)
		}
	}
	return t
}

// next is the candidate with the most traits that no other had before it, for what it costs: small ones end their loops and tiles early,
// and leave time for others. Those that were made for their kernel come sooner.
// Every other one is any: what counts may be in the operands, which have no traits.
func (h *mutationHarness) next() trial {
	best, most := 0, -1.0
	for i := range h.rest {
		c := &h.rest[i]
		n := 1
		for w, t := range c.traits {
			n += bits.OnesCount64(t &^ h.traits[w])
		}
		worth := float64(n) / math.Sqrt(float64(1000+c.cost))
		if c.extra {
			worth *= 3
		}
		if h.random {
			worth = float64(-i)
		}
		if i == 0 || worth > most {
			best, most = i, worth
		}
	}
	h.random = !h.random
	c := h.rest[best]
	for w, t := range c.traits {
		h.traits[w] |= t
	}
	h.rest = slices.Delete(h.rest, best, best+1)
	return c.trial
}

// draw has one call more, if there is one.
func (h *mutationHarness) draw(t *testing.T) bool {
	for len(h.rest) > 0 && h.work < harnessWork {
		c := h.next()
		s, steps, before := shown{trial: c, lines: map[int]bool{}}, uint64(0), h.work
		r := newTrialRig(sim.Config{Checks: sim.AllChecks, Counters: true, Seed: h.seed, MaxSteps: harnessWork})
		r.Observe = func(of *kit.Kernel, stats *sim.Stats) {
			if of == h.Kernel {
				for _, line := range stats.Lines {
					s.lines[line.Pos.Line] = s.lines[line.Pos.Line] || line.Lanes > 0
				}
				steps = max(steps, stats.Instructions)
				h.work += stats.Instructions + stats.Flops>>7
			}
		}
		err := h.run(r, c, h.module)
		if f := (*sim.Fault)(nil); errors.As(err, &f) && f.Kind == sim.Timeout {
			h.work += harnessWork / 4
			continue
		}
		require.NoError(t, err, "%v", c)
		if steps > 0 {
			s.work = h.work - before
			s.most = 1 << (bits.Len64(4*steps+10_000) | 1)
			h.calls = append(h.calls, s)
			return true
		}
	}
	return false
}

func (h *mutationHarness) rig(k rigKey) *kerneltest.Rig {
	if h.rigs[k] == nil {
		h.rigs[k] = newTrialRig(sim.Config{Checks: sim.AllChecks, Seed: h.seed + k.schedule, MaxSteps: k.most})
	}
	return h.rigs[k]
}

// run executes a call with the kernel as a module has it.
func (h *mutationHarness) run(r *kerneltest.Rig, c trial, module *ir.Module) error {
	c.setUp(r)
	m, err := r.GPU.Load(module)
	if err != nil {
		return &sim.Fault{Detail: err.Error()}
	}
	defer r.GPU.Unload(m)
	k, err := m.Kernel(h.Name)
	if err != nil {
		return &sim.Fault{Detail: err.Error()}
	}
	r.Instead = map[*kit.Kernel]*sim.Kernel{h.Kernel: k}
	return c.Run(r)
}

// judge says who notices a mutation. What goes wrong only sometimes, a missing barrier, has several schedules to show it.
func (h *mutationHarness) judge(t *testing.T, m *ptxtest.Mutation) verdict {
	if equivalent(h.Kernel, m, h.source[m.At].Pos) {
		return byNature
	}
	mutant := m.Apply(h.module)
	orders := uint64(1)
	if slices.Contains([]string{"barrier", "fence", "wait", "count", "commit"}, m.Kind) {
		orders = 3
	}
	line := h.module.Funcs[0].Body[m.At].Pos.Line
	tried, work := false, uint64(0)
	for i := 0; work < harnessWork && (i < len(h.calls) || h.draw(t)); i++ {
		c := h.calls[i]
		if executes, reaches := c.lines[line]; !executes && !(reaches && m.Kind == "predicate") {
			continue
		}
		tried = true
		work += orders * c.work
		for schedule := range orders {
			key := rigKey{schedule, c.most}
			err := h.run(h.rig(key), c.trial, mutant)
			if err == nil {
				continue
			}
			delete(h.rigs, key) // nobody knows in what state that left the GPU
			// What shows one mistake shows others: it is tried first.
			copy(h.calls[1:i+1], h.calls[:i])
			h.calls[0] = c
			if errors.As(err, new(*sim.Fault)) {
				return byChecks
			}
			return byResult
		}
	}
	if h.bugs == nil {
		h.bugs = bugs(t, h.module)
	}
	for class, n := range bugs(t, mutant) {
		if n > h.bugs[class] {
			return byAnalyser
		}
	}
	if !tried {
		return unreached
	}
	return byNobody
}

// bugs counts the analyser's findings of bugs by class.
func bugs(t *testing.T, m *ir.Module) map[analyze.Class]int {
	r, err := analyze.Module(m, analyze.Options{BugsOnly: true})
	require.NoError(t, err)
	n := map[analyze.Class]int{}
	for _, f := range r.Findings {
		n[f.Class]++
	}
	return n
}
