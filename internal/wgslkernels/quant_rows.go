package wgslkernels

import (
	"fmt"
	"strings"

	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/quant"
	"github.com/wavelane/wavelane/wgsl"
)

// Products of few rows of x. With Q8 there are two ways: x in 8 bits and integer dot products, where WGSL has them, or x as it is, which
// is closer to the exact product than what Q8 asks for; there, Inf or NaN in a row of x makes the row NaN.
//
// Rounding x is a pass of its own. A value takes about ten instructions, in whichever workgroup it is rounded, and a
// workgroup has four rows of weights, which are one integer dot product and some two instructions to unpack a value: were
// each to round x for itself it would do more than twice the work. The pass is as much work as two or three workgroups of the
// hundreds.

const (
	quantMost  = 8  // rows of x that the kernel of few rows has room for, when it does nothing else
	quantTimes = 8  // so often it is faster than tiles where workgroup memory is no faster than buffers
	quantLanes = 64 // threads of it
)

// quantRows is products of few rows of x, in one dispatch where bindings allow.
type quantRows struct {
	form     string // plain, norm or gate
	q8       bool
	x, gamma Buffer
	of       []quantProduct // several only of plain ones

	dots, subgroups bool
	lanes           int // threads that share four rows of weights
}

// rows is how many of each weight a workgroup takes.
func (v *quantRows) rows() int { return 4 / len(v.of[0].w) * quantLanes / v.lanes }

// spread sets how many threads share four rows: all of a workgroup, or fewer where rows have less than four runs for each of them and there are
// workgroups enough for the device, whose weights bindings hold. Then fewer of them idle, and sums are added up by fewer.
func (v *quantRows) spread(room, k int, caps *wgsl.Caps) {
	rows, bytes, enough := 0, 0, 1024
	if caps.Software { // which has some threads
		enough = 8
	}
	for _, p := range v.of {
		rows, bytes = rows+p.w[0].rows(), max(bytes, p.w[0].rowBytes())
	}
	v.lanes = quantLanes
	for k/16 < 4*v.lanes && v.lanes > 4*room && v.lanes > 8 && rows >= 2*v.rows()*enough &&
		4*v.rows()*bytes <= int(caps.MaxBinding) {
		v.lanes /= 2
	}
}

// quantRows reports false where it cannot do it.
func (s *step) quantRows(v *quantRows) (done bool, err error) {
	m, k := program.RowsCols(s.Operands[0].Shape)
	if k == 0 && v.of[0].bias == nil {
		for _, p := range v.of {
			s.fillWords(p.y, m*p.w[0].rows(), 0)
		}
		return true, nil
	}
	most, together := quantMost, min(m, quantMost)
	if s.caps.Software {
		most *= quantTimes
	}
	if m > most || m > 1 && v.form != "plain" || wgsl.BufferSize(4*k) > s.caps.MaxBinding || s.workgroup() < quantLanes {
		return false, nil
	}
	// All rows of x that there is room for at once, or each for itself where they or the results are more than bindings hold.
	whole := m == together
	for _, p := range v.of {
		n := p.w[0].rows()
		if max(wgsl.BufferSize(4*m*k), wgsl.BufferSize(4*m*n)) > s.caps.MaxBinding {
			together, whole = 1, m == 1
		}
		whole = whole && max(wgsl.BufferSize(4*n), wgsl.BufferSize(n*p.w[0].rowBytes())) <= s.caps.MaxBinding
	}
	problem := fmt.Sprintf("%s %v %dx%dx%d", v.form, v.of[0].w[0].format, m, v.of[0].w[0].rows(), k)
	if m > quantMost && s.Choose("quant_rows", problem, []string{"eight", "tiles"}) == 1 {
		return false, nil
	}
	if rowByRow := together == 1 && m > 1; v.q8 && s.caps.IntegerDots && !rowByRow && k > 0 {
		v.dots = s.Choose("q8", problem, []string{"dots", "float"}) == 0
	}
	if v.q8 && !v.dots && k/4 > loopBudget {
		return false, nil
	}
	v.spread(room(together), k, s.caps)
	v.subgroups = v.lanes == quantLanes && s.caps.Subgroups && s.Choose("quant", problem, []string{"lanes", "subgroups"}) == 1
	if v.dots {
		v.x = s.activations(v, m, k)
	}
	several := 1
	if whole {
		several = max(1, (int(s.caps.MaxStorageBuffers)-1)/v.of[0].buffers())
	}
	for all := v.of; len(all) > 0; all = all[len(v.of):] {
		v.of = all[:min(several, len(all))]
		if !whole {
			if err := s.quantPieces(v, m, k, together); err != nil {
				return true, err
			}
			continue
		}
		d, end := s.quantDispatch(v, m, k, v.x, 0), 0
		for i := range v.of {
			v.of[i].add(&d, k, end, 0, make([]part, 3)) // all of each buffer
			end += ceilDiv(v.of[i].w[0].rows(), v.rows())
		}
		s.quantRun(v, &d, m, 0, end)
	}
	return true, nil
}

// buffers is how many a product takes beside x.
func (p *quantProduct) buffers() int {
	n := len(p.w) + 1
	if p.bias != nil {
		n++
	}
	return n
}

// activations is x, or its product with gamma, in blocks of 8 bits.
func (s *step) activations(v *quantRows, m, k int) Buffer {
	norm := v.form == "norm"
	kernel := cached(fmt.Sprintf("quant_activations/%v", norm), func() *wgsl.Kernel {
		b := []wgsl.Access{wgsl.Read, wgsl.Read, wgsl.ReadWrite}
		if !norm {
			b = b[1:]
		}
		return &wgsl.Kernel{Bindings: b, Uniform: 16, Workgroup: [3]uint32{quantLanes, 1, 1}, Source: render("quant_activations.wgsl", struct {
			Norm  bool
			Lanes int
		}{norm, quantLanes}, packedDots)}
	})
	bind := []Buffer{v.x}
	if norm {
		bind = append(bind, v.gamma)
	}
	y := s.NewScratch(m * k / 32 * 48)
	s.dispatch(kernel, s.linear(ceilDiv(m*k/32, quantLanes)), words(m*k/32, k/32, 0, 0x7fc00000), append(bind, y)...)
	return y
}

// quantPieces is one product in as many dispatches as bindings of its weights take.
func (s *step) quantPieces(v *quantRows, m, k, together int) error {
	p := &v.of[0]
	n, rows, vectors := p.w[0].rows(), v.rows(), v.vectors(s)
	for i := 0; i < m; i += together {
		together := min(together, m-i)
		x, x0 := s.window(v.x, 4*i*vectors, 4*together*vectors)
		ofRows := func(bytes, start int) extent {
			return func(first, end int) (from, to int) { return start + first*rows*bytes, start + min(end*rows, n)*bytes }
		}
		results := ofRows(4, 4*i*n)
		if together > 1 {
			results = func(int, int) (from, to int) { return 0, 4 * m * n }
		}
		err := s.ranges(ceilDiv(n, rows), func(first, end int, parts []part) {
			d := s.quantDispatch(v, together, k, x, x0/4)
			p.add(&d, k, 0, i*n, parts)
			s.quantRun(v, &d, together, first, end)
		}, ofRows(p.w[0].rowBytes(), 0), results, ofRows(4, 0))
		if err != nil {
			return err
		}
	}
	return nil
}

// vectors is how many of 16 bytes a row of x takes.
func (v *quantRows) vectors(s *step) int {
	_, k := program.RowsCols(s.Operands[0].Shape)
	if v.dots {
		return k / 32 * 3
	}
	return k / 4
}

// quantDispatch returns what products of m rows of x have in common.
func (s *step) quantDispatch(v *quantRows, m, k int, x Buffer, x0 int) Dispatch {
	d := Dispatch{Params: words(m, v.vectors(s), k/16, 0, 0, x0, 0, 0), Bind: []Buffer{x}}
	if v.q8 {
		d.Params[6] = 0x7fc00000
	}
	if v.form == "norm" {
		d.Params[7] = bits(s.Attr.Scalars[0])
		if !v.dots {
			d.Bind = append(d.Bind, v.gamma)
		}
	}
	return d
}

// add appends a product that has the workgroups from first on, and results from index y on, with parts of weights, result and
// bias.
func (p *quantProduct) add(d *Dispatch, k, first, y int, parts []part) {
	w := &p.w[0]
	d.Params = append(d.Params, words(first, k/quant.Type(w.format).BlockLen(), w.rowBytes()/16, w.rows(),
		-parts[0].base/16, y-parts[1].base/4, -parts[2].base/4, 0)...)
	for i := range p.w {
		d.Bind = append(d.Bind, parts[0].of(p.w[i].Buffer))
	}
	if p.bias != nil {
		d.Bind = append(d.Bind, parts[2].of(*p.bias))
	}
	d.Bind = append(d.Bind, parts[1].of(p.y))
}

// quantRun runs the workgroups from first to before end.
func (s *step) quantRun(v *quantRows, d *Dispatch, m, first, end int) {
	d.Params[3], d.Params[4] = uint32(first), uint32(end)
	s.dispatch(v.kernel(m), s.linear(end-first), d.Params, d.Bind...)
}

// quantText is what the template of the kernel sees.
type quantText struct {
	Form, Functions string
	Room, Vectors   int // of rows of x, of sums
	Lanes, Rows     int // Rows of each weight, in each group
	Group           int // lanes that share rows
	Biased, Several bool
	Dots, Subgroups bool
	Grouped         bool     // by several groups
	Bound, Of       []string // bindings after x, the weights of the four rows
	Formats         []*blocks
}

// room is how many rows a kernel for m has room for: a power of 2.
func room(m int) int {
	room := 1
	for room < m {
		room *= 2
	}
	return room
}

func (v *quantRows) kernel(m int) *wgsl.Kernel {
	room := room(m)
	var formats []string
	for _, p := range v.of {
		formats = append(formats, p.w[0].format.String())
	}
	t := quantText{Form: v.form, Room: room, Vectors: room, Lanes: quantLanes, Rows: 4 / len(v.of[0].w), Group: v.lanes, Grouped: v.lanes < quantLanes, Biased: v.of[0].bias != nil,
		Several: len(v.of) > 1, Dots: v.dots, Subgroups: v.subgroups}
	key := fmt.Sprintf("quant_matvec/%s/%s/%d/%d", v.form, strings.Join(formats, ","), room, v.lanes)
	var extensions []string
	if t.Biased {
		key += "/bias"
	}
	if t.Dots {
		key += "/dots"
		extensions = []string{packedDots}
	}
	if t.Subgroups {
		key += "/subgroups"
		extensions = append(extensions, "subgroups")
	}
	return cached(key, func() *wgsl.Kernel {
		k := &wgsl.Kernel{Bindings: []wgsl.Access{wgsl.Read}, Uniform: 32 + 32*len(v.of), Workgroup: [3]uint32{quantLanes, 1, 1}}
		bind := func(a wgsl.Access, name string) {
			k.Bindings, t.Bound = append(k.Bindings, a), append(t.Bound, name)
		}
		switch v.form {
		case "norm":
			t.Vectors = 2 // one of which has the squares
			if !t.Dots {
				bind(wgsl.Read, "read> gamma: array<vec4<f32>>")
			}
		case "gate":
			t.Functions = functionsOf("swiglu")
		}
		for i, p := range v.of {
			names := []string{fmt.Sprint("w", i), "w1"}[:len(p.w)]
			for _, name := range names {
				bind(wgsl.Read, "read> "+name+": array<vec4<u32>>")
			}
			if t.Biased {
				bind(wgsl.Read, fmt.Sprintf("read> b%d: array<f32>", i))
			}
			bind(wgsl.ReadWrite, fmt.Sprintf("read_write> y%d: array<f32>", i))
			t.Formats = append(t.Formats, blocksOf(p.w[0].format, true, names...))
		}
		for i := range 4 {
			t.Of = append(t.Of, fmt.Sprint("w", i/t.Rows))
		}
		k.Shared = t.shared()
		k.Source = render("quant_matvec.wgsl", t, extensions...)
		return k
	})
}

// shared is the workgroup memory of sum_lanes.wgsl.
func (t *quantText) shared() int {
	switch {
	case t.Subgroups:
		return 16 * t.Vectors * t.Lanes
	case t.Grouped:
		return 16 * t.Vectors * (t.Lanes + 1)
	}
	return 16*t.Vectors*(t.Lanes+1) + 4*t.Lanes
}
