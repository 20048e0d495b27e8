// Package format reads the file format of ONNX: protocol buffers, decoded field by field from the wire format into plain structs.
//
// Files are hostile until read: lengths, nesting, sizes of tensors and locations of external data are checked, and errors say
// which node or tensor is meant. Tensor data is not copied: it points into the file.
package format

import (
	"errors"
	"fmt"
)

// ErrFormat says that bytes are not a model, or not a whole one.
var ErrFormat = errors.New("not a valid ONNX model")

// Model is a file.
type Model struct {
	IRVersion int64
	Producer  string
	Version   string // of the producer
	Graph     *Graph
	Opsets    map[string]int64 // by domain; the default domain is ""
	Functions []*Function
	Metadata  map[string]string
}

// Graph is nodes over names.
type Graph struct {
	Name    string
	Nodes   []*Node
	Weights []*Tensor // initializers
	Inputs  []Value
	Outputs []Value
	Values  []Value // types of intermediate values that the file knows
}

// Node applies an operator.
type Node struct {
	Name, Op, Domain, Overload string
	Inputs, Outputs            []string // an empty name is an operand that is absent
	Attributes                 map[string]*Attribute
}

// String names the node in errors.
func (n *Node) String() string {
	op := n.Op
	if n.Domain != "" {
		op = n.Domain + ":" + op
	}
	switch {
	case n.Name != "":
		return fmt.Sprintf("node %q (%s)", n.Name, op)
	case len(n.Outputs) > 0:
		return fmt.Sprintf("the node of %q (%s)", n.Outputs[0], op)
	}
	return "a node without results (" + op + ")"
}

// Attribute is a constant of a node. Which fields are used depends on Type.
type Attribute struct {
	Name   string
	Type   AttributeType
	F      float32
	I      int64
	S      []byte
	T      *Tensor
	G      *Graph
	Floats []float32
	Ints   []int64
	Texts  [][]byte
	Ts     []*Tensor
	Gs     []*Graph
	Sparse *Sparse
	Proto  *Type
	Ref    string // name of the function's attribute that it stands for
}

// AttributeType says which field of an attribute counts.
type AttributeType int32

// Attribute types.
const (
	UndefinedAttribute AttributeType = iota
	FloatAttribute
	IntAttribute
	StringAttribute
	TensorAttribute
	GraphAttribute
	FloatsAttribute
	IntsAttribute
	StringsAttribute
	TensorsAttribute
	GraphsAttribute
	SparseAttribute
	SparsesAttribute
	TypeAttribute
	TypesAttribute
)

// Tensor is constant data as it is in the file.
type Tensor struct {
	Name     string
	Dims     []int64
	Type     int32
	Raw      []byte // little-endian; nil if the data is in one of the lists
	HasRaw   bool
	Floats   []float32
	Int32s   []int32
	Int64s   []int64
	Doubles  []float64
	Uint64s  []uint64
	Texts    [][]byte
	External *External
}

// External is where data outside the file is.
type External struct {
	Location       string
	Offset, Length int64
	HasLength      bool
}

// Sparse is a constant of which only the elements that are not zero are in the file.
type Sparse struct {
	Values, Indices *Tensor
	Dims            []int64
}

// Value is a name with a type.
type Value struct {
	Name string
	Type *Type
}

// Type is what kind of value a name has.
type Type struct {
	Kind     TypeKind
	Elem     int32 // of tensors
	HasShape bool
	Shape    []Dim
	Of       *Type // elements of sequences and optionals
}

// TypeKind is a kind of values.
type TypeKind uint8

// Kinds of values.
const (
	NoType TypeKind = iota
	TensorType
	SequenceType
	OptionalType
	OtherType // maps and sparse tensors
)

// Dim is a dimension: a number, a name, or neither.
type Dim struct {
	Size  int64
	Known bool
	Name  string
}

// Function is an operator made of others, by name in its domain.
type Function struct {
	Name, Domain, Overload string
	Inputs, Outputs        []string
	Attributes             []string
	Defaults               []*Attribute
	Nodes                  []*Node
	Opsets                 map[string]int64
}
