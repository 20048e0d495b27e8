package kit

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/lowering"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/ptx/args"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/tensormap"
)

// Buffer names memory of a step. All begin at multiples of [Align].
type Buffer = lowering.Buffer

// Tensor is a value of a step that is made of others.
type Tensor = lowering.Tensor

// Align is what buffers begin at multiples of, in bytes.
const Align = 256

// Launch runs a kernel once.
type Launch struct {
	Kernel *Kernel
	Grid   [3]uint32 // blocks
	// Params is the kernel's parameter block; at the places that Pointers names, addresses have to be put, of 8 bytes each.
	Params   []byte
	Pointers []Pointer
	Maps     []TensorMap
}

// TensorMap is a tensor map in a parameter block: at run time the bytes there become the encoded Map, with the address of the
// buffer as its Address.
type TensorMap struct {
	At int // in bytes
	Buffer
	Map tensormap.Map
}

// Pointer is an address in a parameter block.
type Pointer struct {
	At int // in bytes
	Buffer
}

// Move implements lowering.Launch.
func (l *Launch) Move(to func(Buffer) Buffer) *Launch {
	moved := *l
	moved.Pointers, moved.Maps = slices.Clone(l.Pointers), slices.Clone(l.Maps)
	for i := range moved.Pointers {
		moved.Pointers[i].Buffer = to(moved.Pointers[i].Buffer)
	}
	for i := range moved.Maps {
		moved.Maps[i].Buffer = to(moved.Maps[i].Buffer)
	}
	return &moved
}

// Code implements lowering.Launch. A rest of fewer bytes than a word is no scalar's.
func (l *Launch) Code() (kernel string, grid [3]uint32, words []uint32) {
	words = make([]uint32, len(l.Params)/4)
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(l.Params[4*i:])
	}
	return l.Kernel.Name, l.Grid, words
}

// Actions are launches, copies and fills.
type (
	Lowering = lowering.Code[*Launch]
	Action   = lowering.Action[*Launch]
)

// Caps is what code selection depends on.
type Caps struct {
	Multiprocessors int       // grids that stride have a few blocks for each
	MaxGrid         [3]uint32 // blocks along each axis
	Target          ir.Target // that code may be for; the zero value is the oldest
}

// DefaultCaps are those of a large GPU.
var DefaultCaps = Caps{Multiprocessors: 132, MaxGrid: [3]uint32{math.MaxInt32, 65535, 65535},
	Target: ir.Target{SM: 90, Suffix: "a"}}

// Step is what a lowering works on.
type Step struct {
	*lowering.Step[*Launch]
	Caps *Caps
	Dry  bool // nobody wants the code, only whether there is some
}

// Launch appends a run of k over blocks. The parameters are a value of the type of k.Params.
func (s *Step) Launch(k *Kernel, grid [3]int, params any) { s.LaunchWith(nil, nil, k, grid, params) }

// JIT is the kernel for an expression, see there; nil if nobody wants it.
func (s *Step) JIT(kind, text string, k Kernel) *Kernel {
	if s.Dry {
		return nil
	}
	return jit(kind, text, k)
}

func (s *Step) tryLaunch(k *Kernel, grid [3]int, arguments []argument) error {
	l := &Launch{Kernel: k}
	for i, n := range grid {
		if n < 1 {
			return fmt.Errorf("internal error: kernel %s: grid %v", k.Name, grid)
		}
		if n > int(s.Caps.MaxGrid[i]) {
			return fmt.Errorf("kernel %s: grid %v, the device allows %v blocks: %w", k.Name, grid, s.Caps.MaxGrid, compute.ErrTooLarge)
		}
		l.Grid[i] = uint32(n)
	}
	layout, err := k.Layout()
	if err != nil {
		return err
	}
	if len(arguments) != layout.Len() {
		return fmt.Errorf("internal error: kernel %s has %d parameters, got %d arguments", k.Name, layout.Len(), len(arguments))
	}
	l.Params = make([]byte, layout.Size())
	for i, of := range arguments {
		if p := layout.Param(i); of.name != "" && of.name != p.Name {
			return fmt.Errorf("internal error: kernel %s: parameter %s is %s in its struct", k.Name, p.Name, of.name)
		}
		var a args.Arg
		switch v := of.value.(type) {
		case uint32:
			a = args.U32(v)
		case float32:
			a = args.F32(v)
		case uint64:
			a = args.U64(v)
		case []uint32:
			a = words(v)
		case Buffer:
			l.Pointers = append(l.Pointers, Pointer{layout.Param(i).Offset, v})
			a = args.Ptr(0)
		case TensorMap:
			v.At = layout.Param(i).Offset
			l.Maps = append(l.Maps, v)
			a = args.Bytes(make([]byte, tensormap.Size))
		}
		if err := layout.Put(l.Params, i, a); err != nil {
			return fmt.Errorf("internal error: kernel %s: %w", k.Name, err)
		}
	}
	s.Add(Action{Launch: l})
	return nil
}

func words(v []uint32) args.Arg {
	raw := make([]byte, 0, 4*len(v))
	for _, w := range v {
		raw = binary.LittleEndian.AppendUint32(raw, w)
	}
	return args.Bytes(raw)
}

// Copy appends a copy of n bytes.
func (s *Step) Copy(from, to Buffer, n int) {
	if n > 0 {
		from.Size, to.Size = n, n
		s.Add(Action{Copy: &lowering.Copy{From: from, To: to}})
	}
}

// Fill appends a fill of n words.
func (s *Step) Fill(to Buffer, word uint32, n int) {
	if n > 0 {
		to.Size = 4 * n
		s.Add(Action{Fill: &lowering.Fill{To: to, Word: word}})
	}
}

// In is operand i.
func In(i int) Buffer { return Buffer{Role: lowering.Operand, Index: i} }

// Out is the first result.
var Out = OutAt(0)

// OutAt is result i.
func OutAt(i int) Buffer { return Buffer{Role: lowering.Result, Index: i} }

// GridStride is a grid for kernels that stride over their data: a block for every per elements, but no more than fill the GPU
// a few times over.
func (s *Step) GridStride(n, per int) [3]int {
	const waves = 16
	return [3]int{max(1, min(CeilDiv(n, per), waves*s.Caps.Multiprocessors)), 1, 1}
}

// CeilDiv is a / b, rounded up.
func CeilDiv(a, b int) int { return (a + b - 1) / b }

// FlagIf is bit if on.
func FlagIf(bit uint32, on bool) uint32 {
	if on {
		return bit
	}
	return 0
}

// ActivationCode is the argument for [activate]: the activation that a matmul or convolution asks for.
func ActivationCode(a program.Attr) uint32 { return uint32(a.Activation()) }
