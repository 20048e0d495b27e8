// Package ptxtest tests kernels in PTX, of nvcc, clang, Triton or people, without a GPU:
//
//	k, err := ptxtest.Load("saxpy.ptx", "saxpy")
//	k.Run(t, ptxtest.Launch{Grid: sim.Dim3{X: 4}, Block: sim.Dim3{X: 256}}, uint32(n), float32(2), x, y)
//	ptxtest.Near(t, y, want, 1e-6, 0)
//
// Slices are buffers: the kernel gets the address of a copy, and the slice has what is in it afterwards. A kernel runs on several
// schedules with every check; what is found fails the test in compute-sanitizer's words, and so do results that depend on the schedule.
package ptxtest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/parse"
	"github.com/wavelane/wavelane/ptx/sanitize"
	"github.com/wavelane/wavelane/ptx/sim"
)

// Kernel is a kernel of a module. It is safe for concurrent use.
type Kernel struct {
	module *ir.Module
	name   string
	dir    string
}

// Load reads a kernel from a PTX file. Reports quote the source that the file names, where it lies beside the file too.
func Load(file, kernel string) (*Kernel, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	k, err := Parse(file, text, kernel)
	if err != nil {
		return nil, err
	}
	k.dir = filepath.Dir(file)
	return k, nil
}

// Parse reads a kernel from text; name stands for the file in reports. Errors are those of package parse, or wrap [compute.ErrArgument].
func Parse(name string, text []byte, kernel string) (*Kernel, error) {
	m, err := parse.Module(name, text)
	if err != nil {
		return nil, err
	}
	return Of(m, kernel)
}

// Of is a kernel of a module, which package ptx may have built. Errors wrap [compute.ErrArgument].
func Of(m *ir.Module, kernel string) (*Kernel, error) {
	if f := m.Func(kernel); f == nil || !f.Entry || f.Body == nil {
		return nil, fmt.Errorf("ptxtest: there is no kernel %q: %w", kernel, compute.ErrArgument)
	}
	return &Kernel{module: m, name: kernel}, nil
}

// Launch is how a kernel is run.
type Launch struct {
	Grid, Block, Cluster sim.Dim3 // of no extent: 1
	Shared               int      // bytes of dynamic shared memory
	Cooperative          bool
	Repeat               int // launches one after the other, with the same arguments; 0: 1
	// Symbols are values of the module's variables, __device__ or __constant__ in CUDA C: slices, numbers, [Struct], or [Texture] and
	// [Surface] for references.
	Symbols map[string]any
	// Schedules is on how many orders of blocks, warps and completions the kernel runs; 0: 4. Seed is that of the first.
	Schedules int
	Seed      uint64
	// Varies says that results may depend on the order, as sums by atomic operations do. The slices get those of the first.
	Varies bool
	// Skip are tools that do not check.
	Skip sanitize.Tools
}

// Out is a slice whose elements the kernel finds unwritten: reading one before it is written is an error.
type Out struct{ Slice any }

// Texture is the object of a texture: of a slice of texels, which the image describes but for its address.
type Texture struct {
	Slice   any
	Image   sim.Image
	Sampler sim.Sampler
}

// Surface is the object of a surface. The slice has what the kernel writes.
type Surface struct {
	Slice any
	Image sim.Image
}

// Struct is a parameter by value, as its bytes lie in memory.
type Struct []byte

// Run is [Kernel.Check] that fails the test.
func (k *Kernel) Run(t testing.TB, l Launch, args ...any) {
	t.Helper()
	if err := k.Check(t.Context(), l, args...); err != nil {
		t.Fatal(err)
	}
}

// Check runs the kernel on all schedules. An argument is a number of the parameter's size and class, a slice of numbers, an [Out], a
// [Struct], a [Texture] or [Surface], or nil for no address. Slices have the results afterwards, unless there is an error: what the tools have found, or results
// that depend on the schedule, or a launch or arguments that no GPU would take, which wraps [compute.ErrArgument].
func (k *Kernel) Check(ctx context.Context, l Launch, args ...any) error {
	if l.Schedules == 0 {
		l.Schedules = 4
	}
	var first [][]byte
	for seed := range l.Schedules {
		results, err := k.run(ctx, l, l.Seed+uint64(seed), args)
		if err != nil {
			return fmt.Errorf("ptxtest: %s, schedule %d: %w", k.name, seed, err)
		}
		if first == nil {
			first = results
		}
		for i := range results {
			if !l.Varies && !bytes.Equal(first[i], results[i]) {
				return fmt.Errorf("ptxtest: %s: argument %d depends on the order in which blocks and warps run: schedule 0 and %d differ", k.name, i, seed)
			}
		}
	}
	for i, b := range first {
		if slice, _ := sliceOf(args[i]); b != nil && len(b) > 0 {
			if _, err := binary.Decode(b, binary.LittleEndian, slice); err != nil {
				return fmt.Errorf("ptxtest: argument %d: %w", i, err)
			}
		}
	}
	return nil
}

// sliceOf is the slice of an argument that is a buffer, and whether it is unwritten.
func sliceOf(arg any) (slice any, out bool) {
	switch x := arg.(type) {
	case Out:
		return x.Slice, true
	case Texture:
		return x.Slice, false
	case Surface:
		return x.Slice, false
	case Struct, nil:
		return nil, false
	}
	if reflect.TypeOf(arg).Kind() == reflect.Slice {
		return arg, false
	}
	return nil, false
}

// buffer is a slice in a GPU's memory.
type buffer struct {
	addr  uint64
	bytes []byte // as they are first, and at the end
}

// place puts an argument into memory. It returns what the kernel gets, and the buffer if it is one.
func place(gpu *sim.GPU, label string, arg any) (value any, b *buffer, err error) {
	slice, out := sliceOf(arg)
	if slice == nil {
		switch x := arg.(type) {
		case nil:
			return uint64(0), nil, nil
		case Struct:
			return []byte(x), nil, nil
		}
		return arg, nil, nil
	}
	b = &buffer{}
	if b.bytes, err = binary.Append([]byte{}, binary.LittleEndian, slice); err != nil {
		return nil, nil, fmt.Errorf("%s, %T: %w: %w", label, arg, err, compute.ErrArgument)
	}
	if b.addr, err = gpu.Alloc(max(1, len(b.bytes))); err != nil {
		return nil, nil, err
	}
	if err = gpu.Label(b.addr, label); err == nil && !out {
		err = gpu.Write(b.addr, b.bytes)
	}
	image := func(m sim.Image) sim.Image {
		m.Addr = b.addr
		if err == nil && m.Size() > len(b.bytes) {
			err = fmt.Errorf("%s: %d bytes of texels in a slice of %d: %w", label, m.Size(), len(b.bytes), compute.ErrArgument)
		}
		return m
	}
	value = b.addr
	var handle uint64
	switch x := arg.(type) {
	case Texture:
		if m := image(x.Image); err == nil {
			handle, err = gpu.Texture(m, x.Sampler)
		}
		value = handle
	case Surface:
		if m := image(x.Image); err == nil {
			handle, err = gpu.Surface(m)
		}
		value = handle
	}
	return value, b, err
}

// set gives a variable of the module its value.
func set(gpu *sim.GPU, module *sim.Module, name string, v any) error {
	switch v.(type) {
	case Texture, Surface:
		handle, _, err := place(gpu, name, v)
		if err != nil {
			return err
		}
		return module.Bind(name, handle.(uint64))
	}
	addr, size, err := module.Global(name)
	if err != nil {
		return err
	}
	b, err := binary.Append(nil, binary.LittleEndian, v)
	if err != nil || len(b) > size {
		return fmt.Errorf("%s has %d bytes, its value, %T, %d: %w", name, size, v, len(b), compute.ErrArgument)
	}
	return gpu.Write(addr, b)
}

// run runs the kernel once and returns the bytes of the buffers, nil for other arguments.
func (k *Kernel) run(ctx context.Context, l Launch, seed uint64, args []any) ([][]byte, error) {
	report := sanitize.NewReport(sanitize.All &^ l.Skip)
	report.SourceDirs = []string{k.dir}
	reading := false
	gpu := sim.New(sim.Config{Checks: report.Tools.Checks(), Seed: seed, Report: func(f *sim.Fault) bool {
		return reading && f.Other == nil || report.Add(f) // what nothing wrote may be read by the host
	}})
	module, err := gpu.Load(k.module)
	if err != nil {
		return nil, err
	}
	kernel, err := module.Kernel(k.name)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(l.Symbols)) {
		if err := set(gpu, module, name, l.Symbols[name]); err != nil {
			return nil, err
		}
	}
	values, buffers := make([]any, len(args)), make([]*buffer, len(args))
	for i, arg := range args {
		if values[i], buffers[i], err = place(gpu, fmt.Sprintf("argument %d", i), arg); err != nil {
			return nil, err
		}
	}
	run := sim.Launch{Grid: l.Grid.Sized(), Block: l.Block.Sized(), Cluster: l.Cluster, Shared: l.Shared, Cooperative: l.Cooperative}
	if run.Params, err = kernel.Pack(values...); err != nil {
		return nil, err
	}
	for n := 0; n < max(1, l.Repeat) && err == nil; n++ {
		_, err = gpu.Run(ctx, kernel, run)
	}
	if err := report.Ended(err); err != nil {
		return nil, err
	}
	reading = true
	results := make([][]byte, len(args))
	for i, b := range buffers {
		if b != nil {
			if err := gpu.Read(b.bytes, b.addr); err != nil {
				return nil, err
			}
			results[i] = b.bytes
		}
	}
	if len(report.Errors) == 0 {
		return results, nil
	}
	var text strings.Builder
	if err := report.WriteText(&text); err != nil {
		return nil, err
	}
	return nil, errors.New("\n" + text.String())
}

// Near fails the test unless |got − want| ≤ abs + rel·|want| for each element, or both are NaN.
func Near[T ~float32 | ~float64 | ~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64](t testing.TB, got, want []T, rel, abs float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("ptxtest: %d elements, want %d", len(got), len(want))
	}
	wrong, first := 0, 0
	for i := range got {
		x, y := float64(got[i]), float64(want[i])
		near := got[i] == want[i] || math.IsNaN(x) && math.IsNaN(y) || !math.IsInf(y, 0) && math.Abs(x-y) <= abs+rel*math.Abs(y)
		if !near {
			if wrong == 0 {
				first = i
			}
			wrong++
		}
	}
	if wrong > 0 {
		t.Errorf("ptxtest: %d of %d elements differ by more than %g + %g·|want|: element %d is %v, want %v", wrong, len(got), abs, rel, first,
			got[first], want[first])
	}
}
