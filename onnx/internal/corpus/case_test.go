package corpus

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/onnx"
	"github.com/wavelane/wavelane/onnx/internal/exec"
	"github.com/wavelane/wavelane/onnx/internal/format"
	"github.com/wavelane/wavelane/onnx/internal/host"
)

// cases is the folder into which scripts/setup has the cases written.
func cases(t testing.TB) string {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("scripts/setup writes the cases on linux/amd64")
	}
	sum := sha256.New()
	for _, file := range []string{"requirements.txt", "generate.py"} {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		sum.Write(data)
	}
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	folder := filepath.Join(cache, "wavelane", fmt.Sprintf("onnx-%x", sum.Sum(nil))[:len("onnx-")+12])
	require.FileExists(t, filepath.Join(folder, "installed"), "scripts/setup test writes the cases")
	return filepath.Join(folder, "cases")
}

// list returns the names of a group's cases.
func list(t testing.TB, group string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(cases(t), group))
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	require.NotEmpty(t, names)
	return names
}

// errNoTensor says that a case has inputs or outputs that are no tensors.
var errNoTensor = errors.New("inputs or outputs are sequences or optionals")

// tensors reads the inputs or the outputs of a data set, nil where one is left out.
func tensors(folder, kind string, values []onnx.Value) ([]*onnx.Tensor, error) {
	out := make([]*onnx.Tensor, len(values))
	for i, v := range values {
		data, err := os.ReadFile(filepath.Join(folder, fmt.Sprintf("%s_%d.pb", kind, i)))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if v.Type == onnx.Undefined {
			return nil, errNoTensor
		}
		raw, err := format.DecodeTensor(data)
		if err != nil {
			return nil, err
		}
		t, err := exec.Load(raw, nil)
		if err != nil {
			return nil, err
		}
		out[i] = &onnx.Tensor{Type: onnx.ElementType(t.Kind), Shape: t.Shape, Data: t.Data}
	}
	return out, nil
}

// outcome is what became of a case.
type outcome struct {
	err   error
	worst float64 // largest difference of a float, in tolerances
	trace string
}

// run executes a case with all of its data sets, each twice, so that the second time is a replay.
func run(ctx context.Context, folder string, dev onnx.Device) (o outcome) {
	defer func() {
		if r := recover(); r != nil {
			o.err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	m, err := onnx.Open(filepath.Join(folder, "model.onnx"))
	if err != nil {
		return outcome{err: err}
	}
	defer m.Close()
	rtol, atol := 1e-3, 1e-7
	if text, err := os.ReadFile(filepath.Join(folder, "tolerance.txt")); err == nil {
		if _, err := fmt.Sscan(string(text), &rtol, &atol); err != nil {
			return outcome{err: err}
		}
	}
	s, err := m.Session(ctx, dev)
	if err != nil {
		return outcome{err: err}
	}
	defer s.Close()
	sets, err := filepath.Glob(filepath.Join(folder, "test_data_set_*"))
	if err != nil || len(sets) == 0 {
		return outcome{err: fmt.Errorf("no data: %v", err)}
	}
	var given []onnx.Value
	for _, v := range m.Inputs() {
		if !v.Optional {
			given = append(given, v)
		}
	}
	for _, set := range sets {
		in, err := tensors(set, "input", given)
		if err != nil {
			return outcome{err: err}
		}
		want, err := tensors(set, "output", m.Outputs())
		if err != nil {
			return outcome{err: err}
		}
		inputs := map[string]onnx.Tensor{}
		for i, x := range in {
			if x != nil {
				inputs[given[i].Name] = *x
			}
		}
		for range 2 {
			got, err := s.Run(ctx, inputs)
			if err != nil {
				return outcome{err: err}
			}
			for i, v := range m.Outputs() {
				if want[i] == nil {
					continue
				}
				worst, err := compare(got[v.Name], *want[i], rtol, atol)
				if err != nil {
					return outcome{err: fmt.Errorf("output %q: %w", v.Name, err), trace: s.String()}
				}
				o.worst = max(o.worst, worst)
			}
		}
	}
	o.trace = s.String()
	return o
}

// compare is NumPy's assert_allclose, and equality for what is no float.
func compare(got, want onnx.Tensor, rtol, atol float64) (worst float64, err error) {
	if got.Type != want.Type || !slices.Equal(got.Shape, want.Shape) {
		return 0, fmt.Errorf("%v%v, want %v%v", got.Type, got.Shape, want.Type, want.Shape)
	}
	a := &host.Tensor{Kind: host.Kind(got.Type), Shape: got.Shape, Data: got.Data}
	b := &host.Tensor{Kind: host.Kind(want.Type), Shape: want.Shape, Data: want.Data}
	if !a.Kind.IsFloat() {
		if !a.Equal(b) {
			return 0, fmt.Errorf("%v, want %v", brief(got.Data), brief(want.Data))
		}
		return 0, nil
	}
	x, y := a.Floats(), b.Floats()
	for i := range x {
		if x[i] == y[i] || x[i] != x[i] && y[i] != y[i] {
			continue
		}
		d := math.Abs(x[i]-y[i]) / (atol + rtol*math.Abs(y[i]))
		if !(d <= 1) {
			return d, fmt.Errorf("element %d is %v, want %v: of %s, want %s", i, x[i], y[i], brief(got.Data), brief(want.Data))
		}
		worst = max(worst, d)
	}
	return worst, nil
}

func brief(data any) string {
	s := fmt.Sprint(data)
	if len(s) > 200 {
		s = s[:200] + "…"
	}
	return s
}

// lacks are the cases that are known not to pass, by name, with the reason.
func lacks(t testing.TB) map[string]string {
	t.Helper()
	data, err := os.ReadFile("testdata/lacks.tsv")
	require.NoError(t, err)
	out := map[string]string{}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, reason, ok := strings.Cut(line, "\t")
		require.True(t, ok && reason != "", "%q has no reason", line)
		require.NotContains(t, out, name)
		out[name] = reason
	}
	return out
}
