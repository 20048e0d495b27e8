//go:build !js

package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/wavelane/wavelane/internal/npy"
	"github.com/wavelane/wavelane/ptx/eval"
	"github.com/wavelane/wavelane/ptx/ir"
)

// value is what a VALUE of the command line or of a launch file says: a number, an array that becomes a buffer, the name of a buffer, or a
// structure of these.
type value struct {
	typ    ir.Type // NoType for a number that takes the parameter's type
	bytes  []byte  // little-endian elements
	text   string  // of a number without type
	array  bool
	shape  []int
	unset  bool // nothing has been written to the array
	buffer string
	fields []value
	image  *texture // the buffer as a texture or surface
}

const valueHelp = `  7, 2.5            a number of the parameter's type
  f32:2.5           a number of that type
  x                 the address of the buffer x, see --buffer
  null              no address
  FILE.npy          a buffer with the elements of an array that NumPy has saved
  zeros:f32:64x32   a buffer of zeros; so ones:…
  empty:f32:1024    a buffer that nothing has been written to, as cudaMalloc gives it
  rand:f32:1024     random numbers from 0 to 1; rand:s32:1024:0,10 from 0 to 9; see --seed
  arange:f32:1024   0, 1, 2, …; arange:f32:1024:START,STEP
  buf:f32:1,2,3     these numbers
  buf:u8:@FILE      the bytes of a file, or of an array in a .npy file, as elements of that type
  texture:ARRAY     the object of a texture whose texels are an array's elements: .npy, a fill, or the name of a buffer. Its shape is width,
                    height × width, or depth × height × width. Say how it is read, as in texture+linear+normalized:x.npy, by linear,
                    normalized, fractions (integers are numbers from 0 to 1), wrap, clamp, mirror or border, and what the shape
                    has besides: layers or cube (the first extent), channels (the last, 1, 2 or 4)
  surface:ARRAY     the object of a surface, surface+layers:y; name a buffer to see what is written
  struct:f32:2;x;7  a structure by value with these members, where C would put them; members have types
Types are PTX's and NumPy's: `

// valueTypes are what a VALUE may name, in the order of the help text.
var valueTypes = []ir.Type{ir.U8, ir.U16, ir.U32, ir.U64, ir.S8, ir.S16, ir.S32, ir.S64, ir.F16, ir.BF16, ir.F32, ir.F64}

// otherTypes are NumPy's and C's names.
var otherTypes = map[string]ir.Type{"uint8": ir.U8, "uint16": ir.U16, "uint32": ir.U32, "uint64": ir.U64, "int8": ir.S8, "int16": ir.S16,
	"int32": ir.S32, "int64": ir.S64, "float16": ir.F16, "bfloat16": ir.BF16, "float32": ir.F32, "float64": ir.F64, "int": ir.S32,
	"float": ir.F32, "double": ir.F64, "bool": ir.U8}

func valueTypeNames() string {
	names := make([]string, len(valueTypes))
	for i, t := range valueTypes {
		names[i] = t.String()
	}
	return strings.Join(names, " ") + ", float32, int64, …"
}

func valueType(name string) (ir.Type, error) {
	for _, t := range valueTypes {
		if t.String() == name {
			return t, nil
		}
	}
	if t, ok := otherTypes[name]; ok {
		return t, nil
	}
	return ir.NoType, fmt.Errorf("unknown type %q: there are %s", name, valueTypeNames())
}

// maxBuffer bounds what a VALUE may ask for, so that a slip of the finger is a message and not a full machine.
const maxBuffer = 1 << 32

// parseValue reads a VALUE. Files are looked for in dir; random numbers come from rng.
func parseValue(s, dir string, rng *rand.Rand) (value, error) {
	v, err := readValue(s, dir, rng)
	if err != nil && !strings.Contains(err.Error(), strconv.Quote(s)) {
		err = fmt.Errorf("%q: %w", s, err)
	}
	return v, err
}

func readValue(s, dir string, rng *rand.Rand) (value, error) {
	kind, rest, colon := strings.Cut(s, ":")
	switch {
	case s == "null":
		return value{typ: ir.U64, bytes: make([]byte, 8)}, nil
	case strings.HasSuffix(s, ".npy") && !strings.HasPrefix(s, "buf:"):
		return readArray(resolve(dir, s))
	case !colon && isName(s):
		return value{typ: ir.U64, buffer: s}, nil
	case !colon:
		if _, err := strconv.ParseFloat(s, 64); err != nil && !isInteger(s) {
			return value{}, errors.New("neither a number nor the name of a buffer")
		}
		return value{text: s}, nil
	case kind == "struct":
		return parseStruct(rest, dir, rng)
	}
	if words := strings.Split(kind, "+"); words[0] == "texture" || words[0] == "surface" {
		return parseImage(words, rest, dir, rng)
	}
	if t, err := valueType(kind); err == nil {
		bytes, err := appendValue(nil, t, rest)
		return value{typ: t, bytes: bytes}, err
	}
	name, rest, ok := strings.Cut(rest, ":")
	t, err := valueType(name)
	switch {
	case kind != "buf" && fills[kind] == nil:
		return value{}, fmt.Errorf("there is no %q: 'wavelane ptx run --help' lists what there is", kind)
	case err != nil:
		return value{}, err
	case !ok:
		return value{}, fmt.Errorf("want %s:%s:…", kind, name)
	case kind != "buf":
		return filled(kind, t, rest, rng)
	case strings.HasPrefix(rest, "@"):
		return readBytes(t, resolve(dir, rest[1:]))
	}
	v := value{typ: t, array: true}
	for e := range strings.SplitSeq(rest, ",") {
		if v.bytes, err = appendValue(v.bytes, t, strings.TrimSpace(e)); err != nil {
			return value{}, err
		}
	}
	v.shape = []int{len(v.bytes) / t.Size()}
	return v, nil
}

func isName(s string) bool {
	for i, c := range s {
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

func isInteger(s string) bool {
	_, err := strconv.ParseInt(s, 0, 64)
	_, err2 := strconv.ParseUint(s, 0, 64)
	return err == nil || err2 == nil
}

func resolve(dir, file string) string {
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(dir, file)
}

// fills give element i of an array, with two numbers that follow the shape, or their defaults.
var fills = map[string]*struct {
	a, b    float64
	element func(t ir.Type, i int, a, b float64, rng *rand.Rand) float64
}{
	"zeros":  {0, 0, func(ir.Type, int, float64, float64, *rand.Rand) float64 { return 0 }},
	"ones":   {0, 0, func(ir.Type, int, float64, float64, *rand.Rand) float64 { return 1 }},
	"empty":  {0, 0, nil},
	"arange": {0, 1, func(_ ir.Type, i int, start, step float64, _ *rand.Rand) float64 { return start + float64(i)*step }},
	"rand": {0, 1, func(t ir.Type, _ int, lo, hi float64, rng *rand.Rand) float64 {
		if x := lo + rng.Float64()*(hi-lo); t.IsFloat() {
			return x
		} else {
			return math.Floor(x)
		}
	}},
}

// filled is an array of a kind and a shape such as 64x32, with what follows a colon.
func filled(kind string, t ir.Type, rest string, rng *rand.Rand) (value, error) {
	fill := fills[kind]
	dims, numbers, given := strings.Cut(rest, ":")
	v := value{typ: t, array: true, unset: kind == "empty"}
	n := 1
	for d := range strings.SplitSeq(dims, "x") {
		k, err := strconv.Atoi(d)
		if err != nil || k < 1 || k > maxBuffer/t.Size()/n {
			return value{}, fmt.Errorf("%q is no shape such as 1024 or 64x32, of at most %d bytes", dims, int64(maxBuffer))
		}
		v.shape, n = append(v.shape, k), n*k
	}
	a, b := fill.a, fill.b
	if given {
		first, second, pair := strings.Cut(numbers, ",")
		var err, err2 error
		a, err = strconv.ParseFloat(first, 64)
		b, err2 = strconv.ParseFloat(second, 64)
		if fill.a == fill.b || err != nil || err2 != nil || !pair || kind == "rand" && a >= b {
			return value{}, fmt.Errorf("%q: want two numbers A,B after the shape of rand or arange", numbers)
		}
	} else if kind == "rand" && !t.IsFloat() {
		return value{}, fmt.Errorf("random integers need bounds: rand:%s:%s:LOW,HIGH", t, dims)
	}
	if fill.element == nil || kind == "zeros" {
		v.bytes = make([]byte, n*t.Size())
		return v, nil
	}
	v.bytes = make([]byte, 0, n*t.Size())
	for i := range n {
		v.bytes = appendBits(v.bytes, t, bitsOf(t, fill.element(t, i, a, b, rng)))
	}
	return v, nil
}

// npyType is the type of an array's elements.
func npyType(a *npy.Array) ir.Type {
	switch {
	case a.Kind == 'f':
		return map[int]ir.Type{2: ir.F16, 4: ir.F32, 8: ir.F64}[a.Size]
	case a.Kind == 'i':
		return map[int]ir.Type{1: ir.S8, 2: ir.S16, 4: ir.S32, 8: ir.S64}[a.Size]
	}
	return map[int]ir.Type{1: ir.U8, 2: ir.U16, 4: ir.U32, 8: ir.U64}[a.Size]
}

func readArray(file string) (value, error) {
	a, err := npy.ReadFile(file)
	if err != nil {
		return value{}, err
	}
	return value{typ: npyType(a), array: true, bytes: a.Data, shape: a.Shape}, nil
}

// npyOf is an array as NumPy knows it; bfloat16, which it does not, goes as its bits.
func npyOf(v *value, shape []int, bytes []byte) *npy.Array {
	kind := byte('u')
	switch {
	case v.typ.IsFloat() && v.typ != ir.BF16:
		kind = 'f'
	case v.typ.IsSigned():
		kind = 'i'
	}
	return &npy.Array{Kind: kind, Size: v.typ.Size(), Shape: shape, Data: bytes}
}

// readBytes is a file as elements of a type.
func readBytes(t ir.Type, file string) (value, error) {
	var v value
	var err error
	if strings.HasSuffix(file, ".npy") {
		if v, err = readArray(file); err == nil && v.typ.Size() != t.Size() && t.Size() != 1 {
			err = fmt.Errorf("%s has elements of %d bytes, %s has %d", file, v.typ.Size(), t, t.Size())
		}
	} else {
		v.bytes, err = os.ReadFile(file)
	}
	if err != nil {
		return value{}, err
	}
	if len(v.bytes) == 0 || len(v.bytes)%t.Size() != 0 {
		return value{}, fmt.Errorf("%s: %d bytes are no whole number of %s elements, or none", file, len(v.bytes), t)
	}
	if v.shape == nil || v.typ.Size() != t.Size() {
		v.shape = []int{len(v.bytes) / t.Size()}
	}
	v.typ, v.array = t, true
	return v, nil
}

// parseStruct reads members, each a VALUE with a type.
func parseStruct(s, dir string, rng *rand.Rand) (value, error) {
	v := value{}
	for m := range strings.SplitSeq(s, ";") {
		f, err := parseValue(strings.TrimSpace(m), dir, rng)
		switch {
		case err != nil:
			return value{}, err
		case f.text != "":
			return value{}, fmt.Errorf("member %q needs a type, such as f32:%s", m, m)
		case f.array || f.fields != nil:
			return value{}, fmt.Errorf("member %q: a structure has numbers, names of buffers, and images of named buffers, see --buffer", m)
		}
		v.fields = append(v.fields, f)
	}
	return v, nil
}

// layout is a structure's bytes as C lays them out; pointer gives the addresses of buffers and the handles of images.
func (v *value) layout(pointer func(*value) (uint64, error)) ([]byte, error) {
	var out []byte
	align := 1
	for i := range v.fields {
		f := &v.fields[i]
		bytes := f.bytes
		if f.buffer != "" {
			a, err := pointer(f)
			if err != nil {
				return nil, err
			}
			bytes = binary.LittleEndian.AppendUint64(nil, a)
		}
		n := f.typ.Size()
		align = max(align, n)
		out = append(padded(out, n), bytes...)
	}
	return padded(out, align), nil
}

func padded(b []byte, align int) []byte {
	return append(b, make([]byte, (align-len(b)%align)%align)...)
}

// appendValue appends the bytes of a number.
func appendValue(p []byte, t ir.Type, s string) ([]byte, error) {
	var bits uint64
	var err error
	switch {
	case t.IsFloat():
		var v float64
		v, err = strconv.ParseFloat(s, 64)
		bits = bitsOf(t, v)
		if t != ir.F64 && err == nil {
			var single float64
			single, err = strconv.ParseFloat(s, 32) // rounded once
			bits = bitsOf(t, single)
		}
	case t.IsSigned():
		var v int64
		v, err = strconv.ParseInt(s, 0, t.Bits())
		bits = uint64(v)
	default:
		bits, err = strconv.ParseUint(s, 0, t.Bits())
	}
	if err != nil {
		return nil, fmt.Errorf("%q is no %s: %w", s, t, err)
	}
	return appendBits(p, t, bits), nil
}

func appendBits(p []byte, t ir.Type, bits uint64) []byte {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], bits)
	return append(p, b[:t.Size()]...)
}

// bitsOf is a number as an element of a type.
func bitsOf(t ir.Type, v float64) uint64 {
	switch {
	case t == ir.F64:
		return math.Float64bits(v)
	case t == ir.F32:
		return uint64(math.Float32bits(float32(v)))
	case t == ir.F16:
		return uint64(eval.F32ToF16(float32(v)))
	case t == ir.BF16:
		return uint64(eval.F32ToBF16(float32(v)))
	case t.IsSigned():
		return uint64(int64(v))
	}
	return uint64(v)
}

// elements are an array's as numbers, which JSON has not for NaN and infinities: these are strings.
func elements(t ir.Type, bytes []byte) []any {
	n := t.Size()
	list := make([]any, 0, len(bytes)/n)
	for p := bytes; len(p) >= n; p = p[n:] {
		list = append(list, element(t, load(p[:n])))
	}
	return list
}

func load(p []byte) uint64 {
	var b [8]byte
	copy(b[:], p)
	return binary.LittleEndian.Uint64(b[:])
}

// element is a number: json.Number or a string, int64 or uint64.
func element(t ir.Type, bits uint64) any {
	switch {
	case t.IsFloat():
		size := 32
		if t == ir.F64 {
			size = 64
		}
		return number(float(t, bits), size)
	case t.IsSigned():
		shift := 64 - t.Bits()
		return int64(bits<<shift) >> shift
	}
	return bits
}

// float is an element as a number of double precision.
func float(t ir.Type, bits uint64) float64 {
	switch {
	case t == ir.F64:
		return math.Float64frombits(bits)
	case t == ir.F32:
		return float64(math.Float32frombits(uint32(bits)))
	case t == ir.F16:
		return float64(eval.F16ToF32(uint16(bits)))
	case t == ir.BF16:
		return float64(eval.BF16ToF32(uint16(bits)))
	case t.IsSigned():
		shift := 64 - t.Bits()
		return float64(int64(bits<<shift) >> shift)
	}
	return float64(bits)
}

func number(v float64, bits int) any {
	s := strconv.FormatFloat(v, 'g', -1, bits)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return s
	}
	return json.Number(s)
}
