package wgslkernels

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/wgsl"
)

// longestScan bounds the tiles that a task adds up one after the other.
const longestScan = 32

func cumSum(s *step) error {
	rows, cols := program.RowsCols(s.Operands[0].Shape)
	o := s.Attr.Options.(compute.CumSumOptions)
	return s.scan(operand(0), result, rows, cols, o.Exclusive, o.Reverse)
}

// scan sums rows of x up to each element. Parts of rows are summed first, their sums are scanned likewise, and then each part from
// what is before it.
func (s *step) scan(x, y Buffer, rows, cols int, exclusive, backwards bool) error {
	workgroup := s.workgroup()
	w := s.split(rows, cols, 4*longestScan*workgroup)
	if w.parts == 1 {
		return s.scanTasks(x, y, Buffer{}, false, w, lanes(rows, cols, 4, 1, workgroup), exclusive, backwards)
	}
	before := s.NewScratch(4 * w.tasks())
	sum := (&reduceKernel{name: "cumsum/part", reduction: reductions[catalogue.Sum], element: "vec4<f32>", workgroup: workgroup}).of(x)
	if err := s.reduceStage(sum, w, 4, 4, cols, before); err != nil {
		return err
	}
	from := s.NewScratch(4 * w.tasks())
	if err := s.scan(before, from, rows, w.parts, true, backwards); err != nil {
		return err
	}
	return s.scanTasks(x, y, from, true, w, workgroup, exclusive, backwards)
}

func (s *step) scanTasks(x, y, before Buffer, several bool, w work, lanes int, exclusive, backwards bool) error {
	workgroup := s.workgroup()
	k := cached(fmt.Sprintf("cumsum/%v/%d/%d", several, lanes, workgroup), func() *wgsl.Kernel {
		var distances []int
		for d := 1; d < lanes; d *= 2 {
			distances = append(distances, d)
		}
		bindings := []wgsl.Access{wgsl.Read, wgsl.ReadWrite}
		if several {
			bindings = append(bindings, wgsl.Read)
		}
		return &wgsl.Kernel{Bindings: bindings, Uniform: 48, Workgroup: [3]uint32{uint32(workgroup), 1, 1}, Shared: 4 * workgroup,
			Source: render("cumsum.wgsl", struct {
				Before           bool
				Lanes, Workgroup int
				Distances        []int
				Components       []string
			}{several, lanes, workgroup, distances, []string{"x", "y", "z", "w"}})}
	})
	flag := func(b bool) uint32 {
		if b {
			return 1
		}
		return 0
	}
	extents := []extent{w.extent(4), w.extent(4)}
	if several {
		extents = append(extents, perTask(4))
	}
	return s.ranges(w.tasks(), func(first, end int, parts []part) {
		bind, beforeBase := []Buffer{parts[0].of(x), parts[1].of(y)}, 0
		if several {
			bind, beforeBase = append(bind, parts[2].of(before)), parts[2].base/4
		}
		params := append(w.params(first, end), uint32(parts[0].base/4), uint32(parts[1].base/4), uint32(beforeBase), flag(exclusive),
			flag(backwards))
		s.dispatch(k, s.linear(ceilDiv(end-first, workgroup/lanes)), params, bind...)
	}, extents...)
}
