package exec

import (
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/wavelane/wavelane/onnx/internal/host"
	"github.com/wavelane/wavelane/onnx/internal/symbolic"
)

var (
	inferenceOnce  sync.Once
	inferenceTable map[string]func(c *inferring) []*inferred
)

// inferenceRules is how the shapes of operators' results follow from operands. Those that are not here have results of unknown shape. The
// table is not the value of a variable from the start, so that programs that do not infer shapes do not contain it.
func inferenceRules() map[string]func(c *inferring) []*inferred {
	inferenceOnce.Do(func() { inferenceTable = newInferenceRules() })
	return inferenceTable
}

func newInferenceRules() map[string]func(c *inferring) []*inferred {
	rules := map[string]func(c *inferring) []*inferred{}
	add := func(rule func(c *inferring) []*inferred, names string) {
		for n := range strings.FieldsSeq(names) {
			rules[n] = rule
		}
	}
	add(likeOperand, `Abs Neg Sqrt Exp Log Reciprocal Floor Ceil Round Sin Cos Tan Asin Acos Atan Sinh Cosh Tanh Asinh Acosh Atanh Erf Sign
		Sigmoid Relu Softplus HardSwish Mish Softsign Not BitwiseNot IsNaN IsInf Clip LeakyRelu Elu Celu Selu Gelu HardSigmoid ThresholdedRelu
		Shrink Swish Trilu ReverseSequence CumSum CumProd Softmax LogSoftmax Hardmax InstanceNormalization GroupNormalization
		LayerNormalization RMSNormalization SimplifiedLayerNormalization LpNormalization MeanVarianceNormalization LRN RotaryEmbedding QuantizeLinear
		DequantizeLinear ScatterElements Scatter ScatterND Dropout BatchNormalization BiasGelu FastGelu QuickGelu SkipLayerNormalization
		SkipSimplifiedLayerNormalization TensorScatter PRelu Bernoulli EyeLike RandomNormalLike RandomUniformLike`)
	add(inferElementwise, `Add Sub Mul Div Mod Max Min Equal Less Greater LessOrEqual GreaterOrEqual Where`)
	add(func(c *inferring) []*inferred { return []*inferred{c.broadcast()} }, `Sum Mean Pow And Or Xor BitwiseAnd BitwiseOr BitwiseXor BitShift`)
	add(inferCast, "Cast CastLike Identity")
	add(inferConstant, "Constant")
	add(inferConstantOfShape, "ConstantOfShape")
	add(inferShape, "Shape")
	add(inferSize, "Size")
	add(inferRange, "Range")
	add(inferReshape, "Reshape")
	add(inferFlatten, "Flatten")
	add(inferSqueeze, "Squeeze")
	add(inferUnsqueeze, "Unsqueeze")
	add(inferTranspose, "Transpose")
	add(inferConcat, "Concat")
	add(inferSplit, "Split")
	add(inferSlice, "Slice")
	add(inferExpand, "Expand")
	add(inferTile, "Tile")
	add(inferPad, "Pad")
	add(inferGather, "Gather")
	add(inferGatherElements, "GatherElements")
	add(inferOneHot, "OneHot")
	add(inferReduce, `ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceSumSquare`)
	add(inferArg, "ArgMax ArgMin")
	add(inferTopK, "TopK")
	add(inferMatMul, "MatMul")
	add(inferGemm, "Gemm")
	add(inferConv, "Conv")
	add(inferConvTranspose, "ConvTranspose")
	add(inferPool, "MaxPool AveragePool LpPool")
	add(inferGlobalPool, "GlobalAveragePool GlobalMaxPool GlobalLpPool")
	add(inferResize, "Resize Upsample")
	add(inferBlocks(1), "DepthToSpace")
	add(inferBlocks(-1), "SpaceToDepth")
	add(inferRecurrent, "LSTM GRU RNN")
	return rules
}

func likeOperand(c *inferring) []*inferred {
	x := c.ranked(0)
	if x == nil {
		return nil
	}
	return []*inferred{ofShape(x.shape...)}
}

// repeated is the elements of v; a single one is repeated to n.
func (v *inferred) repeated(n int) []*symbolic.Int {
	if len(v.elems) == n || len(v.elems) != 1 {
		return v.elems
	}
	return slices.Repeat(v.elems, n)
}

// inferElementwise also computes the elements that shapes are made of. Those that come from dimensions are 0 or more.
func inferElementwise(c *inferring) []*inferred {
	if c.Version < 7 && c.Domain == "" { // the second operand may begin at an axis
		return likeOperand(c)
	}
	out := c.broadcast()
	if out == nil || len(c.in) > 3 {
		return []*inferred{out}
	}
	n := 0
	for _, v := range c.in {
		if v.elems == nil || len(v.shape) > 1 {
			return []*inferred{out}
		}
		n = max(n, len(v.elems))
	}
	lists := make([][]*symbolic.Int, len(c.in))
	for i, v := range c.in {
		if lists[i] = v.repeated(n); len(lists[i]) != n {
			return []*inferred{out}
		}
	}
	elems := make([]*symbolic.Int, n)
	for i := range elems {
		switch {
		case c.Op == "Where" && len(lists) == 3:
			if cond, ok := lists[0][i].Number(); ok && cond != 0 {
				elems[i] = lists[1][i]
			} else if ok {
				elems[i] = lists[2][i]
			}
		case len(lists) == 2:
			elems[i] = inferArithmetic(c.Op, lists[0][i], lists[1][i])
		}
	}
	out.elems = elems
	return []*inferred{out}
}

func inferArithmetic(op string, x, y *symbolic.Int) *symbolic.Int {
	a, aKnown := x.Number()
	b, bKnown := y.Number()
	both := aKnown && bKnown
	truth := func(t bool) *symbolic.Int {
		if t {
			return symbolic.Of(1)
		}
		return symbolic.Of(0)
	}
	switch op {
	case "Add":
		return x.Plus(y)
	case "Sub":
		return x.Minus(y)
	case "Mul":
		return x.Times(y)
	case "Div":
		switch {
		case both && b != 0 && (a != math.MinInt64 || b != -1):
			return symbolic.Of(a / b)
		case bKnown && b > 0 && !aKnown:
			return x.Over(b)
		case !bKnown:
			return x.OverExact(y)
		}
	case "Mod":
		if both && a >= 0 && b > 0 {
			return symbolic.Of(a % b)
		}
		if bKnown && b > 0 {
			return x.Minus(x.Over(b).Times(y))
		}
	case "Max", "Min":
		if both {
			return symbolic.Of(map[string]int64{"Max": max(a, b), "Min": min(a, b)}[op])
		}
		if x.Same(y) {
			return x
		}
	case "Equal":
		if d, ok := x.Minus(y).Number(); ok {
			return truth(d == 0)
		}
		if x != nil && y != nil && (aKnown && a < 0 || bKnown && b < 0) { // a dimension is not −1
			return truth(false)
		}
	case "Less":
		if d, ok := x.Minus(y).Number(); ok {
			return truth(d < 0)
		}
	case "Greater":
		if d, ok := x.Minus(y).Number(); ok {
			return truth(d > 0)
		}
	}
	return nil
}

func inferCast(c *inferring) []*inferred {
	x := c.ranked(0)
	if x == nil {
		return nil
	}
	out := *x
	if c.Op != "Identity" {
		out.t = nil
		to := host.Kind(c.attributes().int("to", 0))
		if to == host.Bool || c.Op == "CastLike" { // Equal and the like have 0 and 1 already, others are not followed
			out.elems = nil
		}
	}
	return []*inferred{&out}
}

func inferConstant(c *inferring) []*inferred {
	a := c.attributes()
	switch t := c.tensors["value"]; {
	case t != nil:
		return []*inferred{ofTensor(t.t)}
	case a.has("value_int"):
		return []*inferred{ofElems(numbers([]int64{a.int("value_int", 0)}), true)}
	case a.has("value_ints"):
		return []*inferred{ofElems(numbers(a.ints("value_ints")), false)}
	case a.has("value_float"):
		return []*inferred{ofShape()}
	case a.has("value_floats"):
		return []*inferred{ofShape(symbolic.Of(int64(len(a.floats("value_floats")))))}
	}
	return nil
}

func inferConstantOfShape(c *inferring) []*inferred {
	dims := c.ranked(0)
	if dims == nil || dims.elems == nil || len(dims.shape) != 1 {
		return nil
	}
	out := ofShape(dims.elems...)
	n, ok := volume(dims.elems).Number()
	fill := int64(0)
	if t := c.tensors["value"]; t != nil {
		if ok = ok && t.kind.IsInteger() && t.t.Len() == 1; ok {
			fill = t.t.Ints()[0]
		}
	} else {
		ok = false // of floats
	}
	if ok && n >= 0 && n <= mostElements {
		out.elems = slices.Repeat(numbers([]int64{fill}), int(n))
	}
	return []*inferred{out}
}

func inferShape(c *inferring) []*inferred {
	x := c.ranked(0)
	if x == nil {
		return nil
	}
	n := int64(len(x.shape))
	clamp := func(at int64) int64 {
		if at < 0 {
			at += n
		}
		return max(0, min(at, n))
	}
	from, to := clamp(c.attributes().int("start", 0)), clamp(c.attributes().int("end", n))
	return []*inferred{ofElems(append([]*symbolic.Int{}, x.shape[from:max(from, to)]...), false)}
}

func inferSize(c *inferring) []*inferred {
	x := c.ranked(0)
	if x == nil {
		return nil
	}
	return []*inferred{ofElems([]*symbolic.Int{volume(x.shape)}, true)}
}

func inferRange(c *inferring) []*inferred {
	var n [3]*symbolic.Int
	for i := range n {
		v := c.ranked(i)
		if v == nil || len(v.elems) != 1 {
			return []*inferred{ofShape(nil)}
		}
		n[i] = v.elems[0]
	}
	step, ok := n[2].Number()
	if !ok || step <= 0 {
		return []*inferred{ofShape(nil)}
	}
	count := n[1].Minus(n[0]).Plus(symbolic.Of(step - 1)).Over(step)
	if k, ok := count.Number(); ok {
		count = symbolic.Of(max(k, 0))
	}
	return []*inferred{ofShape(count)}
}
