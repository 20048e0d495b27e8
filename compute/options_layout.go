package compute

// GatherOptions names the axis along which gather takes; negative counts from the end.
type GatherOptions struct {
	Axis int
}

// Conv1DOptions parametrises conv1d, which cross-correlates input [n, c, length] with weights [o, c/groups, k].
// Zero stride, dilation and groups mean 1.
type Conv1DOptions struct {
	Stride   int
	Pad      int // zeros added on either side
	Dilation int
	Groups   int  // as many as channels: each channel has filters of its own (depthwise)
	Causal   bool // (k − 1)·dilation zeros before and none behind: no element of the result sees later ones. Pad must be 0.
	Act      Activation
}
