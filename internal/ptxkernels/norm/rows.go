package norm

import (
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/threadgroup"
)

// Kernels are those of each entry.
var Kernels = map[*program.Entry]rows{
	catalogue.Softmax:      rowsKernel("softmax", "exp(x − max)/Σexp(x − max) of rows.", 2, noSecond, 0, 0, expNormalize),
	catalogue.LogSoftmax:   rowsKernel("log_softmax", "x − max − log Σexp(x − max) of rows.", 2, noSecond, 0, 0, logExpNormalize),
	catalogue.LayerNorm:    rowsKernel("layer_norm", "(x − mean)/√(variance + eps)·v + w of rows.", 3, noSecond, 1, 2, layerNorm),
	catalogue.RMSNorm:      rowsKernel("rms_norm", "x/√(mean(x²) + eps)·v of rows.", 1, noSecond, 1, 1, rmsNorm),
	catalogue.L2Normalize:  rowsKernel("l2_normalize", "x/√(Σx² + eps) of rows.", 1, noSecond, 1, 0, l2Normalize),
	catalogue.GatedRMSNorm: rowsKernel("gated_rms_norm", "x/√(mean(x²) + eps)·v·silu(m) of rows.", 1, gated, 1, 1, rmsNorm),
	catalogue.AddRMSNorm:   rowsKernel("add_rms_norm", "sum = x + m and sum/√(mean(sum²) + eps)·v of rows.", 1, added, 1, 1, rmsNorm),
	catalogue.AddLayerNorm: rowsKernel("add_layer_norm", "sum = x + m and (sum − mean)/√(variance + eps)·v + w of rows.",
		3, added, 1, 2, layerNorm),
	catalogue.RMSNormBackward: rowsKernel("rms_norm_backward", "The gradient of rms_norm for x, m being that of its result; norms "+
		"are 0 and 1/√(mean(x²) + eps) of each row.", 2, Gradient, 1, 1, rmsNormBackward),
	catalogue.LayerNormBackward: rowsKernel("layer_norm_backward", "The gradient of layer_norm for x, m being that of its result; "+
		"norms are mean and 1/√(variance + eps) of each row.", 5, Gradient, 1, 1, layerNormBackward),
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
	if err != nil {
		return err
	}
	p := rowsParams{X: kit.In(0), Y: kit.OutAt(len(s.Results) - 1)}
	rest := 1
	if Kernels[s.Entry].second != noSecond {
		p.M, rest = []kit.Buffer{kit.In(1)}, 2
	}
	for i := rest; i < len(s.Operands); i++ {
		p.Vectors = append(p.Vectors, kit.In(i))
	}
	if len(s.Results) > 1 {
		p.Sum = []kit.Buffer{kit.Out}
	}
	rowsStep(s, h, p)
	return nil
}

// rowsStep launches the step's kernel of rows on those tensors.
func rowsStep(s *kit.Step, h *kit.Prologue, p rowsParams) {
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
	units := 0
	for _, u := range []int{KeptUnits, 1} {
		if w.Parts == 1 && cols <= 4*w.Lanes*u {
			units = u
		}
	}
	k := Kernels[s.Entry]
	w.Stages(s, k.words, func(stage uint32, partial kit.Buffer) {
		p.Work, p.Stage, p.Units, p.Eps, p.Partial = w.Work(), int(stage), units, s.Attr.Scalars, partial
		s.LaunchWith(h, nil, k.Kernel, w.Grid(), p)
	})
}
