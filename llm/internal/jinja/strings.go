package jinja

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// stringMethod is a method of Python's strings.
func stringMethod(s, name string) func(r *renderer, a *arguments) value {
	plain := func(f func(string) string) func(r *renderer, a *arguments) value {
		return func(r *renderer, _ *arguments) value { return r.made(f(s)) }
	}
	is := func(class func(rune) bool) func(r *renderer, a *arguments) value {
		return func(*renderer, *arguments) value {
			return s != "" && strings.IndexFunc(s, func(c rune) bool { return !class(c) }) < 0
		}
	}
	affix := func(has func(s, x string) bool) func(r *renderer, a *arguments) value {
		return func(r *renderer, a *arguments) value {
			x, _ := a.take("prefix")
			if l, ok := x.(*list); ok && l.tuple {
				for _, y := range l.items {
					if p, ok := y.(string); ok && has(s, p) {
						return true
					}
				}
				return false
			}
			p, ok := x.(string)
			if !ok {
				r.fail("%s of %s, must be a string", name, typeName(x))
			}
			return has(s, p)
		}
	}
	switch name {
	case "strip":
		return strip(s, true, true)
	case "lstrip":
		return strip(s, true, false)
	case "rstrip":
		return strip(s, false, true)
	case "upper":
		return plain(strings.ToUpper)
	case "lower":
		return plain(strings.ToLower)
	case "title":
		return plain(titled)
	case "capitalize":
		return plain(capitalized)
	case "startswith":
		return affix(strings.HasPrefix)
	case "endswith":
		return affix(strings.HasSuffix)
	case "isdigit":
		return is(unicode.IsDigit)
	case "isalpha":
		return is(unicode.IsLetter)
	case "isspace":
		return is(unicode.IsSpace)
	case "isalnum":
		return is(func(c rune) bool { return unicode.IsLetter(c) || unicode.IsNumber(c) })
	case "removeprefix":
		return func(r *renderer, a *arguments) value { return strings.TrimPrefix(s, a.must(r, "prefix")) }
	case "removesuffix":
		return func(r *renderer, a *arguments) value { return strings.TrimSuffix(s, a.must(r, "suffix")) }
	case "split":
		return func(r *renderer, a *arguments) value { return split(r, s, a, false) }
	case "rsplit":
		return func(r *renderer, a *arguments) value { return split(r, s, a, true) }
	case "splitlines":
		return func(r *renderer, a *arguments) value {
			keep, _ := a.take("keepends")
			out := &list{}
			for line := range strings.Lines(s) {
				if !truthy(keep) {
					line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
				}
				out.items = append(out.items, line)
			}
			r.spend(len(s) + len(out.items))
			return out
		}
	case "replace":
		return func(r *renderer, a *arguments) value {
			from, to := a.must(r, "old"), a.must(r, "new")
			return r.replaced(s, from, to, a.int(r, "count", -1))
		}
	case "find", "rfind", "index":
		return func(r *renderer, a *arguments) value {
			x := a.must(r, "sub")
			i := strings.Index(s, x)
			if name == "rfind" {
				i = strings.LastIndex(s, x)
			}
			if i < 0 {
				if name == "index" {
					r.fail("a string does not have the part whose index is wanted")
				}
				return int64(-1)
			}
			return int64(utf8.RuneCountInString(s[:i]))
		}
	case "count":
		return func(r *renderer, a *arguments) value { return int64(strings.Count(s, a.must(r, "sub"))) }
	case "join":
		return func(r *renderer, a *arguments) value {
			x, _ := a.take("iterable")
			return r.joined(r.iterate(x), s, true)
		}
	case "format":
		return func(r *renderer, a *arguments) value { return formatted(r, s, a) }
	}
	return nil
}

func (r *renderer) replaced(s, from, to string, count int64) string {
	n := int64(strings.Count(s, from))
	if count >= 0 {
		n = min(n, count)
	}
	if grown := float64(n) * float64(len(to)); grown > maxMade {
		r.spend(maxMade + 1)
	}
	r.spend(len(s) + int(n)*len(to))
	return strings.Replace(s, from, to, int(n))
}

// joined is parts with a text between them. Python's join takes only texts, Jinja's filter all.
func (r *renderer) joined(parts []value, between string, only bool) string {
	var out strings.Builder
	for i, p := range parts {
		r.step()
		s, ok := p.(string)
		if only && !ok {
			r.fail("join of %s, must be strings", typeName(p))
		} else if !ok {
			s = r.str(p)
		}
		if i > 0 {
			out.WriteString(between)
			r.spend(len(between))
		}
		out.WriteString(s)
		r.spend(len(s))
	}
	return out.String()
}

func strip(s string, left, right bool) func(r *renderer, a *arguments) value {
	return func(r *renderer, a *arguments) value {
		chars, given := a.take("chars")
		in := unicode.IsSpace
		if given && chars != nil {
			set, ok := chars.(string)
			if !ok {
				r.fail("%s of %s, must be a string", a.name, typeName(chars))
			}
			in = func(c rune) bool { return strings.ContainsRune(set, c) }
		}
		out := s
		if left {
			out = strings.TrimLeftFunc(out, in)
		}
		if right {
			out = strings.TrimRightFunc(out, in)
		}
		return out
	}
}

// split cuts a text at a separator, or at white space, into at most so many parts and one.
func split(r *renderer, s string, a *arguments, fromRight bool) value {
	sep, given := a.take("sep")
	most := a.int(r, "maxsplit", -1)
	var parts []string
	switch x, ok := sep.(string); {
	case !given || sep == nil:
		parts = splitSpace(s, most, fromRight)
	case !ok || x == "":
		r.fail("split at %s, must be a string that is not empty", typeName(sep))
	case most < 0:
		parts = strings.Split(s, x)
	case !fromRight:
		parts = strings.SplitN(s, x, int(min(most, maxMade))+1)
	default:
		for rest := s; ; most-- {
			i := strings.LastIndex(rest, x)
			if i < 0 || most == 0 {
				parts = append([]string{rest}, parts...)
				break
			}
			parts = append([]string{rest[i+len(x):]}, parts...)
			rest = rest[:i]
			r.spendItems(len(parts))
		}
	}
	r.spend(len(s) + len(parts))
	out := &list{}
	for _, p := range parts {
		out.items = append(out.items, p)
	}
	return out
}

func splitSpace(s string, most int64, fromRight bool) []string {
	all := strings.Fields(s)
	if most < 0 || int64(len(all)) <= most {
		return all
	}
	rest := s
	var parts []string
	if fromRight {
		for _, f := range all[len(all)-int(most):] {
			parts = append(parts, f)
		}
		for range most {
			rest = strings.TrimRightFunc(rest, unicode.IsSpace)
			rest = strings.TrimRightFunc(rest, func(c rune) bool { return !unicode.IsSpace(c) })
		}
		if rest = strings.TrimRightFunc(rest, unicode.IsSpace); rest != "" {
			parts = append([]string{rest}, parts...)
		}
		return parts
	}
	for _, f := range all[:most] {
		rest = strings.TrimLeftFunc(rest, unicode.IsSpace)
		rest = rest[len(f):]
		parts = append(parts, f)
	}
	if rest = strings.TrimLeftFunc(rest, unicode.IsSpace); rest != "" {
		parts = append(parts, rest)
	}
	return parts
}

func capitalized(s string) string {
	if s == "" {
		return s
	}
	_, n := utf8.DecodeRuneInString(s)
	return strings.ToUpper(s[:n]) + strings.ToLower(s[n:])
}

func titled(s string) string {
	before := ' '
	return strings.Map(func(c rune) rune {
		was := before
		before = c
		if unicode.IsLetter(was) {
			return unicode.ToLower(c)
		}
		return unicode.ToTitle(c)
	}, s)
}

// formatted is Python's format with fields {}, {0} and {name}.
func formatted(r *renderer, s string, a *arguments) string {
	var out strings.Builder
	auto := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case (c == '{' || c == '}') && i+1 < len(s) && s[i+1] == c:
			out.WriteByte(c)
			i++
		case c == '}':
			r.fail("format of a string with a single }")
		case c == '{':
			n := strings.IndexByte(s[i:], '}')
			if n < 0 {
				r.fail("format of a string with a single {")
			}
			field := s[i+1 : i+n]
			i += n
			at, err := strconv.Atoi(field)
			if field == "" {
				at, err = auto, nil
				auto++
			}
			found := false
			if err == nil {
				if found = at >= 0 && at < len(a.rest); found {
					out.WriteString(r.made(r.str(a.rest[at])))
				}
			}
			for _, v := range a.named {
				if err != nil && v.name == field {
					found = true
					out.WriteString(r.made(r.str(v.v)))
				}
			}
			if !found {
				r.fail("field {%s} of format is not understood", field)
			}
		default:
			out.WriteByte(c)
		}
	}
	a.rest, a.named = nil, nil
	return r.made(out.String())
}

// titledWords is Jinja's title, whose words begin after white space and some brackets.
func titledWords(s string) string {
	begins := true
	return strings.Map(func(c rune) rune {
		first := begins
		if begins = unicode.IsSpace(c) || strings.ContainsRune("-({[<", c); first {
			return unicode.ToUpper(c)
		}
		return unicode.ToLower(c)
	}, s)
}

func escaped(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;").Replace(s)
}

// indent puts spaces, or a text, before all lines but the first, and before that too if asked. Lines without text stay so.
func indent(r *renderer, v value, a *arguments) value {
	s := r.str(v)
	by := "    "
	if w, ok := a.take("width"); ok {
		if n, ok := integer(w); ok {
			by = r.repeated(" ", n)
		} else if by, ok = w.(string); !ok {
			r.fail("indent by %s", typeName(w))
		}
	}
	first, _ := a.take("first")
	blank, _ := a.take("blank")
	lines := strings.Split(s, "\n")
	r.spend(len(s))
	for i, line := range lines {
		if (i > 0 || truthy(first)) && (line != "" || truthy(blank)) {
			r.spend(len(by))
			lines[i] = by + line
		}
	}
	return strings.Join(lines, "\n")
}
