package cudacorpus

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/wavelane/wavelane/ptx/analyze"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/ptxtest"
	"github.com/wavelane/wavelane/ptx/sanitize"
	"github.com/wavelane/wavelane/ptx/sim"
)

// run is a launch of a kernel, or several in a row, and what it has to compute.
type run struct {
	file, kernel         string
	part                 string // of Triton: which of the file's compilations
	least, most          int    // compute capability, such as 75; 0: any
	grid, block, cluster sim.Dim3
	shared               int
	cooperative          bool
	launches             int                                  // one after the other with the same arguments; 0: 1
	constants            map[string]any                       // the module's variables, as the host sets them
	args                 func(r *rand.Rand) (arguments []any) // numbers and buffers
}

// buffer is memory that a pointer parameter points to. Slices are of numbers, halves or bfloats.
type buffer struct {
	have  any     // what it holds before; nil: nothing that anybody wrote
	want  any     // what it holds afterwards; nil: does not matter
	bytes int     // where both are nil
	error float64 // that floats may have, relative to the larger of 1 and their size
}

// The kinds of buffers that there are.
func in(have any) *buffer                       { return &buffer{have: have, want: have} }
func out(want any, err float64) *buffer         { return &buffer{want: want, error: err} }
func inout(have, want any, err float64) *buffer { return &buffer{have: have, want: want, error: err} }
func scratch(bytes int) *buffer                 { return &buffer{bytes: bytes} }
func zeros(bytes int) *buffer                   { return &buffer{have: make([]byte, bytes)} }
func (b *buffer) size() int {
	if b.have == nil && b.want == nil {
		return b.bytes
	}
	return len(encode(b.content()))
}

func (b *buffer) content() any {
	if b.have != nil {
		return b.have
	}
	return b.want
}

// half and bfloat are numbers of 16 bits.
type (
	half   uint16
	bfloat uint16
)

func toHalf(v float32) half   { return half(float16.Fromfloat32(v)) }
func (h half) float() float64 { return float64(float16.Frombits(uint16(h)).Float32()) }
func toBfloat(v float32) bfloat {
	return bfloat((math.Float32bits(v) + 0x7fff + math.Float32bits(v)>>16&1) >> 16)
}
func (b bfloat) float() float64 { return float64(math.Float32frombits(uint32(b) << 16)) }

func encode(v any) []byte {
	b, err := binary.Append(nil, binary.LittleEndian, v)
	if err != nil {
		panic(err)
	}
	return b
}

func number(v reflect.Value) float64 {
	switch x := v.Interface().(type) {
	case half:
		return x.float()
	case bfloat:
		return x.float()
	}
	switch {
	case v.CanInt():
		return float64(v.Int())
	case v.CanUint():
		return float64(v.Uint())
	}
	return v.Float()
}

// compare says where what a buffer holds is not what it should.
func (b *buffer) compare(got []byte) error {
	want := reflect.ValueOf(b.want)
	have := reflect.New(want.Type())
	have.Elem().Set(reflect.MakeSlice(want.Type(), want.Len(), want.Len()))
	if err := binary.Read(bytes.NewReader(got), binary.LittleEndian, have.Interface()); err != nil {
		return err
	}
	for i := range want.Len() {
		g, w := have.Elem().Index(i), want.Index(i)
		if g.Equal(w) {
			continue
		}
		x, y := number(g), number(w)
		if b.error > 0 && math.Abs(x-y) <= b.error*max(1, math.Abs(y)) || math.IsNaN(x) && math.IsNaN(y) {
			continue
		}
		return fmt.Errorf("element %d is %v, want %v", i, x, y)
	}
	return nil
}

// capability is that of an architecture such as compute_90 or sm_90.
func capability(arch string) int {
	n, err := strconv.Atoi(arch[strings.Index(arch, "_")+1:])
	if err != nil {
		panic(err)
	}
	return n
}

// covers tells whether the run is possible for an architecture.
func (r *run) covers(arch string) bool {
	n := capability(arch)
	return n >= r.least && (r.most == 0 || n <= r.most)
}

// of is the run of what a compiler made. A unit of Triton says itself what a launch takes: threads and shared memory, and two pointers
// after the arguments, of memory for descriptors of tensors and for profiles.
func (r *run) of(u *unit) *run {
	if u.part == "" {
		return r
	}
	launch := *r
	launch.block, launch.shared = dims(u.module.Func(r.kernel).Bounds.ReqThreads[0]), u.Shared
	launch.args = func(rng *rand.Rand) []any {
		return append(r.args(rng), scratch(max(1, u.Scratch)*r.grid.X), uint64(0))
	}
	return &launch
}

// execute runs the kernel on one schedule and compares what it leaves.
func (r *run) execute(m *ir.Module, skip sanitize.Tools, seed uint64, rng *rand.Rand) error {
	k, err := ptxtest.Of(m, r.kernel)
	if err != nil {
		return err
	}
	args := r.args(rng)
	list := slices.Clone(args)
	for i, a := range args {
		switch b, isBuffer := a.(*buffer); {
		case isBuffer && b.have != nil:
			list[i] = encode(b.have)
		case isBuffer:
			list[i] = ptxtest.Out{Slice: make([]byte, b.size())}
		case reflect.TypeOf(a).Kind() == reflect.Struct:
			list[i] = ptxtest.Struct(encode(a))
		}
	}
	err = k.Check(context.Background(), ptxtest.Launch{Grid: r.grid, Block: r.block, Cluster: r.cluster, Shared: r.shared,
		Cooperative: r.cooperative, Repeat: r.launches, Symbols: r.constants, Schedules: 1, Seed: seed, Skip: skip}, list...)
	if err != nil {
		return err
	}
	for i, a := range args {
		if b, isBuffer := a.(*buffer); isBuffer && b.want != nil {
			got := list[i]
			if out, unwritten := got.(ptxtest.Out); unwritten {
				got = out.Slice
			}
			if err := b.compare(got.([]byte)); err != nil {
				return fmt.Errorf("argument %d: %w", i, err)
			}
		}
	}
	return nil
}

// analysis is what the analyser finds, knowing the launch or not.
func (r *run) analysis(t *testing.T, m *ir.Module, known bool) *analyze.Report {
	t.Helper()
	one := *m
	one.Funcs = nil
	for _, f := range m.Funcs {
		if !f.Entry || f.Name == r.kernel {
			one.Funcs = append(one.Funcs, f)
		}
	}
	o := analyze.Options{Block: [3]int{r.block.X, max(1, r.block.Y), max(1, r.block.Z)}, Shared: r.shared, BugsOnly: true}
	if known {
		o.Grid = [3]int{max(1, r.grid.X), max(1, r.grid.Y), max(1, r.grid.Z)}
		o.Params, o.Buffers = map[string]uint64{}, map[string]uint64{}
		for i, a := range r.args(rand.New(rand.NewPCG(1, 1))) {
			name := fmt.Sprintf("%s_param_%d", r.kernel, i)
			if b, ok := a.(*buffer); ok {
				o.Buffers[name] = uint64(b.size())
			} else if b := encode(a); len(b) <= 8 && reflect.TypeOf(a).Kind() != reflect.Struct {
				o.Params[name] = binary.LittleEndian.Uint64(append(b, make([]byte, 8-len(b))...))
			}
		}
	}
	report, err := analyze.Module(&one, o)
	require.NoError(t, err)
	return report
}
