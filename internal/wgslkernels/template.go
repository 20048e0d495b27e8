package wgslkernels

import (
	"embed"
	"fmt"
	"io"
	"reflect"
)

// templates are kernel files, parsed and executed as text/template does, so far as the files need it. That package finds methods by
// name at run time, for which the linker has to keep every exported method of every type: a fifth of a browser's download. Here,
// what has methods for its template is a [fielder]; tests compare the two on every kernel.
type templates map[string]list

// fielder is data whose template uses more than its fields.
type fielder interface {
	// field computes a value by its name; nil if there is none.
	field(name string) any
}

// functions are what templates may call beside and, not and index. Constants are ints.
var functions = map[string]any{
	"seq": func(n int) []int { // range over 0 … n-1
		s := make([]int, n)
		for i := range s {
			s[i] = i
		}
		return s
	},
	"add":    func(a, b int) int { return a + b },
	"sub":    func(a, b int) int { return a - b },
	"mul":    func(a, b int) int { return a * b },
	"div":    func(a, b int) int { return a / b },
	"rem":    func(a, b int) int { return a % b },
	"gt":     func(a, b int) bool { return a > b },
	"eq":     func(a, b any) bool { return a == b },
	"ne":     func(a, b any) bool { return a != b },
	"len":    func(x any) int { return reflect.ValueOf(x).Len() },
	"printf": fmt.Sprintf,
}

// mustParse parses all files of a folder; they are our own.
func mustParse(files embed.FS, folder string) templates {
	all := templates{}
	entries, err := files.ReadDir(folder)
	if err != nil {
		panic(err)
	}
	for _, f := range entries {
		text, err := files.ReadFile(folder + "/" + f.Name())
		if err != nil {
			panic(err)
		}
		all.parse(f.Name(), string(text))
	}
	return all
}

// ExecuteTemplate writes the named template with data as its dot.
func (t templates) ExecuteTemplate(w io.Writer, name string, data any) (err error) {
	defer func() {
		if v := recover(); v != nil { // of a type that the template's author did not think of
			err = fmt.Errorf("%s: %v", name, v)
		}
	}()
	root, ok := t[name]
	if !ok {
		return fmt.Errorf("no template %q", name)
	}
	s := &execution{templates: t, w: w, vars: []variable{{"$", data}}}
	s.list(data, root)
	return nil
}

// execution is one template on its way; errors are panics until they reach ExecuteTemplate.
type execution struct {
	templates templates
	w         io.Writer
	vars      []variable
}

type variable struct {
	name  string
	value any
}

func (s *execution) list(dot any, nodes list) {
	for _, n := range nodes {
		switch n := n.(type) {
		case string:
			io.WriteString(s.w, n)
		case pipe:
			if x := s.pipe(dot, n); len(n.names) == 0 {
				fmt.Fprint(s.w, x)
			}
		case *branch:
			mark := len(s.vars)
			if s.truth(s.pipe(dot, n.pipe)) {
				s.list(dot, n.then)
			} else {
				s.list(dot, n.otherwise)
			}
			s.vars = s.vars[:mark]
		case *loop:
			s.loop(dot, n)
		case inclusion:
			if err := s.templates.ExecuteTemplate(s.w, n.name, s.value(dot, n.data)); err != nil {
				panic(err)
			}
		}
	}
}

// loop runs over a slice or an array; its variables are the element, or index and element.
func (s *execution) loop(dot any, n *loop) {
	mark := len(s.vars)
	elements := reflect.ValueOf(s.value(dot, n.value))
	for i := range elements.Len() {
		x := elements.Index(i).Interface()
		switch names := n.names; len(names) {
		case 1:
			s.vars = append(s.vars, variable{names[0], x})
		case 2:
			s.vars = append(s.vars, variable{names[0], i}, variable{names[1], x})
		}
		s.list(x, n.body)
		s.vars = s.vars[:mark]
	}
}

func (s *execution) pipe(dot any, p pipe) any {
	x := s.value(dot, p.value)
	for _, name := range p.names {
		if p.assign {
			s.variable(name).value = x
		} else {
			s.vars = append(s.vars, variable{name, x})
		}
	}
	return x
}

// variable returns the innermost variable of a name.
func (s *execution) variable(name string) *variable {
	i := len(s.vars) - 1
	for s.vars[i].name != name {
		i--
	}
	return &s.vars[i]
}

// value computes an expression; that of none is nil.
func (s *execution) value(dot any, x term) any {
	switch x := x.(type) {
	case constant:
		return x.value
	case path:
		switch {
		case x.of != nil:
			dot = s.value(dot, x.of)
		case x.variable != "":
			dot = s.variable(x.variable).value
		}
		for _, name := range x.fields {
			dot = s.field(dot, name)
		}
		return dot
	case invocation:
		return s.call(dot, x.function, x.args)
	}
	return nil
}

func (s *execution) call(dot any, name string, args []term) any {
	if name == "and" { // the first that is false, or the last
		var x any
		for _, n := range args {
			if x = s.value(dot, n); !s.truth(x) {
				break
			}
		}
		return x
	}
	in := make([]any, len(args))
	for i, n := range args {
		in[i] = s.value(dot, n)
	}
	switch f := functions[name].(type) {
	case func(int) []int:
		return f(in[0].(int))
	case func(a, b int) int:
		return f(in[0].(int), in[1].(int))
	case func(a, b int) bool:
		return f(in[0].(int), in[1].(int))
	case func(a, b any) bool:
		return f(in[0], in[1])
	case func(any) int:
		return f(in[0])
	case func(string, ...any) string:
		return f(in[0].(string), in[1:]...)
	}
	switch name {
	case "not":
		return !s.truth(in[0])
	case "index":
		return reflect.ValueOf(in[0]).Index(in[1].(int)).Interface()
	}
	panic("no function " + name)
}

func (s *execution) field(x any, name string) any {
	if f, ok := x.(fielder); ok {
		if y := f.field(name); y != nil {
			return y
		}
	}
	v := reflect.Indirect(reflect.ValueOf(x))
	var y reflect.Value
	if v.Kind() == reflect.Map {
		y = v.MapIndex(reflect.ValueOf(name))
	} else {
		y = v.FieldByName(name)
	}
	if !y.IsValid() {
		panic(fmt.Sprintf("%T has no %s", x, name))
	}
	return y.Interface()
}

// truth is whether a value is not the zero of its type, or has elements.
func (s *execution) truth(x any) bool {
	v := reflect.ValueOf(x)
	switch v.Kind() {
	case reflect.Slice, reflect.Array, reflect.Map, reflect.String:
		return v.Len() > 0
	}
	return v.IsValid() && !v.IsZero()
}
