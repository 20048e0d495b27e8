package batch

import (
	"context"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/wavelane/wavelane/internal/program"
)

// String lists inputs, steps with the recorded steps that each computes, results and memory. Values are numbered as they were
// recorded.
func (p *Plan) String() string {
	if err := p.compiled(); err != nil {
		return err.Error()
	}
	var b strings.Builder
	q := p.program
	fmt.Fprintf(&b, "plan of %d steps, for %d recorded\n", len(q.Steps), len(p.recorded.Steps))
	for _, list := range []struct {
		what  string
		slots []program.Slot
	}{{"upload", q.Host}, {"tensor", q.Tensor}} {
		for _, s := range list.slots {
			fmt.Fprintf(&b, "      v%d = %s %v\n", s, list.what, q.Values[s].Type)
		}
	}
	for i := range q.Steps {
		s := &q.Steps[i]
		fmt.Fprintf(&b, "%4d  %s = %s(%s)%s%s\n", i, typedNames(q, s.Out), s.Name(), slotNames(s.In), attributes(s), p.origin(s))
	}
	for _, list := range []struct {
		what  string
		slots []program.Slot
	}{{"read", q.Read}, {"keep", q.Keep}} {
		if len(list.slots) > 0 {
			fmt.Fprintf(&b, "      %s %s\n", list.what, slotNames(list.slots))
		}
	}
	if m := p.Memory(); m.Peak > 0 {
		fmt.Fprintf(&b, "      memory: %d bytes at most, in step %d; %d of values\n", m.Peak, m.Step, p.withoutReuse())
	}
	return b.String()
}

// withoutReuse is the number of bytes that the steps' results would take if each had memory of its own.
func (p *Plan) withoutReuse() (n int) {
	for i := range p.program.Steps {
		for _, t := range p.program.Types(p.program.Steps[i].Out) {
			n += t.Bytes()
		}
	}
	return n
}

func slotNames(slots []program.Slot) string {
	list := make([]string, len(slots))
	for i, s := range slots {
		list[i] = fmt.Sprintf("v%d", s)
	}
	return strings.Join(list, ", ")
}

func typedNames(q *program.Program, slots []program.Slot) string {
	list := make([]string, len(slots))
	for i, s := range slots {
		list[i] = fmt.Sprintf("v%d %v", s, q.Values[s].Type)
	}
	return strings.Join(list, ", ")
}

// attributes are scalars and options, unless they say nothing.
func attributes(s *program.Step) string {
	text := ""
	if len(s.Attr.Scalars) > 0 {
		text += fmt.Sprintf(" %v", s.Attr.Scalars)
	}
	_, expression := s.Attr.Options.(program.Expression)
	if s.Attr.Options != nil && !expression && s.Kernel == nil && !reflect.ValueOf(s.Attr.Options).IsZero() {
		text += fmt.Sprintf(" %+v", s.Attr.Options)
	}
	return text
}

// origin names the recorded steps that a step stands for, where it is not obvious.
func (p *Plan) origin(s *program.Step) string {
	numbers := p.recordedAs(s)
	if len(numbers) == 0 {
		return "  ; added"
	}
	list := make([]string, len(numbers))
	for i, n := range numbers {
		list[i] = fmt.Sprint(n)
	}
	return "  ; recorded as " + strings.Join(list, ", ")
}

// Dot returns the plan as a graph in Graphviz's language: inputs, results, and the steps with the values between them. Steps
// that were fused list what they compute.
func (p *Plan) Dot() string {
	if err := p.compiled(); err != nil {
		return "digraph plan {\n}\n"
	}
	var b strings.Builder
	q := p.program
	b.WriteString("digraph plan {\n  rankdir=TB;\n  node [fontname=\"sans-serif\"];\n")
	from := make([]string, len(q.Values)) // the node that gives a value
	for _, list := range []struct {
		what  string
		slots []program.Slot
	}{{"upload", q.Host}, {"tensor", q.Tensor}} {
		for _, s := range list.slots {
			from[s] = fmt.Sprintf("v%d", s)
			fmt.Fprintf(&b, "  v%d [shape=ellipse, label=%s];\n", s, dotText(fmt.Sprintf("%s v%d\n%v", list.what, s, q.Values[s].Type)))
		}
	}
	for i := range q.Steps {
		s := &q.Steps[i]
		style := ""
		if strings.HasPrefix(s.Name(), "fused(") {
			style = ", style=filled, fillcolor=lightgrey"
		}
		name := strings.NewReplacer("(", "\n", ", ", "\n", ")", "").Replace(s.Name())
		fmt.Fprintf(&b, "  s%d [shape=box%s, label=%s];\n", i, style, dotText(fmt.Sprintf("%d: %s", i, name)))
		for _, in := range s.In {
			fmt.Fprintf(&b, "  %s -> s%d [label=%s];\n", from[in], i, dotText(q.Values[in].Type.String()))
		}
		for _, out := range s.Out {
			from[out] = fmt.Sprintf("s%d", i)
		}
	}
	for _, list := range []struct {
		what  string
		slots []program.Slot
	}{{"read", q.Read}, {"keep", q.Keep}} {
		for i, s := range list.slots {
			fmt.Fprintf(&b, "  %s%d [shape=ellipse, peripheries=2, label=%s];\n", list.what, i, dotText(fmt.Sprintf("%s v%d\n%v", list.what, s,
				q.Values[s].Type)))
			fmt.Fprintf(&b, "  %s -> %s%d;\n", from[s], list.what, i)
		}
	}
	b.WriteString("}\n")
	return b.String()
}

// dotText quotes a text for Graphviz.
func dotText(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

// Code writes the sources of the kernels that each step runs: WGSL or PTX. On the CPU device, whose kernels are part of the
// library, it returns compute.ErrUnsupported.
func (p *Plan) Code(w io.Writer) error {
	if err := p.compiled(); err != nil {
		return err
	}
	d, err := placed(context.Background(), p.exec.device, p.recorded)
	if err != nil {
		return err
	}
	return withCollectives(d, p.program).Code(w, p.program)
}
