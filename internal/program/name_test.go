package program_test

import (
	"testing"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

func TestStepName(t *testing.T) {
	square := program.Expression{Inputs: 1, Results: []int{1}, Nodes: []program.Node{{Entry: catalogue.Mul, Args: []int{0, 0}}}}
	for want, s := range map[string]program.Step{
		"neg":                     {Entry: catalogue.Neg},
		"fused(scale, add, relu)": {Entry: program.Fused, Attr: program.Attr{Options: scaledReLU}},
		"fused(mul, sum, scale, add, relu)": {Entry: catalogue.Sum, Attr: program.Attr{Options: catalogue.Sum.Options, Prologue: square,
			Epilogue: scaledReLU}},
	} {
		if got := s.Name(); got != want {
			t.Errorf("named %q, want %q", got, want)
		}
	}
}
