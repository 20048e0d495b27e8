package catalogue

import (
	"fmt"
	"slices"
	"sync"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// all is the catalogue. Generated methods follow its order, and the calls of the JavaScript API are numbered by it.
var all = [...]*program.Entry{
	// Elementwise.
	Neg, Abs, Sqrt, Recip, Exp, Log, Log2, Sin, Cos, Tanh, Floor, Ceil, Round, Trunc, Sign, ReLU, LeakyReLU, ELU, SELU, Sigmoid,
	GELU, GELUErf, SiLU, HardSwish, Mish, Softplus, Clip, Scale, PowScalar, Add, Sub, Mul, Div, Maximum, Minimum, Pow, Less,
	LessEqual, Equal, FMA, Lerp, Select, SwiGLU, BiasActivation,
	// Gradients of elementwise entries.
	ReLUBackward, GELUBackward, GELUErfBackward, SiLUBackward,
	// Reductions and scans.
	Sum, Mean, Max, Min, ArgMax, ArgMin, NormL1, NormL2, NormLInf, DotProduct, SumSquares, CumSum, Inspect, TopK,
	// Rows, and norms of several operands.
	Softmax, LogSoftmax, LayerNorm, RMSNorm, L2Normalize, GatedRMSNorm, AddRMSNorm, AddLayerNorm, RMSNormBackward,
	LayerNormBackward,
	// Matrices, in floats and in quantised blocks.
	MatMul, MatVec, VecMat, RMSNormMatVec, QKV, GateUpSwiGLU, Dequantize, QuantMatMulRowMajor, QuantMatMulColMajor,
	QuantRMSNormMatVec, QuantQKV, QuantGateUpSwiGLU, MatMulExperts,
	// Windows.
	Conv2D, MaxPool2D, AvgPool2D, Conv1D,
	// Movement.
	Transpose, Slice, Pad, Concat, Embedding, Copy, Reshape, Fill, Cast, Gather, TakeAlong, Scatter, ScatterAdd,
	EmbeddingBackward,
	// Attention, its caches and positions.
	Attention, AttentionLSE, AttentionBackward, PagedAttention, KVAppend, KVAppendPaged, Rope, RopeBackward,
	// Losses and training.
	SoftmaxBackward, CrossEntropy, CrossEntropyBackward, SwiGLUBackward, ClipByNorm, Adam,
	// Random numbers.
	RandomUniform, RandomNormal,
	// Compression.
	LZ4Compress, LZ4Decompress,
}

// All returns the catalogue in its order.
func All() []*program.Entry { return slices.Clone(all[:]) }

var byName struct {
	once sync.Once
	of   map[string]*program.Entry
}

// Lookup returns the entry of that name, or nil.
func Lookup(name string) *program.Entry {
	byName.once.Do(func() {
		byName.of = make(map[string]*program.Entry, len(all))
		for _, e := range all {
			byName.of[e.Name] = e
		}
	})
	return byName.of[name]
}

var activations = [...]*program.Entry{compute.ReLU: ReLU, compute.GELU: GELU, compute.GELUErf: GELUErf, compute.SiLU: SiLU,
	compute.Sigmoid: Sigmoid, compute.Tanh: Tanh}

// ActivationEntry returns the unary entry that an activation stands for; nil for none.
func ActivationEntry(a compute.Activation) (*program.Entry, error) {
	if int(a) >= len(activations) {
		return nil, fmt.Errorf("activation %d: %w", a, compute.ErrArgument)
	}
	return activations[a], nil
}
