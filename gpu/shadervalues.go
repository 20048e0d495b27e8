package gpu

import (
	"fmt"
	"maps"

	"github.com/wavelane/wavelane/compute"
)

// maxValue is how many bytes the private variables of a text, the variables of a function, and any other value may have: what WebGPU
// promises for variables. Drivers take minutes and gigabytes to compile what has a few times more.
const maxValue = 8192

func tooLarge(what string, bytes uint64) error {
	return fmt.Errorf("%s of %d bytes, the variables of a thread may have %d: %w", what, bytes, maxValue, compute.ErrTooLarge)
}

// checkValues refuses a text in which a thread holds too large a value: in a variable, or because it loads one as a whole from a buffer.
func (s *shaderText) checkValues() error {
	total := uint64(0)
	for _, v := range s.private {
		if s.token(v.at-1) == ":" {
			t, _, err := s.typeAt(v.at)
			if err != nil {
				return fmt.Errorf("private variable %s: %w", v.name, err)
			}
			if total += t.size; total > maxValue {
				return tooLarge("private variables", total)
			}
		}
		end := v.at
		for end < len(s.tokens) && s.tokens[end] != ";" {
			end++
		}
		if err := s.checkTypes(v.at, end); err != nil {
			return err
		}
	}
	for _, b := range s.bodies {
		if err := s.checkBody(b[0], b[1]); err != nil {
			return err
		}
	}
	return nil
}

// checkBody checks the function in the tokens from … end.
func (s *shaderText) checkBody(from, end int) error {
	global := maps.Clone(s.names)
	defer func() { s.names = global }()
	for i := from; i < end; i++ {
		if s.tokens[i] != "const" {
			continue
		}
		name, at := s.token(i+1), i+2
		for at < end && s.tokens[at] != "=" {
			at++
		}
		if _, twice := s.names[name]; twice { // which of them is meant depends on the scope
			at = len(s.tokens)
		}
		s.names[name] = declaration{kind: "const", at: at + 1}
	}
	if err := s.checkTypes(from, end); err != nil {
		return err
	}
	total := uint64(0)
	for i := from; i < end; i++ {
		if s.tokens[i] != "var" {
			continue
		}
		for i < end && s.tokens[i] != ":" && s.tokens[i] != "=" && s.tokens[i] != ";" {
			i++
		}
		if s.token(i) != ":" {
			continue
		}
		t, _, err := s.typeAt(i + 1)
		if err != nil {
			return err
		}
		if total += t.size; total > maxValue {
			return tooLarge(fmt.Sprintf("function %s: variables", s.token(from+1)), total)
		}
	}
	types := map[string]int{}
	for _, v := range s.bound {
		types[v.name] = v.at
	}
	for i := from; i < end; i++ {
		at, ok := types[s.tokens[i]]
		if !ok || s.token(i-1) == "." {
			continue
		}
		if err := s.visit(i); err != nil {
			return err
		}
		if t, _, err := s.typeAt(s.accessed(at, i+1)); err == nil && t.size > maxValue {
			return tooLarge(fmt.Sprintf("function %s: a value of %s", s.token(from+1), s.tokens[i]), t.size)
		} // else it has no size before it runs: nobody can load it
	}
	return nil
}

// checkTypes checks the types that the tokens from … end name, but not those that pointers point to.
func (s *shaderText) checkTypes(from, end int) error {
	for i := from; i < end; i++ {
		name := s.tokens[i]
		if name == "ptr" && s.token(i+1) == "<" {
			i = s.closing(i+1, "<", ">")
			continue
		}
		d, declared := s.names[name]
		if declared && d.kind != "alias" && d.kind != "struct" || !declared && (name != "array" || s.token(i+1) != "<") || s.token(i-1) == "." {
			continue
		}
		t, after, err := s.typeAt(i)
		if err != nil {
			return err
		}
		if t.size > maxValue {
			return tooLarge("a value", t.size)
		}
		i = after - 1
	}
	return nil
}

// accessed returns the type, as a token, of what members and elements a path selects of a value: the token at is the value's type, and
// the path begins at a token.
func (s *shaderText) accessed(at, path int) int {
	for s.visit(at) == nil {
		d, declared := s.names[s.token(at)]
		switch {
		case declared && d.kind == "alias":
			at = d.at
		case s.token(path) == "." && declared && d.kind == "struct":
			at, path = s.member(d.at, s.token(path+1)), path+2
		case s.token(path) == "[" && !declared && s.token(at) == "array":
			at, path = at+2, s.closing(path, "[", "]")+1
		default:
			return at
		}
	}
	return at
}

// member returns the type, as a token, of a member of a struct whose members begin at a token; beyond the text if it has none.
func (s *shaderText) member(at int, name string) int {
	for at < len(s.tokens) && s.tokens[at] != "}" {
		if s.token(at) == name && s.token(at+1) == ":" {
			return at + 2
		}
		switch s.tokens[at] {
		case "(":
			at = s.closing(at, "(", ")")
		case "<":
			at = s.closing(at, "<", ">")
		}
		at++
	}
	return len(s.tokens)
}
