package main

import (
	"bytes"
	"fmt"
	"go/format"
	"reflect"
	"regexp"
	"strings"
	"text/template"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// Generate returns the generated files by path.
func Generate() (map[string][]byte, error) {
	device, batch := methods(catalogue.All())
	files, err := javascriptFiles()
	if err != nil {
		return nil, err
	}
	for name, f := range map[string]struct {
		text *template.Template
		data any
	}{
		"compute/ops_gen.go":      {asyncFile, device},
		"compute/ops_sync_gen.go": {syncFile, device},
		"batch/ops_gen.go":        {batchFile, batch},
	} {
		var b bytes.Buffer
		if err := f.text.Execute(&b, f.data); err != nil {
			return nil, err
		}
		text, err := format.Source(b.Bytes())
		if err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", name, err, b.Bytes())
		}
		files[name] = text
	}
	return files, nil
}

// Method is one method to be written.
type Method struct {
	Name    string
	Doc     string
	Params  []Param
	Body    string   // the expression that it returns, of several results as a slice
	Results []string // names, where there are several
}

func simple(name, doc string, params []Param, body string) Method {
	return Method{Name: name, Doc: doc, Params: params, Body: body}
}

// Picked returns the results as elements of the slice that Body is.
func (m Method) Picked() string {
	parts := make([]string, len(m.Results))
	for i := range parts {
		parts[i] = fmt.Sprintf("r[%d]", i)
	}
	return strings.Join(parts, ", ")
}

// Returned returns the result list of a recording method.
func (m Method) Returned() string {
	if m.Results == nil {
		return "Value"
	}
	return "(" + strings.Join(m.Results, ", ") + " Value)"
}

// Param is a parameter; Type may be variadic.
type Param struct{ Name, Type string }

// Signature returns the parameter list.
func (m Method) Signature() string {
	var b strings.Builder
	for i, p := range m.Params {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(p.Name)
		if i+1 == len(m.Params) || m.Params[i+1].Type != p.Type {
			b.WriteString(" " + p.Type)
		}
	}
	return b.String()
}

// Arguments returns the parameters as they are passed on.
func (m Method) Arguments() string {
	names := make([]string, len(m.Params))
	for i, p := range m.Params {
		names[i] = p.Name
		if strings.HasPrefix(p.Type, "...") {
			names[i] += "..."
		}
	}
	return strings.Join(names, ", ")
}

func methods(entries []*program.Entry) (device, batch []Method) {
	for _, e := range entries {
		device = append(device, deviceMethods(e)...)
		batch = append(batch, batchMethods(e)...)
	}
	return device, batch
}

// variant is an entry with optional operands.
type variant struct {
	name, what string
	inputs     []program.Input
}

// withOptional returns an entry's calls with optional operands: each number of them that is valid.
func withOptional(e *program.Entry) (all []variant) {
	least, most := e.Arity()
	for n := least + 1; n <= most; n++ {
		what := e.Inputs[n-1].Name
		if e.Together {
			n, what = most, "biases" // of the three products
		}
		with := "With"
		if e == catalogue.Dequantize { // rows are what is dequantised
			with = ""
		}
		all = append(all, variant{e.Method + with + title(what), what, e.Inputs[:n]})
	}
	return all
}

// resultNames are the names of all results.
func resultNames(e *program.Entry) []string {
	if e.Results == nil {
		return []string{"y"}
	}
	return e.Results
}

// updated names the operands that an entry updates in place, with the verb: "p, m and v are", or "".
func updated(e *program.Entry) string {
	var names []string
	for _, x := range e.Inputs[:e.Updates] {
		names = append(names, x.Name)
	}
	switch len(names) {
	case 0:
		return ""
	case 1:
		return names[0] + " is"
	}
	return enumerate(names) + " are"
}

// enumerate writes "a", "a and b" or "a, b and c".
func enumerate(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// scalarParams are an entry's scalars as parameters, and as the argument that carries them.
func scalarParams(e *program.Entry) (params []Param, argument string) {
	if len(e.Scalars) == 0 {
		return nil, "nil"
	}
	names := make([]string, len(e.Scalars))
	for i, s := range e.Scalars {
		names[i] = s.Name
		params = append(params, Param{s.Name, "float32"})
	}
	return params, "[]float32{" + strings.Join(names, ", ") + "}"
}

// optionParam is an entry's option parameter: optional wherever the zero value means something.
func optionParam(e *program.Entry, pkg string) (params []Param, argument string) {
	if e.Options == nil {
		return nil, "nil"
	}
	typ := pkg + reflect.TypeOf(e.Options).Name()
	switch e.Options.(type) {
	case compute.PoolOptions, compute.SliceOptions, compute.PadOptions, compute.ConcatOptions, compute.CastOptions:
		return []Param{{"options", typ}}, "options"
	case compute.Axis:
		return []Param{{"axis", "..." + typ}}, "optional(axis)"
	}
	return []Param{{"options", "..." + typ}}, "optional(options)"
}

// doc is the comment of an entry's method: what it computes, then the other facts as a list.
func doc(name string, e *program.Entry, more ...string) string {
	return comment(name+" computes "+e.Doc+".", append(more, e.Special)...)
}

// returned is doc for a method that returns its results.
func returned(e *program.Entry, more ...string) string {
	return comment(e.Method+" returns "+e.Doc+".", append(more, e.Special)...)
}

// comment writes a doc comment: a sentence, then a list of the sentences of notes.
func comment(first string, notes ...string) string {
	lines := wrap(withMethods(first, goMethod), "// ", "// ", 119)
	for i, note := range sentences(notes) {
		if i == 0 {
			lines = append(lines, "//")
		}
		lines = append(lines, wrap(withMethods(note, goMethod), "//   - ", "//     ", 119)...)
	}
	return strings.Join(lines, "\n")
}

var catalogueName = regexp.MustCompile(`\b[a-z0-9]+(_[a-z0-9]+)+\b`)

// withMethods replaces the names of entries that are not plain words by those of their methods, as method spells them.
func withMethods(text string, method func(string) string) string {
	return catalogueName.ReplaceAllStringFunc(text, func(name string) string {
		if e := catalogue.Lookup(name); e != nil {
			return method(e.Method)
		}
		return name
	})
}

func goMethod(name string) string { return name }

// sentences splits texts into sentences.
func sentences(texts []string) (list []string) {
	start := true
	for _, word := range strings.Fields(strings.Join(texts, " ")) {
		if start {
			list = append(list, word)
		} else {
			list[len(list)-1] += " " + word
		}
		start = strings.HasSuffix(word, ".") && word != "al." && word != "e.g." && word != "i.e."
	}
	return list
}

// wrap breaks text into lines of at most width characters, of which first and rest are the prefixes.
func wrap(text, first, rest string, width int) (lines []string) {
	line := first
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
			line += word
		case len([]rune(line))+1+len([]rune(word)) > width:
			lines = append(lines, line)
			line = rest + word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}

const header = `// Code generated by internal/gen from the catalogue; DO NOT EDIT.

`

var asyncFile = template.Must(template.New("async").Parse(header + `package compute
{{range .}}
{{.Doc}}
func (o Ops) {{.Name}}Async({{.Signature}}) *Future {
	return {{.Body}}
}
{{end}}`))

var syncFile = template.Must(template.New("sync").Parse(header + `//go:build !js

package compute

import "context"
{{range .}}
// {{.Name}} is [Ops.{{.Name}}Async], waiting for the result. When ctx ends first it returns ctx.Err() and the slices are the
// caller's again.
func (o Ops) {{.Name}}(ctx context.Context, {{.Signature}}) error {
	if err := CheckContext(ctx); err != nil {
		return err
	}
	return o.during(ctx).{{.Name}}Async({{.Arguments}}).AwaitOrAbandon(ctx)
}
{{end}}`))

var batchFile = template.Must(template.New("batch").Parse(header + `package batch

import (
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
)
{{range .}}
{{.Doc}}
func (rec *Batch) {{.Name}}({{.Signature}}) {{.Returned}} {
{{- if .Results}}
	r := {{.Body}}
	return {{.Picked}}
{{- else}}
	return {{.Body}}
{{- end}}
}
{{end}}`))
