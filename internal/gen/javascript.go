package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/build"
	godoc "go/doc"
	"go/parser"
	"go/token"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"unicode"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// jsOp is an entry as JavaScript sees it.
type jsOp struct {
	*program.Entry
	Index    int
	Name     string
	Operands []string // the least there must be
	Variadic bool     // the only operand is an array of them
	Extra    []string // optional operands: keys of the options
	Dims     []string // sizes that may follow operands given as plain typed arrays
	Numbers  []string // scalars
	Options  *jsStruct
}

// jsStruct is an option type.
type jsStruct struct {
	Name   string
	Doc    string
	Fields []jsField
}

type jsField struct {
	Name, Doc string
	Kind      string // "bool", "int", "float", "ints", "pair" or the name of an enumeration
	Required  bool
}

type jsEnum struct {
	Name, Doc string
	Values    []jsValue
}

type jsValue struct {
	Name, Doc string
	Value     int
}

// required are the fields that have no meaning when they are left out.
var required = map[string]bool{
	"PoolOptions.Size": true, "SliceOptions.Start": true, "SliceOptions.Size": true, "PadOptions.Before": true, "PadOptions.After": true,
	"ConcatOptions.Axis": true, "CastOptions.To": true, "FillOptions.Shape": true, "ReshapeOptions.Shape": true,
	"RandomOptions.Shape": true, "TopKOptions.K": true,
	"QuantOptions.Format": true, "QuantQKVOptions.Q": true, "QuantQKVOptions.K": true, "QuantQKVOptions.V": true, "DequantizeOptions.Format": true,
}

// enumerations are the types of options that JavaScript writes as strings.
var enumerations = []reflect.Type{
	reflect.TypeFor[compute.DType](), reflect.TypeFor[compute.Activation](), reflect.TypeFor[compute.Axis](), reflect.TypeFor[compute.Precision](),
	reflect.TypeFor[compute.BlockFormat](),
}

// javascriptFiles returns the generated files of the JavaScript package.
func javascriptFiles() (map[string][]byte, error) {
	source, err := readSource()
	if err != nil {
		return nil, err
	}
	data := struct {
		Ops     []*jsOp
		Structs []*jsStruct
		Enums   []jsEnum
	}{}
	structs := map[reflect.Type]*jsStruct{}
	for i, e := range catalogue.All() {
		x := &jsOp{Entry: e, Index: i, Name: snakeToCamel(e.Name)}
		for _, in := range e.Inputs {
			switch {
			case in.Optional:
				x.Extra = append(x.Extra, in.Name)
			default:
				x.Operands = append(x.Operands, in.Name)
				x.Variadic = x.Variadic || in.Variadic
			}
		}
		for _, s := range e.Scalars {
			x.Numbers = append(x.Numbers, s.Name)
		}
		x.Dims = dimsOf(e)
		if t := reflect.TypeOf(e.Options); t != nil {
			if structs[t] == nil {
				if structs[t], err = source.options(t); err != nil {
					return nil, err
				}
				data.Structs = append(data.Structs, structs[t])
			}
			x.Options = structs[t]
		}
		data.Ops = append(data.Ops, x)
	}
	slices.SortFunc(data.Structs, func(a, b *jsStruct) int { return strings.Compare(a.Name, b.Name) })
	for _, t := range enumerations {
		data.Enums = append(data.Enums, source.enum(t))
	}
	files := map[string][]byte{}
	for name, t := range map[string]*template.Template{"wasm/js/operations.js": tableFile, "wasm/js/operations.d.ts": typesFile} {
		var b bytes.Buffer
		if err := t.Execute(&b, data); err != nil {
			return nil, err
		}
		files[name] = b.Bytes()
	}
	return files, nil
}

// dimsOf names the sizes that make matrices of plain typed arrays; package wasm/bridge lays operands out accordingly.
func dimsOf(e *program.Entry) []string {
	switch {
	case e == catalogue.MatMul:
		return []string{"m", "k", "n"}
	case e == catalogue.MatVec:
		return []string{"m", "k"}
	case e == catalogue.VecMat:
		return []string{"k", "n"}
	case e.Class == program.Rows:
		return []string{"rows", "cols"}
	}
	return nil
}

// source holds the documentation of package compute.
type source struct{ types map[string]*godoc.Type }

func readSource() (*source, error) {
	pkg, err := build.Import(reflect.TypeFor[compute.DType]().PkgPath(), ".", 0)
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range pkg.GoFiles {
		f, err := parser.ParseFile(fset, pkg.Dir+"/"+name, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	p, err := godoc.NewFromFiles(fset, files, pkg.ImportPath)
	if err != nil {
		return nil, err
	}
	s := &source{map[string]*godoc.Type{}}
	for _, t := range p.Types {
		s.types[t.Name] = t
	}
	return s, nil
}

// options describes a struct of options. compute.Axis, which is no struct, becomes one of a single key.
func (s *source) options(t reflect.Type) (*jsStruct, error) {
	if t == reflect.TypeFor[compute.Axis]() {
		return &jsStruct{"AxisOptions", "AxisOptions says along what a reduction runs.", []jsField{{Name: "axis", Kind: "Axis", Doc: `default "all"`}}}, nil
	}
	x := &jsStruct{Name: t.Name()}
	fieldDocs := map[string]string{}
	declared := s.types[t.Name()]
	for _, f := range declared.Decl.Specs[0].(*ast.TypeSpec).Type.(*ast.StructType).Fields.List {
		for _, name := range f.Names {
			fieldDocs[name.Name] = oneLine(f.Doc.Text() + " " + f.Comment.Text())
		}
	}
	x.Doc = jsDoc(declared.Doc, t)
	for i := range t.NumField() {
		f := t.Field(i)
		kind, err := kindOf(f.Type)
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", t.Name(), f.Name, err)
		}
		x.Fields = append(x.Fields, jsField{lowerCamel(f.Name), jsDoc(fieldDocs[f.Name], t), kind, required[t.Name()+"."+f.Name]})
	}
	return x, nil
}

func kindOf(t reflect.Type) (string, error) {
	if slices.Contains(enumerations, t) {
		return t.Name(), nil
	}
	switch {
	case t.Kind() == reflect.Bool:
		return "bool", nil
	case t.Kind() == reflect.Int || t.Kind() == reflect.Int32:
		return "int", nil
	case t.Kind() == reflect.Float32:
		return "float", nil
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Int:
		return "ints", nil
	case t.Kind() == reflect.Array && t.Elem().Kind() == reflect.Int && t.Len() == 2:
		return "pair", nil
	}
	return "", fmt.Errorf("JavaScript knows no options of type %v", t)
}

// enum lists the constants of a type. Words of the type's own name are left out of theirs; activations and element types have
// the names that they have elsewhere.
func (s *source) enum(t reflect.Type) jsEnum {
	declared := s.types[t.Name()]
	e := jsEnum{Name: t.Name(), Doc: oneLine(declared.Doc)}
	for _, spec := range declared.Consts[0].Decl.Specs {
		v := spec.(*ast.ValueSpec)
		name := lowerCamel(strings.NewReplacer("Precision", "", "AllAxes", "All", "LastAxis", "Last").Replace(v.Names[0].Name))
		value := len(e.Values)
		switch t {
		case reflect.TypeFor[compute.BlockFormat]():
			name = v.Names[0].Name
			value, _ = strconv.Atoi(v.Values[0].(*ast.BasicLit).Value)
		case reflect.TypeFor[compute.DType]():
			name = compute.DType(value).String()
		case reflect.TypeFor[compute.Activation]():
			name = "none"
			if a, err := catalogue.ActivationEntry(compute.Activation(value)); err == nil && a != nil {
				name = snakeToCamel(a.Name)
			}
		}
		e.Values = append(e.Values, jsValue{name, oneLine(v.Comment.Text()), value})
	}
	return e
}

// snakeToCamel makes "layer_norm" "layerNorm".
func snakeToCamel(name string) string {
	parts := strings.Split(name, "_")
	for i := range parts[1:] {
		parts[i+1] = title(parts[i+1])
	}
	return strings.Join(parts, "")
}

// lowerCamel makes "TransA" "transA" and "LR" "lr".
func lowerCamel(name string) string {
	runes := []rune(name)
	for i, r := range runes {
		if !unicode.IsUpper(r) && !unicode.IsDigit(r) || i > 0 && i+1 < len(runes) && unicode.IsLower(runes[i+1]) {
			break
		}
		runes[i] = unicode.ToLower(r)
	}
	return string(runes)
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

var goNames = strings.NewReplacer("ErrShape", "a ShapeError", "BFloat16", "bf16", "Float16", "f16", "Float32", "f32", "Int32", "i32", "Uint32", "u32")

// jsDoc says a sentence about Go in the names of JavaScript.
func jsDoc(text string, options reflect.Type) string {
	text = withMethods(goNames.Replace(oneLine(text)), lowerCamel)
	if options != nil && options.Kind() == reflect.Struct {
		for i := range options.NumField() {
			name := options.Field(i).Name
			text = regexp.MustCompile(`\b`+name+`\b`).ReplaceAllString(text, lowerCamel(name))
		}
	}
	return strings.ReplaceAll(text, "*/", "* /")
}

// Text is the documentation of an operation: what it computes, and a list of the other facts.
func (x *jsOp) Text() string {
	first := x.Doc + "."
	if word, _, _ := strings.Cut(x.Doc, " "); plainWord.MatchString(word) && !slices.ContainsFunc(x.Inputs, func(in program.Input) bool { return in.Name == word }) {
		first = title(first)
	}
	notes := []string{x.Special}
	if names := updated(x.Entry); names != "" {
		notes = append(notes, names+" updated in place if resident tensors, else copied.")
	}
	text := jsDoc(first, reflect.TypeOf(x.Entry.Options))
	for _, note := range sentences(notes) {
		text += "\n- " + jsDoc(note, reflect.TypeOf(x.Entry.Options))
	}
	return text
}

// plainWord matches a word that is no formula.
var plainWord = regexp.MustCompile(`^[a-z]+,?$`)
