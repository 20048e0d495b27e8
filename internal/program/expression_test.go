package program_test

import (
	"errors"
	"math"
	"testing"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/catalogue/reference"
	"github.com/wavelane/wavelane/internal/program"
)

// scaledReLU is relu(x0·s + x1).
var scaledReLU = program.Expression{Inputs: 2, Results: []int{4},
	Nodes: []program.Node{{Entry: catalogue.Scale, Args: []int{0}}, {Entry: catalogue.Add, Args: []int{2, 1}}, {Entry: catalogue.ReLU, Args: []int{3}}}}

func TestFused(t *testing.T) {
	in := []program.Type{program.F32(2, 3), program.F32(3)}
	a := program.Attr{Scalars: []float32{2}, Options: scaledReLU}
	out, err := program.Fused.Check(in, a)
	if err != nil {
		t.Fatal(err)
	}
	y := reference.Of(program.Fused, []reference.Array{{Shape: []int{2, 3}, Data: []float64{1, 2, 3, -1, -2, -3}}, {Shape: []int{3}, Data: []float64{10, 0, 5}}}, a, out)
	for i, want := range []float64{12, 4, 11, 8, 0, 0} {
		if y[0].Data[i] != want {
			t.Errorf("element %d is %v, want %v", i, y[0].Data[i], want)
		}
	}
	if got, want := scaledReLU.String(), "v0=scale(x0);v1=add(v0,x1);v2=relu(v1);v2"; got != want {
		t.Errorf("written %q, want %q", got, want)
	}
}

func TestPrologueAndEpilogue(t *testing.T) {
	square := program.Expression{Inputs: 2, Results: []int{2}, Nodes: []program.Node{{Entry: catalogue.Mul, Args: []int{0, 1}}}}
	root := program.Expression{Inputs: 2, Results: []int{3}, Nodes: []program.Node{{Entry: catalogue.Sqrt, Args: []int{0}}, {Entry: catalogue.Add, Args: []int{2, 1}}}}
	in := []program.Type{program.F32(2, 2), program.F32(2, 2), program.F32(1)}
	a := program.Attr{Options: compute.LastAxis, Prologue: square, Epilogue: root}
	out, err := catalogue.Sum.Check(in, a)
	if err != nil {
		t.Fatal(err)
	}
	x := reference.Array{Shape: []int{2, 2}, Data: []float64{3, 4, 5, 12}}
	y := reference.Of(catalogue.Sum, []reference.Array{x, x, {Shape: []int{1}, Data: []float64{1}}}, a, out)
	for i, want := range []float64{6, 14} {
		if math.Abs(y[0].Data[i]-want) > 1e-12 {
			t.Errorf("element %d is %v, want %v", i, y[0].Data[i], want)
		}
	}
}

func TestExpressionErrors(t *testing.T) {
	x := program.F32(4)
	for name, c := range map[string]struct {
		e    *program.Entry
		in   []program.Type
		a    program.Attr
		want error
	}{
		"operands":       {program.Fused, []program.Type{x}, program.Attr{Options: scaledReLU, Scalars: []float32{1}}, compute.ErrArgument},
		"scalars":        {program.Fused, []program.Type{x, x}, program.Attr{Options: scaledReLU}, compute.ErrArgument},
		"shapes":         {program.Fused, []program.Type{x, program.F32(3)}, program.Attr{Options: scaledReLU, Scalars: []float32{1}}, compute.ErrShape},
		"type":           {program.Fused, []program.Type{x, {DType: compute.Int32, Shape: []int{4}}}, program.Attr{Options: scaledReLU, Scalars: []float32{1}}, compute.ErrDType},
		"no result":      {program.Fused, []program.Type{x}, program.Attr{Options: program.Expression{Inputs: 1}}, compute.ErrArgument},
		"later node":     {program.Fused, []program.Type{x}, program.Attr{Options: program.Expression{Inputs: 1, Results: []int{1}, Nodes: []program.Node{{Entry: catalogue.Neg, Args: []int{1}}}}}, compute.ErrArgument},
		"no element":     {program.Fused, []program.Type{x}, program.Attr{Options: program.Expression{Inputs: 1, Results: []int{1}, Nodes: []program.Node{{Entry: catalogue.Sum, Args: []int{0}}}}}, compute.ErrArgument},
		"no such result": {program.Fused, []program.Type{x}, program.Attr{Options: program.Expression{Inputs: 1, Results: []int{1}}}, compute.ErrArgument},
		"prologue": {catalogue.Transpose, []program.Type{x, x}, program.Attr{Options: catalogue.Transpose.Options, Prologue: scaledReLU, Scalars: []float32{1}},
			compute.ErrUnsupported},
		"epilogue grows": {catalogue.Sum, []program.Type{x, program.F32(5)}, program.Attr{Options: catalogue.Sum.Options, Epilogue: scaledReLU, Scalars: []float32{1}},
			compute.ErrShape},
		"epilogue without operands": {catalogue.Sum, nil, program.Attr{Options: catalogue.Sum.Options, Epilogue: scaledReLU, Scalars: []float32{1}},
			compute.ErrArgument},
	} {
		if _, err := c.e.Check(c.in, c.a); !errors.Is(err, c.want) {
			t.Errorf("%s: error %v, want %v", name, err, c.want)
		}
	}
}
