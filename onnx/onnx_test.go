package onnx_test

import (
	"bytes"
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cpu"
	"github.com/wavelane/wavelane/onnx"
)

func device(t testing.TB) *cpu.Device {
	dev, err := cpu.Open(context.Background())
	require.NoError(t, err)
	t.Cleanup(func() { dev.Close() })
	return dev
}

func read(t testing.TB, g graph) *onnx.Model {
	m, err := onnx.Read(bytes.NewReader(model(g)))
	require.NoError(t, err)
	return m
}

func open(t testing.TB, g graph, opts ...onnx.Option) *onnx.Session {
	s, err := read(t, g).Session(context.Background(), device(t), opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestRun(t *testing.T) {
	s := open(t, perceptron())
	for range 2 { // a walk and a replay for each number of rows
		for _, rows := range []int{1, 2} {
			x := []float32{1, 2, 3, 4, 5, 6}[:3*rows]
			out, err := s.Run(t.Context(), map[string]onnx.Tensor{"x": onnx.Of(x, rows, 3)})
			require.NoError(t, err)
			y, err := onnx.Elements[float32](out["y"])
			require.NoError(t, err)
			require.Equal(t, []float32{12, 29, 39, 65}[:2*rows], y)
			require.Equal(t, []int{rows, 2}, out["y"].Shape)
		}
	}
	require.Equal(t, 2, strings.Count(s.String(), "inputs "))
	require.Equal(t, 1, strings.Count(s.String(), "device:")/2)
	weights, _ := s.Memory()
	require.Equal(t, 8*4, weights)
}

// Bytes become floats on the device.
func TestBytes(t *testing.T) {
	s := open(t, graph{
		nodes:  []message{node("wide", "Cast", []string{"x"}, []string{"f"}, intAttribute("to", float32Type)), node("twice", "Add", []string{"f", "f"}, []string{"y"})},
		inputs: []message{value("x", 2, -1, 3)}, outputs: []message{value("y", float32Type, -1, 3)},
	})
	for range 2 { // a walk and a replay
		out, err := s.Run(t.Context(), map[string]onnx.Tensor{"x": onnx.Of([]uint8{0, 1, 255, 128, 7, 3}, 2, 3)})
		require.NoError(t, err)
		require.Equal(t, []float32{0, 2, 510, 256, 14, 6}, out["y"].Data)
	}
	require.NotContains(t, s.String(), "host:")
}

func TestModel(t *testing.T) {
	m := read(t, perceptron())
	require.Equal(t, "wavelane's tests", m.Producer())
	require.Equal(t, map[string]int64{"": 17}, m.Opsets())
	require.Equal(t, map[string]int{"MatMul": 1, "Add": 1, "Relu": 1}, m.Operators())
	elements, size := m.Parameters()
	require.Equal(t, [2]int{8, 32}, [2]int{elements, size})
	in := m.Inputs()
	require.Len(t, in, 1)
	require.Equal(t, "x", in[0].Name)
	require.Equal(t, onnx.Float32, in[0].Type)
	require.Equal(t, []onnx.Dim{{Size: -1, Name: "n"}, {Size: 3}}, in[0].Shape)
	require.Equal(t, []int{-1, 3}, in[0].Sizes())
}

// Shapes of outputs are computed with the names of the inputs' dimensions; where they do not follow, they are as the model says.
func TestInferOutputs(t *testing.T) {
	unnamed := message{}.text(1, "z").bytes(2, message{}.bytes(1, message{}.int(1, float32Type).bytes(2, message{}.bytes(1, nil).bytes(1, message{}.int(1, 9)))))
	m := read(t, graph{
		nodes: []message{node("double", "Concat", []string{"x", "x"}, []string{"xx"}, intAttribute("axis", 0)), node("shape", "Shape", []string{"xx"}, []string{"s"}),
			node("rows", "Gather", []string{"s", "zero"}, []string{"rows"}), node("half", "Div", []string{"rows", "four"}, []string{"quarter"}),
			node("list", "Concat", []string{"quarter", "three", "minus"}, []string{"list"}, intAttribute("axis", 0)),
			node("reshape", "Reshape", []string{"xx", "list"}, []string{"y"}), node("transpose", "Transpose", []string{"z"}, []string{"t"}),
			node("find", "NonZero", []string{"x"}, []string{"f"}), node("sum", "Add", []string{"xx", "xx"}, []string{"u"})},
		weights: []message{ints("zero", []int64{0}, 1), ints("four", []int64{4}, 1), ints("three", []int64{3}, 1), ints("minus", []int64{-1}, 1)},
		inputs:  []message{value("x", float32Type, -1, 3), unnamed},
		outputs: []message{value("y", float32Type, -1, -1, -1), value("t", float32Type, -1, -1), value("f", int64Type, 2, -1), value("u", float32Type, 8, 3),
			message{}.text(1, "xx").bytes(2, message{}.bytes(1, message{}.int(1, float32Type)))},
	})
	var shapes [][]onnx.Dim
	for _, v := range onnx.InferOutputs(m) {
		shapes = append(shapes, v.Shape)
	}
	require.Equal(t, [][]onnx.Dim{{{Size: -1, Name: "floor(n/2)"}, {Size: 3}, {Size: -1, Name: "n"}}, {{Size: 9}, {Size: -1, Name: "z[0]"}},
		{{Size: 2}, {Size: -1, Name: "n"}}, {{Size: 8}, {Size: 3}}, {{Size: -1, Name: "2*n"}, {Size: 3}}}, shapes)
	require.Equal(t, onnx.Dim{Size: -1, Name: "n"}, m.Outputs()[0].Shape[0], "as the model says")
}

func TestInputsAreChecked(t *testing.T) {
	s := open(t, perceptron())
	run := func(in map[string]onnx.Tensor) error {
		_, err := s.Run(t.Context(), in)
		return err
	}
	require.ErrorIs(t, run(nil), compute.ErrArgument)
	require.ErrorContains(t, run(map[string]onnx.Tensor{"z": onnx.Scalar[float32](1)}), `no input "z", but "x"`)
	require.ErrorIs(t, run(map[string]onnx.Tensor{"x": onnx.Of([]float32{1, 2}, 1, 2)}), compute.ErrShape)
	require.ErrorIs(t, run(map[string]onnx.Tensor{"x": onnx.Of([]float32{1, 2}, 1, 3)}), compute.ErrShape)
	require.ErrorIs(t, run(map[string]onnx.Tensor{"x": onnx.Of([]int32{1, 2, 3}, 1, 3)}), compute.ErrDType)
	require.ErrorIs(t, run(map[string]onnx.Tensor{"x": {Type: onnx.Float32, Shape: []int{1, 3}, Data: "text"}}), compute.ErrDType)
	require.ErrorIs(t, run(map[string]onnx.Tensor{"x": {Type: onnx.ElementType(99), Shape: []int{1, 3}}}), compute.ErrDType)
	require.ErrorIs(t, run(map[string]onnx.Tensor{"x": {Type: onnx.Float32, Shape: []int{-1, -3}, Data: []float32{1, 2, 3}}}), compute.ErrShape)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Run(ctx, map[string]onnx.Tensor{"x": onnx.Of([]float32{1, 2, 3}, 1, 3)})
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, s.Close())
	require.ErrorIs(t, run(map[string]onnx.Tensor{"x": onnx.Of([]float32{1, 2, 3}, 1, 3)}), compute.ErrClosed)
}

// What is kept compiled has a bound, and goroutines may share a session.
func TestShapesHaveABound(t *testing.T) {
	s := open(t, perceptron(), onnx.WithShapes(3))
	var wg sync.WaitGroup
	for k := range 4 {
		wg.Go(func() {
			for rows := 1; rows < 8; rows++ {
				x := make([]float32, 3*rows)
				out, err := s.Run(t.Context(), map[string]onnx.Tensor{"x": onnx.Of(x, rows, 3)})
				if err != nil || out["y"].Len() != 2*rows {
					t.Errorf("goroutine %d, %d rows: %v", k, rows, err)
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, 3, strings.Count(s.String(), "inputs "))
}

// Everything that is lacking is in one error, with the names of nodes.
func TestLacks(t *testing.T) {
	g := perceptron()
	g.nodes[0] = node("alpha", "Frobnicate", []string{"x", "w"}, []string{"p"})
	g.nodes[1] = node("lambda", "Cast", []string{"p"}, []string{"s"}, intAttribute("to", 99))
	g.nodes[2] = node("omega", "Quux", []string{"s"}, []string{"y"}).text(7, "com.example")
	m := read(t, g)
	_, err := m.Session(t.Context(), device(t))
	var lack *onnx.LackError
	require.ErrorAs(t, err, &lack)
	require.ErrorIs(t, err, compute.ErrUnsupported)
	require.Equal(t, []string{`node "alpha" (Frobnicate): no such operator`, `node "lambda" (Cast): conversion to element type 99`, `node "omega" (com.example:Quux): operators of domain "com.example" are not known`}, lack.Lacks)
}

// A condition that depends on data is followed each way, and each way is compiled once.
func TestBranches(t *testing.T) {
	branch := func(op string) message {
		return graph{nodes: []message{node(op, op, []string{"x", "x"}, []string{op + "_out"})}, outputs: []message{value(op+"_out", float32Type, 2)}}.message()
	}
	g := graph{
		nodes: []message{node("total", "ReduceSum", []string{"x"}, []string{"sum"}, intAttribute("keepdims", 0)),
			node("positive", "Greater", []string{"sum", "zero"}, []string{"cond"}),
			node("choice", "If", []string{"cond"}, []string{"y"}, graphAttribute("then_branch", branch("Add")), graphAttribute("else_branch", branch("Mul")))},
		weights: []message{floats("zero", []float32{0})},
		inputs:  []message{value("x", float32Type, 2)},
		outputs: []message{value("y", float32Type, 2)},
	}
	s := open(t, g)
	for range 3 {
		for _, c := range []struct{ x, y []float32 }{{[]float32{1, 2}, []float32{2, 4}}, {[]float32{-3, 2}, []float32{9, 4}}} {
			out, err := s.Run(t.Context(), map[string]onnx.Tensor{"x": onnx.Of(c.x)})
			require.NoError(t, err)
			require.Equal(t, c.y, out["y"].Data)
		}
	}
	require.Equal(t, 3, strings.Count(s.String(), "device:"), s)
}

// The number of repetitions depends on data, and so does the shape of a result.
func TestLoopAndNonZero(t *testing.T) {
	body := graph{
		nodes: []message{node("again", "Identity", []string{"cond_in"}, []string{"cond_out"}),
			node("double", "Add", []string{"state", "state"}, []string{"next"})},
		inputs:  []message{value("i", int64Type), value("cond_in", boolType), value("state", float32Type, 2)},
		outputs: []message{value("cond_out", boolType), value("next", float32Type, 2)},
	}.message()
	g := graph{
		nodes: []message{node("repeat", "Loop", []string{"n", "", "x"}, []string{"y"}, graphAttribute("body", body)),
			node("where", "NonZero", []string{"y"}, []string{"at"})},
		inputs:  []message{value("x", float32Type, 2), value("n", int64Type)},
		outputs: []message{value("y", float32Type, 2), value("at", int64Type, 1, -1)},
	}
	s := open(t, g)
	for range 2 {
		for n := range int64(4) {
			out, err := s.Run(t.Context(), map[string]onnx.Tensor{"x": onnx.Of([]float32{0, 3}), "n": onnx.Scalar(n)})
			require.NoError(t, err)
			require.Equal(t, []float32{0, 3 * float32(int(1)<<n)}, out["y"].Data)
			require.Equal(t, []int64{1}, out["at"].Data)
		}
	}
	out, err := s.Run(t.Context(), map[string]onnx.Tensor{"x": onnx.Of([]float32{0, 0}), "n": onnx.Scalar[int64](1)})
	require.NoError(t, err)
	require.Equal(t, []int{1, 0}, out["at"].Shape)
}

// A loop that does not end is an error.
func TestLoopWithoutEnd(t *testing.T) {
	body := graph{
		nodes: []message{node("again", "Identity", []string{"cond_in"}, []string{"cond_out"}),
			node("same", "Identity", []string{"state"}, []string{"next"})},
		inputs:  []message{value("i", int64Type), value("cond_in", boolType), value("state", float32Type, 2)},
		outputs: []message{value("cond_out", boolType), value("next", float32Type, 2)},
	}.message()
	s := open(t, graph{
		nodes:   []message{node("repeat", "Loop", []string{"", "", "x"}, []string{"y"}, graphAttribute("body", body))},
		inputs:  []message{value("x", float32Type, 2)},
		outputs: []message{value("y", float32Type, 2)},
	})
	_, err := s.Run(t.Context(), map[string]onnx.Tensor{"x": onnx.Of([]float32{0, 0})})
	require.ErrorIs(t, err, compute.ErrTooLarge)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.Run(ctx, map[string]onnx.Tensor{"x": onnx.Of([]float32{0, 0})})
	require.ErrorIs(t, err, context.Canceled)
}

func TestExternalData(t *testing.T) {
	external := func(location, offset string) []byte {
		g := perceptron()
		pair := func(k, v string) message { return message{}.text(1, k).text(2, v) }
		g.weights[0] = message{}.int(1, 3).int(1, 2).int(2, 1).text(8, "w").bytes(13, pair("location", location)).bytes(13, pair("offset", offset)).int(14, 1)
		return model(g)
	}
	folder := t.TempDir()
	weights := make([]byte, 8+24)
	file := floats("", []float32{1, 2, 3, 4, 5, 6})
	copy(weights[8:], file[len(file)-24:])
	require.NoError(t, os.WriteFile(filepath.Join(folder, "w.bin"), weights, 0o644))
	path := filepath.Join(folder, "model.onnx")
	require.NoError(t, os.WriteFile(path, external("w.bin", "8"), 0o644))
	m, err := onnx.Open(path)
	require.NoError(t, err)
	s, err := m.Session(t.Context(), device(t))
	require.NoError(t, err)
	out, err := s.Run(t.Context(), map[string]onnx.Tensor{"x": onnx.Of([]float32{1, 2, 3}, 1, 3)})
	require.NoError(t, err)
	require.Equal(t, []float32{12, 29}, out["y"].Data)
	require.NoError(t, s.Close())
	require.NoError(t, m.Close())
	require.NoError(t, m.Close())

	_, err = onnx.Read(bytes.NewReader(external("w.bin", "8")))
	require.ErrorContains(t, err, `"w"`)
	for _, bad := range [][2]string{{"../w.bin", "0"}, {"/etc/passwd", "0"}, {"w.bin", "16"}, {"w.bin", "-1"}, {"w.bin", "x"}, {"", "0"}, {"none.bin", "0"}} {
		require.NoError(t, os.WriteFile(path, external(bad[0], bad[1]), 0o644))
		_, err := onnx.Open(path)
		require.Error(t, err, "%q", bad)
		require.ErrorContains(t, err, `"w"`, "%q", bad)
	}
}

// x·clip(x + 3, 0, 6)/6 is one step after the convolution, whose scale and bias are part of its weights.
func TestPatterns(t *testing.T) {
	g := graph{
		nodes: []message{node("conv", "Conv", []string{"x", "w"}, []string{"c"}), node("scaled", "Mul", []string{"c", "two"}, []string{"s"}),
			node("shifted", "Add", []string{"s", "one"}, []string{"h"}), node("plus", "Add", []string{"h", "three"}, []string{"a"}),
			node("clip", "Clip", []string{"a", "zero", "six"}, []string{"k"}), node("times", "Mul", []string{"h", "k"}, []string{"m"}),
			node("sixth", "Div", []string{"m", "six"}, []string{"y"})},
		weights: []message{floats("w", []float32{1, -1}, 2, 1, 1, 1), floats("two", []float32{2, 3}, 2, 1, 1), floats("one", []float32{1}, 1),
			floats("three", []float32{3}), floats("zero", []float32{0}), floats("six", []float32{6})},
		inputs:  []message{value("x", float32Type, 1, 1, 1, 2)},
		outputs: []message{value("y", float32Type, 1, 2, 1, 2)},
	}
	s := open(t, g)
	out, err := s.Run(t.Context(), map[string]onnx.Tensor{"x": onnx.Of([]float32{0.5, -1}, 1, 1, 1, 2)})
	require.NoError(t, err)
	hardswish := func(x float64) float64 { return x * min(max(x+3, 0), 6) / 6 }
	require.InDeltaSlice(t, []float64{hardswish(2), hardswish(-1), hardswish(-0.5), hardswish(4)}, out["y"].Data, 1e-6)
	require.Contains(t, s.String(), "fused(conv2d, hardswish)")
	require.NotContains(t, s.String(), "scale")
}

// The two forms of gelu, as exporters write them, are one step; another number in the place of one of theirs leaves them as they are.
func TestGelu(t *testing.T) {
	erf := []message{node("a", "Div", []string{"x", "root"}, []string{"a"}), node("b", "Erf", []string{"a"}, []string{"b"}),
		node("c", "Add", []string{"b", "one"}, []string{"c"}), node("d", "Mul", []string{"x", "c"}, []string{"d"}), node("e", "Mul", []string{"d", "half"}, []string{"y"})}
	tanh := []message{node("a", "Pow", []string{"x", "three"}, []string{"a"}), node("b", "Mul", []string{"a", "k"}, []string{"b"}),
		node("c", "Add", []string{"x", "b"}, []string{"c"}), node("d", "Mul", []string{"c", "q"}, []string{"d"}), node("e", "Tanh", []string{"d"}, []string{"e"}),
		node("f", "Add", []string{"one", "e"}, []string{"f"}), node("g", "Mul", []string{"half", "x"}, []string{"g"}), node("h", "Mul", []string{"g", "f"}, []string{"y"})}
	for name, nodes := range map[string][]message{"gelu_erf": erf, "gelu": tanh} {
		for _, half := range []float32{0.5, 0.25} {
			g := graph{nodes: nodes, inputs: []message{value("x", float32Type, 4)}, outputs: []message{value("y", float32Type, 4)},
				weights: []message{floats("root", []float32{math.Sqrt2}), floats("one", []float32{1}), floats("half", []float32{half}),
					floats("three", []float32{3}), floats("k", []float32{0.044715}), floats("q", []float32{0.7978845608})}}
			s := open(t, g)
			x := []float32{-2, -0.5, 0.1, 3}
			out, err := s.Run(t.Context(), map[string]onnx.Tensor{"x": onnx.Of(x)})
			require.NoError(t, err)
			for i, v := range x {
				want := float64(v) * float64(half) * (1 + math.Erf(float64(v)/math.Sqrt2))
				require.InDelta(t, want, out["y"].Data.([]float32)[i], 1e-3, name)
			}
			require.Equal(t, half == 0.5, strings.Contains(s.String(), "plan of 1 steps"), "%s\n%s", name, s)
		}
	}
}
