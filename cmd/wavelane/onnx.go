//go:build !js

package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/wavelane/wavelane"
	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/internal/npy"
	"github.com/wavelane/wavelane/onnx"
)

type onnxFlags struct {
	bench   benchFlags
	run     bool
	inputs  []string
	shapes  []string
	out     string
	plan    bool
	profile bool
	compare string
	repeat  int
	json    bool
	picture pictureFlags
}

func onnxCommand() *cobra.Command {
	var f onnxFlags
	c := &cobra.Command{
		Use:   "onnx FILE",
		Short: "Show, run and profile an ONNX model",
		Long: `Show the inputs, outputs, operators and weights of an ONNX model, and what it needs that is not there.

With --run it is executed. Inputs are .npy files, or pictures (PNG, JPEG, GIF), which are scaled to the model's size, if it has one. Their
bytes become floats as (byte · scale − mean) ÷ std; models of uint8 take the bytes. Inputs that are not given are random, of the shape that
the model says or --shape gives.
Outputs are summarised, and written as .npy files into the folder of --out.`,
		Example: `  wavelane onnx model.onnx
  wavelane onnx model.onnx --run --input x=features.npy --out results
  wavelane onnx model.onnx --run --input x=photo.jpg --mean 0.485,0.456,0.406 --std 0.229,0.224,0.225
  wavelane onnx model.onnx --run --shape x=1,3,640,640 --device cpu --profile
  wavelane onnx model.onnx --compare cpu,gpu --software --shape x=1,3,64,64`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, files []string) error {
			if f.repeat < 1 {
				return usagef("--repeat is %d, must be at least 1", f.repeat)
			}
			return f.do(c.Context(), c.OutOrStdout(), files[0])
		},
	}
	c.Flags().BoolVar(&f.run, "run", false, "execute the model")
	c.Flags().StringArrayVar(&f.inputs, "input", nil, "`NAME=FILE`: an input, a .npy file or a picture; may be given several times")
	c.Flags().Float64Var(&f.picture.scale, "scale", 1.0/255, "factor of a picture's bytes")
	c.Flags().Float64SliceVar(&f.picture.mean, "mean", nil, "`numbers`, one or one for each channel, that are subtracted from a scaled picture")
	c.Flags().Float64SliceVar(&f.picture.std, "std", nil, "`numbers`, one or one for each channel, by which a picture is divided then")
	c.Flags().StringArrayVar(&f.shapes, "shape", nil, "`NAME=1,3,480,640`: the shape of an input that is random or a picture")
	c.Flags().StringVar(&f.out, "out", "", "write outputs as .npy files into this `folder`")
	c.Flags().BoolVar(&f.plan, "plan", false, "show what runs where: the steps of the device and the operators of the host")
	c.Flags().BoolVar(&f.profile, "profile", false, "measure every step of the device")
	c.Flags().StringVar(&f.compare, "compare", "", "run on two devices, as `cpu,gpu`, and show how much they differ")
	c.Flags().IntVar(&f.repeat, "repeat", 1, "run so often and show the median time")
	c.Flags().StringVar(&f.bench.device, "device", "", "`name` as wavelane info lists them, or gpu for the best adapter")
	c.Flags().BoolVar(&f.bench.software, "software", false, "allow software adapters")
	c.Flags().BoolVar(&f.json, "json", false, "write JSON")
	return c
}

// onnxListing is what the command shows of a file.
type onnxListing struct {
	Producer   string           `json:"producer"`
	Opsets     map[string]int64 `json:"opsets"`
	Inputs     []onnxValue      `json:"inputs"`
	Outputs    []onnxValue      `json:"outputs"`
	Operators  map[string]int   `json:"operators"`
	Parameters int              `json:"parameters"`
	Bytes      int              `json:"bytes"` // of parameters
	Lacks      []string         `json:"lacks"`
}

type onnxValue struct {
	Name     string   `json:"name"`
	Type     string   `json:"type"`
	Shape    []string `json:"shape"` // numbers, names, of outputs also arithmetic with names of inputs, or "?"
	Optional bool     `json:"optional,omitempty"`
}

func listONNX(m *onnx.Model) *onnxListing {
	values := func(list []onnx.Value) []onnxValue {
		out := []onnxValue{}
		for _, v := range list {
			x := onnxValue{Name: v.Name, Type: v.Type.String(), Shape: []string{}, Optional: v.Optional}
			for _, d := range v.Shape {
				x.Shape = append(x.Shape, d.String())
			}
			out = append(out, x)
		}
		return out
	}
	l := &onnxListing{Producer: m.Producer(), Opsets: m.Opsets(), Inputs: values(m.Inputs()), Outputs: values(onnx.InferOutputs(m)),
		Operators: m.Operators(), Lacks: append([]string{}, m.Lacks()...)}
	l.Parameters, l.Bytes = m.Parameters()
	return l
}

func (l *onnxListing) writeText(out io.Writer) error {
	var opsets []string
	for _, domain := range slices.Sorted(maps.Keys(l.Opsets)) {
		name := domain
		if name == "" {
			name = "ai.onnx"
		}
		opsets = append(opsets, fmt.Sprintf("%s %d", name, l.Opsets[domain]))
	}
	fmt.Fprintf(out, "ONNX model by %s, operators of %s\n%d parameters, %d bytes\n", text(l.Producer), strings.Join(opsets, ", "), l.Parameters, l.Bytes)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, group := range []struct {
		title  string
		values []onnxValue
	}{{"inputs", l.Inputs}, {"outputs", l.Outputs}} {
		fmt.Fprintf(w, "\n%s:\n", group.title)
		for _, v := range group.values {
			note := ""
			if v.Optional {
				note = "optional"
			}
			fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", printable(v.Name), v.Type, strings.Join(v.Shape, " × "), note)
		}
	}
	fmt.Fprintf(w, "\noperators:\n")
	names := slices.SortedFunc(maps.Keys(l.Operators), func(a, b string) int {
		if n := l.Operators[b] - l.Operators[a]; n != 0 {
			return n
		}
		return strings.Compare(a, b)
	})
	for _, n := range names {
		fmt.Fprintf(w, "  %d\t%s\n", l.Operators[n], printable(n))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(l.Lacks) > 0 {
		fmt.Fprintf(out, "\nit cannot run, because these are not there:\n")
		for _, s := range l.Lacks {
			fmt.Fprintf(out, "  %s\n", s)
		}
	}
	return nil
}

func (f *onnxFlags) do(ctx context.Context, out io.Writer, file string) error {
	m, err := onnx.Open(file)
	if err != nil {
		return err
	}
	defer m.Close()
	if !f.run && !f.plan && !f.profile && f.compare == "" && f.out == "" && len(f.inputs) == 0 {
		if f.json {
			return writeJSON(out, listONNX(m))
		}
		return listONNX(m).writeText(out)
	}
	inputs, err := f.tensors(m)
	if err != nil {
		return err
	}
	if f.compare != "" {
		return f.compared(ctx, out, m, inputs)
	}
	results, err := f.execute(ctx, out, m, inputs, f.bench)
	if err != nil {
		return err
	}
	for _, v := range m.Outputs() {
		t, ok := results[v.Name]
		if !ok {
			continue
		}
		fmt.Fprintf(out, "%s\t%v%v\t%s\n", printable(v.Name), t.Type, t.Shape, summary(t))
		if f.out == "" {
			continue
		}
		a, err := arrayOf(t)
		if err != nil {
			return fmt.Errorf("output %q: %w", v.Name, err)
		}
		if err := os.MkdirAll(f.out, 0o755); err != nil {
			return err
		}
		name := strings.Map(func(r rune) rune {
			if strings.ContainsRune(`/\:`, r) {
				return '_'
			}
			return r
		}, v.Name)
		if err := os.WriteFile(filepath.Join(f.out, name+".npy"), a.Encode(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// execute runs the model on a device.
func (f *onnxFlags) execute(ctx context.Context, out io.Writer, m *onnx.Model, inputs map[string]onnx.Tensor, bench benchFlags) (map[string]onnx.Tensor, error) {
	dev, err := wavelane.Open(ctx, append(bench.options(), wavelane.WithoutRouting())...)
	if err != nil {
		return nil, err
	}
	defer dev.Close()
	var opts []onnx.Option
	if f.profile {
		opts = append(opts, onnx.WithBatch(batch.WithProfile()))
	}
	s, err := m.Session(ctx, dev, opts...)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	start := time.Now()
	results, err := s.Run(ctx, inputs)
	if err != nil {
		return nil, err
	}
	first := time.Since(start)
	times := []time.Duration{}
	for range f.repeat {
		start := time.Now()
		if results, err = s.Run(ctx, inputs); err != nil {
			return nil, err
		}
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	weights, peak := s.Memory()
	work := s.Work()
	fmt.Fprintf(out, "%s: %v for the first run, %v for the next (median of %d)\n", dev.Info().Name, first.Round(time.Microsecond),
		times[len(times)/2].Round(time.Microsecond), len(times))
	fmt.Fprintf(out, "  %.4g GFLOP and %.4g MB of operands and results in %d steps; weights %d bytes, at most %d bytes more\n",
		work.Flops/1e9, work.Bytes/1e6, work.Steps, weights, peak)
	if f.plan {
		fmt.Fprint(out, s)
	}
	if f.profile {
		list, err := s.Profiles()
		if err != nil {
			return nil, err
		}
		for _, p := range list {
			fmt.Fprintln(out, p)
		}
	}
	return results, nil
}

// compared runs on two devices.
func (f *onnxFlags) compared(ctx context.Context, out io.Writer, m *onnx.Model, inputs map[string]onnx.Tensor) error {
	names := strings.Split(f.compare, ",")
	if len(names) != 2 {
		return usagef("--compare is %q, must be two devices such as cpu,gpu", f.compare)
	}
	var results []map[string]onnx.Tensor
	for _, name := range names {
		r, err := f.execute(ctx, out, m, inputs, benchFlags{device: name, software: f.bench.software})
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		results = append(results, r)
	}
	for _, v := range m.Outputs() {
		a, b := results[0][v.Name], results[1][v.Name]
		if !slices.Equal(a.Shape, b.Shape) {
			fmt.Fprintf(out, "%s\tshapes %v and %v\n", printable(v.Name), a.Shape, b.Shape)
			continue
		}
		x, y := numbers(a), numbers(b)
		worst, at := 0.0, 0
		for i := range x {
			if d := math.Abs(x[i] - y[i]); d > worst || d != d && x[i] == x[i] {
				worst, at = d, i
			}
		}
		fmt.Fprintf(out, "%s\t%v%v\tlargest difference %.3g", printable(v.Name), a.Type, a.Shape, worst)
		if len(x) > 0 {
			fmt.Fprintf(out, ", of %v and %v at element %d", x[at], y[at], at)
		}
		fmt.Fprintln(out)
	}
	return nil
}

// tensors reads the inputs that are given, and makes the others.
func (f *onnxFlags) tensors(m *onnx.Model) (map[string]onnx.Tensor, error) {
	in, shapes := map[string]onnx.Tensor{}, map[string][]int{}
	for _, given := range f.shapes {
		name, list, ok := strings.Cut(given, "=")
		shape := []int{}
		for part := range strings.SplitSeq(list, ",") {
			n, err := strconv.Atoi(part)
			if err != nil || n < 0 || n > 1<<20 {
				ok = list == "" && ok
				break
			}
			shape = append(shape, n)
		}
		if !ok {
			return nil, usagef("--shape %s: must be NAME=1,3,480,640", given)
		}
		shapes[name] = shape
	}
	for _, given := range f.inputs {
		name, file, ok := strings.Cut(given, "=")
		if !ok {
			return nil, usagef("--input %s: must be NAME=FILE", given)
		}
		i := slices.IndexFunc(m.Inputs(), func(v onnx.Value) bool { return v.Name == name })
		if i < 0 {
			return nil, usagef("--input %s: the model has no input of that name, see wavelane onnx without --run", given)
		}
		if strings.ToLower(filepath.Ext(file)) != ".npy" {
			var err error
			if in[name], err = f.picture.tensor(file, m.Inputs()[i], shapes[name]); err != nil {
				return nil, err
			}
			continue
		}
		a, err := npy.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if in[name], err = tensorOf(a); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	for _, v := range m.Inputs() {
		if _, ok := in[v.Name]; ok || v.Optional {
			continue
		}
		shape, ok := shapes[v.Name]
		if !ok {
			for _, d := range v.Shape {
				if d.Size < 0 {
					return nil, usagef("input %q is %v: give a file with --input, or --shape %s=…", v.Name, v.Shape, v.Name)
				}
				shape = append(shape, d.Size)
			}
		}
		t, err := randomTensor(v.Type, shape)
		if err != nil {
			return nil, fmt.Errorf("input %q: %w", v.Name, err)
		}
		in[v.Name] = t
	}
	return in, nil
}

func randomTensor(t onnx.ElementType, shape []int) (onnx.Tensor, error) {
	r := rand.New(rand.NewPCG(1, 2))
	n := 1
	for _, d := range shape {
		n *= d
	}
	x := onnx.Tensor{Type: t, Shape: shape}
	switch t {
	case onnx.Float32:
		data := make([]float32, n)
		for i := range data {
			data[i] = r.Float32()
		}
		x.Data = data
	case onnx.Int64:
		x.Data = make([]int64, n)
	case onnx.Int32:
		x.Data = make([]int32, n)
	case onnx.Uint8:
		data := make([]uint8, n)
		for i := range data {
			data[i] = uint8(r.Uint32())
		}
		x.Data = data
	case onnx.Bool:
		x.Data = make([]bool, n)
	default:
		return x, usagef("elements of type %v are not made at random: give a file with --input", t)
	}
	return x, nil
}

// summary is the range of a tensor, and a few elements.
func summary(t onnx.Tensor) string {
	x := numbers(t)
	if len(x) == 0 {
		return "empty"
	}
	low, high, sum := math.Inf(1), math.Inf(-1), 0.0
	for _, v := range x {
		low, high, sum = min(low, v), max(high, v), sum+v
	}
	head := fmt.Sprintf("%.6g", x[:min(len(x), shownElements)])
	return fmt.Sprintf("from %.6g to %.6g, mean %.6g, begins %s", low, high, sum/float64(len(x)), head)
}
