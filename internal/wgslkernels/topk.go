package wgslkernels

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/wgsl"
)

// topKRoom is the number of pairs that a workgroup sorts: what workgroup memory holds, and as many beside the largest K as two tiles.
const topKRoom = 1792

// topK chooses among parts of rows where rows are few and long, then among what these gave.
func topK(s *step) error {
	rows, cols := program.RowsCols(s.Operands[0].Shape)
	k := s.Attr.Options.(compute.TopKOptions).K
	x, pairs := operand(0), false
	// A tile of rows in ascending order is sorted each time, by the arena's eleven passes of up to eleven steps.
	workgroup := s.workgroup()
	most := loopBudget / (72 * (2 + topKRoom/workgroup)) * 2 * workgroup
	for {
		bytes := 4
		if pairs {
			bytes = 8
		}
		least := max(2*smallTask, 8*k) // elements of a part
		parts := max(1, min(ceilDiv(manyTasks, max(rows, 1)), cols/least), ceilDiv(cols, most))
		chunk := max(4, ceilDiv(cols, 4*parts)*4)
		w := work{rows: rows, cols: cols, parts: ceilDiv(cols, chunk), chunk: chunk}
		if w.parts == 1 {
			return s.topKTasks(w, k, x, bytes, []Buffer{result, resultAt(1)}, []int{4, 4})
		}
		to := s.NewScratch(8 * k * w.tasks())
		if err := s.topKTasks(w, k, x, bytes, []Buffer{to}, []int{8}); err != nil {
			return err
		}
		x, pairs, cols = to, true, w.parts*k
	}
}

func (s *step) topKTasks(w work, k int, x Buffer, bytes int, to []Buffer, toBytes []int) error {
	workgroup := s.workgroup()
	fromPairs, toPairs := bytes == 8, len(to) == 1
	kernel := cached(fmt.Sprintf("top_k/%v/%v/%d", fromPairs, toPairs, workgroup), func() *wgsl.Kernel {
		bindings := []wgsl.Access{wgsl.Read, wgsl.ReadWrite}
		if !toPairs {
			bindings = append(bindings, wgsl.ReadWrite)
		}
		functions := "order_value"
		if !fromPairs {
			functions += " order_key"
		}
		return &wgsl.Kernel{Bindings: bindings, Uniform: 48, Workgroup: [3]uint32{uint32(workgroup), 1, 1}, Shared: 8*topKRoom + 8,
			Source: render("top_k.wgsl", struct {
				FromPairs, ToPairs bool
				Workgroup, Room    int
				Functions          string
			}{fromPairs, toPairs, workgroup, topKRoom, functionsOf(functions)})}
	})
	extents := []extent{w.extent(bytes)}
	for _, b := range toBytes {
		extents = append(extents, perTask(b*k))
	}
	return s.ranges(w.tasks(), func(first, end int, parts []part) {
		bind := []Buffer{parts[0].of(x)}
		for i, b := range to {
			bind = append(bind, parts[1+i].of(b))
		}
		params := append(w.params(first, end), uint32(parts[0].base/bytes), uint32(parts[1].base/toBytes[0]), uint32(k), infBits)
		s.dispatch(kernel, s.linear(end-first), params, bind...)
	}, extents...)
}
