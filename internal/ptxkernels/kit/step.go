package kit

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/ptx/args"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/tensormap"
)

// Role of a buffer in a lowering.
type Role uint8

// Roles.
const (
	Operand Role = iota
	Result
	Scratch

	ofPrologue // operands of a prologue
	ofEpilogue // operands of an epilogue from its second on
)

// Buffer names memory of a step: an operand, a result, or scratch memory of the lowering, from a number of bytes on.
// All begin at multiples of [Align]; what lies between the end of the elements and the next multiple of 16 may be read and
// written, and is undefined.
type Buffer struct {
	Role   Role
	Index  int // of the operand, the result or the scratch buffer
	Offset int // in bytes
}

// Align is what buffers begin at multiples of, in bytes.
const Align = 256

// Plus is the buffer from n bytes further on.
func (b Buffer) Plus(n int) Buffer {
	b.Offset += n
	return b
}

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

// Copy copies bytes between buffers.
type Copy struct {
	From, To Buffer
	Bytes    int
}

// Fill writes one word of four bytes everywhere.
type Fill struct {
	To    Buffer
	Word  uint32
	Words int
}

// Action is a Launch, a Copy or a Fill (exactly one is set).
type Action struct {
	Launch *Launch
	Copy   *Copy
	Fill   *Fill
}

// Lowering is the code of one step: actions in order. Each sees what the earlier ones wrote.
type Lowering struct {
	Actions []Action
	Scratch []int // bytes of each scratch buffer; contents undefined at the start
}

// Caps is what code selection depends on.
type Caps struct {
	Multiprocessors int       // grids that stride have a few blocks for each
	MaxGrid         [3]uint32 // blocks along each axis
	Target          ir.Target // that code may be for; the zero value is the oldest
}

// DefaultCaps are those of a large GPU.
var DefaultCaps = Caps{Multiprocessors: 132, MaxGrid: [3]uint32{math.MaxInt32, 65535, 65535},
	Target: ir.Target{SM: 90, Suffix: "a"}}

// Chooser picks one of several variants of an operation: class and problem key the choice ("matmul", "1024x1024x1024"),
// candidates are variant names, the first being the safe default. It returns an index into candidates.
type Chooser func(class, problem string, candidates []string) int

// LowerFunc returns the code of one step, as Lower does.
type LowerFunc func(s *program.Step, in, out []program.Type, caps *Caps, choose Chooser) (Lowering, error)

// Step is what a lowering works on: a checked call with all shapes known.
type Step struct {
	*program.Step
	Operands []program.Type
	Results  []program.Type
	Result   program.Type // the first of outs
	Caps     *Caps
	Choose   Chooser
	Parts    program.Parts // the entry's prologue and epilogue; Step and in are without them
	dry      bool          // nobody wants the code, only whether there is some
	Lower    LowerFunc     // for steps that are made of others
	Lowering

	count int   // with those of the prologue and the epilogue
	Err   error // the first one of launch
}

// NewStep separates the prologue and the epilogue of a step from its entry. A nil choose takes every default.
func NewStep(s *program.Step, in, out []program.Type, caps *Caps, choose Chooser, dry bool) (*Step, error) {
	parts, err := s.Entry.Parts(in, s.Attr)
	if err != nil {
		return nil, err
	}
	if choose == nil {
		choose = func(string, string, []string) int { return 0 }
	}
	own := *s
	own.Attr = parts.Attr
	return &Step{Step: &own, Operands: parts.In, Results: out, Result: out[0], Parts: parts, dry: dry, Caps: caps, Choose: choose, count: len(in)}, nil
}

// Finish numbers the operands as the step has them: those of its prologue, its entry and its epilogue.
func (s *Step) Finish() error {
	first, rest := len(s.Parts.PrologueIn), len(s.Parts.EpilogueIn)
	if s.Err != nil || first+rest == 0 {
		return s.Err
	}
	for _, a := range s.Actions {
		if a.Launch == nil {
			continue
		}
		for i := range a.Launch.Pointers {
			switch b := &a.Launch.Pointers[i].Buffer; {
			case b.Role == Operand && first > 0:
				b.Index += first - 1 // in place of its first
			case b.Role == ofPrologue:
				b.Role = Operand
			case b.Role == ofEpilogue:
				b.Role, b.Index = Operand, s.count-rest+b.Index
			}
		}
	}
	return nil
}

// Launch appends a run of k over blocks. Arguments are, in the order of the kernel's parameters: uint32, int (which has to fit
// 32 bits), float32, uint64, []uint32 for an array, Buffer for a pointer, and TensorMap, whose At does not matter.
func (s *Step) Launch(k *Kernel, grid [3]int, arguments ...any) {
	if s.Err == nil && !s.dry {
		s.Err = s.tryLaunch(k, grid, arguments)
	}
}

// JIT is the kernel for an expression, see there; nil if nobody wants it.
func (s *Step) JIT(kind, text string, k Kernel) *Kernel {
	if s.dry {
		return nil
	}
	return jit(kind, text, k)
}

func (s *Step) tryLaunch(k *Kernel, grid [3]int, arguments []any) error {
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
	for i, v := range arguments {
		var a args.Arg
		switch v := v.(type) {
		case int:
			if v < 0 || v > math.MaxUint32 {
				return fmt.Errorf("%d does not fit 32 bits: %w", v, compute.ErrTooLarge)
			}
			a = args.U32(uint32(v))
		case uint32:
			a = args.U32(v)
		case float32:
			a = args.F32(v)
		case uint64:
			a = args.U64(v)
		case []uint32:
			raw := make([]byte, 0, 4*len(v))
			for _, w := range v {
				raw = binary.LittleEndian.AppendUint32(raw, w)
			}
			a = args.Bytes(raw)
		case Buffer:
			l.Pointers = append(l.Pointers, Pointer{layout.Param(i).Offset, v})
			a = args.Ptr(0)
		case TensorMap:
			v.At = layout.Param(i).Offset
			l.Maps = append(l.Maps, v)
			a = args.Bytes(make([]byte, tensormap.Size))
		default:
			return fmt.Errorf("internal error: kernel %s: argument %d is a %T", k.Name, i, v)
		}
		if err := layout.Put(l.Params, i, a); err != nil {
			return fmt.Errorf("internal error: kernel %s: %w", k.Name, err)
		}
	}
	s.Actions = append(s.Actions, Action{Launch: l})
	return nil
}

// Copy appends a copy.
func (s *Step) Copy(from, to Buffer, n int) {
	if n > 0 {
		s.Actions = append(s.Actions, Action{Copy: &Copy{from, to, n}})
	}
}

// Fill appends a fill.
func (s *Step) Fill(to Buffer, word uint32, n int) {
	if n > 0 {
		s.Actions = append(s.Actions, Action{Fill: &Fill{to, word, n}})
	}
}

// NewScratch reserves n bytes.
func (s *Step) NewScratch(n int) Buffer {
	s.Scratch = append(s.Scratch, n)
	return Buffer{Role: Scratch, Index: len(s.Scratch) - 1}
}

// In is operand i.
func In(i int) Buffer { return Buffer{Role: Operand, Index: i} }

// Out is the first result.
var Out = OutAt(0)

// OutAt is result i.
func OutAt(i int) Buffer { return Buffer{Role: Result, Index: i} }

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

// Words are integers as arguments.
func Words(v ...int) (w []uint32) {
	for _, x := range v {
		w = append(w, uint32(x))
	}
	return w
}

// ActivationCode is the argument for [activate]: the activation that a matmul or convolution asks for.
func ActivationCode(a program.Attr) uint32 { return uint32(a.Activation()) }

// Tensors is the operands and the results as arguments.
func (s *Step) Tensors() (all []any) {
	for i := range s.Operands {
		all = append(all, In(i))
	}
	for i := range s.Results {
		all = append(all, OutAt(i))
	}
	return all
}

// Scalars is the scalars as arguments.
func (s *Step) Scalars() (all []any) {
	for _, v := range s.Attr.Scalars {
		all = append(all, v)
	}
	return all
}
