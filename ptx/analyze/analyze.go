// Package analyze finds defects in PTX without running it, and says what a kernel costs: registers and occupancy, memory
// traffic, coalescing, bank conflicts, arithmetic intensity and the place under a GPU's roofline.
//
// It works on the control-flow graph of parsed code. For kernels whose block size is known it walks the code with all threads
// of one block at once (see machine): addresses are enumerated exactly, thread by thread, with parameters as symbols. Bank
// conflicts, sectors, races between barriers, bounds and alignment all come from that one enumeration. What cannot be known
// (addresses from memory, loops that depend on data) is left out of findings rather than guessed: a finding of severity [Bug]
// is meant to be one.
//
// A report belongs to whoever asked for it; functions here are safe for concurrent use on modules that nobody changes.
package analyze

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/flow"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/roofline"
)

// Severity is how bad a finding is.
type Severity string

// The severities, worst first.
const (
	Bug         Severity = "bug"         // wrong results, a fault or a hang
	Warning     Severity = "warning"     // hardly meant so
	Performance Severity = "performance" // right, but slow
	Info        Severity = "info"        // worth a look
)

// Finding is one defect.
type Finding struct {
	Class    Class    `json:"class"`
	Severity Severity `json:"severity"`
	Kernel   string   `json:"kernel,omitempty"`
	Pos      ir.Pos   `json:"pos"`
	// Instr is the instruction as text.
	Instr   string `json:"instr,omitempty"`
	Message string `json:"message"`
	// More are the places of further instructions of which the same is true, as in unrolled code; bugs are listed one by one.
	More []ir.Pos `json:"more,omitempty"`
	// Explanation says why such code is a defect, Fix what to do about it.
	Explanation string `json:"explanation"`
	Fix         string `json:"fix"`
	index       int    // of the instruction
}

// Options are what the analyser is to assume and to report. The zero value is a good default.
type Options struct {
	// Block is the number of threads in each dimension. Without it the kernel's .reqntid or .maxntid holds, and failing these
	// 128.
	Block [3]int
	// Grid is the number of blocks in each dimension. With it the first and the last block are walked with their numbers.
	Grid [3]int
	// Shared is the size of dynamic shared memory in bytes.
	Shared int
	// Params are the values of scalar parameters, by name: their bits.
	Params map[string]uint64
	// Buffers are the sizes in bytes of what pointer parameters point to, by name.
	Buffers map[string]uint64
	// SM is the architecture for occupancy; without it the GPU's, and failing that the module's.
	SM int
	// GPU is where the kernel is placed under the roofline; without it there is none.
	GPU *roofline.Model
	// Registers are per thread as ptxas counts them, by kernel. Without them the live ones are taken.
	Registers map[string]int
	// Strict adds findings that are no defects in most code.
	Strict bool
	// BugsOnly leaves out all but bugs.
	BugsOnly bool
	// Iterations is how many iterations of a loop of unknown length are walked; 0: 4.
	Iterations int

	block *[3]int // the number of the block that is walked
}

func (o *Options) iterations() int {
	if o.Iterations > 0 {
		return o.Iterations
	}
	return 4
}

// Report is what the analyser says about a module.
type Report struct {
	Version  string         `json:"version"`
	Target   string         `json:"target"`
	Kernels  []KernelReport `json:"kernels"`
	Findings []Finding      `json:"findings"`
}

// Count is the number of findings of a severity.
func (r *Report) Count(s Severity) int {
	n := 0
	for i := range r.Findings {
		if r.Findings[i].Severity == s {
			n++
		}
	}
	return n
}

// kernel is a function with all that is known about it.
type kernel struct {
	mod     *ir.Module
	f       *ir.Func
	o       *Options
	g       *flow.Graph
	live    *flow.Liveness
	out     []flow.Set // live after each instruction
	reach   *flow.Reaching
	deps    [][]flow.Edge
	dims    [3]int
	assumed bool       // dims are a guess
	walks   []*machine // of kernels; none for functions and where nothing can be walked
	broken  bool       // some instruction is none: nothing but that is looked at
}

// Module analyses all functions of a module. It returns compute.ErrArgument for options that make no sense; whatever is wrong
// with the module is a finding.
func Module(m *ir.Module, o Options) (*Report, error) {
	if err := o.check(m); err != nil {
		return nil, err
	}
	r := &Report{Version: m.Version.String(), Target: m.Target.String(), Kernels: []KernelReport{}, Findings: []Finding{}}
	r.detect(&o, &kernel{mod: m, o: &o}, true)
	for _, f := range m.Funcs {
		if f.Body == nil {
			continue
		}
		k, err := newKernel(m, f, &o)
		if err != nil {
			return nil, err
		}
		r.detect(&o, k, false)
		if f.Entry {
			kr, err := k.report()
			if err != nil {
				return nil, err
			}
			r.Kernels = append(r.Kernels, kr)
		}
	}
	return r, nil
}

// check refuses options that make no sense.
func (o *Options) check(m *ir.Module) error {
	for _, d := range [][3]int{o.Block, o.Grid} {
		if min(d[0], d[1], d[2]) < 0 {
			return fmt.Errorf("ptx/analyze: block or grid of %v: %w", d, compute.ErrArgument)
		}
	}
	if n := product3(o.Block); o.Block[0] > 0 && n > 1024 {
		return fmt.Errorf("ptx/analyze: block of %d threads, at most 1024: %w", n, compute.ErrTooLarge)
	}
	if o.Shared < 0 || o.Iterations < 0 {
		return fmt.Errorf("ptx/analyze: %d bytes of shared memory, %d iterations: %w", o.Shared, o.Iterations, compute.ErrArgument)
	}
	known := map[string]bool{}
	for _, f := range m.Funcs {
		for i := range f.Params {
			known[f.Params[i].Name] = true
		}
	}
	for _, names := range []map[string]uint64{o.Params, o.Buffers} {
		for n := range names {
			if !known[n] {
				return fmt.Errorf("ptx/analyze: no kernel has a parameter %q: %w", n, compute.ErrArgument)
			}
		}
	}
	return nil
}

// broken tells whether some instruction is none that PTX has, or names a register that is not declared.
func broken(f *ir.Func) bool {
	bad := false
	for i := range f.Body {
		in := &f.Body[i]
		if in.Kind() != ir.Directive {
			_, err := ir.FormOf(in)
			bad = bad || err != nil
		}
		in.Regs(func(r ir.Reg, _ ir.Role) { bad = bad || r <= 0 || int(r) >= len(f.Regs) })
	}
	return bad
}

func product3(d [3]int) int { return max(1, d[0]) * max(1, d[1]) * max(1, d[2]) }

func newKernel(m *ir.Module, f *ir.Func, o *Options) (*kernel, error) {
	if len(f.Body) == 0 { // an empty body returns
		c := *f
		c.Body = []ir.Instr{{Pos: f.Pos, Op: "ret"}}
		f = &c
	}
	k := &kernel{mod: m, f: f, o: o, broken: broken(f)}
	if k.broken {
		return k, nil
	}
	k.g = flow.New(f)
	k.live = k.g.Liveness()
	_, k.out = k.live.Live()
	k.reach = k.g.Reaching()
	k.deps = k.g.ControlDependence()
	if !f.Entry {
		return k, nil
	}
	switch {
	case o.Block[0] > 0:
		k.dims = o.Block
	case f.Bounds.ReqThreads[0] > 0:
		k.dims = f.Bounds.ReqThreads
	case f.Bounds.MaxThreads[0] > 0:
		k.dims = f.Bounds.MaxThreads
	default:
		k.dims, k.assumed = [3]int{128, 1, 1}, true
	}
	for i := range k.dims {
		k.dims[i] = max(1, k.dims[i])
	}
	if n := product3(k.dims); n > 1024 {
		return k, nil // that is a finding
	}
	blocks := []*[3]int{nil}
	if g := o.Grid; g[0] > 0 {
		first, last := [3]int{}, [3]int{g[0] - 1, max(1, g[1]) - 1, max(1, g[2]) - 1}
		blocks = []*[3]int{&first}
		if last != first {
			blocks = append(blocks, &last)
		}
	}
	for _, b := range blocks {
		opts := *o
		opts.block = b
		w := newMachine(m, f, k.g, &opts, k.dims)
		w.run()
		if w.done {
			k.walks = append(k.walks, w)
		}
	}
	return k, nil
}

// detect runs the detectors for modules or those for functions.
func (r *Report) detect(o *Options, k *kernel, module bool) {
	from := len(r.Findings)
	for i := range detectors {
		d := &detectors[i]
		if d.Strict && !o.Strict || o.BugsOnly && d.Severity != Bug || d.module != module || k.broken && !d.raw {
			continue
		}
		// What is said of many instructions alike, as in unrolled code, is said once, unless it is a bug.
		once, first := map[string]bool{}, map[string]int{}
		d.run(k, func(i int, format string, args ...any) {
			f := Finding{Class: d.Class, Severity: d.Severity, Message: fmt.Sprintf(format, args...), Explanation: d.Doc, Fix: d.Fix,
				index: i}
			if k.f != nil {
				f.Kernel, f.Pos = k.f.Name, k.f.Pos
				if i >= 0 {
					f.Pos, f.Instr = k.f.Body[i].Pos, strings.TrimSuffix(k.f.InstrString(&k.f.Body[i]), ";")
				}
			}
			key := fmt.Sprint(i, f.Message)
			if once[key] {
				return
			}
			once[key] = true
			if at, ok := first[f.Message]; ok && d.Severity != Bug {
				r.Findings[at].More = append(r.Findings[at].More, f.Pos)
				return
			}
			first[f.Message] = len(r.Findings)
			r.Findings = append(r.Findings, f)
		})
	}
	slices.SortStableFunc(r.Findings[from:], func(a, b Finding) int {
		return cmp.Or(cmp.Compare(rank(a.Severity), rank(b.Severity)), cmp.Compare(a.index, b.index))
	})
}

func rank(s Severity) int { return slices.Index([]Severity{Bug, Warning, Performance, Info}, s) }
