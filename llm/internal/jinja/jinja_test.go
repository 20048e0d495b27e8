package jinja

import (
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What Jinja makes of templates; testdata/golden.py writes it.
//
//go:embed testdata/golden.json
var goldenJSON []byte

var templates = flag.String("templates", "", "`file` of testdata/golden.py with templates of models and what Jinja makes of them")

type golden struct {
	Name      string
	Template  string
	Variables json.RawMessage
	Text      *string // nil for an error
}

func variables(t testing.TB, raw json.RawMessage) map[string]any {
	v, err := Decode(raw)
	require.NoError(t, err)
	out := map[string]any{}
	for i, k := range v.(*Dict).keys {
		out[k.(string)] = v.(*Dict).values[i]
	}
	return out
}

func render(template string, variables map[string]any) (string, error) {
	t, err := Parse(template)
	if err != nil {
		return "", err
	}
	return t.Render(variables)
}

func TestGolden(t *testing.T) {
	var cases []golden
	require.NoError(t, json.Unmarshal(goldenJSON, &cases))
	require.NotEmpty(t, cases)
	for _, c := range cases {
		got, err := render(c.Template, variables(t, c.Variables))
		if c.Text == nil {
			require.ErrorAs(t, err, new(*Error), "%s: %q", c.Template, got)
			continue
		}
		require.NoError(t, err, c.Template)
		require.Equal(t, *c.Text, got, c.Template)
	}
}

// others are what this package makes otherwise, by intention.
var others = map[string]string{
	"llama-cpp-deepseek-r1.jinja tools":           "a list from map is written as JSON, which Jinja cannot",
	"llama-cpp-deepseek-r1.jinja call":            "the same",
	"meetkai-functionary-medium-v3.1.jinja tools": "safe does not escape what is added to a text",
	"meetkai-functionary-medium-v3.1.jinja call":  "the same",
}

// TestModels renders the templates of models, where the flag says where they are. Errors are compared too.
func TestModels(t *testing.T) {
	if *templates == "" {
		return
	}
	data, err := os.ReadFile(*templates)
	require.NoError(t, err)
	var cases []golden
	require.NoError(t, json.Unmarshal(data, &cases))
	failed := 0
	for _, c := range cases {
		v := variables(t, c.Variables)
		v["strftime_now"] = &function{"strftime_now", func(_ *renderer, a *arguments) value { a.rest = nil; return "NOW" }}
		got, err := render(c.Template, v)
		switch {
		case others[c.Name] != "":
			require.NoError(t, err, c.Name)
			continue
		case c.Text == nil && err == nil:
			t.Errorf("%s: no error, and %q", c.Name, got)
		case c.Text != nil && err != nil:
			t.Errorf("%s: %v", c.Name, err)
		case c.Text != nil && *c.Text != got:
			t.Errorf("%s:\n%q\nwant\n%q", c.Name, got, *c.Text)
		default:
			continue
		}
		failed++
	}
	t.Logf("%d of %d as Jinja has them", len(cases)-failed, len(cases))
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		template, says string
		line           int
	}{
		{"a\n\n{{ s|toaster }}", `filter "toaster"`, 3},
		{"{{ s is toaster }}", `test "toaster"`, 1},
		{"\n{% toaster %}", `tag "toaster"`, 2},
		{"\n\n{{ toaster(1) }}", `function "toaster"`, 3},
		{"{{ ''|map('toaster') }}{{ 'x'|map('toaster') }}", `filter "toaster"`, 1},
		{"{{ [].append(1) }}", `method "append"`, 1},
		{"{% for x in y recursive %}{% endfor %}", "recursive", 1},
		{"{{ f(*x) }}", "* before an argument", 1},
		{"{{ 'x'|tojson(toaster=1) }}", `"toaster" of tojson`, 1},
		{"{{ strftime_now('%Q') }}", "%Q", 1},
		{"{{ '{:>3}'.format(1) }}", "{:>3}", 1},
	} {
		_, err := render(c.template, nil)
		var e *Error
		require.ErrorAs(t, err, &e, c.template)
		require.ErrorContains(t, err, c.says)
		require.Equal(t, c.line, e.Line, c.template)
	}
	_, err := render("{{ raise_exception('no ' ~ 1) }}", nil)
	require.EqualError(t, err, "no 1")
	_, err = render("", map[string]any{"x": make(chan int)})
	require.ErrorContains(t, err, `"x"`)
	require.False(t, errors.As(err, new(*Error)))
}

// TestLimits has templates that would take for ever, or all memory.
func TestLimits(t *testing.T) {
	deep := strings.Repeat
	for _, c := range []string{
		"{% for a in range(1000000) %}{% for b in range(1000000) %}{% endfor %}{% endfor %}",
		"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
		"{% macro f(n) %}{{ f(n + 1) }}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}",
		"{{ 'a' * 1000000000000 }}",
		"{{ 'abc'.replace('', 'x' * 10000000) }}",
		"{{ range(1000000000000)|length }}",
		"{% set ns = namespace(s='x') %}{% for i in range(100) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}{{ ns.s }}",
		"{% set ns = namespace(s=[1]) %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
		"{% set ns = namespace(s=[1]) %}{% for i in range(100000) %}{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s }}",
		"{% set ns = namespace(s=[1]) %}{% for i in range(60) %}{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s|tojson }}",
		"{% set ns = namespace(s=[1]) %}{% for i in range(60) %}{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s == ns.s|list }}",
		"{% set s = 'ab' * 10000000 %}{% for i in range(1000000) %}{{ 'ba ' in s }}{% endfor %}",
		"{{ 9223372036854775807 + 1 }}", "{{ -9223372036854775807 - 2 }}", "{{ 9223372036854775807 * 2 }}", "{{ 3 ** 100 }}", "{{ 99999999999999999999 }}",
		"{{ " + deep("(", 100000) + " }}", "{{ " + deep("[", 100000) + " }}", "{{ " + deep("not ", 100000) + "1 }}", "{{ " + deep("-", 100000) + "1 }}",
		"{{ 1" + deep(" + 1", 100000) + " }}", "{{ x" + deep(".y", 100000) + " }}", "{{ 1" + deep("|abs", 100000) + " }}", "{{ " + deep("1 if 1 else ", 100000) + "1 }}",
		deep("{% if 1 %}", 100000), deep("{% for i in [1] %}", 1000), "{% if 0 %}" + deep("{% elif 0 %}", 50000) + "{% endif %}",
		deep(" ", 1<<20+1),
	} {
		_, err := render(c, nil)
		require.ErrorAs(t, err, new(*Error), "%.80s", c)
	}
	v := any("x")
	for range 1000 {
		v = []any{v}
	}
	_, err := render("{{ v }}", map[string]any{"v": v})
	require.ErrorContains(t, err, "nested")
}

func TestVariables(t *testing.T) {
	type name string
	got, err := render("{{ a }} {{ b }} {{ c }} {{ d }} {{ e.y }} {{ f|tojson }}", map[string]any{"a": uint8(3), "b": float32(0.5), "c": name("n"),
		"d": []string{"x", "y"}, "e": map[string]any{"y": 1}, "f": NewDict("z", 1, "a", []int{2})})
	require.NoError(t, err)
	require.Equal(t, `3 0.5 n ['x', 'y'] 1 {"z": 1, "a": [2]}`, got)
}

func TestDates(t *testing.T) {
	template, err := Parse("{{ strftime_now('%d %b %Y, %-d.%-m. %H:%M:%S %% %A %B %j') }}")
	require.NoError(t, err)
	_, err = template.Render(nil)
	require.NoError(t, err)
	r := &renderer{now: func() time.Time { return time.Date(2024, 3, 5, 7, 8, 9, 0, time.UTC) }}
	require.Equal(t, "05 Mar 2024, 5.3. 07:08:09 % Tuesday March 065", r.strftime("%d %b %Y, %-d.%-m. %H:%M:%S %% %A %B %j"))
}

// FuzzRender has any template: there is a text or an error, and no panic.
func FuzzRender(f *testing.F) {
	var cases []golden
	require.NoError(f, json.Unmarshal(goldenJSON, &cases))
	for _, c := range cases {
		f.Add(c.Template)
	}
	v := map[string]any{"messages": []any{NewDict("role", "user", "content", "Hi")}, "n": 7, "s": "text", "l": []any{1, 2}, "d": NewDict("a", 1), "none": nil}
	f.Fuzz(func(t *testing.T, template string) {
		if _, err := render(template, v); err != nil {
			require.ErrorAs(t, err, new(*Error))
		}
	})
}
