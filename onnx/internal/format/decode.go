package format

import (
	"fmt"
	"math"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// mostNested bounds graphs in nodes of graphs, and types of types.
const mostNested = 48

// Decode reads a model. Tensors point into data, which must not change.
func Decode(data []byte) (*Model, error) {
	m := &Model{Opsets: map[string]int64{}, Metadata: map[string]string{}}
	err := fields(data, func(f field) (err error) {
		switch f.number {
		case 1:
			m.IRVersion, err = f.int()
		case 2:
			m.Producer, err = f.text()
		case 3:
			m.Version, err = f.text()
		case 7:
			var b []byte
			if b, err = f.bytes(); err == nil {
				m.Graph, err = graph(b, 0)
			}
		case 8:
			err = opset(f, m.Opsets)
		case 14:
			var k, v string
			if k, v, err = pair(f); err == nil {
				m.Metadata[k] = v
			}
		case 25:
			var b []byte
			if b, err = f.bytes(); err == nil {
				var fn *Function
				fn, err = function(b)
				m.Functions = append(m.Functions, fn)
			}
		}
		return err
	})
	if err == nil && m.Graph == nil {
		err = fmt.Errorf("there is no graph")
	}
	if err == nil && len(m.Opsets) == 0 {
		m.Opsets[""] = 1
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return m, nil
}

// DecodeTensor reads a tensor that is a file of its own.
func DecodeTensor(data []byte) (*Tensor, error) {
	t, err := tensor(data)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return t, nil
}

func opset(f field, to map[string]int64) error {
	b, err := f.bytes()
	if err != nil {
		return err
	}
	domain, version := "", int64(0)
	err = fields(b, func(f field) (err error) {
		switch f.number {
		case 1:
			domain, err = f.text()
		case 2:
			version, err = f.int()
		}
		return err
	})
	if domain == "ai.onnx" {
		domain = ""
	}
	to[domain] = version
	return err
}

func pair(f field) (key, value string, err error) {
	b, err := f.bytes()
	if err != nil {
		return "", "", err
	}
	err = fields(b, func(f field) (err error) {
		switch f.number {
		case 1:
			key, err = f.text()
		case 2:
			value, err = f.text()
		}
		return err
	})
	return key, value, err
}

func graph(data []byte, depth int) (*Graph, error) {
	if depth > mostNested {
		return nil, fmt.Errorf("graphs are nested more than %d deep", mostNested)
	}
	g := &Graph{}
	err := fields(data, func(f field) (err error) {
		if f.number == 2 {
			g.Name, err = f.text()
			return err
		}
		switch f.number {
		case 1, 5, 11, 12, 13, 15:
		default:
			return nil
		}
		b, err := f.bytes()
		if err != nil {
			return err
		}
		switch f.number {
		case 1:
			var n *Node
			if n, err = node(b, depth); err == nil {
				g.Nodes = append(g.Nodes, n)
			}
		case 5:
			var t *Tensor
			if t, err = tensor(b); err == nil {
				g.Weights = append(g.Weights, t)
			}
		case 11, 12, 13:
			var v Value
			if v, err = value(b); err == nil {
				switch f.number {
				case 11:
					g.Inputs = append(g.Inputs, v)
				case 12:
					g.Outputs = append(g.Outputs, v)
				default:
					g.Values = append(g.Values, v)
				}
			}
		case 15:
			err = fmt.Errorf("graph %q has sparse initializers, which are not supported", g.Name)
		}
		return err
	})
	return g, err
}

func node(data []byte, depth int) (*Node, error) {
	n := &Node{Attributes: map[string]*Attribute{}}
	err := fields(data, func(f field) (err error) {
		var s string
		switch f.number {
		case 1:
			s, err = f.text()
			n.Inputs = append(n.Inputs, s)
		case 2:
			s, err = f.text()
			n.Outputs = append(n.Outputs, s)
		case 3:
			n.Name, err = f.text()
		case 4:
			n.Op, err = f.text()
		case 5:
			var b []byte
			if b, err = f.bytes(); err != nil {
				return err
			}
			var a *Attribute
			if a, err = attribute(b, depth); err != nil {
				return err
			}
			if n.Attributes[a.Name] != nil {
				return fmt.Errorf("attribute %q twice", a.Name)
			}
			n.Attributes[a.Name] = a
		case 7:
			if n.Domain, err = f.text(); n.Domain == "ai.onnx" {
				n.Domain = ""
			}
		case 8:
			n.Overload, err = f.text()
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%v: %w", n, err)
	}
	return n, nil
}

func attribute(data []byte, depth int) (*Attribute, error) {
	a := &Attribute{}
	err := fields(data, func(f field) (err error) {
		var b []byte
		switch f.number {
		case 1:
			a.Name, err = f.text()
		case 2:
			a.F, err = f.float()
		case 3:
			a.I, err = f.int()
		case 4:
			a.S, err = f.bytes()
		case 5:
			if b, err = f.bytes(); err == nil {
				a.T, err = tensor(b)
			}
		case 6:
			if b, err = f.bytes(); err == nil {
				a.G, err = graph(b, depth+1)
			}
		case 7:
			a.Floats, err = f.floats(a.Floats)
		case 8:
			a.Ints, err = f.ints(a.Ints)
		case 9:
			b, err = f.bytes()
			a.Texts = append(a.Texts, b)
		case 10:
			if b, err = f.bytes(); err == nil {
				var t *Tensor
				t, err = tensor(b)
				a.Ts = append(a.Ts, t)
			}
		case 11:
			if b, err = f.bytes(); err == nil {
				var g *Graph
				g, err = graph(b, depth+1)
				a.Gs = append(a.Gs, g)
			}
		case 14:
			if b, err = f.bytes(); err == nil {
				a.Proto, err = typeOf(b, 0)
			}
		case 20:
			var i int64
			i, err = f.int()
			a.Type = AttributeType(i)
		case 21:
			a.Ref, err = f.text()
		case 22:
			if b, err = f.bytes(); err == nil {
				a.Sparse, err = sparse(b)
			}
		}
		return err
	})
	if err == nil && a.Type == UndefinedAttribute && a.Ref == "" {
		a.Type = a.guess()
	}
	if err == nil && (a.Type == TensorAttribute && a.T == nil || a.Type == GraphAttribute && a.G == nil ||
		a.Type == SparseAttribute && a.Sparse == nil) && a.Ref == "" {
		err = fmt.Errorf("no value")
	}
	if err != nil {
		return nil, fmt.Errorf("attribute %q: %w", a.Name, err)
	}
	return a, nil
}

// guess is the type of an attribute of old files, which do not say it.
func (a *Attribute) guess() AttributeType {
	switch {
	case a.T != nil:
		return TensorAttribute
	case a.G != nil:
		return GraphAttribute
	case a.Ints != nil:
		return IntsAttribute
	case a.Floats != nil:
		return FloatsAttribute
	case a.Texts != nil:
		return StringsAttribute
	case a.S != nil:
		return StringAttribute
	case a.F != 0:
		return FloatAttribute
	}
	return IntAttribute
}

func tensor(data []byte) (*Tensor, error) {
	t := &Tensor{}
	place := map[string]string{}
	external := false
	err := fields(data, func(f field) (err error) {
		switch f.number {
		case 1:
			t.Dims, err = f.ints(t.Dims)
		case 2:
			var i int64
			if i, err = f.int(); err == nil && (i < 0 || i > math.MaxInt32) {
				err = fmt.Errorf("element type %d", i)
			}
			t.Type = int32(i)
		case 4:
			t.Floats, err = f.floats(t.Floats)
		case 5:
			var all []int64
			all, err = f.ints(nil)
			for _, i := range all {
				t.Int32s = append(t.Int32s, int32(i))
			}
		case 6:
			var b []byte
			b, err = f.bytes()
			t.Texts = append(t.Texts, b)
		case 7:
			t.Int64s, err = f.ints(t.Int64s)
		case 8:
			t.Name, err = f.text()
		case 9:
			t.Raw, err = f.bytes()
			t.HasRaw = true
		case 10:
			t.Doubles, err = f.doubles(t.Doubles)
		case 11:
			var all []int64
			all, err = f.ints(nil)
			for _, i := range all {
				t.Uint64s = append(t.Uint64s, uint64(i))
			}
		case 13:
			var k, v string
			k, v, err = pair(f)
			place[k] = v
		case 14:
			var i int64
			i, err = f.int()
			external = i == 1
		}
		return err
	})
	if err == nil && external {
		t.External, err = externalOf(place)
	}
	if err != nil {
		return nil, fmt.Errorf("tensor %q: %w", t.Name, err)
	}
	return t, nil
}

func sparse(data []byte) (*Sparse, error) {
	s := &Sparse{}
	err := fields(data, func(f field) (err error) {
		var b []byte
		switch f.number {
		case 1:
			if b, err = f.bytes(); err == nil {
				s.Values, err = tensor(b)
			}
		case 2:
			if b, err = f.bytes(); err == nil {
				s.Indices, err = tensor(b)
			}
		case 3:
			s.Dims, err = f.ints(s.Dims)
		}
		return err
	})
	if err == nil && (s.Values == nil || s.Indices == nil) {
		err = fmt.Errorf("sparse tensor without values or indices")
	}
	return s, err
}

func value(data []byte) (Value, error) {
	var v Value
	err := fields(data, func(f field) (err error) {
		switch f.number {
		case 1:
			v.Name, err = f.text()
		case 2:
			var b []byte
			if b, err = f.bytes(); err == nil {
				v.Type, err = typeOf(b, 0)
			}
		}
		return err
	})
	if err != nil {
		err = fmt.Errorf("value %q: %w", v.Name, err)
	}
	return v, err
}

func typeOf(data []byte, depth int) (*Type, error) {
	if depth > mostNested {
		return nil, fmt.Errorf("types are nested more than %d deep", mostNested)
	}
	t := &Type{}
	err := fields(data, func(f field) error {
		switch f.number {
		case 1, 4, 5, 8, 9:
		default:
			return nil
		}
		b, err := f.bytes()
		if err != nil {
			return err
		}
		switch f.number {
		case 1:
			t.Kind = TensorType
			return tensorType(b, t)
		case 4, 9:
			t.Kind = SequenceType
			if f.number == 9 {
				t.Kind = OptionalType
			}
			return fields(b, func(f field) error {
				if f.number != 1 {
					return nil
				}
				b, err := f.bytes()
				if err == nil {
					t.Of, err = typeOf(b, depth+1)
				}
				return err
			})
		}
		t.Kind = OtherType
		return nil
	})
	return t, err
}

func tensorType(data []byte, t *Type) error {
	return fields(data, func(f field) error {
		switch f.number {
		case 1:
			i, err := f.int()
			if err == nil && (i < 0 || i > math.MaxInt32) {
				err = fmt.Errorf("element type %d", i)
			}
			t.Elem = int32(i)
			return err
		case 2:
			t.HasShape = true
			b, err := f.bytes()
			if err != nil {
				return err
			}
			return fields(b, func(f field) error {
				if f.number != 1 {
					return nil
				}
				b, err := f.bytes()
				if err != nil {
					return err
				}
				var d Dim
				err = fields(b, func(f field) (err error) {
					switch f.number {
					case 1:
						d.Size, err = f.int()
						d.Known = true
					case 2:
						d.Name, err = f.text()
					}
					return err
				})
				if d.Known && d.Size < 0 { // as some exporters write what is not known
					d = Dim{}
				}
				t.Shape = append(t.Shape, d)
				return err
			})
		}
		return nil
	})
}

func function(data []byte) (*Function, error) {
	fn := &Function{Opsets: map[string]int64{}}
	err := fields(data, func(f field) (err error) {
		var s string
		var b []byte
		switch f.number {
		case 1:
			fn.Name, err = f.text()
		case 4:
			s, err = f.text()
			fn.Inputs = append(fn.Inputs, s)
		case 5:
			s, err = f.text()
			fn.Outputs = append(fn.Outputs, s)
		case 6:
			s, err = f.text()
			fn.Attributes = append(fn.Attributes, s)
		case 7:
			if b, err = f.bytes(); err == nil {
				var n *Node
				n, err = node(b, 0)
				fn.Nodes = append(fn.Nodes, n)
			}
		case 9:
			err = opset(f, fn.Opsets)
		case 10:
			if fn.Domain, err = f.text(); fn.Domain == "ai.onnx" {
				fn.Domain = ""
			}
		case 11:
			if b, err = f.bytes(); err == nil {
				var a *Attribute
				a, err = attribute(b, 0)
				fn.Defaults = append(fn.Defaults, a)
			}
		case 13:
			fn.Overload, err = f.text()
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("function %q: %w", fn.Name, err)
	}
	return fn, nil
}

// field is one field of a message.
type field struct {
	number protowire.Number
	kind   protowire.Type
	value  uint64 // of varints and fixed numbers
	data   []byte // of what has a length
}

// fields calls visit for each field of a message.
func fields(data []byte, visit func(field) error) error {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return fmt.Errorf("broken field: %w", protowire.ParseError(n))
		}
		data = data[n:]
		f := field{number: number, kind: kind}
		switch kind {
		case protowire.VarintType:
			f.value, n = protowire.ConsumeVarint(data)
		case protowire.Fixed32Type:
			var v uint32
			v, n = protowire.ConsumeFixed32(data)
			f.value = uint64(v)
		case protowire.Fixed64Type:
			f.value, n = protowire.ConsumeFixed64(data)
		case protowire.BytesType:
			f.data, n = protowire.ConsumeBytes(data)
		default:
			n = protowire.ConsumeFieldValue(number, kind, data)
		}
		if n < 0 {
			return fmt.Errorf("field %d: %w", number, protowire.ParseError(n))
		}
		data = data[n:]
		if err := visit(f); err != nil {
			return err
		}
	}
	return nil
}

func (f field) wrong() error { return fmt.Errorf("field %d has wire type %d", f.number, f.kind) }

func (f field) int() (int64, error) {
	if f.kind != protowire.VarintType {
		return 0, f.wrong()
	}
	return int64(f.value), nil
}

func (f field) float() (float32, error) {
	if f.kind != protowire.Fixed32Type {
		return 0, f.wrong()
	}
	return math.Float32frombits(uint32(f.value)), nil
}

func (f field) bytes() ([]byte, error) {
	if f.kind != protowire.BytesType {
		return nil, f.wrong()
	}
	if f.data == nil {
		return []byte{}, nil
	}
	return f.data, nil
}

func (f field) text() (string, error) {
	b, err := f.bytes()
	if err == nil && !utf8.Valid(b) {
		err = fmt.Errorf("field %d is not UTF-8", f.number)
	}
	return string(b), err
}

// ints appends the numbers of a repeated field, packed or one.
func (f field) ints(to []int64) ([]int64, error) {
	if f.kind == protowire.VarintType {
		return append(to, int64(f.value)), nil
	}
	b, err := f.bytes()
	for len(b) > 0 && err == nil {
		v, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		to, b = append(to, int64(v)), b[n:]
	}
	return to, err
}

func (f field) floats(to []float32) ([]float32, error) {
	if f.kind == protowire.Fixed32Type {
		return append(to, math.Float32frombits(uint32(f.value))), nil
	}
	b, err := f.bytes()
	for len(b) > 0 && err == nil {
		v, n := protowire.ConsumeFixed32(b)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		to, b = append(to, math.Float32frombits(v)), b[n:]
	}
	return to, err
}

func (f field) doubles(to []float64) ([]float64, error) {
	if f.kind == protowire.Fixed64Type {
		return append(to, math.Float64frombits(f.value)), nil
	}
	b, err := f.bytes()
	for len(b) > 0 && err == nil {
		v, n := protowire.ConsumeFixed64(b)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		to, b = append(to, math.Float64frombits(v)), b[n:]
	}
	return to, err
}
