package wgslkernels

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/lowering"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/recent"
	"github.com/wavelane/wavelane/wgsl"
)

// narrow is a device with room for next to nothing, so that small tensors take the ways of large ones.
func narrow() *wgsl.Caps {
	c := wgsl.DefaultCaps
	c.MaxWorkgroups, c.MaxInvocations, c.MaxBinding = 300, 64, 4096
	return &c
}

// someCaps are those under which code selection is tested.
func someCaps() map[string]*wgsl.Caps {
	usual, compatible := wgsl.DefaultCaps, wgsl.DefaultCaps
	compatible.MaxInvocations, compatible.MaxWorkgroupSize = 128, [3]uint32{128, 128, 64}
	return map[string]*wgsl.Caps{"usual": &usual, "compatible": &compatible, "narrow": narrow()}
}

// texts remembers the text of every kernel that any test saw, by key.
type texts map[string]string

// lower lowers a call with nothing cached, and checks all that can be known without a GPU.
func (seen texts) lower(t *testing.T, e *program.Entry, a program.Attr, caps *wgsl.Caps, in ...program.Type) Lowering {
	t.Helper()
	if a.Options == nil {
		a.Options = e.Options
	}
	if a.Scalars == nil {
		a.Scalars = make([]float32, len(e.Scalars))
	}
	out, err := e.Check(in, a)
	require.NoError(t, err)
	kernels.kept = recent.New[*wgsl.Kernel](mostKernels)
	l, err := Lower(&program.Step{Entry: e, Attr: a}, in, out, caps, nil)
	require.NoError(t, err)
	seen.check(t, l, caps, in, out)
	requireCovered(t, l, int(wgsl.BufferSize(out[0].Bytes())))
	return l
}

// check checks the actions of a lowering against the operands, the result and the limits.
func (seen texts) check(t *testing.T, l Lowering, caps *wgsl.Caps, in, out []program.Type) {
	t.Helper()
	for _, action := range l.Actions {
		d := action.Launch
		if c := action.Copy; c != nil {
			require.Nil(t, d)
			require.True(t, c.From.Size == c.To.Size && c.From.Size > 0 && c.From.Size%4 == 0 && c.From.Offset%4 == 0 && c.To.Offset%4 == 0)
			require.LessOrEqual(t, uint64(c.From.Offset+c.From.Size), wgsl.BufferSize(in[c.From.Index].Bytes()))
			require.LessOrEqual(t, uint64(c.To.Offset+c.To.Size), wgsl.BufferSize(out[c.To.Index].Bytes()))
			require.Equal(t, lowering.Result, c.To.Role)
			continue
		}
		seen.kernel(t, d.Kernel, caps)
		for _, n := range d.Grid {
			require.True(t, n > 0 && n <= caps.MaxWorkgroups, "%s: grid %v", d.Kernel.Key, d.Grid)
		}
		require.Len(t, d.Bind, len(d.Kernel.Bindings))
		require.LessOrEqual(t, 4*len(d.Params), d.Kernel.Uniform)
		for i, b := range d.Bind {
			var size int
			switch b.Role {
			case lowering.Operand:
				size = int(wgsl.BufferSize(in[b.Index].Bytes()))
				require.Equal(t, wgsl.Read, d.Kernel.Bindings[i])
			case lowering.Result:
				size = int(wgsl.BufferSize(out[b.Index].Bytes()))
				require.Equal(t, wgsl.ReadWrite, d.Kernel.Bindings[i])
			case lowering.Scratch:
				size = l.Scratch[b.Index]
			}
			for _, other := range d.Bind[:i] {
				same := other.Role == b.Role && other.Index == b.Index
				require.False(t, same && d.Kernel.Bindings[i] == wgsl.ReadWrite, "%s reads what it writes", d.Kernel.Key)
			}
			if b.Size != 0 {
				require.LessOrEqual(t, b.Offset+b.Size, size, "%s binds beyond a buffer", d.Kernel.Key)
				size = b.Offset + b.Size
			}
			require.LessOrEqual(t, uint64(size-b.Offset), caps.MaxBinding, "%s: binding %d", d.Kernel.Key, i)
			require.Zero(t, b.Offset%int(caps.StorageAlign))
			require.Zero(t, b.Offset%16)
		}
	}
}

// kernel checks one kernel against its own text and the limits.
func (seen texts) kernel(t *testing.T, k *wgsl.Kernel, caps *wgsl.Caps) {
	t.Helper()
	require.LessOrEqual(t, k.Workgroup[0]*k.Workgroup[1]*k.Workgroup[2], caps.MaxInvocations)
	require.LessOrEqual(t, k.Workgroup[0], caps.MaxWorkgroupSize[0])
	require.LessOrEqual(t, uint32(k.Shared), caps.MaxShared)
	require.LessOrEqual(t, len(k.Bindings), int(caps.MaxStorageBuffers))
	require.LessOrEqual(t, k.Workgroup[1], caps.MaxWorkgroupSize[1])
	if text, ok := seen[k.Key]; ok {
		require.True(t, text == k.Source, "two texts under the key %s", k.Key)
		return
	}
	seen[k.Key] = k.Source
	require.Contains(t, k.Source, fmt.Sprintf("fn %s(", k.Entry))
	require.True(t, k.Uniform <= 256 && k.Uniform%16 == 0, "uniform of %d bytes", k.Uniform)
	size := fmt.Sprintf("@workgroup_size(%d)", k.Workgroup[0])
	if k.Workgroup[1] > 1 {
		size = fmt.Sprintf("@workgroup_size(%d, %d)", k.Workgroup[0], k.Workgroup[1])
	}
	require.True(t, strings.Contains(k.Source, size) || strings.Contains(k.Source, strings.Replace(size, ")", ", 1)", 1)), k.Key)
	for i, access := range k.Bindings {
		require.Contains(t, k.Source, fmt.Sprintf("@binding(%d) var<storage, %s>", i, []string{"read", "read_write"}[access]))
	}
	require.Contains(t, k.Source, fmt.Sprintf("@binding(%d) var<uniform>", len(k.Bindings)))
	require.Equal(t, len(k.Bindings)+1, strings.Count(k.Source, "@binding("))
	require.Equal(t, k.Uniform, structSize(t, k.Source), k.Key)
	require.NotContains(t, k.Source, "<no value>")
	require.Equal(t, strings.Count(k.Source, "{"), strings.Count(k.Source, "}"))
}

var (
	paramsStruct = regexp.MustCompile(`(?s)struct Params \{(.*?)\n\}`)
	field        = regexp.MustCompile(`\w+: (array<[^>]+>, \d+>|[\w<>]+),`)
	comment      = regexp.MustCompile(`//.*`)
	axesArray    = regexp.MustCompile(`^array<vec4<u32>, (\d+)>$`)
)

// structSize returns the bytes of the struct Params of a text as a uniform binding has them.
func structSize(t *testing.T, text string) int {
	body := paramsStruct.FindStringSubmatch(text)
	require.NotNil(t, body)
	n := 0
	for _, f := range field.FindAllStringSubmatch(comment.ReplaceAllString(body[1], ""), -1) {
		align, size := 4, 4
		switch m := axesArray.FindStringSubmatch(f[1]); {
		case m != nil:
			count, err := strconv.Atoi(m[1])
			require.NoError(t, err)
			align, size = 16, 16*count
		case f[1] == "vec4<u32>":
			align, size = 16, 16
		default:
			require.Contains(t, []string{"u32", "f32"}, f[1])
		}
		n = (n+align-1)/align*align + size
	}
	return (n + 15) &^ 15
}

// requireCovered checks that dispatches bind every byte of the first result for writing.
func requireCovered(t *testing.T, l Lowering, size int) {
	t.Helper()
	covered := 0
	for _, a := range l.Actions { // in ascending order
		for _, b := range a.Launch.Bind {
			if b.Role != lowering.Result || b.Index != 0 {
				continue
			}
			require.LessOrEqual(t, b.Offset, covered, "a gap in the result")
			if covered = b.Offset + b.Size; b.Size == 0 {
				covered = size
			}
		}
	}
	require.Equal(t, size, covered)
}

func TestEveryEntryHasItsKernel(t *testing.T) {
	for _, e := range catalogue.All() {
		require.Contains(t, table(), e, e.Name)
	}
}

func TestElementwiseLowering(t *testing.T) {
	seen := texts{}
	for name, caps := range someCaps() {
		t.Run(name, func(t *testing.T) {
			for e := range expressions {
				if !e.Class.Elementwise() {
					continue // an activation of something else
				}
				operands := func(shapes ...[]int) (in []program.Type) {
					for i := range e.Inputs {
						in = append(in, program.F32(shapes[i%len(shapes)]...))
					}
					return in
				}
				for _, n := range []int{1, 3, 1000, 1024, 1025, 20000} {
					l := seen.lower(t, e, program.Attr{}, caps, operands([]int{n})...)
					require.Len(t, l.Actions, ceilDiv(4*n, int(caps.MaxBinding)))
				}
				if len(e.Inputs) == 1 {
					continue
				}
				for _, s := range [][][]int{{{7}, {}}, {{}, {7}}, {{30, 8}, {8}}, {{30, 8}, {30, 1}}, {{30, 7}, {7}}, {{7, 1}, {1, 9}},
					{{400, 1, 8}, {3, 1}}, {{2, 1, 2, 1, 2, 1, 2, 1}, {1, 3, 1, 3, 1, 3, 1, 3}}, {{2, 1, 2, 1, 2, 1, 2, 4}, {1, 3, 1, 3, 1, 3, 1, 4}}} {
					seen.lower(t, e, program.Attr{}, caps, operands(s...)...)
				}
			}
		})
	}
}

func TestReduceLowering(t *testing.T) {
	seen := texts{}
	for name, caps := range someCaps() {
		t.Run(name, func(t *testing.T) {
			for e := range reductions {
				for _, s := range [][]int{{1}, {3}, {300}, {70000, 3}, {7, 4}, {30, 1000}, {3, 5000}, {200003}, {2, 65537}} {
					for _, axis := range []compute.Axis{compute.AllAxes, compute.LastAxis} {
						in := []program.Type{program.F32(s...), program.F32(s...)}[:len(e.Inputs)]
						seen.lower(t, e, program.Attr{Options: axis}, caps, in...)
					}
				}
			}
			for _, e := range []*program.Entry{catalogue.Sum, catalogue.Mean, catalogue.NormL1, catalogue.NormL2, catalogue.NormLInf} {
				seen.lower(t, e, program.Attr{Options: compute.LastAxis}, caps, program.F32(3, 0))
			}
		})
	}
}

func TestRowsLowering(t *testing.T) {
	seen := texts{}
	for name, caps := range someCaps() {
		t.Run(name, func(t *testing.T) {
			for e := range statistics {
				for _, s := range [][]int{{1}, {3}, {4}, {9, 64}, {70000, 3}, {30, 1000}, {5, 1023}, {3, 5000}, {2, 8191}, {200003}} {
					if statistics[e].second == gradient && uint64(4*s[len(s)-1]) > caps.MaxBinding {
						continue // whole rows of partial sums have to fit a binding
					}
					seen.lower(t, e, program.Attr{}, caps, rowsOperands(t, e, s)...)
				}
			}
		})
	}
}

// rowsOperands are operands that the entry takes where the first has this shape: each is as large, or a vector as long as its rows.
func rowsOperands(t *testing.T, e *program.Entry, shape []int) []program.Type {
	t.Helper()
	operands := func(matrices int, shape []int) (in []program.Type) {
		for i := range e.Inputs {
			if matrices>>i&1 == 1 {
				in = append(in, program.F32(shape...))
			} else {
				in = append(in, program.F32(shape[len(shape)-1]))
			}
		}
		return in
	}
	a := program.Attr{Scalars: make([]float32, len(e.Scalars)), Options: e.Options}
	var possible []int
	for matrices := 1; matrices < 1<<len(e.Inputs); matrices += 2 {
		if _, err := e.Check(operands(matrices, []int{3, 5}), a); err == nil {
			possible = append(possible, matrices)
		}
	}
	require.Len(t, possible, 1, e.Name)
	return operands(possible[0], shape)
}

func TestLargestTensors(t *testing.T) {
	seen := texts{}
	caps := wgsl.DefaultCaps
	all, last := program.Attr{Options: compute.AllAxes}, program.Attr{Options: compute.LastAxis}
	n := program.MaxElements
	seen.lower(t, catalogue.ReLU, program.Attr{}, &caps, program.F32(n))
	seen.lower(t, catalogue.Add, program.Attr{}, &caps, program.F32(n), program.F32(1))
	seen.lower(t, catalogue.Add, program.Attr{}, &caps, program.F32(46340, 46340), program.F32(46340))
	seen.lower(t, catalogue.Add, program.Attr{}, &caps, program.F32(46337, 46337), program.F32(46337, 1))
	for e := range reductions {
		in := func(s ...int) []program.Type {
			return []program.Type{program.F32(s...), program.F32(s...)}[:len(e.Inputs)]
		}
		seen.lower(t, e, all, &caps, in(n)...)
		if e != catalogue.Inspect { // four words for each row
			seen.lower(t, e, last, &caps, in(n, 1)...)
		}
		seen.lower(t, e, last, &caps, in(2, n/2)...)
		seen.lower(t, e, last, &caps, in(46340, 46340)...)
	}
	for e := range statistics {
		for _, s := range [][]int{{n}, {n, 1}, {2, n / 2}, {46340, 46340}, {4096, 50257}} {
			seen.lower(t, e, program.Attr{}, &caps, rowsOperands(t, e, s)...)
		}
	}
}

func TestTooLargeForOneBinding(t *testing.T) {
	in := []program.Type{program.F32(1, 5000), program.F32(4, 1)} // one row of the result is more than a binding, and the operand repeats
	in[0].Shape = []int{3, 1, 5000}
	out, err := catalogue.Add.Check(in, program.Attr{})
	require.NoError(t, err)
	_, err = Lower(&program.Step{Entry: catalogue.Add}, in, out, narrow(), nil)
	require.ErrorIs(t, err, compute.ErrTooLarge)
	require.ErrorContains(t, err, "4096 bytes")
	require.ErrorContains(t, err, "add [[3 1 5000] [4 1]]")
}

// TestBeyondTheLoopBudget: the error says what does not fit, which is no binding.
func TestBeyondTheLoopBudget(t *testing.T) {
	in := []program.Type{program.F32(1, 1, 1, 1_000_000), program.F32(1, 1, 1, 1_000_000)}
	out, err := catalogue.Conv2D.Check(in, program.Attr{Options: compute.Conv2DOptions{}})
	require.NoError(t, err)
	_, err = Lower(&program.Step{Entry: catalogue.Conv2D, Attr: program.Attr{Options: compute.Conv2DOptions{}}}, in, out, &wgsl.DefaultCaps, nil)
	require.ErrorIs(t, err, compute.ErrTooLarge)
	require.ErrorContains(t, err, "1000000 elements, a loop of a kernel may go round 60000 times")
}

func TestFunctionsOf(t *testing.T) {
	require.Empty(t, functionsOf("a + b"))
	text := functionsOf("ieee_log2(a)")
	for _, name := range []string{"ieee_log2", "split_exponent", "log1p_rest", "log_limits", "inf", "nan"} {
		require.Equal(t, 1, strings.Count(text, "fn "+name+"("), name)
	}
	require.NotContains(t, text, "fn ieee_pow")
}
