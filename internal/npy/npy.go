// Package npy reads and writes arrays in NumPy's .npy format (NEP 1), versions 1 to 3.
//
// Elements are booleans, integers and floating-point numbers of 1 to 8 bytes. Complex numbers become pairs of numbers, one more
// dimension of 2. Big-endian and Fortran-ordered arrays are brought into little-endian C order. Structured types, objects, texts and
// dates are errors.
package npy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ErrFormat says that bytes are no .npy file, or one with elements that this package does not read.
var ErrFormat = errors.New("npy: not a .npy file of numbers")

// Array is an array in C order.
type Array struct {
	Kind  byte   // as NumPy names it: 'b' boolean, 'i' signed, 'u' unsigned, 'f' floating-point
	Size  int    // bytes of an element: 1, 2, 4 or 8
	Shape []int  // empty for a single number
	Data  []byte // little-endian
}

// Len is the number of elements.
func (a *Array) Len() int { return len(a.Data) / a.Size }

const maxDims = 64 // NumPy's

const magic = "\x93NUMPY"

// MaxBytes bounds the data of a file that Decode takes.
const MaxBytes = 1 << 34

var (
	descr   = regexp.MustCompile(`['"]descr['"]\s*:\s*['"]([^'"]*)['"]`)
	order   = regexp.MustCompile(`['"]fortran_order['"]\s*:\s*(True|False)`)
	shape   = regexp.MustCompile(`['"]shape['"]\s*:\s*\(([0-9L,\s]*)\)`)
	element = regexp.MustCompile(`^([<>|=]?)([biufc])([0-9]{1,2})$`)
)

// ReadFile reads a file.
func ReadFile(name string) (*Array, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	a, err := Decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return a, nil
}

// Decode reads the bytes of a file. The array has a copy of the data. Errors wrap [ErrFormat].
func Decode(file []byte) (*Array, error) {
	bad := func(format string, args ...any) (*Array, error) {
		return nil, fmt.Errorf("%w: %s", ErrFormat, fmt.Sprintf(format, args...))
	}
	if len(file) < len(magic)+4 || string(file[:len(magic)]) != magic {
		return bad("it does not begin as one")
	}
	version, rest := file[len(magic)], file[len(magic)+2:]
	size := 0
	switch {
	case version == 1:
		size, rest = int(binary.LittleEndian.Uint16(rest)), rest[2:]
	case (version == 2 || version == 3) && len(rest) >= 4:
		n := binary.LittleEndian.Uint32(rest)
		size, rest = int(min(n, 1<<30)), rest[4:]
	default:
		return bad("version %d", version)
	}
	if size > len(rest) {
		return bad("its header is cut off")
	}
	header, data := string(rest[:size]), rest[size:]
	d, o, s := descr.FindStringSubmatch(header), order.FindStringSubmatch(header), shape.FindStringSubmatch(header)
	if d == nil {
		return bad("its elements are structures: %s", strings.TrimSpace(header))
	}
	if o == nil || s == nil {
		return bad("its header is %q", header)
	}
	e := element.FindStringSubmatch(d[1])
	if e == nil {
		hint := ""
		if d[1] == "<V2" || d[1] == "|V2" {
			hint = " (bfloat16? save a.view('uint16'))"
		}
		return bad("elements of type %q%s", d[1], hint)
	}
	a := &Array{Kind: e[2][0], Shape: []int{}}
	a.Size, _ = strconv.Atoi(e[3])
	complex := a.Kind == 'c'
	if complex {
		a.Kind, a.Size = 'f', a.Size/2
	}
	if a.Size != 1 && a.Size != 2 && a.Size != 4 && a.Size != 8 || a.Kind == 'f' && (a.Size == 1 || complex && a.Size == 2) || a.Kind == 'b' && a.Size != 1 {
		return bad("elements of type %q", d[1])
	}
	n := 1
	for part := range strings.SplitSeq(strings.ReplaceAll(s[1], "L", ""), ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		k, err := strconv.Atoi(part)
		if err != nil || len(a.Shape) == maxDims || k > MaxBytes || k > 0 && n > MaxBytes/k {
			return bad("shape (%s)", s[1])
		}
		a.Shape, n = append(a.Shape, k), n*k
	}
	item := a.Size
	if complex {
		item *= 2
	}
	if n > MaxBytes/item || n*item != len(data) {
		return bad("%d bytes of data for shape (%s) of %s", len(data), s[1], d[1])
	}
	if o[1] == "True" && len(a.Shape) > 1 {
		data = transposed(data, a.Shape, item)
	}
	a.Data = slices.Clone(data)
	if e[1] == ">" {
		for i := 0; i < len(a.Data); i += a.Size {
			slices.Reverse(a.Data[i : i+a.Size])
		}
	}
	if complex {
		a.Shape = append(a.Shape, 2)
	}
	return a, nil
}

// transposed is an array of Fortran's order in C order.
func transposed(data []byte, shape []int, item int) []byte {
	out := make([]byte, 0, len(data))
	strides, at := make([]int, len(shape)), make([]int, len(shape))
	stride := item
	for i, n := range shape {
		strides[i], stride = stride, stride*n
	}
	for from := 0; len(out) < len(data); {
		out = append(out, data[from:from+item]...)
		for i := len(shape) - 1; i >= 0; i-- {
			at[i]++
			from += strides[i]
			if at[i] < shape[i] {
				break
			}
			from -= strides[i] * shape[i]
			at[i] = 0
		}
	}
	return out
}

// Encode is the array as a file of version 1.
func (a *Array) Encode() []byte {
	endian := "<"
	if a.Size == 1 {
		endian = "|"
	}
	dims := ""
	for _, n := range a.Shape {
		dims += strconv.Itoa(n) + ", "
	}
	if len(a.Shape) != 1 { // a tuple of one number keeps its comma
		dims = strings.TrimSuffix(dims, ", ")
	}
	header := fmt.Sprintf("{'descr': '%s%c%d', 'fortran_order': False, 'shape': (%s), }", endian, a.Kind, a.Size, strings.TrimSuffix(dims, " "))
	used := len(magic) + 4 + len(header) + 1
	header += strings.Repeat(" ", (64-used%64)%64) + "\n"
	file := append([]byte(magic), 1, 0)
	file = binary.LittleEndian.AppendUint16(file, uint16(len(header)))
	return append(append(file, header...), a.Data...)
}
