package norm

import (
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/threadgroup"
)

// Kernels are those of each entry.
var Kernels = map[*program.Entry]struct {
	*kit.Kernel
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

	catalogue.RMSNormBackward:   {rmsNormBackwardKernel, 2, Gradient},
	catalogue.LayerNormBackward: {layerNormBackwardKernel, 5, Gradient},
}

// longestPart is the number of elements of a task at most, where rows are too long to be kept: a lane then merges 128 tiles.
const longestPart = 128 * 4 * loopSingles * threadgroup.Threads

// Rows lowers norms and softmax over rows, and their gradients.
func Rows(s *kit.Step) error {
	if Kernels[s.Entry].second == Gradient {
		normBackward(s)
		return nil
	}
	rows, cols := program.RowsCols(s.Operands[0].Shape)
	h, err := s.Prologue(rows, cols)
	if err == nil {
		rowsStep(s, h, s.Tensors())
	}
	return err
}

// rowsStep launches the step's kernel of rows on those tensors, in the order of the kernel's parameters.
func rowsStep(s *kit.Step, h *kit.Prologue, tensors []any) {
	rows, cols := program.RowsCols(s.Operands[0].Shape)
	const blocks = 4 // per multiprocessor
	w := threadgroup.Partition{Rows: rows, Cols: cols, Parts: 1, Chunk: kit.CeilDiv(cols, 4) * 4}
	if cols > 4*KeptUnits*threadgroup.Threads {
		w = threadgroup.Split(s, rows, cols, blocks, longestPart)
	}
	w.Vector = cols%4 == 0 // so that every row begins at a multiple of 16 bytes
	if w.Lanes = threadgroup.Lanes(s, w, 1, 4, KeptUnits); w.Parts > 1 {
		w.Lanes = threadgroup.Threads
	}
	k := Kernels[s.Entry]
	run := func(stage uint32, units int, partial kit.Buffer) {
		arguments := []any{w.Args(), stage, units}
		if len(s.Attr.Scalars) > 0 {
			arguments = append(arguments, s.Attr.Scalars[0])
		}
		s.LaunchWith(h, nil, k.Kernel, w.Grid(), append(append(arguments, tensors...), partial)...)
	}
	switch {
	case w.Parts > 1:
		partial := s.NewScratch(4 * k.size * w.Tasks())
		run(partRows, 0, partial)
		run(writeRows, 0, partial)
	case cols <= 4*w.Lanes:
		run(wholeRows, 1, kit.Out)
	case cols <= 4*w.Lanes*KeptUnits:
		run(wholeRows, KeptUnits, kit.Out)
	default:
		run(wholeRows, 0, kit.Out)
	}
}
