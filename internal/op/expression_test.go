package op_test

import (
	"errors"
	"math"
	"testing"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/op"
)

// scaledReLU is relu(x0·s + x1).
var scaledReLU = op.Expression{Inputs: 2, Results: []int{4},
	Nodes: []op.Node{{Entry: op.Scale, Args: []int{0}}, {Entry: op.Add, Args: []int{2, 1}}, {Entry: op.ReLU, Args: []int{3}}}}

func TestFused(t *testing.T) {
	in := []op.Type{op.F32(2, 3), op.F32(3)}
	a := op.Attr{Scalars: []float32{2}, Options: scaledReLU}
	out, err := op.Fused.Check(in, a)
	if err != nil {
		t.Fatal(err)
	}
	y := op.Fused.Reference([]op.Array{{Shape: []int{2, 3}, Data: []float64{1, 2, 3, -1, -2, -3}}, {Shape: []int{3}, Data: []float64{10, 0, 5}}}, a, out)
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
	square := op.Expression{Inputs: 2, Results: []int{2}, Nodes: []op.Node{{Entry: op.Mul, Args: []int{0, 1}}}}
	root := op.Expression{Inputs: 2, Results: []int{3}, Nodes: []op.Node{{Entry: op.Sqrt, Args: []int{0}}, {Entry: op.Add, Args: []int{2, 1}}}}
	in := []op.Type{op.F32(2, 2), op.F32(2, 2), op.F32(1)}
	a := op.Attr{Options: compute.LastAxis, Prologue: square, Epilogue: root}
	out, err := op.Sum.Check(in, a)
	if err != nil {
		t.Fatal(err)
	}
	x := op.Array{Shape: []int{2, 2}, Data: []float64{3, 4, 5, 12}}
	y := op.Sum.Reference([]op.Array{x, x, {Shape: []int{1}, Data: []float64{1}}}, a, out)
	for i, want := range []float64{6, 14} {
		if math.Abs(y[0].Data[i]-want) > 1e-12 {
			t.Errorf("element %d is %v, want %v", i, y[0].Data[i], want)
		}
	}
}

func TestExpressionErrors(t *testing.T) {
	x := op.F32(4)
	for name, c := range map[string]struct {
		e    *op.Entry
		in   []op.Type
		a    op.Attr
		want error
	}{
		"operands":       {op.Fused, []op.Type{x}, op.Attr{Options: scaledReLU, Scalars: []float32{1}}, compute.ErrArgument},
		"scalars":        {op.Fused, []op.Type{x, x}, op.Attr{Options: scaledReLU}, compute.ErrArgument},
		"shapes":         {op.Fused, []op.Type{x, op.F32(3)}, op.Attr{Options: scaledReLU, Scalars: []float32{1}}, compute.ErrShape},
		"type":           {op.Fused, []op.Type{x, {DType: compute.Int32, Shape: []int{4}}}, op.Attr{Options: scaledReLU, Scalars: []float32{1}}, compute.ErrDType},
		"no result":      {op.Fused, []op.Type{x}, op.Attr{Options: op.Expression{Inputs: 1}}, compute.ErrArgument},
		"later node":     {op.Fused, []op.Type{x}, op.Attr{Options: op.Expression{Inputs: 1, Results: []int{1}, Nodes: []op.Node{{Entry: op.Neg, Args: []int{1}}}}}, compute.ErrArgument},
		"no element":     {op.Fused, []op.Type{x}, op.Attr{Options: op.Expression{Inputs: 1, Results: []int{1}, Nodes: []op.Node{{Entry: op.Sum, Args: []int{0}}}}}, compute.ErrArgument},
		"no such result": {op.Fused, []op.Type{x}, op.Attr{Options: op.Expression{Inputs: 1, Results: []int{1}}}, compute.ErrArgument},
		"prologue": {op.Transpose, []op.Type{x, x}, op.Attr{Options: op.Transpose.Options, Prologue: scaledReLU, Scalars: []float32{1}},
			compute.ErrUnsupported},
		"epilogue grows": {op.Sum, []op.Type{x, op.F32(5)}, op.Attr{Options: op.Sum.Options, Epilogue: scaledReLU, Scalars: []float32{1}},
			compute.ErrShape},
		"epilogue without operands": {op.Sum, nil, op.Attr{Options: op.Sum.Options, Epilogue: scaledReLU, Scalars: []float32{1}},
			compute.ErrArgument},
	} {
		if _, err := c.e.Check(c.in, c.a); !errors.Is(err, c.want) {
			t.Errorf("%s: error %v, want %v", name, err, c.want)
		}
	}
}
