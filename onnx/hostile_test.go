package onnx_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/cpu"
	"github.com/wavelane/wavelane/onnx"
)

// Broken files are errors that wrap ErrFormat and name what is broken.
func TestBrokenFiles(t *testing.T) {
	with := func(change func(g *graph)) []byte {
		g := perceptron()
		change(&g)
		return model(g)
	}
	nested := graph{}.message()
	for range 100 {
		nested = graph{nodes: []message{node("deep", "If", nil, []string{"o"}, graphAttribute("then_branch", nested))}}.message()
	}
	for name, c := range map[string]struct {
		file []byte
		says string
	}{
		"empty":           {nil, "no graph"},
		"no model":        {[]byte("PK\x03\x04 is something else"), "broken"},
		"cycle":           {with(func(g *graph) { g.nodes[0] = node("product", "MatMul", []string{"s", "w"}, []string{"p"}) }), `"product"`},
		"self":            {with(func(g *graph) { g.nodes[2] = node("activation", "Relu", []string{"y"}, []string{"y"}) }), `"activation"`},
		"nobody makes it": {with(func(g *graph) { g.nodes[2] = node("activation", "Relu", []string{"nothing"}, []string{"y"}) }), `"nothing"`},
		"made twice":      {with(func(g *graph) { g.nodes[1] = node("sum", "Add", []string{"p", "b"}, []string{"p"}) }), `"sum"`},
		"output missing":  {with(func(g *graph) { g.outputs[0] = value("z", 1) }), `"z"`},
		"negative size":   {with(func(g *graph) { g.weights[1] = floats("b", []float32{1, 2}, -2) }), `"b"`},
		"huge":            {with(func(g *graph) { g.weights[1] = floats("b", []float32{1, 2}, 1<<40, 1<<40) }), `"b"`},
		"overflow":        {with(func(g *graph) { g.weights[1] = floats("b", nil, 1<<31-1, 1<<31-1, 4) }), `"b"`},
		"short":           {with(func(g *graph) { g.weights[1] = floats("b", []float32{1}, 2) }), `"b"`},
		"weight twice":    {with(func(g *graph) { g.weights[1] = floats("w", []float32{1, 2}, 2) }), `"w"`},
		"attribute twice": {with(func(g *graph) {
			g.nodes[2] = node("a", "Relu", []string{"s"}, []string{"y"}, intAttribute("k", 1), intAttribute("k", 2))
		}), `"k"`},
		"too deep": {with(func(g *graph) {
			g.nodes[2] = node("a", "If", []string{"s"}, []string{"y"}, graphAttribute("then_branch", nested))
		}), "deep"},
		"graph without it": {with(func(g *graph) {
			g.nodes[2] = node("a", "If", []string{"s"}, []string{"y"}, message{}.text(1, "then_branch").int(20, 5))
		}), `"then_branch"`},
	} {
		_, err := onnx.Read(bytes.NewReader(c.file))
		require.ErrorIs(t, err, onnx.ErrFormat, name)
		require.ErrorContains(t, err, c.says, name)
	}
	whole := model(perceptron())
	for n := range whole { // cut anywhere
		if m, err := onnx.Read(bytes.NewReader(whole[:n])); err == nil {
			require.NotEmpty(t, m.Inputs(), "%d bytes", n) // between the graph and what follows
		}
	}
}

// Functions that call each other for ever, or so often that they fill memory.
func TestFunctionsThatCallThemselves(t *testing.T) {
	opset := message{}.text(1, "f").int(2, 1)
	function := func(name string, nodes ...message) message {
		m := message{}.text(1, name).text(4, "x").text(5, "y").text(10, "f").bytes(9, opset)
		for _, n := range nodes {
			m = m.bytes(7, n)
		}
		return m
	}
	call := func(f, in, out string) message { return node("", f, []string{in}, []string{out}).text(7, "f") }
	g := graph{nodes: []message{call("a", "x", "y")}, inputs: []message{value("x", 1, 1)}, outputs: []message{value("y", 1, 1)}}
	file := append(model(g), message{}.bytes(8, opset)...)
	_, err := onnx.Read(bytes.NewReader(append(bytes.Clone(file), message{}.bytes(25, function("a", call("b", "x", "y"))).bytes(25, function("b", call("a", "x", "y")))...)))
	require.ErrorIs(t, err, onnx.ErrFormat)
	names := "abcdefghijklmnopqrst"
	bomb := bytes.Clone(file)
	for i := range names[1:] {
		next := names[i+1 : i+2]
		bomb = append(bomb, message{}.bytes(25, function(names[i:i+1], call(next, "x", "p"), call(next, "p", "y")))...)
	}
	bomb = append(bomb, message{}.bytes(25, function("t", call("missing", "x", "y")))...)
	start := time.Now()
	_, err = onnx.Read(bytes.NewReader(bomb))
	require.Error(t, err)
	require.Less(t, time.Since(start), time.Minute)
}

// Any bytes are a model or an error, and a model runs or gives an error: nothing panics.
func FuzzRead(f *testing.F) {
	f.Add(model(perceptron()))
	g := perceptron()
	g.nodes = append(g.nodes, node("shape", "Shape", []string{"y"}, []string{"sh"}), node("again", "Reshape", []string{"y", "sh"}, []string{"z"}),
		node("part", "Slice", []string{"z", "one", "two"}, []string{"q"}), node("pad", "Pad", []string{"q", "four"}, []string{"r"}))
	g.weights = append(g.weights, ints("one", []int64{0}, 1), ints("two", []int64{1}, 1), ints("four", []int64{1, 0, 0, 1}, 4))
	g.outputs = append(g.outputs, value("r", 1))
	f.Add(model(g))
	dev, err := cpu.Open(context.Background())
	require.NoError(f, err)
	f.Cleanup(func() { dev.Close() })
	f.Fuzz(func(t *testing.T, file []byte) {
		m, err := onnx.Read(bytes.NewReader(file))
		if err != nil {
			return
		}
		s, err := m.Session(context.Background(), dev)
		if err != nil {
			return
		}
		defer s.Close()
		in := map[string]onnx.Tensor{}
		for _, v := range m.Inputs() {
			n, shape := 1, []int{}
			for _, d := range v.Sizes() {
				if d < 0 {
					d = 2
				}
				if n *= max(d, 1); n > 1<<12 {
					return
				}
				shape = append(shape, d)
			}
			n = 1
			for _, d := range shape {
				n *= d
			}
			switch v.Type {
			case onnx.Float32:
				in[v.Name] = onnx.Tensor{Type: v.Type, Shape: shape, Data: make([]float32, n)}
			case onnx.Int64:
				in[v.Name] = onnx.Tensor{Type: v.Type, Shape: shape, Data: make([]int64, n)}
			default:
				return
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		s.Run(ctx, in)
	})
}
