package gpu

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/wavelane/wavelane/compute"
)

// shaderText is what is declared in a WGSL text, as far as it decides how much memory the threads and workgroups of a kernel take, and
// how large its workgroups are. The driver compiles a kernel before it looks at these sizes, which can take all memory of the
// process; so they are computed here, and a text whose sizes cannot be computed is refused.
type shaderText struct {
	tokens  []string
	starts  []int // of tokens in the text
	names   map[string]declaration
	shared  []declared // variables
	private []declared
	bound   []declared // in storage and uniform buffers
	bodies  [][2]int   // of functions, with their parameters and results: from … to
	sizes   []int      // where arguments of @workgroup_size begin
	visited int        // steps of the evaluation

	runtime bool // count arrays without a length as one element
}

// declaration is of a constant, an override, an alias or a struct: kind, and where its expression, type or members begin.
type declaration struct {
	kind string
	at   int
	open bool // is being evaluated
}

type declared struct {
	name    string
	at      int // of the type
	binding int // where the argument of @binding begins; 0 for none
}

// The evaluation takes at most maxVisited steps, and some more for each token: types within types can have a size exponential in the
// length of the text.
const maxVisited, visitedPerToken = 1 << 16, 64

// maxWord is the greatest number in expressions. Between −maxWord and maxWord, sums and products are those of i32 and of u32 modulo
// 2³², as all that depends on the type is refused for negative numbers.
const maxWord = 1<<32 - 1

// parseShader finds the declarations of a text.
func parseShader(source string) *shaderText {
	s := &shaderText{names: map[string]declaration{}}
	s.tokens, s.starts = shaderTokens(source)
	depth, binding := 0, 0
	for i := 0; i < len(s.tokens); i++ {
		switch t := s.tokens[i]; {
		case t == "@" && s.token(i+1) == "binding" && depth == 0:
			binding = i + 3
		case t == "{" || t == "(" || t == "[":
			depth++
		case t == "}" || t == ")" || t == "]":
			depth--
		case t == "@" && s.token(i+1) == "workgroup_size" && s.token(i+2) == "(":
			s.sizes = append(s.sizes, i+3)
		case depth > 0:
		case t == "struct" && s.token(i+2) == "{":
			s.names[s.token(i+1)] = declaration{kind: t, at: i + 3}
		case t == "alias" && s.token(i+2) == "=":
			s.names[s.token(i+1)] = declaration{kind: t, at: i + 3}
		case t == "const" || t == "override":
			at := i + 2
			for at < len(s.tokens) && s.tokens[at] != "=" && s.tokens[at] != ";" {
				at++
			}
			s.names[s.token(i+1)] = declaration{kind: t, at: at + 1}
			if s.token(at) == ";" { // an override without a value
				s.names[s.token(i+1)] = declaration{kind: t, at: len(s.tokens)}
			}
		case t == "var" && s.token(i+1) == "<":
			at := i + 3
			for at < len(s.tokens) && s.tokens[at] != ":" && s.tokens[at] != "=" && s.tokens[at] != ";" {
				at++
			}
			v := declared{s.token(at - 1), at + 1, binding}
			binding = 0
			switch s.token(i + 2) {
			case "workgroup":
				s.shared = append(s.shared, v)
			case "private":
				s.private = append(s.private, v)
			default:
				s.bound = append(s.bound, v)
			}
		case t == "fn":
			from := i
			for i < len(s.tokens) && s.tokens[i] != "{" {
				i++
			}
			i = s.closing(i, "{", "}")
			s.bodies = append(s.bodies, [2]int{from, i})
		}
	}
	return s
}

// closing returns where the bracket at a token is closed, at the end of the text if nowhere.
func (s *shaderText) closing(at int, open, end string) int {
	for depth := 0; at < len(s.tokens); at++ {
		if s.tokens[at] == open {
			depth++
		} else if s.tokens[at] == end {
			if depth--; depth == 0 {
				break
			}
		}
	}
	return at
}

// shaderTokens cuts a text into names with numbers, and single characters. Shifts are one token, "<<", and where a shift to the right
// may be meant, two. Comments are no tokens.
func shaderTokens(source string) (tokens []string, starts []int) {
	word := func(c byte) bool {
		return c == '_' || c >= 0x80 || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
	}
	for i := 0; i < len(source); {
		rest := source[i:]
		switch c := source[i]; {
		case strings.HasPrefix(rest, "//"):
			for i < len(source) && !lineBreak(source[i:]) {
				i++
			}
		case strings.HasPrefix(rest, "/*"):
			depth := 0
			for i < len(source) {
				if strings.HasPrefix(source[i:], "/*") {
					depth++
					i += 2
				} else if strings.HasPrefix(source[i:], "*/") {
					depth--
					i += 2
				} else {
					i++
				}
				if depth == 0 {
					break
				}
			}
		case c <= ' ' || lineBreak(rest):
			i++
			if c == 0xC2 { // next line
				i++
			} else if c == 0xE2 { // line and paragraph separators
				i += 2
			}
		case word(c):
			n := i
			for i < len(source) && (word(source[i]) || source[i] == '.' && '0' <= c && c <= '9') && !lineBreak(source[i:]) {
				i++
			}
			tokens, starts = append(tokens, source[n:i]), append(starts, n)
		case strings.HasPrefix(rest, "<<"):
			tokens, starts = append(tokens, "<<"), append(starts, i)
			i += 2
		default:
			tokens, starts = append(tokens, source[i:i+1]), append(starts, i)
			i++
		}
	}
	return tokens, starts
}

// lineBreak reports whether a text begins with what ends a comment of one line.
func lineBreak(s string) bool {
	return s[0] >= '\n' && s[0] <= '\r' || strings.HasPrefix(s, "\u0085") || strings.HasPrefix(s, "\u2028") || strings.HasPrefix(s, "\u2029")
}

// token returns a token, or "" beyond the end.
func (s *shaderText) token(i int) string {
	if i < 0 || i >= len(s.tokens) {
		return ""
	}
	return s.tokens[i]
}

// workgroupMemory returns the bytes of all variables in workgroup memory, each rounded up to 16 as WebGPU counts them.
func (s *shaderText) workgroupMemory() (bytes uint64, err error) {
	for _, v := range s.shared {
		t, _, err := s.typeAt(v.at)
		if err != nil {
			return 0, fmt.Errorf("workgroup variable %s: %w", v.name, err)
		}
		bytes += roundUp(t.size, 16)
		if bytes > maxWord {
			return bytes, nil
		}
	}
	return bytes, nil
}

// bindingSizes returns the least bytes of what is bound to each number: those of the variable's type, with one element for an array
// without a length.
func (s *shaderText) bindingSizes() map[int]uint64 {
	s.runtime = true
	defer func() { s.runtime = false }()
	sizes := map[int]uint64{}
	for _, v := range s.bound {
		n, _, err := s.expression(v.binding, 0, false)
		if err != nil || v.binding == 0 {
			continue
		}
		t, _, err := s.typeAt(v.at)
		if err != nil {
			continue // then the compiler or the driver says what is wrong
		}
		if other, twice := sizes[int(n)]; !twice || t.size < other { // other entry points may have other variables
			sizes[int(n)] = t.size
		}
	}
	return sizes
}

// maxInlined is how many tokens a function may have after each call in it is replaced by the called function, as drivers do: those of a
// chain of functions that call the next one twice are exponential in its length.
const maxInlined = 1 << 20

// checkCalls refuses a text that is too large when its calls are inlined.
func (s *shaderText) checkCalls() error {
	const unknown, open = -1, -2
	sizes, bodies := map[string]int{}, map[string][2]int{}
	for _, b := range s.bodies {
		sizes[s.token(b[0]+1)], bodies[s.token(b[0]+1)] = unknown, b
	}
	var size func(name string) int
	size = func(name string) int {
		if n := sizes[name]; n != unknown {
			return max(n, 0) // recursion, which the compiler refuses, counts nothing
		}
		sizes[name] = open
		b := bodies[name]
		n := b[1] - b[0]
		for i := b[0] + 2; i < b[1] && n <= maxInlined; i++ {
			if _, function := bodies[s.tokens[i]]; function && s.token(i+1) == "(" {
				n += size(s.tokens[i])
			}
		}
		sizes[name] = n
		return n
	}
	for name := range bodies {
		if size(name) > maxInlined {
			return fmt.Errorf("function %s, with the functions that it calls in place of each call, has more than %d tokens: %w", name, maxInlined,
				compute.ErrTooLarge)
		}
	}
	return nil
}

// workgroups returns the sizes of workgroups of the text's entry points.
func (s *shaderText) workgroups() (sizes [][3]uint64, err error) {
	for _, at := range s.sizes {
		size := [3]uint64{1, 1, 1}
		for i := range size {
			n, end, err := s.expression(at, 0, false)
			if err != nil || n < 0 {
				return nil, fmt.Errorf("@workgroup_size: %w", unknown(s.token(at)))
			}
			size[i], at = uint64(n), end
			if s.token(at) == "," {
				at++
			}
			if s.token(at) == ")" {
				break
			}
		}
		sizes = append(sizes, size)
	}
	return sizes, nil
}

// unknown is the error for what the text has in place of a number or a type.
func unknown(what string) error {
	return fmt.Errorf("%q is no size that can be computed before compiling; write sizes as integers, constants and overrides with values, "+
		"joined by + - * / %% << >> & | ^: %w", what, compute.ErrUnsupported)
}

// layout is the size and alignment of a type in bytes.
type layout struct{ size, align uint64 }

func roundUp(n, to uint64) uint64 { return (n + to - 1) / to * to }

// visit counts a step of the evaluation.
func (s *shaderText) visit(at int) error {
	if s.visited++; s.visited > maxVisited+visitedPerToken*len(s.tokens) {
		return unknown(s.token(at))
	}
	return nil
}

// enter marks a name as being evaluated; leave ends that.
func (s *shaderText) enter(name string, kinds ...string) (d declaration, leave func(), ok bool) {
	d, ok = s.names[name]
	if !ok || d.open || !contains(kinds, d.kind) {
		return d, nil, false
	}
	open := d
	open.open = true
	s.names[name] = open
	return d, func() { s.names[name] = d }, true
}

func contains(list []string, x string) bool {
	for _, y := range list {
		if x == y {
			return true
		}
	}
	return false
}

var scalarTypes = map[string]layout{"i32": {4, 4}, "u32": {4, 4}, "f32": {4, 4}, "bool": {4, 4}, "f16": {2, 2}}

// typeAt returns the layout of the type at a token, and where it ends.
func (s *shaderText) typeAt(at int) (t layout, end int, err error) {
	name := s.token(at)
	if err := s.visit(at); err != nil {
		return t, at, err
	}
	if _, declared := s.names[name]; declared {
		d, leave, ok := s.enter(name, "alias", "struct")
		if !ok {
			return t, at, unknown(name)
		}
		defer leave()
		if d.kind == "alias" {
			t, _, err = s.typeAt(d.at)
		} else {
			t, err = s.structAt(d.at)
		}
		return t, at + 1, err
	}
	if t, ok := scalarTypes[name]; ok {
		return t, at + 1, nil
	}
	columns, rows, suffix := shapeOf(name)
	element, end := layout{}, at+1
	switch {
	case rows > 0 && suffix != "":
		element = scalarTypes[map[string]string{"f": "f32", "i": "i32", "u": "u32", "h": "f16"}[suffix]]
	case rows > 0 || name == "atomic" || name == "array":
		if s.token(end) != "<" {
			return t, at, unknown(name)
		}
		if element, end, err = s.typeAt(end + 1); err != nil {
			return t, at, err
		}
	}
	if element.align == 0 {
		return t, at, unknown(name)
	}
	length := int64(1)
	if name == "array" {
		if s.token(end) == "," {
			length, end, err = s.expression(end+1, 0, true)
		} else if !s.runtime {
			err = unknown(name)
		}
		if err != nil {
			return t, at, err
		}
		if length < 1 || length > maxWord {
			return t, at, unknown(strconv.FormatInt(length, 10))
		}
	}
	if suffix == "" {
		if s.token(end) == "," {
			end++
		}
		if s.token(end) != ">" {
			return t, at, unknown(s.token(end))
		}
		end++
	}
	switch {
	case rows > 0:
		step := uint64(rows)
		if rows == 3 {
			step = 4
		}
		t = layout{uint64(rows) * element.size, step * element.size}
		if columns > 0 {
			t.size = uint64(columns) * step * element.size
		}
	case name == "array":
		stride := roundUp(element.size, element.align)
		t = layout{maxWord + 1, element.align} // beyond every limit
		if stride <= maxWord/uint64(length) {
			t.size = stride * uint64(length)
		}
	default:
		t = element
	}
	return t, end, nil
}

// shapeOf returns what the names of vectors and matrices say. Columns are 0 for vectors, rows 0 for other names.
func shapeOf(name string) (columns, rows int, suffix string) {
	digit := func(i int) int {
		if i < len(name) && name[i] >= '2' && name[i] <= '4' {
			return int(name[i] - '0')
		}
		return 0
	}
	switch {
	case strings.HasPrefix(name, "vec") && digit(3) > 0:
		rows, suffix = digit(3), name[4:]
	case strings.HasPrefix(name, "mat") && digit(3) > 0 && len(name) >= 6 && name[4] == 'x' && digit(5) > 0:
		columns, rows, suffix = digit(3), digit(5), name[6:]
	}
	if suffix != "" && !contains([]string{"f", "i", "u", "h"}, suffix) {
		return 0, 0, ""
	}
	return columns, rows, suffix
}

// structAt returns the layout of the members from a token on.
func (s *shaderText) structAt(at int) (t layout, err error) {
	t.align = 1
	for s.token(at) != "}" {
		var size, align int64
		for s.token(at) == "@" {
			name := s.token(at + 1)
			at += 2
			if s.token(at) != "(" {
				continue
			}
			first := at + 1
			at = s.closing(at, "(", ")") + 1
			if name != "size" && name != "align" {
				continue
			}
			n, _, err := s.expression(first, 0, false)
			if err != nil || n < 1 || n > maxWord {
				return t, unknown(s.token(first))
			}
			if name == "size" {
				size = n
			} else {
				align = n
			}
		}
		if s.token(at+1) != ":" {
			return t, unknown(s.token(at))
		}
		member, end, err := s.typeAt(at + 2)
		if err != nil {
			return t, err
		}
		member.size, member.align = max(member.size, uint64(size)), max(member.align, uint64(align))
		t.align = max(t.align, member.align)
		if t.size = roundUp(t.size, member.align) + member.size; t.size > maxWord {
			t.size = maxWord + 1
		}
		if at = end; s.token(at) == "," {
			at++
		}
	}
	t.size = roundUp(t.size, t.align)
	return t, nil
}

// ranks are the binary operators by how tightly they bind.
var ranks = map[string]int{"|": 1, "^": 2, "&": 3, "<<": 4, ">": 4, "+": 5, "-": 5, "*": 6, "/": 6, "%": 6}

// expression returns the value of a constant expression of integers, up to an operator that binds less tightly than least, and where it
// ends. In a template, > ends it.
func (s *shaderText) expression(at, least int, template bool) (x int64, end int, err error) {
	if x, at, err = s.operand(at); err != nil {
		return 0, at, err
	}
	for {
		op := s.token(at)
		rank, ok := ranks[op]
		if !ok || rank <= least || op == ">" && template {
			return x, at, nil
		}
		next := at + 1
		if op == ">" {
			if s.token(next) != ">" {
				return x, at, unknown(op)
			}
			next++
		}
		y, end, err := s.expression(next, rank, template)
		if err != nil {
			return 0, at, err
		}
		if x, ok = apply(op, x, y); !ok || x > maxWord || x < -maxWord {
			return 0, at, unknown(op)
		}
		at = end
	}
}

// operand is a number, a name, a conversion, or an expression in parentheses, with its sign.
func (s *shaderText) operand(at int) (x int64, end int, err error) {
	if err := s.visit(at); err != nil {
		return 0, at, err
	}
	name := s.token(at)
	switch _, declared := s.names[name]; {
	case name == "-":
		x, end, err = s.operand(at + 1)
		return -x, end, err
	case name == "(" || (name == "u32" || name == "i32") && !declared && s.token(at+1) == "(":
		if name != "(" {
			at++
		}
		if x, end, err = s.expression(at+1, 0, false); err == nil && s.token(end) != ")" {
			err = unknown(s.token(end))
		}
		return x, end + 1, err
	case declared:
		d, leave, ok := s.enter(name, "const", "override")
		if !ok || s.token(at+1) == "(" || s.token(at+1) == "." || s.token(at+1) == "[" {
			if ok {
				leave()
			}
			return 0, at, unknown(name)
		}
		defer leave()
		if x, end, err = s.expression(d.at, 0, false); err == nil && s.token(end) != ";" {
			err = unknown(s.token(end))
		}
		return x, at + 1, err
	}
	n, parsed := strconv.ParseInt(strings.TrimRight(name, "iu"), 0, 64)
	octal := len(name) > 1 && name[0] == '0' && strings.ContainsAny(name[1:2], "0123456789bBoO")
	if parsed != nil || n > maxWord || octal || strings.Contains(name, "_") {
		return 0, at, unknown(name)
	}
	return n, at + 1, nil
}

// apply computes x op y; false where the result may depend on the type of the operands, or there is none.
func apply(op string, x, y int64) (int64, bool) {
	switch op {
	case "+":
		return x + y, true
	case "-":
		return x - y, true
	case "*":
		if x > maxWord/2 && y > maxWord/2 { // the product of two such does not fit
			return 0, false
		}
		return x * y, true
	}
	if x < 0 || y < 0 {
		return 0, false
	}
	switch op {
	case "/":
		return x / max(y, 1), y > 0
	case "%":
		return x % max(y, 1), y > 0
	case "<<":
		return x << min(y, 31), y < 32 && x<<min(y, 31) <= maxWord
	case ">":
		return x >> min(y, 63), y < 32
	case "&":
		return x & y, true
	case "|":
		return x | y, true
	}
	return x ^ y, true
}
