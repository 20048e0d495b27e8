package wgslkernels

import (
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/wgsl"
)

// biasActivation is the code of [catalogue.BiasActivation].
func biasActivation(s *step) error {
	return s.evaluate(call(catalogue.Add, nil, s.Operands, []Buffer{operand(0), operand(1)}).activated(s.Attr.Activation()))
}

// fused is the code of [catalogue.Fused].
func fused(s *step) error {
	f := &expression{s.Attr.Options.(program.Expression), s.Attr.Scalars, s.Operands, operands(0, len(s.Operands))}
	return s.evaluate(f.distinct(s.In, 0))
}

// elementwise is an expression of one node.
func elementwise(s *step) error {
	return s.evaluate(call(s.Entry, s.Attr.Scalars, s.Operands, operands(0, len(s.Operands))))
}

// elementwiseKernel describes one specialisation of elementwise.wgsl.
type elementwiseKernel struct {
	name      string // of the entry
	f         *expression
	reads     []read // of each operand
	rank      int    // axes of the strided form; 0 is the flat one
	workgroup int
}

// read is how an operand is read.
type read struct {
	how  rune
	walk int // which of the ways through memory it follows, where it neither lies as the results do nor is a single element
}

// Ways of reading.
const (
	wide     = 'v' // four elements per unit, as the results are written
	single   = 's' // one element for all
	units    = 'u' // four elements per unit, on a walk
	splat    = 'p' // one element for the whole unit, on a walk
	gathered = 'g' // each element of the unit by itself, on a walk
)

func (r read) String() string { return fmt.Sprintf("%c%d", r.how, r.walk) }

func (r read) vector() bool { return r.how == wide || r.how == units }

// walks is the number of different walks.
func (e *elementwiseKernel) walks() int {
	n := 0
	for _, r := range e.reads {
		n = max(n, r.walk+1)
	}
	return n
}

// perThread is how many units of four elements a thread computes: for long expressions, compiling the text is what costs. A
// loop would not lengthen it, but drivers may take minutes to compile one around a power (SwiftShader does).
func (e *elementwiseKernel) perThread() int {
	if e.rank > 0 || len(e.f.Nodes) > 8 {
		return 1
	}
	return 2
}

func (e *elementwiseKernel) kernel() *wgsl.Kernel {
	key := fmt.Sprintf("%s/%v/%v/%d/%d", e.name, &e.f.Expression, e.reads, e.rank, e.workgroup)
	return cached(key, func() *wgsl.Kernel {
		type operand struct{ Type, At, Value string }
		text := e.f.function("evaluate", 0, "p: Params")
		data := struct {
			Workgroup, PerThread, Rank, Last, Scalars, Walks int
			Axes                                             []int // all but the outermost, innermost first
			Functions                                        string
			Operands                                         []operand
			Results                                          []string // which component of what evaluate returns
			Lanes                                            []string
			Gather                                           bool
		}{Workgroup: e.workgroup, PerThread: e.perThread(), Rank: e.rank, Last: e.rank - 1, Scalars: len(e.f.scalars), Walks: e.walks(),
			Functions: functionsOf(text) + text, Lanes: []string{"x", "y", "z", "w"}}
		k := &wgsl.Kernel{Uniform: roundUniform(len(e.params(0, nil, nil, nil))), Workgroup: [3]uint32{uint32(e.workgroup), 1, 1}}
		for d := e.rank - 1; d > 0; d-- {
			data.Axes = append(data.Axes, d)
		}
		for i, r := range e.reads {
			o := operand{Type: "f32", At: fmt.Sprint("place.at", r.walk)}
			if r.vector() {
				o.Type = "vec4<f32>"
			}
			switch r.how {
			case wide:
				o.At = "at"
			case single:
				o.At = "0"
			case gathered:
				data.Gather = true
			}
			switch value := fmt.Sprintf("x%d[%s]", i, o.At); {
			case r.vector():
				o.Value = value
			case r.how != gathered:
				o.Value = "vec4(" + value + ")"
			}
			data.Operands = append(data.Operands, o)
			k.Bindings = append(k.Bindings, wgsl.Read)
		}
		for i := range e.f.Results {
			component := ""
			if len(e.f.Results) > 1 {
				component = fmt.Sprintf("[%d]", i)
			}
			data.Results = append(data.Results, component)
			k.Bindings = append(k.Bindings, wgsl.ReadWrite)
		}
		k.Source = render("elementwise.wgsl", data)
		return k
	})
}

// params is the uniform: how many units, the bits of +Inf, the scalars; in the strided form where the results and the walks begin, and
// for each axis its size and the strides of the walks. Values that are not given are 0.
func (e *elementwiseKernel) params(units int, base, sizes []int, strides [][]int) []uint32 {
	p := append([]uint32{uint32(units), infBits}, e.f.uniforms()...)
	if e.rank == 0 {
		return p
	}
	n := 1 + e.walks()
	p = append(p, make([]uint32, n+e.rank*n)...)
	rest := p[len(p)-n-e.rank*n:]
	for i, b := range base {
		rest[i] = uint32(b)
	}
	for d, size := range sizes {
		rest[n+d*n] = uint32(size)
		for w, st := range strides {
			rest[n+d*n+1+w] = uint32(st[d])
		}
	}
	return p
}

const infBits = 0x7f800000

// evaluate computes an expression over whole tensors into the step's results.
func (s *step) evaluate(f *expression) error {
	e := &elementwiseKernel{name: s.Entry.Name, f: f, workgroup: s.workgroup()}
	n := s.Result.Len()
	var walks []program.Type // operands that are neither as large as the results nor a single element
	for _, t := range f.in {
		switch t.Len() {
		case n:
			e.reads = append(e.reads, read{wide, -1})
		case 1:
			e.reads = append(e.reads, read{single, -1})
		default:
			e.reads = append(e.reads, read{gathered, len(walks)})
			walks = append(walks, t)
		}
	}
	if len(walks) == 0 {
		return s.evaluateFlat(e)
	}
	return s.evaluateStrided(e, walks)
}

// bindings are a kernel's buffers: parts of the results and of operands in the same order, and parts of operands on walks.
func (s *step) bindings(e *elementwiseKernel, whole part, walks []part) (bind []Buffer) {
	for i, r := range e.reads {
		switch b := e.f.bind[i]; {
		case r.how == wide:
			bind = append(bind, whole.of(b))
		case r.how == single:
			bind = append(bind, b)
		default:
			bind = append(bind, walks[r.walk].of(b))
		}
	}
	for i := range e.f.Results {
		bind = append(bind, whole.of(resultAt(i)))
	}
	return bind
}

func (s *step) evaluateFlat(e *elementwiseKernel) error {
	size, align := int(wgsl.BufferSize(4*s.Result.Len())), s.align()
	chunk := min(size, int(s.caps.MaxBinding)/align*align)
	if chunk == 0 {
		return fmt.Errorf("a storage binding of %d bytes holds no aligned part: %w", s.caps.MaxBinding, compute.ErrTooLarge)
	}
	for at := 0; at < size; at += chunk {
		piece := part{at, min(chunk, size-at)}
		units := piece.size / 16
		s.dispatch(e.kernel(), s.linear(ceilDiv(units, e.workgroup*e.perThread())), e.params(units, nil, nil, nil),
			s.bindings(e, piece, nil)...)
	}
	return nil
}

// evaluateStrided cuts the outermost axis where tensors exceed a binding. walked are the types of the operands on walks.
func (s *step) evaluateStrided(e *elementwiseKernel, walked []program.Type) error {
	strides := make([][]int, len(walked))
	for i, t := range walked {
		strides[i] = program.BroadcastStrides(t.Shape, s.Result.Shape)
	}
	shape, strides := program.Collapse(s.Result.Shape, strides...)
	last := len(shape) - 1 // at least 1: what has one axis is flat
	e.rank = len(shape)
	var walks [][]int // the different ones
	for i, r := range e.reads {
		if r.how != gathered {
			continue
		}
		st := strides[r.walk]
		w := slices.IndexFunc(walks, func(other []int) bool { return slices.Equal(st, other) })
		if w < 0 {
			w = len(walks)
			walks = append(walks, st)
		}
		e.reads[i].walk = w
	}
	inUnits := byUnits(shape, walks)
	for i, r := range e.reads {
		switch {
		case r.how != gathered || !inUnits:
		case walks[r.walk][last] == 0:
			e.reads[i].how = splat
		default:
			e.reads[i].how = units
		}
	}
	group := 1 // of indices of the outermost axis: dispatches begin at whole units of the results
	for group*s.Result.Len()/shape[0]%4 != 0 {
		group *= 2
	}
	indices := func(first, end int) (int, int) { return first * group, min(end*group, shape[0]) }
	all := append([][]int{program.Strides(shape)}, walks...) // the results', then the walks
	extents := make([]extent, len(all))
	for k, st := range all {
		slice := 1 // elements from the first to the last of one index of the outermost axis
		for d := 1; d < len(shape); d++ {
			slice += (shape[d] - 1) * st[d]
		}
		extents[k] = func(first, end int) (from, to int) {
			first, end = indices(first, end)
			return 4 * first * st[0], 4 * ((end-1)*st[0] + slice)
		}
	}
	element := func(k int) int { // elements per element of the array
		if k == 0 || inUnits && all[k][last] != 0 {
			return 4
		}
		return 1
	}
	return s.ranges(ceilDiv(shape[0], group), func(first, end int, parts []part) {
		first, end = indices(first, end)
		base, sizes, steps := make([]int, len(all)), slices.Clone(shape), make([][]int, len(walks))
		for k, st := range all {
			base[k] = (first*st[0] - parts[k].base/4) / element(k)
		}
		for w, st := range walks {
			steps[w] = slices.Clone(st)
			for d := range st {
				if d != last || !inUnits { // the innermost by whole units, or not at all
					steps[w][d] /= element(1 + w)
				}
			}
		}
		sizes[0] = end - first
		if inUnits {
			sizes[last] /= 4
		}
		n := ceilDiv((end-first)*(s.Result.Len()/shape[0]), 4)
		s.dispatch(e.kernel(), s.linear(ceilDiv(n, e.workgroup*e.perThread())), e.params(n, base, sizes, steps),
			s.bindings(e, parts[0], parts[1:])...)
	}, extents...)
}

// byUnits says whether the innermost axis can be walked four elements at a time: on each walk, operands then repeat along that axis or
// run along it in whole, aligned units.
func byUnits(shape []int, walks [][]int) bool {
	last := len(shape) - 1
	if shape[last]%4 != 0 {
		return false
	}
	for _, st := range walks {
		if st[last] == 0 {
			continue
		}
		for d, n := range st {
			if d == last && n != 1 || d != last && n%4 != 0 {
				return false
			}
		}
	}
	return true
}
