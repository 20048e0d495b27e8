package exec

import (
	"fmt"

	"github.com/wavelane/wavelane/onnx/internal/host"
)

// checks are what attributes, operands and results a node must not have, by operator: a model is told of all of them before it runs.
var checks = map[opKey]func(c *call) error{
	{"ai.onnx.preview", "FlexAttention"}: func(c *call) error {
		if k := host.Kind(c.int("softmax_precision", int64(host.Float))); !deviceFloat(k) {
			return fmt.Errorf("softmax in %v", k)
		}
		return nil
	},
	{"", "LinearAttention"}: func(c *call) error {
		switch rule := c.text("update_rule", "gated_delta"); rule {
		case "gated", "delta", "gated_delta", "linear":
			return nil
		default:
			return fmt.Errorf("update_rule %q", rule)
		}
	},
	{"", "CausalConvWithState"}: func(c *call) error {
		switch act := c.text("activation", "none"); act {
		case "silu", "swish", "none", "":
			return nil
		default:
			return fmt.Errorf("activation %q", act)
		}
	},
	{"", "Cast"}: func(c *call) error {
		if to := host.Kind(c.int("to", 0)); !to.Known() {
			return fmt.Errorf("conversion to %v", to)
		}
		return nil
	},
	{"", "LSTM"}: activations, {"", "GRU"}: activations, {"", "RNN"}: activations,
	{"com.microsoft", "FusedMatMul"}: func(c *call) error {
		if c.int("transBatchA", 0) != 0 || c.int("transBatchB", 0) != 0 {
			return fmt.Errorf("transposed batches")
		}
		return nil
	},
	{"com.microsoft", "SkipLayerNormalization"}: noDeviation, {"com.microsoft", "SkipSimplifiedLayerNormalization"}: noDeviation,
	{"com.microsoft", "MatMulNBits"}: func(c *call) error {
		if len(c.Inputs) > 4 && c.Inputs[4] != "" {
			return fmt.Errorf("columns in groups")
		}
		return nil
	},
}

func noDeviation(c *call) error {
	if c.wants(1) || c.wants(2) {
		return fmt.Errorf("mean and deviation as results")
	}
	return nil
}

func activations(c *call) error {
	def := func(x float32) float32 { return x }
	for _, name := range c.texts("activations") {
		if _, err := activationOf(name, def, def); err != nil {
			return fmt.Errorf("activation %q", name)
		}
	}
	return nil
}
