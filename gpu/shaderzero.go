package gpu

import (
	"fmt"
	"slices"
	"strings"

	"github.com/wavelane/wavelane/compute"
)

// zeroed returns a text whose entry point begins by setting the workgroup variables that it may use to zero, as WGSL says they are and
// wgpu-native does not do. The text is the same where there are none, and where the entry point is not found, which the compiler will say.
// What is inserted begins no line, so that lines keep their numbers.
func (s *shaderText) zeroed(source, entry string) (string, error) {
	from, body := s.entry(entry)
	if from < 0 {
		return source, nil
	}
	used := s.reached(entry)
	shared := slices.DeleteFunc(slices.Clone(s.shared), func(v declared) bool { return !used[v.name] })
	if len(shared) == 0 {
		return source, nil
	}
	threads := uint64(1)
	sizes, err := s.workgroups()
	if err != nil {
		return "", err
	}
	for i, at := range s.sizes { // that of the entry point is the last one before it
		if at < from {
			threads = max(sizes[i][0]*sizes[i][1]*sizes[i][2], 1)
		}
	}
	z := &zeroing{s: s, lane: s.unused("lane")}
	clear := s.unused("set_to_zero")
	fmt.Fprintf(&z.text, "\nfn %s(%s: u32) {\n", clear, z.lane)
	for _, v := range shared {
		if err := z.shared(v, threads); err != nil {
			return "", fmt.Errorf("workgroup variable %s: %w", v.name, err)
		}
	}
	z.text.WriteString("workgroupBarrier();\n}\n")

	lane, parameters := s.lane(from+2), ""
	if lane == "" {
		lane = z.lane
		parameters = "@builtin(local_invocation_index) " + lane + ": u32"
		if s.token(from+3) != ")" {
			parameters += ", "
		}
	}
	open, begin := s.starts[from+2]+1, s.starts[body]+1
	return source[:open] + parameters + source[open:begin] + clear + "(" + lane + ");" + source[begin:] + z.text.String(), nil
}

// entry returns where an entry point begins, at "fn", and where its body does; −1 if there is none.
func (s *shaderText) entry(name string) (from, body int) {
	for _, b := range s.bodies {
		at := b[0]
		for s.token(at) != "{" && at < len(s.tokens) {
			at++
		}
		if s.token(b[0]+1) == name && s.token(b[0]+2) == "(" && at < len(s.tokens) {
			return b[0], at
		}
	}
	return -1, 0
}

// reached returns the names that occur in a function and in those that it calls.
func (s *shaderText) reached(function string) map[string]bool {
	seen := map[string]bool{}
	for open := []string{function}; len(open) > 0; {
		name := open[0]
		open = open[1:]
		for _, b := range s.bodies {
			if s.token(b[0]+1) != name {
				continue
			}
			for i := b[0] + 2; i < b[1]; i++ {
				if t := s.tokens[i]; !seen[t] {
					seen[t] = true
					open = append(open, t)
				}
			}
		}
	}
	return seen
}

// unused returns a name that does not occur in the text.
func (s *shaderText) unused(name string) string {
	for slices.Contains(s.tokens, name) {
		name += "_"
	}
	return name
}

// lane returns what gives a thread's number in the entry point whose parameters begin at a token, "" if nothing does.
func (s *shaderText) lane(at int) string {
	const number = "local_invocation_index"
	name := ""
	s.members(at+1, s.closing(at, "(", ")"), func(parameter, builtin string, at int) {
		if builtin == number {
			name = parameter
		}
		if members, ok := s.structOf(at); ok {
			s.members(members, s.closing(members-1, "{", "}"), func(member, builtin string, _ int) {
				if builtin == number {
					name = parameter + "." + member
				}
			})
		}
	})
	return name
}

// members calls do for each parameter or member between two tokens, with its builtin or "", and with where its type begins.
func (s *shaderText) members(at, end int, do func(name, builtin string, at int)) {
	builtin := ""
	for at < end {
		switch {
		case s.token(at) == "@":
			if s.token(at+1) == "builtin" {
				builtin = s.token(at + 3)
			}
			if at += 2; s.token(at) == "(" {
				at = s.closing(at, "(", ")") + 1
			}
		case s.token(at+1) == ":":
			do(s.token(at), builtin, at+2)
			builtin = ""
			depth := 0
			for at += 2; at < end && (depth > 0 || s.tokens[at] != ","); at++ {
				switch s.tokens[at] {
				case "<", "(":
					depth++
				case ">", ")":
					depth--
				}
			}
			at++
		default:
			at++
		}
	}
}

// resolve returns where the type begins that the type at a token is an alias of, if it is one.
func (s *shaderText) resolve(at int) int {
	for range len(s.names) {
		d, ok := s.names[s.token(at)]
		if !ok || d.kind != "alias" {
			break
		}
		at = d.at
	}
	return at
}

// structOf returns where the members of a struct begin, if the type at a token is one.
func (s *shaderText) structOf(at int) (members int, ok bool) {
	d, ok := s.names[s.token(s.resolve(at))]
	return d.at, ok && d.kind == "struct"
}

// elements returns where the type of an array's elements begins, and their number, if the type at a token is an array.
func (s *shaderText) elements(at int) (element int, length uint64, ok bool, err error) {
	at = s.resolve(at)
	if _, declared := s.names["array"]; declared || s.token(at) != "array" {
		return 0, 0, false, nil
	}
	_, end, err := s.typeAt(at + 2)
	if err != nil {
		return 0, 0, false, err
	}
	n, _, err := s.expression(end+1, 0, true)
	return at + 2, uint64(n), true, err
}

// zeroing writes statements that set variables to zero, at most maxZeroing of them.
type zeroing struct {
	s                 *shaderText
	lane              string // the thread's number
	loops, statements int
	text              strings.Builder
}

const maxZeroing = 1000

// shared has the threads of a workgroup share in a variable's elements.
func (z *zeroing) shared(v declared, threads uint64) error {
	var lengths []uint64
	at, count := v.at, uint64(1)
	for {
		element, length, ok, err := z.s.elements(at)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		lengths = append(lengths, length)
		count *= length
		at = element
	}
	index := z.index()
	fmt.Fprintf(&z.text, "for (var %[1]s = %[2]s; %[1]s < %[3]du; %[1]s += %[4]du) {\n", index, z.lane, count, threads)
	place, step := v.name, count
	for i, n := range lengths {
		step /= n
		if i == 0 {
			place += fmt.Sprintf("[%s / %du]", index, step)
		} else {
			place += fmt.Sprintf("[%s / %du %% %du]", index, step, n)
		}
	}
	if err := z.value(place, at); err != nil {
		return err
	}
	z.text.WriteString("}\n")
	return nil
}

// index returns the name of another loop's variable.
func (z *zeroing) index() string {
	z.loops++
	return z.s.unused(fmt.Sprintf("index%d", z.loops))
}

// value sets what is at a place, of the type at a token, to zero.
func (z *zeroing) value(place string, at int) error {
	if z.statements++; z.statements > maxZeroing {
		return fmt.Errorf("more than %d members to set to zero: %w", maxZeroing, compute.ErrTooLarge)
	}
	element, length, ok, err := z.s.elements(at)
	if err != nil {
		return err
	}
	if ok {
		index := z.index()
		fmt.Fprintf(&z.text, "for (var %[1]s = 0u; %[1]s < %[2]du; %[1]s++) {\n", index, length)
		if err := z.value(place+"["+index+"]", element); err != nil {
			return err
		}
		z.text.WriteString("}\n")
		return nil
	}
	if members, ok := z.s.structOf(at); ok {
		z.s.members(members, z.s.closing(members-1, "{", "}"), func(member, _ string, at int) {
			if err == nil {
				err = z.value(place+"."+member, at)
			}
		})
		return err
	}
	at = z.s.resolve(at)
	switch name, parameter := z.s.token(at), z.s.token(at+2); {
	case name == "atomic":
		fmt.Fprintf(&z.text, "atomicStore(&%s, %s());\n", place, parameter)
	case z.s.token(at+1) == "<": // of a vector or matrix
		fmt.Fprintf(&z.text, "%s = %s<%s>();\n", place, name, parameter)
	default:
		fmt.Fprintf(&z.text, "%s = %s();\n", place, name)
	}
	return nil
}
