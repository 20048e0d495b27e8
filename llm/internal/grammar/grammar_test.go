package grammar

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/testseed"
)

// letters is a vocabulary of single bytes, and of some that are several; the last token has none.
var letters = NewVocabulary(256+4, func(token int32) []byte {
	if token < 256 {
		return []byte{byte(token)}
	}
	return []byte([]string{`{"`, `true`, `, "`, ``}[token-256])
})

// follow reports whether a text is allowed, and whether a beginning of it is.
func follow(g *Grammar, text string) (whole, beginning bool) {
	m := NewMatcher(g, letters)
	for i := range len(text) {
		if may := m.Allows(int32(text[i])); may != m.Advance(int32(text[i])) {
			panic("Allows and Advance differ")
		} else if !may {
			return false, false
		}
	}
	return m.Complete(), true
}

func TestSchema(t *testing.T) {
	for _, c := range []struct {
		schema  string
		allowed []string
		refused []string
	}{
		{`true`, []string{`0`, `-12.5e+3`, `"a\nb\u00e4ä→😀"`, `null`, `[1, [], {}]`, `{"a": {"b": [true]}, "c":0}`, " 1", "\n  1"},
			[]string{``, `01`, `.5`, `"a`, "\"\n\"", "\"\xff\"", "\"\xc0\x80\"", "\"\xed\xa0\x80\"", `[1,]`, `{a: 1}`, `{"a": 1,}`, `nul`, `  1`, `1 `}},
		{`{"type": "integer"}`, []string{`0`, `-7`, `123456`}, []string{`1.5`, `"1"`, `1e3`}},
		{`{"type": ["string", "null"]}`, []string{`"x"`, `null`}, []string{`1`}},
		{`{"type": "string", "nullable": true, "maxLength": 2}`, []string{`"xy"`, `"→😀"`, `null`}, []string{`"xyz"`}},
		{`{"type": "string", "minLength": 2}`, []string{`"xy"`, `"xyz"`, `"\n\n"`}, []string{`"x"`, `""`}},
		{`{"enum": ["red", 2, null, {"b": 1, "a": [true]}]}`, []string{`"red"`, `2`, `null`, `{"b":1,"a":[true]}`}, []string{`"blue"`, `{}`}},
		{`{"const": "<a>"}`, []string{`"<a>"`}, []string{`"a"`}},
		{`{"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "boolean"}, "c": true}, "required": ["b"]}`,
			[]string{`{"a": 1, "b": true, "c": []}`, `{"b":false}`, `{"b": true, "c": 0}`, `{"a":1,"b":true}`, "{\n  \"b\": true\n}"},
			[]string{`{}`, `{"a": 1}`, `{"b": true, "a": 1}`, `{"b": true, "d": 1}`, `{"b": 1}`, `{"b": true,}`, `{, "b": true}`}},
		{`{"properties": {"a": true, "b": true}}`, []string{`{}`, `{"a": 1}`, `{"b": 1}`, `{"a": 1, "b": 2}`}, []string{`[]`, `{"b": 1, "a": 2}`, `{"c": 1}`}},
		{`{"type": "object"}`, []string{`{}`, `{"a": 1, "b": []}`}, []string{`[]`, `1`}},
		{`{"type": "object", "additionalProperties": {"type": "integer"}}`, []string{`{}`, `{"a": 1}`, `{"a": 1, "b": 2}`}, []string{`{"a": "b"}`, `{"a": 1,}`}},
		{`{"properties": {"a": true}, "required": ["a"], "additionalProperties": true}`, []string{`{"a": 1}`, `{"a": 1, "b": 2}`}, []string{`{"b": 2}`}},
		{`{"type": "object", "additionalProperties": false}`, []string{`{}`}, []string{`{"a": 1}`}},
		{`{"type": "array", "items": {"type": "integer"}}`, []string{`[]`, `[1]`, `[1, 2,3]`}, []string{`[1 2]`, `["a"]`, `[,1]`}},
		{`{"items": {"type": "integer"}, "minItems": 2, "maxItems": 3}`, []string{`[1,2]`, `[1,2,3]`}, []string{`[]`, `[1]`, `[1,2,3,4]`}},
		{`{"items": true, "maxItems": 0}`, []string{`[]`, `[ ]`}, []string{`[1]`}},
		{`{"items": true, "minItems": 1}`, []string{`[1]`, `[1,1,1]`}, []string{`[]`}},
		{`{"prefixItems": [{"const": 1}, {"const": 2}]}`, []string{`[]`, `[1]`, `[1,2]`, `[1,2,3]`}, []string{`[2]`, `[1,3]`}},
		{`{"prefixItems": [{"const": 1}, {"const": 2}], "items": false, "minItems": 1}`, []string{`[1]`, `[1,2]`}, []string{`[]`, `[1,2,3]`}},
		{`{"prefixItems": [{"const": 1}], "items": {"const": 2}, "minItems": 2, "maxItems": 3}`, []string{`[1,2]`, `[1,2,2]`}, []string{`[1]`, `[1,2,2,2]`}},
		{`{"anyOf": [{"type": "integer"}, {"type": "object", "properties": {"a": {"$ref": "#"}}}]}`, []string{`1`, `{}`, `{"a": {"a": 3}}`}, []string{`"a"`, `{"a": {"b": 3}}`}},
		{`{"$defs": {"list/x": {"type": ["object", "null"], "properties": {"next": {"$ref": "#/$defs/list~1x"}}, "required": ["next"]}}, "$ref": "#/$defs/list~1x"}`,
			[]string{`null`, `{"next": {"next": null}}`}, []string{`{}`, `{"next": 1}`}},
		{`{"oneOf": [{"const": "a"}, {"const": "ab"}], "description": "x"}`, []string{`"a"`, `"ab"`}, []string{`"abc"`}},
	} {
		g, err := Schema([]byte(c.schema))
		require.NoError(t, err, c.schema)
		for _, text := range c.allowed {
			whole, _ := follow(g, text)
			require.True(t, whole, "%s allows %s", c.schema, text)
		}
		for _, text := range c.refused {
			whole, _ := follow(g, text)
			require.False(t, whole, "%s refuses %s", c.schema, text)
		}
	}
}

func TestBadSchemas(t *testing.T) {
	for _, c := range []struct {
		schema string
		want   error
		says   string
	}{
		{``, compute.ErrArgument, "no JSON"},
		{`{`, compute.ErrArgument, "no JSON"},
		{`{} {}`, compute.ErrArgument, "no JSON"},
		{`{"type": "string", "type": "object"}`, compute.ErrArgument, "twice"},
		{strings.Repeat(`{"items":`, 100) + `true` + strings.Repeat(`}`, 100), compute.ErrArgument, "deeper"},
		{`1`, compute.ErrArgument, "must be an object"},
		{`{"type": "text"}`, compute.ErrArgument, "the type"},
		{`{"type": 1}`, compute.ErrArgument, "the type"},
		{`{"type": []}`, compute.ErrArgument, "the type"},
		{`{"properties": []}`, compute.ErrArgument, "properties"},
		{`{"properties": {"a": 7}}`, compute.ErrArgument, "#/properties/a"},
		{`{"properties": {"a": true}, "required": ["b"]}`, compute.ErrArgument, "required"},
		{`{"required": 1}`, compute.ErrArgument, "required"},
		{`{"enum": []}`, compute.ErrArgument, "enum"},
		{`{"anyOf": {}}`, compute.ErrArgument, "anyOf"},
		{`{"items": true, "minItems": -1}`, compute.ErrArgument, "minItems"},
		{`{"items": true, "minItems": 2, "maxItems": 1}`, compute.ErrArgument, "minItems"},
		{`{"prefixItems": [true], "items": false, "minItems": 2}`, compute.ErrArgument, "minItems"},
		{`{"prefixItems": {}}`, compute.ErrArgument, "prefixItems"},
		{`{"type": "string", "maxLength": 1000000}`, compute.ErrTooLarge, "symbols"},
		{`{"items": {"items": {"type": "string", "minLength": 400}, "minItems": 400}, "minItems": 400}`, compute.ErrTooLarge, "symbols"},
		{`{"$ref": "#"}`, compute.ErrArgument, "itself"},
		{`{"anyOf": [{"type": "null"}, {"$ref": "#/anyOf/1"}]}`, compute.ErrArgument, "itself"},
		{`{"$ref": "#/$defs/a"}`, compute.ErrArgument, "nowhere"},
		{`{"$ref": "https://example.com"}`, compute.ErrUnsupported, "$ref"},
		{`{"type": "string", "pattern": "a*"}`, compute.ErrUnsupported, `"pattern"`},
		{`{"properties": {"a": {"type": "integer", "minimum": 1}}}`, compute.ErrUnsupported, "#/properties/a"},
		{`{"const": 1, "enum": [1]}`, compute.ErrUnsupported, "several"},
	} {
		_, err := Schema([]byte(c.schema))
		require.ErrorIs(t, err, c.want, c.schema)
		require.ErrorContains(t, err, c.says, c.schema)
	}
}

// TestJSON compares what is read and written with package encoding/json.
func TestJSON(t *testing.T) {
	for _, text := range []string{`{"a": [1, -2.5e+3, 0, true, false, null, {}], "\"\\\/\b\f\n\r\t": "\u00e4\ud83d\ude00ä", "": "\ud800"}`, ` [ ] `, `"a"`,
		``, `{`, `[1,]`, `[,1]`, `[1 2]`, `{"a"}`, `{"a":}`, `{a:1}`, `{"a":1,}`, `01`, `-`, `1.`, `1e`, `.5`, `+1`, `tru`, `"\x"`, `"\u12"`, `"\u12g4"`, `"a`, "\"\n\"", `1 1`} {
		var want any
		err := json.Unmarshal([]byte(text), &want)
		x, failed := parse([]byte(text))
		require.Equal(t, err != nil, failed != nil, "%s: %v, %v", text, err, failed)
		if err != nil {
			continue
		}
		var got any
		require.NoError(t, json.Unmarshal(write(nil, x), &got), "%s", write(nil, x))
		require.Equal(t, want, got, text)
	}
	_, err := parse([]byte("\"\xff\""))
	require.ErrorIs(t, err, compute.ErrArgument)
}

// FuzzSchema looks for schemas that end the program, and for JSON that encoding/json reads otherwise.
func FuzzSchema(f *testing.F) {
	for _, text := range []string{`{"type": "object", "properties": {"a": {"$ref": "#"}}}`, `{"anyOf": [{"const": 1.5e3}, {"items": {"enum": ["\ud83d"]}}]}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		g, err := Schema(text)
		if err != nil {
			return
		}
		require.True(t, json.Valid(text), "%q", text)
		m := NewMatcher(g, letters)
		for range 20 {
			for token := range int32(128) {
				if m.Allows(token) {
					m.Advance(token)
					break
				}
			}
		}
	})
}

// TestWalks writes texts of tokens at random: all are JSON, and what the schema says.
func TestWalks(t *testing.T) {
	random := rand.New(rand.NewPCG(testseed.Of(t), 0))
	g, err := Schema([]byte(`{"type": "object", "properties": {"name": {"type": "string", "maxLength": 8}, "sizes": {"items": {"type": "number"}, "minItems": 1,
		"maxItems": 4}, "kind": {"enum": ["a", "b"]}, "more": {"type": "boolean"}}, "required": ["name", "sizes", "kind"]}`))
	require.NoError(t, err)
	for range 20 {
		m := NewMatcher(g, letters)
		text := ""
		for !m.Ended() {
			var may []int32
			for token := range int32(len(letters.bytes)) {
				if m.Allows(token) {
					may = append(may, token)
				}
			}
			require.NotEmpty(t, may, text)
			token := may[random.IntN(len(may))]
			require.True(t, m.Advance(token))
			text += string(letters.bytes[token])
		}
		var x struct {
			Name  *string
			Sizes []json.Number
			Kind  string
			More  *bool
		}
		d := json.NewDecoder(strings.NewReader(text))
		d.DisallowUnknownFields()
		require.NoError(t, d.Decode(&x), "%q", text)
		require.NotNil(t, x.Name)
		require.LessOrEqual(t, len([]rune(*x.Name)), 8)
		require.True(t, len(x.Sizes) >= 1 && len(x.Sizes) <= 4, text)
		require.Contains(t, []string{"a", "b"}, x.Kind)
		require.False(t, m.Advance(int32('x')))
		require.False(t, m.Advance(259), "a token without a text")
	}
}

// TestManyStates follows a text whose states are more than are kept.
// TestSave goes on in two ways from one place, many times.
func TestSave(t *testing.T) {
	g, err := Schema([]byte(`true`))
	require.NoError(t, err)
	m := NewMatcher(g, letters)
	for _, b := range []byte("[[1, ") {
		restore := m.Save()
		for range 2 * mostStates { // so many that states are forgotten, where there are so many
			if m.Allows('[') {
				require.True(t, m.Advance('['))
			}
		}
		restore()
		require.True(t, m.Advance(int32(b)), "%c", b)
	}
	require.False(t, m.Allows(']'))
	for _, b := range []byte("2]]") {
		require.True(t, m.Advance(int32(b)), "%c", b)
	}
	require.True(t, m.Complete())
}

func TestManyStates(t *testing.T) {
	g, err := Schema([]byte(`true`))
	require.NoError(t, err)
	m := NewMatcher(g, letters)
	deep := mostStates
	for _, part := range []string{strings.Repeat("[", deep), "1", strings.Repeat("]", deep)} {
		for i := range len(part) {
			require.False(t, m.Complete())
			require.True(t, m.Advance(int32(part[i])), fmt.Sprint(i))
		}
	}
	require.True(t, m.Complete() && m.Ended())
	require.LessOrEqual(t, len(m.states), mostStates+1)
}
