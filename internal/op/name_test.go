package op_test

import (
	"testing"

	"github.com/wavelane/wavelane/internal/op"
)

func TestStepName(t *testing.T) {
	square := op.Expression{Inputs: 1, Results: []int{1}, Nodes: []op.Node{{Entry: op.Mul, Args: []int{0, 0}}}}
	for want, s := range map[string]op.Step{
		"neg":                     {Entry: op.Neg},
		"fused(scale, add, relu)": {Entry: op.Fused, Attr: op.Attr{Options: scaledReLU}},
		"fused(mul, sum, scale, add, relu)": {Entry: op.Sum, Attr: op.Attr{Options: op.Sum.Options, Prologue: square,
			Epilogue: scaledReLU}},
	} {
		if got := s.Name(); got != want {
			t.Errorf("named %q, want %q", got, want)
		}
	}
}
