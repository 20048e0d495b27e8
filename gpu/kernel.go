package gpu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/device"
	"github.com/wavelane/wavelane/internal/lowering"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/wgslkernels"
	"github.com/wavelane/wavelane/wgsl"
)

// KernelDesc describes a kernel of your own. Its storage buffers are bindings 0, 1, … of group 0, operands first and the
// result last; a uniform, if there is one, is the binding after them.
type KernelDesc struct {
	Label     string        // for errors
	WGSL      string        // the shader
	Entry     string        // entry point; "main" if empty
	Bindings  []wgsl.Access // Read for each operand, then ReadWrite for the result
	Uniform   int           // bytes of the uniform, a multiple of 16 up to 256; 0 for none
	Workgroup [3]uint32     // as in @workgroup_size
	Shared    int           // least bytes of workgroup memory to check against the device's limit; what the text declares is checked anyway
}

// Launch says how to run a kernel: its grid and parameters.
type Launch struct {
	Grid   [3]uint32 // workgroups along x, y and z, each at least 1 and at most the device's MaxWorkgroups
	Params []uint32  // contents of the uniform; floats as their bits; what is left of it is zero
}

// Kernel is a compiled kernel of one device. It is safe for concurrent use, lives as long as its device, and needs no Close.
type Kernel struct {
	checked
	dev     *Device
	k       *wgsl.Kernel
	written string // its text before initialisation of workgroup memory was added
	lbl     string

	least map[int]uint64 // bytes of what is bound
}

type checked = program.KernelCheck

// maxNesting bounds brackets within brackets and runs of prefix operators: the compiler recurses on both, and its stack
// cannot grow. Chromium's stops at 128.
const maxNesting = 120

// NewKernelAsync compiles a kernel. The kernel can be used at once; if the future fails, so do its runs. Errors wrap
// compute.ErrArgument (with *ShaderError for WGSL, saying line and column), compute.ErrTooLarge for what is beyond the
// device's limits, compute.ErrClosed, compute.ErrDeviceLost, or compute.ErrUnsupported: for brackets that nest too deep, and for sizes of
// workgroups, of their memory and of threads' variables that are no integer expressions, since drivers compile what does not fit. All
// workgroup variables, private variables and entry points of the text count, used or not. Private variables together, the variables of
// a function, and any value that is loaded as a whole have at most 8,192 bytes, as WebGPU promises. The kernel is nil where the error is known at once.
func NewKernelAsync(dev *Device, desc KernelDesc) (*Kernel, *compute.Future) {
	k, err := newKernel(dev, desc)
	if err != nil {
		return nil, compute.Failed(err)
	}
	f, resolve := compute.NewFuture(nil)
	compile := func() error {
		defer dev.life.End()
		p, err := k.compile()
		if err != nil {
			resolve(dev.failed(err), nil)
			return err
		}
		dev.drv.Ready(p.Object, func(err error) { resolve(dev.failed(explained(err)), nil) })
		return nil
	}
	if compilerWaits {
		go compile()
	} else if compile() != nil {
		return nil, f
	}
	return k, f
}

// newKernel returns a kernel that is to be compiled, for which it holds the device.
func newKernel(dev *Device, desc KernelDesc) (*Kernel, error) {
	if dev == nil || dev.core == nil {
		return nil, fmt.Errorf("kernel %s: nil device: %w", desc.Label, compute.ErrArgument)
	}
	if desc.Entry == "" {
		desc.Entry = "main"
	}
	if desc.Label == "" {
		desc.Label = "kernel"
	}
	k := &wgsl.Kernel{
		Key: desc.Label, Source: desc.WGSL, Entry: desc.Entry, Bindings: slices.Clone(desc.Bindings), Uniform: desc.Uniform,
		Workgroup: desc.Workgroup, Shared: desc.Shared,
	}
	if err := checkDesc(k); err != nil {
		return nil, fmt.Errorf("kernel %s: %w", desc.Label, err)
	}
	least, err := checkText(k, dev.caps())
	if err != nil {
		return nil, fmt.Errorf("kernel %s: %w", desc.Label, err)
	}
	if err := checkKernel(k, dev.caps()); err != nil {
		return nil, err
	}
	hash := fnv.New128a()
	fmt.Fprintf(hash, "%q %q %v %d", k.Source, k.Entry, k.Bindings, k.Uniform)
	k.Key = fmt.Sprintf("%s#%x", desc.Label, hash.Sum(nil))

	written := k.Source
	if runtime.GOOS != "js" { // browsers set workgroup memory to zero themselves; elsewhere the text does
		if k.Source, err = parseShader(written).zeroed(written, k.Entry); err != nil {
			return nil, fmt.Errorf("kernel %s: %w", k.Key, err)
		}
	}
	if err := dev.life.Begin(); err != nil {
		return nil, fmt.Errorf("kernel %s: %w", desc.Label, err)
	}
	if strings.Contains(dev.info.Name, "llvmpipe") && hasLoops(written) {
		dev.log.Warn("gpu: llvmpipe ends the loops of a thread after 65,535 iterations, all together, without an error", "kernel", desc.Label)
	}
	made := &Kernel{dev: dev, k: k, written: written, lbl: desc.Label, least: least}
	made.checked = made.check
	return made, nil
}

// compile returns the pipeline of the kernel.
func (k *Kernel) compile() (*pipeline, error) {
	p, err := k.dev.pipelines.get(k.k, false)
	if k.k.Source != k.written && errors.As(err, new(*ShaderError)) { // said of the text as it was written
		plain := *k.k
		plain.Source = k.written
		if o, asWritten := k.dev.drv.NewPipeline(&plain); asWritten != nil {
			err = explained(asWritten)
		} else {
			o.Free()
		}
	}
	return p, err
}

// checkDesc rejects kernels on which the library would abort, or that could never run.
func checkDesc(k *wgsl.Kernel) error {
	for what, s := range map[string]string{"label": k.Key, "WGSL": k.Source, "entry point": k.Entry} {
		if !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
			return fmt.Errorf("%s is not UTF-8 without zero bytes: %w", what, compute.ErrArgument)
		}
	}
	n := len(k.Bindings)
	if n == 0 || k.Bindings[n-1] != wgsl.ReadWrite {
		return fmt.Errorf("%d bindings, of which the last must be ReadWrite for the result: %w", n, compute.ErrArgument)
	}
	for i, a := range k.Bindings[:n-1] {
		if a != wgsl.Read {
			return fmt.Errorf("binding %d is an operand and must be Read: %w", i, compute.ErrArgument)
		}
	}
	if d := nesting(k.Source); d > maxNesting {
		return fmt.Errorf("WGSL nests more than %d deep: %w", maxNesting, compute.ErrUnsupported)
	}
	return nil
}

// checkText refuses a text whose workgroups are beyond the device's limits, or whose memory for them or for threads is, one whose
// functions are too large, and one whose uniform is larger than declared. It returns the least bytes of the storage bindings that have any.
func checkText(k *wgsl.Kernel, l *wgsl.Caps) (least map[int]uint64, err error) {
	s := parseShader(k.Source)
	shared, err := s.workgroupMemory()
	if err != nil {
		return nil, err
	}
	if shared > uint64(l.MaxShared) {
		return nil, fmt.Errorf("the WGSL declares %d bytes of workgroup memory, the device allows %d: %w", shared, l.MaxShared, compute.ErrTooLarge)
	}
	if err := cmp.Or(s.checkValues(), s.checkCalls()); err != nil {
		return nil, err
	}
	sizes, err := s.workgroups()
	if err != nil {
		return nil, err
	}
	for _, size := range sizes {
		threads := uint64(1)
		for i, n := range size {
			if threads *= n; n > uint64(l.MaxWorkgroupSize[i]) || threads > uint64(l.MaxInvocations) {
				return nil, fmt.Errorf("the WGSL has workgroups of %v, the device allows %v and %d threads: %w", size, l.MaxWorkgroupSize,
					l.MaxInvocations, compute.ErrTooLarge)
			}
		}
	}
	least = s.bindingSizes()
	if n := least[len(k.Bindings)]; k.Uniform > 0 && n > uint64(k.Uniform) {
		return nil, fmt.Errorf("the WGSL has a uniform of %d bytes, KernelDesc.Uniform is %d: %w", n, k.Uniform, compute.ErrArgument)
	}
	return least, nil
}

func hasLoops(src string) bool {
	tokens, _ := shaderTokens(src)
	return slices.ContainsFunc(tokens, func(t string) bool { return t == "for" || t == "while" || t == "loop" })
}

// nesting returns the deepest nesting of brackets or the longest run of prefix operators.
func nesting(src string) int {
	brackets, angles, prefix, most := 0, 0, 0, 0
	for i := range len(src) {
		c := src[i]
		switch c {
		case '(', '[', '{':
			brackets++
		case ')', ']', '}':
			brackets = max(brackets-1, 0)
		case '<': // a template or a comparison, which nobody closes
			angles++
		case '>':
			angles = max(angles-1, 0)
		}
		switch c {
		case '!', '-', '~', '&', '*':
			prefix++
		case ' ', '\t', '\n', '\r':
		case ';', '{', '}':
			prefix, angles = 0, 0
		default:
			prefix = 0
		}
		most = max(most, brackets, angles, prefix)
	}
	return most
}

// Name returns the kernel's label.
func (k *Kernel) Name() string { return k.lbl }

// check validates a call: the number of operands, and a.Options, which must be a [Launch].
func (k *Kernel) check(in []program.Type, out program.Type, a program.Attr) error {
	l, ok := a.Options.(Launch)
	switch {
	case !ok:
		return fmt.Errorf("kernel %s: options are %T, must be gpu.Launch: %w", k.lbl, a.Options, compute.ErrArgument)
	case len(a.Scalars) != 0:
		return fmt.Errorf("kernel %s: takes no scalars, use Launch.Params: %w", k.lbl, compute.ErrArgument)
	case len(in) != len(k.k.Bindings)-1:
		return fmt.Errorf("kernel %s: takes %d operands, got %v: %w", k.lbl, len(k.k.Bindings)-1, in, compute.ErrArgument)
	case 4*len(l.Params) > k.k.Uniform:
		return fmt.Errorf("kernel %s: %d parameters for a uniform of %d bytes: %w", k.lbl, len(l.Params), k.k.Uniform,
			compute.ErrArgument)
	}
	for i, t := range append(slices.Clone(in), out) {
		if n := wgsl.BufferSize(t.Bytes()); n < k.least[i] {
			return fmt.Errorf("kernel %s %v: binding %d is %v, a buffer of %d bytes, and in the WGSL of a type of %d: %w", k.lbl, in, i, t, n, k.least[i],
				compute.ErrArgument)
		}
	}
	for _, n := range l.Grid {
		if n == 0 {
			return fmt.Errorf("kernel %s %v: grid %v has no workgroups along an axis: %w", k.lbl, in, l.Grid, compute.ErrArgument)
		}
		if limit := k.dev.caps().MaxWorkgroups; n > limit {
			return fmt.Errorf("kernel %s %v: grid %v, the device allows %d workgroups along an axis: %w", k.lbl, in, l.Grid, limit,
				compute.ErrTooLarge)
		}
	}
	return nil
}

// lower returns the code of a checked call.
func (k *Kernel) lower(operands int, l Launch) wgslkernels.Lowering {
	d := &wgslkernels.Dispatch{Kernel: k.k, Params: l.Params, Grid: l.Grid}
	for i := range operands {
		d.Bind = append(d.Bind, lowering.Buffer{Role: lowering.Operand, Index: i})
	}
	d.Bind = append(d.Bind, lowering.Buffer{Role: lowering.Result})
	return wgslkernels.Lowering{Actions: []wgslkernels.Action{{Launch: d}}}
}

// RunAsync runs the kernel once. Args are its operands: slices, compute.Operand for slices under a shape, or tensors of the
// same device. Dst is a slice that receives the result; what the kernel does not write of it is undefined. To chain kernels,
// or to leave the result on the device, record a batch or use [Kernel.ApplyAsync]. Slices belong to the call until its future is done.
// With tensors among its operands RunAsync waits for the kernel's compilation.
func (k *Kernel) RunAsync(l Launch, dst any, args ...any) *compute.Future {
	return k.run(nil, l, dst, args)
}

// run runs the kernel once. Without a context it does not wait for the kernel's compilation, unless tensors are among the operands, which
// whatever is started later may change.

func (k *Kernel) run(ctx context.Context, l Launch, dst any, args []any) *compute.Future {
	dt, n, err := program.TypeOf(dst)
	if err != nil {
		return compute.Failed(fmt.Errorf("kernel %s: destination: %w", k.lbl, err))
	}
	p, io, out, err := k.program(l, program.Type{DType: dt, Shape: []int{n}}, args)
	if err != nil {
		return compute.Failed(err)
	}
	p.Read, io.Read = []program.Slot{out}, []any{dst}
	switch {
	case ctx != nil:
	case len(io.Tensors) > 0:
		ctx = context.Background()
	default:
		return device.Later(executor{k.dev}, p, io)
	}
	return device.Once(ctx, executor{k.dev}, p, io)
}

// ApplyAsync is RunAsync with a result that stays on the device, a tensor of the given type and shape. The tensor can be
// used at once, in work that will run after this; it is nil if the future has failed already. It waits for the kernel's compilation.
func (k *Kernel) ApplyAsync(l Launch, dt compute.DType, shape []int, args ...any) (compute.Tensor, *compute.Future) {
	p, io, out, err := k.program(l, program.Type{DType: dt, Shape: slices.Clone(shape)}, args)
	if err != nil {
		return nil, compute.Failed(err)
	}
	p.Keep = []program.Slot{out}
	f := device.Once(context.Background(), executor{k.dev}, p, io)
	if io.Keep == nil {
		return nil, f
	}
	return io.Keep[0], f
}

// program is a program of one custom step.
func (k *Kernel) program(l Launch, out program.Type, args []any) (*program.Program, *program.IO, program.Slot, error) {
	p, io := &program.Program{}, &program.IO{}
	in := make([]program.Slot, len(args))
	for i, x := range args {
		if t, ok := x.(compute.Tensor); ok {
			in[i] = p.Add(program.Type{DType: t.DType(), Shape: t.Shape()}, program.FromTensor)
			io.Tensors = append(io.Tensors, t)
			continue
		}
		operand, ok := x.(compute.Operand)
		if !ok {
			operand.Data = x
		}
		dt, n, err := program.TypeOf(operand.Data)
		if err != nil {
			return nil, nil, 0, fmt.Errorf("kernel %s: operand %d: %w", k.lbl, i, err)
		}
		if !ok {
			operand.Shape = []int{n}
		}
		t := program.Type{DType: dt, Shape: slices.Clone(operand.Shape)}
		if err := t.Check(); err != nil {
			return nil, nil, 0, fmt.Errorf("kernel %s: operand %d: %w", k.lbl, i, err)
		}
		in[i] = p.Add(t, program.FromHost)
		io.Host = append(io.Host, operand.Data)
	}
	slot, err := p.ApplyKernel(k, program.Attr{Options: Launch{l.Grid, slices.Clone(l.Params)}}, out, in...)
	return p, io, slot, err
}
