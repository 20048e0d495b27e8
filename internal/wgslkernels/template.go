package wgslkernels

import (
	"embed"
	"fmt"
	"io"
	"io/fs"
	"reflect"
	"text/template/parse"
)

// templates are kernel files, parsed and executed as text/template does, so far as the files need it. That package finds methods by
// name at run time, for which the linker has to keep every exported method of every type: a fifth of a browser's download. Here,
// what has methods for its template is a [fielder]; tests compare the two on every kernel.
type templates map[string]*parse.Tree

// fielder is data whose template uses more than its fields.
type fielder interface {
	// field computes a value by its name; nil if there is none.
	field(name string) any
}

// functions are what templates may call beside and, not and index. Constants are ints.
var functions = map[string]any{
	"and": true, "not": true, "index": true, // known to the parser, computed in call
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
	entries, err := fs.ReadDir(files, folder)
	if err != nil {
		panic(err)
	}
	for _, f := range entries {
		text, err := files.ReadFile(folder + "/" + f.Name())
		if err != nil {
			panic(err)
		}
		trees, err := parse.Parse(f.Name(), string(text), "", "", functions)
		if err != nil {
			panic(err)
		}
		for name, tree := range trees {
			all[name] = tree
		}
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
	tree := t[name]
	if tree == nil {
		return fmt.Errorf("no template %q", name)
	}
	s := &execution{templates: t, w: w, vars: []variable{{"$", data}}}
	s.node(data, tree.Root)
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

func (s *execution) node(dot any, n parse.Node) {
	switch n := n.(type) {
	case *parse.ListNode:
		for _, x := range n.Nodes {
			s.node(dot, x)
		}
	case *parse.TextNode:
		s.w.Write(n.Text)
	case *parse.ActionNode:
		if x := s.pipe(dot, n.Pipe); len(n.Pipe.Decl) == 0 {
			fmt.Fprint(s.w, x)
		}
	case *parse.IfNode:
		mark := len(s.vars)
		if s.truth(s.pipe(dot, n.Pipe)) {
			s.node(dot, n.List)
		} else if n.ElseList != nil {
			s.node(dot, n.ElseList)
		}
		s.vars = s.vars[:mark]
	case *parse.RangeNode:
		s.loop(dot, n)
	case *parse.TemplateNode:
		data := any(nil)
		if n.Pipe != nil {
			data = s.pipe(dot, n.Pipe)
		}
		if err := s.templates.ExecuteTemplate(s.w, n.Name, data); err != nil {
			panic(err)
		}
	default:
		panic(fmt.Sprintf("%v is beyond these templates", n))
	}
}

// loop runs over a slice or an array; its variables are the element, or index and element.
func (s *execution) loop(dot any, n *parse.RangeNode) {
	if n.ElseList != nil {
		panic("else of a range is beyond these templates")
	}
	mark := len(s.vars)
	list := reflect.ValueOf(s.value(dot, n.Pipe.Cmds))
	for i := range list.Len() {
		x := list.Index(i).Interface()
		switch decl := n.Pipe.Decl; len(decl) {
		case 1:
			s.vars = append(s.vars, variable{decl[0].Ident[0], x})
		case 2:
			s.vars = append(s.vars, variable{decl[0].Ident[0], i}, variable{decl[1].Ident[0], x})
		}
		s.node(x, n.List)
		s.vars = s.vars[:mark]
	}
}

func (s *execution) pipe(dot any, p *parse.PipeNode) any {
	x := s.value(dot, p.Cmds)
	for _, v := range p.Decl {
		if p.IsAssign {
			s.variable(v.Ident[0]).value = x
		} else {
			s.vars = append(s.vars, variable{v.Ident[0], x})
		}
	}
	return x
}

// variable returns the innermost variable of a name; the parser has seen its declaration.
func (s *execution) variable(name string) *variable {
	i := len(s.vars) - 1
	for s.vars[i].name != name {
		i--
	}
	return &s.vars[i]
}

func (s *execution) value(dot any, commands []*parse.CommandNode) any {
	if len(commands) != 1 {
		panic("pipelines are beyond these templates")
	}
	args := commands[0].Args
	if f, ok := args[0].(*parse.IdentifierNode); ok {
		return s.call(dot, f.Ident, args[1:])
	}
	if len(args) > 1 {
		panic(fmt.Sprintf("%v takes no arguments", args[0]))
	}
	return s.operand(dot, args[0])
}

func (s *execution) call(dot any, name string, args []parse.Node) any {
	if name == "and" { // the first that is false, or the last
		var x any
		for _, n := range args {
			if x = s.operand(dot, n); !s.truth(x) {
				break
			}
		}
		return x
	}
	in := make([]any, len(args))
	for i, n := range args {
		in[i] = s.operand(dot, n)
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

func (s *execution) operand(dot any, n parse.Node) any {
	switch n := n.(type) {
	case *parse.DotNode:
		return dot
	case *parse.FieldNode:
		return s.fields(dot, n.Ident)
	case *parse.ChainNode:
		return s.fields(s.operand(dot, n.Node), n.Field)
	case *parse.VariableNode:
		return s.fields(s.variable(n.Ident[0]).value, n.Ident[1:])
	case *parse.PipeNode:
		return s.value(dot, n.Cmds)
	case *parse.IdentifierNode:
		return s.call(dot, n.Ident, nil)
	case *parse.NumberNode:
		return int(n.Int64)
	case *parse.StringNode:
		return n.Text
	case *parse.BoolNode:
		return n.True
	}
	panic(fmt.Sprintf("%v is beyond these templates", n))
}

func (s *execution) fields(x any, names []string) any {
	for _, name := range names {
		x = s.field(x, name)
	}
	return x
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
