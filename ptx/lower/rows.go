package lower

import (
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

var rowsKernels = map[*program.Entry]struct {
	*Kernel
	size int // words of a partial result
	second
}{
	catalogue.Softmax:      {softmaxKernel, 2, noSecond},
	catalogue.LogSoftmax:   {logSoftmaxKernel, 2, noSecond},
	catalogue.LayerNorm:    {layerNormKernel, 3, noSecond},
	catalogue.RMSNorm:      {rmsNormKernel, 1, noSecond},
	catalogue.L2Normalize:  {l2NormalizeKernel, 1, noSecond},
	catalogue.GatedRMSNorm: {gatedRMSNormKernel, 1, gated},
	catalogue.AddRMSNorm:   {addRMSNormKernel, 1, added},
	catalogue.AddLayerNorm: {addLayerNormKernel, 3, added},

	catalogue.RMSNormBackward:   {rmsNormBackwardKernel, 2, gradient},
	catalogue.LayerNormBackward: {layerNormBackwardKernel, 5, gradient},
}

// longestPart is the number of elements of a task at most, where rows are too long to be kept: a lane then merges 128 tiles.
const longestPart = 128 * 4 * loopSingles * teamThreads

func rowwise(s *step) error {
	if rowsKernels[s.Entry].second == gradient {
		normBackward(s)
		return nil
	}
	rows, cols := program.RowsCols(s.in[0].Shape)
	h, err := s.head(rows, cols)
	if err == nil {
		rowsStep(s, h, s.tensors())
	}
	return err
}

// rowsStep launches the step's kernel of rows on those tensors, in the order of the kernel's parameters.
func rowsStep(s *step, h *head, tensors []any) {
	rows, cols := program.RowsCols(s.in[0].Shape)
	const blocks = 4 // per multiprocessor
	w := work{rows: rows, cols: cols, parts: 1, chunk: ceilDiv(cols, 4) * 4}
	if cols > 4*keptUnits*teamThreads {
		w = splitRows(s, rows, cols, blocks, longestPart)
	}
	w.vector = cols%4 == 0 // so that every row begins at a multiple of 16 bytes
	if w.lanes = teamLanes(s, w, 1, 4, keptUnits); w.parts > 1 {
		w.lanes = teamThreads
	}
	k := rowsKernels[s.Entry]
	run := func(stage uint32, units int, partial Buffer) {
		arguments := []any{w.args(), stage, units}
		if len(s.Attr.Scalars) > 0 {
			arguments = append(arguments, s.Attr.Scalars[0])
		}
		s.launchWith(h, nil, k.Kernel, w.grid(), append(append(arguments, tensors...), partial)...)
	}
	switch {
	case w.parts > 1:
		partial := s.scratch(4 * k.size * w.tasks())
		run(partRows, 0, partial)
		run(writeRows, 0, partial)
	case cols <= 4*w.lanes:
		run(wholeRows, 1, result)
	case cols <= 4*w.lanes*keptUnits:
		run(wholeRows, keptUnits, result)
	default:
		run(wholeRows, 0, result)
	}
}
