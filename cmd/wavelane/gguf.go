//go:build !js

package main

import (
	"fmt"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/wavelane/wavelane/quant/gguf"
)

func ggufCommand() *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use:   "gguf FILE",
		Short: "Show the metadata and the tensors of a GGUF file",
		Long: `Show the metadata and the tensors of a GGUF file. Of a split model, give the first file; the others are found
beside it.

Shapes begin with the length of a row. Long arrays and texts are abbreviated.`,
		Example: `  wavelane gguf model.gguf
  wavelane gguf model-00001-of-00003.gguf --json | jq '.tensors[] | select(.type == "Q6_K") | .name'`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, files []string) error {
			f, err := gguf.Open(files[0])
			if err != nil {
				return err
			}
			defer f.Close()
			listing, err := listGGUF(f)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(c.OutOrStdout(), listing)
			}
			return listing.writeText(c.OutOrStdout())
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return c
}

// ggufListing is what the command shows of a file.
type ggufListing struct {
	Version   int            `json:"version"`
	Alignment int            `json:"alignment"`
	Bytes     int64          `json:"bytes"`
	Metadata  []ggufMetadata `json:"metadata"`
	Tensors   []ggufTensor   `json:"tensors"`
}

type ggufMetadata struct {
	Key    string `json:"key"`
	Type   string `json:"type"`             // of the value, or of the elements of an array
	Length *int   `json:"length,omitempty"` // of an array, of which Value may have the first elements only
	Value  any    `json:"value"`            // infinities and NaN are strings
}

type ggufTensor struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Shape    []int  `json:"shape"`
	Elements int    `json:"elements"`
	Bytes    int64  `json:"bytes"`
	Offset   int64  `json:"offset"`
}

const (
	shownElements = 8   // of an array
	shownText     = 256 // bytes of a string
)

func listGGUF(f *gguf.File) (*ggufListing, error) {
	l := &ggufListing{f.Version(), f.Alignment(), f.Size(), []ggufMetadata{}, []ggufTensor{}}
	for _, key := range f.Keys() {
		v, _ := f.Value(key)
		m := ggufMetadata{Key: key, Type: reflect.TypeOf(v).String()}
		if a, ok := v.(*gguf.Array); ok {
			head, err := a.Head(shownElements)
			if err != nil {
				return nil, fmt.Errorf("metadata %q: %w", key, err)
			}
			m.Type, m.Length, v = a.Elem.String(), &a.Len, head
		}
		m.Value = shown(reflect.ValueOf(v))
		l.Metadata = append(l.Metadata, m)
	}
	for _, t := range f.Tensors() {
		l.Tensors = append(l.Tensors, ggufTensor{t.Name(), t.Type().String(), t.Dims(), t.Len(), t.Size(), t.Offset()})
	}
	return l, nil
}

// shown makes a value fit for JSON and for the screen: long texts and inner arrays are cut, and what JSON has no number for
// is text.
func shown(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Interface:
		return shown(v.Elem())
	case reflect.Slice:
		list := make([]any, min(v.Len(), shownElements))
		for i := range list {
			list[i] = shown(v.Index(i))
		}
		return list
	case reflect.String:
		if s := v.String(); len(s) > shownText {
			return strings.ToValidUTF8(s[:shownText], "") + "…"
		}
	case reflect.Float32, reflect.Float64:
		if x := v.Float(); math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Sprint(x)
		}
	}
	return v.Interface()
}

func (l *ggufListing) writeText(out io.Writer) error {
	fmt.Fprintf(out, "GGUF version %d, %d bytes, alignment %d\n", l.Version, l.Bytes, l.Alignment)
	fmt.Fprintf(out, "\nmetadata: %d\n", len(l.Metadata))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, m := range l.Metadata {
		typ, value := m.Type, text(m.Value)
		if m.Length != nil {
			typ = fmt.Sprintf("%d × %s", *m.Length, m.Type)
			if list, ok := m.Value.([]any); ok && len(list) < *m.Length {
				value = strings.TrimSuffix(value, "]") + ", …]"
			}
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\n", printable(m.Key), typ, value)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\ntensors: %d\n", len(l.Tensors))
	for _, t := range l.Tensors {
		dims := make([]string, len(t.Shape))
		for i, n := range t.Shape {
			dims[i] = strconv.Itoa(n)
		}
		shape := strings.Join(dims, " × ")
		fmt.Fprintf(w, "  %s\t%s\t%s\t%d bytes\tat %d\n", printable(t.Name), t.Type, shape, t.Bytes, t.Offset)
	}
	return w.Flush()
}

// text is a value on one line, cut where it is long.
func text(v any) string {
	switch v := v.(type) {
	case string:
		const most = 60
		if r := []rune(v); len(r) > most {
			return strconv.Quote(string(r[:most])) + "…"
		}
		return strconv.Quote(v)
	case []any:
		list := make([]string, len(v))
		for i := range v {
			list[i] = text(v[i])
		}
		return "[" + strings.Join(list, ", ") + "]"
	}
	return fmt.Sprint(v)
}

// printable is a name as it is, or quoted if it could do something to the terminal.
func printable(name string) string {
	if q := strconv.Quote(name); q != `"`+name+`"` {
		return q
	}
	return name
}
