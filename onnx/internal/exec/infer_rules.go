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

func inferReshape(c *inferring) []*inferred {
	x, to := c.ranked(0), c.ranked(1)
	var dims []*symbolic.Int
	switch {
	case to != nil && to.elems != nil && len(to.shape) == 1:
		dims = slices.Clone(to.elems)
	case len(c.Inputs) == 1:
		dims = numbers(c.attributes().ints("shape"))
	case to != nil && len(to.shape) == 1: // how many axes is known at least
		if n, ok := to.shape[0].Number(); ok && n >= 0 && n <= mostElements {
			return []*inferred{ofShape(make([]*symbolic.Int, n)...)}
		}
		return nil
	default:
		return nil
	}
	rest := -1
	for i, d := range dims {
		switch {
		case d.Is(0) && c.attributes().int("allowzero", 0) == 0:
			if dims[i] = nil; x != nil && i < len(x.shape) {
				dims[i] = x.shape[i]
			}
		case d.Is(-1):
			dims[i], rest = nil, i
		}
	}
	out := ofShape(dims...)
	if rest >= 0 && x != nil {
		left, by := slices.Clone(x.shape), symbolic.Of(1)
		for i, d := range dims {
			if i == rest {
				continue
			}
			if k := slices.IndexFunc(left, d.Same); k >= 0 {
				left = slices.Delete(left, k, k+1)
			} else {
				by = by.Times(d)
			}
		}
		out.shape[rest] = volume(left).OverExact(by)
	}
	if x != nil && x.elems != nil {
		out.elems = x.elems
	}
	return []*inferred{out}
}

func inferFlatten(c *inferring) []*inferred {
	x := c.ranked(0)
	if x == nil {
		return []*inferred{ofShape(nil, nil)}
	}
	axis := c.attributes().int("axis", 1)
	if axis < 0 {
		axis += int64(len(x.shape))
	}
	if axis < 0 || axis > int64(len(x.shape)) {
		return nil
	}
	return []*inferred{ofShape(volume(x.shape[:axis]), volume(x.shape[axis:]))}
}

// axes are given by an operand or an attribute, nil if they are left out.
func (c *inferring) axes(i int, rank int) (axes []int, ok bool) {
	n, given, ok := c.list(i, "axes")
	if !ok || !given {
		return nil, ok
	}
	axes, err := host.Axes(n, rank)
	if axes == nil {
		axes = []int{}
	}
	return axes, err == nil
}

func inferSqueeze(c *inferring) []*inferred {
	x := c.ranked(0)
	if x == nil {
		return nil
	}
	axes, ok := c.axes(1, len(x.shape))
	if !ok {
		return nil
	}
	out := ofShape()
	for d, n := range x.shape {
		_, number := n.Number()
		switch {
		case axes != nil && slices.Contains(axes, d):
		case axes == nil && n.Is(1):
		case axes == nil && !number:
			return nil
		default:
			out.shape = append(out.shape, n)
		}
	}
	out.elems = x.elems
	return []*inferred{out}
}

func inferUnsqueeze(c *inferring) []*inferred {
	x := c.ranked(0)
	if x == nil {
		return nil
	}
	n, given, ok := c.list(1, "axes")
	if !ok || !given || len(n) > mostElements {
		return nil
	}
	rank := len(x.shape) + len(n)
	axes, err := host.Axes(n, rank)
	if err != nil {
		return nil
	}
	out := ofShape()
	from := x.shape
	for d := range rank {
		switch {
		case slices.Contains(axes, d):
			out.shape = append(out.shape, symbolic.Of(1))
		case len(from) > 0:
			out.shape, from = append(out.shape, from[0]), from[1:]
		default:
			return nil // an axis is named twice
		}
	}
	out.elems = x.elems
	return []*inferred{out}
}

func inferTranspose(c *inferring) []*inferred {
	x := c.ranked(0)
	if x == nil {
		return nil
	}
	perm := c.attributes().ints("perm")
	if perm == nil {
		for d := range x.shape {
			perm = append(perm, int64(len(x.shape)-1-d))
		}
	}
	out := ofShape()
	for _, p := range perm {
		if p < 0 || p >= int64(len(x.shape)) {
			return nil
		}
		out.shape = append(out.shape, x.shape[p])
	}
	return []*inferred{out}
}

func inferConcat(c *inferring) []*inferred {
	var out *inferred
	elems, known := []*symbolic.Int{}, true
	axis := 0
	for i := range c.in {
		v := c.ranked(i)
		if v == nil {
			return nil
		}
		if known = known && v.elems != nil && len(v.shape) == 1; known {
			elems = append(elems, v.elems...)
		}
		if i == 0 {
			var err error
			if axis, err = host.Axis(c.attributes().int("axis", 0), len(v.shape)); err != nil || len(v.shape) == 0 {
				return nil
			}
			out = ofShape(slices.Clone(v.shape)...)
			continue
		}
		if len(v.shape) != len(out.shape) {
			return nil
		}
		for d, n := range v.shape {
			if d == axis {
				out.shape[d] = out.shape[d].Plus(n)
			} else if _, number := n.Number(); number || out.shape[d] == nil { // they are equal, so a number is the best that is known
				out.shape[d] = n
			}
		}
	}
	if out != nil && known && len(elems) <= mostElements {
		out.elems = elems
	}
	return []*inferred{out}
}

func inferSplit(c *inferring) []*inferred {
	x := c.ranked(0)
	if x == nil || len(x.shape) == 0 {
		return nil
	}
	axis, err := host.Axis(c.attributes().int("axis", 0), len(x.shape))
	if err != nil {
		return nil
	}
	sizes, given, ok := c.list(1, "split")
	parts := max(len(c.Outputs), 1)
	total, number := x.shape[axis].Number()
	out := make([]*inferred, parts)
	for i := range out {
		out[i] = ofShape(slices.Clone(x.shape)...)
		var n *symbolic.Int
		switch {
		case given && ok && len(sizes) == parts:
			n = symbolic.Of(sizes[i])
		case given:
		case number: // of equal size, the last may be smaller
			size := (total + int64(parts) - 1) / int64(parts)
			n = symbolic.Of(max(0, min(size, total-int64(i)*size)))
		}
		out[i].shape[axis] = n
	}
	return out
}

func inferSlice(c *inferring) []*inferred {
	x := c.ranked(0)
	if x == nil {
		return nil
	}
	out := ofShape(make([]*symbolic.Int, len(x.shape))...)
	starts, _, ok1 := c.list(1, "starts")
	ends, _, ok2 := c.list(2, "ends")
	list, given, ok3 := c.list(3, "axes")
	steps, stepped, ok4 := c.list(4, "")
	if !given && !ok1 {
		return []*inferred{out}
	}
	if !given {
		for d := range starts {
			list = append(list, int64(d))
		}
	}
	if !stepped {
		steps = slices.Repeat([]int64{1}, len(starts))
	}
	axes, err := host.Axes(list, len(x.shape))
	if err != nil || !ok3 {
		return []*inferred{out}
	}
	for d, n := range x.shape {
		if !slices.Contains(axes, d) {
			out.shape[d] = n
		}
	}
	if !ok1 || !ok2 || !ok4 || len(starts) != len(axes) || len(ends) != len(axes) || len(steps) != len(axes) {
		return []*inferred{out}
	}
	for i, d := range axes {
		out.shape[d] = sliced(x.shape[d], starts[i], ends[i], steps[i])
		if n, ok := x.shape[d].Number(); ok && len(x.shape) == 1 && len(axes) == 1 && int64(len(x.elems)) == n {
			if count, ok := out.shape[d].Number(); ok {
				from := starts[i]
				if from < 0 {
					from += n
				}
				if steps[i] < 0 {
					from = min(from, n-1)
				}
				out.elems = []*symbolic.Int{}
				for k := range count {
					out.elems = append(out.elems, x.elems[max(from, 0)+k*steps[i]])
				}
			}
		}
	}
	return []*inferred{out}
}

// sliced is the size of a slice of an axis of n elements. An axis whose size is not a number is taken to reach beyond start and end.
func sliced(n *symbolic.Int, start, end, step int64) *symbolic.Int {
	if step == 0 || step == math.MinInt64 {
		return nil
	}
	if size, ok := n.Number(); ok {
		clamp := func(at, low, high int64) int64 {
			if at < 0 {
				at += size
			}
			return max(low, min(at, high))
		}
		if step > 0 {
			return symbolic.Of(max(0, clamp(end, 0, size)-clamp(start, 0, size)+step-1) / step)
		}
		return symbolic.Of(max(0, clamp(start, -1, size-1)-clamp(end, -1, size-1)-step-1) / -step)
	}
	const far = 100_000_000 // more than any dimension, and less than what exporters write for the end
	switch {
	case step == -1 && start == -1 && end <= -far:
		return n
	case step < 0 || start <= -far || end <= -far || start >= far:
		return nil
	}
	from, to := symbolic.Of(start), n
	if start < 0 {
		from = n.Plus(from)
	}
	switch {
	case end < 0:
		to = n.Plus(symbolic.Of(end))
	case end < far && start < 0:
		return nil
	case end < far:
		to = symbolic.Of(end)
	}
	return to.Minus(from).Plus(symbolic.Of(step - 1)).Over(step)
}

func inferExpand(c *inferring) []*inferred {
	x, to := c.ranked(0), c.ranked(1)
	if x == nil || to == nil || to.elems == nil || len(to.shape) != 1 {
		return nil
	}
	out := ofShape(broadcastDims(x.shape, to.elems)...)
	if n, ok := volume(out.shape).Number(); ok && len(x.elems) == 1 && n >= 0 && n <= mostElements {
		out.elems = slices.Repeat(x.elems, int(n))
	}
	return []*inferred{out}
}

func inferTile(c *inferring) []*inferred {
	x, times := c.ranked(0), c.ranked(1)
	if x == nil {
		return nil
	}
	out := ofShape(make([]*symbolic.Int, len(x.shape))...)
	if times != nil && len(times.elems) == len(x.shape) {
		for d := range out.shape {
			out.shape[d] = x.shape[d].Times(times.elems[d])
		}
	}
	return []*inferred{out}
}

func inferPad(c *inferring) []*inferred {
	x := c.ranked(0)
	if x == nil {
		return nil
	}
	pads, axes := c.attributes().ints("pads"), []int(nil)
	elems := numbers(pads)
	if len(c.Inputs) > 1 {
		elems = nil
		if p := c.ranked(1); p != nil {
			elems = p.elems
		}
	}
	ok := true
	if c.arg(3) != nil || len(c.Inputs) > 3 && c.Inputs[3] != "" {
		axes, ok = c.axes(3, len(x.shape))
	} else {
		for d := range x.shape {
			axes = append(axes, d)
		}
	}
	out := ofShape(slices.Clone(x.shape)...)
	if !ok || len(elems) != 2*len(axes) {
		return []*inferred{ofShape(make([]*symbolic.Int, len(x.shape))...)}
	}
	for i, d := range axes {
		out.shape[d] = out.shape[d].Plus(elems[i]).Plus(elems[len(axes)+i])
	}
	return []*inferred{out}
}

func inferGather(c *inferring) []*inferred {
	x, ids := c.ranked(0), c.ranked(1)
	if x == nil || ids == nil {
		return nil
	}
	axis, err := host.Axis(c.attributes().int("axis", 0), len(x.shape))
	if err != nil || len(x.shape) == 0 {
		return nil
	}
	out := ofShape(slices.Concat(x.shape[:axis], ids.shape, x.shape[axis+1:])...)
	if at, ok := ids.numeric(); ok && x.elems != nil && len(x.shape) == 1 {
		for _, i := range at {
			if i < 0 {
				i += int64(len(x.elems))
			}
			if i < 0 || i >= int64(len(x.elems)) {
				return nil
			}
			out.elems = append(out.elems, x.elems[i])
		}
	}
	return []*inferred{out}
}

func inferGatherElements(c *inferring) []*inferred {
	ids := c.ranked(1)
	if ids == nil {
		return nil
	}
	return []*inferred{ofShape(ids.shape...)}
}

func inferOneHot(c *inferring) []*inferred {
	ids, depth := c.ranked(0), c.ranked(1)
	if ids == nil {
		return nil
	}
	axis, err := host.Axis(c.attributes().int("axis", -1), len(ids.shape)+1)
	if err != nil {
		return nil
	}
	var n *symbolic.Int
	if depth != nil && len(depth.elems) == 1 {
		n = depth.elems[0]
	}
	return []*inferred{ofShape(slices.Insert(slices.Clone(ids.shape), axis, n)...)}
}

// reduced has axes left out, or of 1.
func (v *inferred) reduced(axes []int, keep bool) *inferred {
	out := ofShape()
	for d, n := range v.shape {
		switch {
		case !slices.Contains(axes, d):
			out.shape = append(out.shape, n)
		case keep:
			out.shape = append(out.shape, symbolic.Of(1))
		}
	}
	return out
}

func inferReduce(c *inferring) []*inferred {
	x := c.ranked(0)
	if x == nil {
		return nil
	}
	axes, ok := c.axes(1, len(x.shape))
	if !ok {
		return nil
	}
	if len(axes) == 0 {
		if c.attributes().int("noop_with_empty_axes", 0) != 0 {
			return []*inferred{ofShape(x.shape...)}
		}
		for d := range x.shape {
			axes = append(axes, d)
		}
	}
	return []*inferred{x.reduced(axes, c.attributes().int("keepdims", 1) != 0)}
}

func inferArg(c *inferring) []*inferred {
	x := c.ranked(0)
	if x == nil {
		return nil
	}
	axis, err := host.Axis(c.attributes().int("axis", 0), len(x.shape))
	if err != nil {
		return nil
	}
	return []*inferred{x.reduced([]int{axis}, c.attributes().int("keepdims", 1) != 0)}
}

func inferTopK(c *inferring) []*inferred {
	x, k := c.ranked(0), c.ranked(1)
	if x == nil {
		return nil
	}
	axis, err := host.Axis(c.attributes().int("axis", -1), len(x.shape))
	if err != nil || len(x.shape) == 0 {
		return nil
	}
	out := ofShape(slices.Clone(x.shape)...)
	switch {
	case k != nil && len(k.elems) == 1:
		out.shape[axis] = k.elems[0]
	case c.attributes().has("k"):
		out.shape[axis] = symbolic.Of(c.attributes().int("k", 0))
	default:
		out.shape[axis] = nil
	}
	return []*inferred{out, ofShape(out.shape...)}
}

func inferMatMul(c *inferring) []*inferred {
	x, y := c.ranked(0), c.ranked(1)
	if x == nil || y == nil || len(x.shape) == 0 || len(y.shape) == 0 {
		return nil
	}
	a, b := x.shape, y.shape
	var m, n []*symbolic.Int
	if len(a) > 1 {
		m, a = a[len(a)-2:len(a)-1], a[:len(a)-2]
	} else {
		a = nil
	}
	if len(b) > 1 {
		n, b = b[len(b)-1:], b[:len(b)-2]
	} else {
		b = nil
	}
	return []*inferred{ofShape(slices.Concat(broadcastDims(a, b), m, n)...)}
}

func inferGemm(c *inferring) []*inferred {
	x, y := c.ranked(0), c.ranked(1)
	if x == nil || y == nil || len(x.shape) != 2 || len(y.shape) != 2 {
		return []*inferred{ofShape(nil, nil)}
	}
	m, n := x.shape[0], y.shape[1]
	if c.attributes().int("transA", 0) != 0 {
		m = x.shape[1]
	}
	if c.attributes().int("transB", 0) != 0 {
		n = y.shape[0]
	}
	return []*inferred{ofShape(m, n)}
}

// windows is the spatial shape of a convolution or pooling.
func (c *inferring) windows(spatial []*symbolic.Int, size []int) []*symbolic.Int {
	a := c.attributes()
	w, err := a.windowOf(slices.Repeat([]int{1 << 20}, len(spatial)), size)
	if err != nil {
		return make([]*symbolic.Int, len(spatial))
	}
	auto := a.text("auto_pad", "NOTSET")
	out := make([]*symbolic.Int, len(spatial))
	for d, n := range spatial {
		stride := int64(w.stride[d])
		if strings.HasPrefix(auto, "SAME") {
			out[d] = n.Plus(symbolic.Of(stride - 1)).Over(stride)
			continue
		}
		if v, ok := n.Number(); ok {
			one := window{size: size[d : d+1], stride: w.stride[d : d+1], dilation: w.dilation[d : d+1], before: w.before[d : d+1], after: w.after[d : d+1], ceil: w.ceil}
			if o, err := one.output([]int{int(v)}); err == nil {
				out[d] = symbolic.Of(int64(o[0]))
			}
			continue
		}
		if w.ceil && stride > 1 { // a last window in the padding is left out
			continue
		}
		out[d] = n.Plus(symbolic.Of(int64(w.before[d] + w.after[d] - w.reach(d)))).Over(stride).Plus(symbolic.Of(1))
	}
	return out
}

func inferConv(c *inferring) []*inferred {
	x, weights := c.ranked(0), c.ranked(1)
	if x == nil || weights == nil || len(x.shape) < 3 || len(weights.shape) != len(x.shape) {
		return nil
	}
	out := append([]*symbolic.Int{x.shape[0], weights.shape[0]}, make([]*symbolic.Int, len(x.shape)-2)...)
	size := make([]int, len(x.shape)-2)
	for d := range size {
		n, ok := weights.shape[2+d].Number()
		if !ok {
			return []*inferred{ofShape(out...)}
		}
		size[d] = int(n)
	}
	return []*inferred{ofShape(append(out[:2], c.windows(x.shape[2:], size)...)...)}
}

func inferConvTranspose(c *inferring) []*inferred {
	x, weights := c.ranked(0), c.ranked(1)
	if x == nil || weights == nil || len(x.shape) < 3 || len(weights.shape) != len(x.shape) {
		return nil
	}
	a := c.attributes()
	n := len(x.shape) - 2
	out := ofShape(append([]*symbolic.Int{x.shape[0], weights.shape[1].Times(symbolic.Of(a.int("group", 1)))}, make([]*symbolic.Int, n)...)...)
	if given := a.ints("output_shape"); len(given) == n {
		copy(out.shape[2:], numbers(given))
		return []*inferred{out}
	}
	at := func(name string, d int, def int64) int64 {
		if list := a.ints(name); d < len(list) {
			return list[d]
		}
		return def
	}
	for d := range n {
		size, ok := weights.shape[2+d].Number()
		stride := symbolic.Of(at("strides", d, 1))
		if auto := a.text("auto_pad", "NOTSET"); strings.HasPrefix(auto, "SAME") {
			out.shape[2+d] = x.shape[2+d].Times(stride)
		} else if ok {
			pads := at("pads", d, 0) + at("pads", n+d, 0)
			if auto == "VALID" {
				pads = 0
			}
			more := at("output_padding", d, 0) + (size-1)*at("dilations", d, 1) + 1 - pads
			out.shape[2+d] = x.shape[2+d].Minus(symbolic.Of(1)).Times(stride).Plus(symbolic.Of(more))
		}
	}
	return []*inferred{out}
}

func inferPool(c *inferring) []*inferred {
	x := c.ranked(0)
	if x == nil || len(x.shape) < 3 {
		return nil
	}
	out := ofShape(append(slices.Clone(x.shape[:2]), make([]*symbolic.Int, len(x.shape)-2)...)...)
	if size := toInts(c.attributes().ints("kernel_shape")); len(size) == len(x.shape)-2 {
		copy(out.shape[2:], c.windows(x.shape[2:], size))
	}
	return []*inferred{out, ofShape(out.shape...)}
}

func inferGlobalPool(c *inferring) []*inferred {
	x := c.ranked(0)
	if x == nil || len(x.shape) < 2 {
		return nil
	}
	return []*inferred{ofShape(append(slices.Clone(x.shape[:2]), slices.Repeat([]*symbolic.Int{symbolic.Of(1)}, len(x.shape)-2)...)...)}
}

func inferResize(c *inferring) []*inferred {
	x := c.ranked(0)
	if x == nil {
		return nil
	}
	a := c.attributes()
	out := ofShape(make([]*symbolic.Int, len(x.shape))...)
	if a.has("axes") || a.text("keep_aspect_ratio_policy", "stretch") != "stretch" {
		return []*inferred{out}
	}
	if sizes := c.ranked(3); sizes != nil && len(sizes.elems) == len(x.shape) {
		return []*inferred{ofShape(sizes.elems...)}
	}
	scaleAt := 2
	if c.Op == "Upsample" || c.Version < 11 {
		scaleAt = 1
	}
	var scales []float64
	if v := c.arg(scaleAt); v != nil && v.t != nil {
		scales = v.t.Floats()
	} else if len(c.Inputs) == 1 {
		for _, s := range a.floats("scales") {
			scales = append(scales, float64(s))
		}
	}
	if len(scales) != len(x.shape) {
		return []*inferred{out}
	}
	for d, s := range scales {
		n, number := x.shape[d].Number()
		switch whole, part := math.Modf(s); {
		case part == 0 && whole >= 1 && whole < 1<<20:
			out.shape[d] = x.shape[d].Times(symbolic.Of(int64(whole)))
		case number && s > 0 && s < 1<<20:
			out.shape[d] = symbolic.Of(int64(float64(n) * s))
		case s > 0 && 1/s == math.Trunc(1/s) && 1/s < 1<<20:
			out.shape[d] = x.shape[d].Over(int64(1 / s))
		}
	}
	return []*inferred{out}
}

// inferBlocks moves blocks of pixels into channels, or back.
func inferBlocks(direction int) func(c *inferring) []*inferred {
	return func(c *inferring) []*inferred {
		x, n := c.ranked(0), c.attributes().int("blocksize", 0)
		if x == nil || len(x.shape) != 4 || n < 1 || n > 1<<20 {
			return nil
		}
		b := symbolic.Of(n)
		if direction > 0 {
			return []*inferred{ofShape(x.shape[0], x.shape[1].Over(n*n), x.shape[2].Times(b), x.shape[3].Times(b))}
		}
		return []*inferred{ofShape(x.shape[0], x.shape[1].Times(b).Times(b), x.shape[2].Over(n), x.shape[3].Over(n))}
	}
}

func inferRecurrent(c *inferring) []*inferred {
	x := c.ranked(0)
	if x == nil || len(x.shape) != 3 {
		return nil
	}
	a := c.attributes()
	directions := symbolic.Of(1)
	if a.text("direction", "forward") == "bidirectional" {
		directions = symbolic.Of(2)
	}
	var hidden *symbolic.Int
	if n := a.int("hidden_size", 0); n > 0 {
		hidden = symbolic.Of(n)
	}
	if a.int("layout", 0) != 0 {
		state := ofShape(x.shape[0], directions, hidden)
		return []*inferred{ofShape(x.shape[0], x.shape[1], directions, hidden), state, state}
	}
	state := ofShape(directions, x.shape[1], hidden)
	return []*inferred{ofShape(x.shape[0], directions, x.shape[1], hidden), state, state}
}
