package corpus

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/onnx"
	"github.com/wavelane/wavelane/onnx/internal/exec"
	"github.com/wavelane/wavelane/onnx/internal/format"
	"github.com/wavelane/wavelane/onnx/internal/symbolic"
)

// What is inferred of the shapes of results is what the cases have: from the numbers of the inputs' dimensions, and where each dimension of
// each input has a name instead.
func TestInferredShapes(t *testing.T) {
	dims := [2]int{} // known, by numbers and by names
	total := 0
	for _, group := range groups {
		for _, name := range list(t, group) {
			folder := filepath.Join(cases(t), group, name)
			m, err := onnx.Open(filepath.Join(folder, "model.onnx"))
			if err != nil {
				continue
			}
			var given []onnx.Value
			for _, v := range m.Inputs() {
				if !v.Optional {
					given = append(given, v)
				}
			}
			set := filepath.Join(folder, "test_data_set_0")
			in, err := tensors(set, "input", given)
			if err != nil {
				m.Close()
				continue
			}
			want, err := tensors(set, "output", m.Outputs())
			inputs, outputs := m.Inputs(), m.Outputs()
			m.Close()
			if err != nil {
				continue
			}
			data, err := os.ReadFile(filepath.Join(folder, "model.onnx"))
			require.NoError(t, err)
			file, err := format.Decode(data)
			require.NoError(t, err)
			p, err := exec.Prepare(file, func(location string, offset, length int64) ([]byte, error) {
				b, err := os.ReadFile(filepath.Join(folder, location))
				if err != nil {
					return nil, err
				}
				return b[offset:][:length], nil
			})
			require.NoError(t, err, name)
			for mode := range 2 {
				names := map[string]int64{}
				shapes := make([][]*symbolic.Int, len(inputs))
				next := 0
				for i, v := range inputs {
					if v.Optional {
						continue
					}
					x := in[next]
					next++
					if x == nil {
						continue
					}
					shapes[i] = []*symbolic.Int{}
					for d, n := range x.Shape {
						if mode == 0 {
							shapes[i] = append(shapes[i], symbolic.Of(int64(n)))
							continue
						}
						dim := fmt.Sprintf("%s[%d]", v.Name, d)
						names[dim] = int64(n)
						shapes[i] = append(shapes[i], symbolic.Named(dim))
					}
				}
				for i, shape := range exec.Infer(p, shapes) {
					if want[i] == nil {
						continue
					}
					if mode == 0 {
						total += len(want[i].Shape)
					}
					if shape == nil {
						continue
					}
					if len(shape) != len(want[i].Shape) {
						t.Errorf("%s/%s: output %q is %v, inferred as %v", group, name, outputs[i].Name, want[i].Shape, shape)
						continue
					}
					for d, n := range shape {
						if n == nil {
							continue
						}
						dims[mode]++
						if n.At(names) != int64(want[i].Shape[d]) {
							t.Errorf("%s/%s: output %q is %v, inferred as %v", group, name, outputs[i].Name, want[i].Shape, shape)
							break
						}
					}
				}
			}
		}
	}
	t.Logf("of %d dimensions %d are inferred from numbers, %d from names", total, dims[0], dims[1])
	require.Greater(t, dims[0], total/2)
	require.Greater(t, dims[1], total*2/5)
}
