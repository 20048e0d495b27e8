package analyze_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/ptx/analyze"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/parse"
)

// wants are the findings that a text announces by "// want: Class" after a line, and "// want-module: Class" for the whole
// module, as "line Class"; 0 is the module's line.
func wants(text string) []string {
	var out []string
	for n, line := range strings.Split(text, "\n") {
		if _, class, ok := strings.Cut(line, "// want: "); ok {
			out = append(out, fmt.Sprintf("%d %s", n+1, strings.TrimSpace(class)))
		}
		if _, class, ok := strings.Cut(line, "// want-module: "); ok {
			out = append(out, "0 "+strings.TrimSpace(class))
		}
	}
	slices.Sort(out)
	return out
}

func load(t *testing.T, name string) (string, *ir.Module) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	m, err := parse.Module(name, text)
	require.NoError(t, err)
	// "// becomes: opcode" stands after an instruction that is to have an opcode which the parser would refuse.
	for n, line := range strings.Split(string(text), "\n") {
		_, code, ok := strings.Cut(line, "// becomes: ")
		for _, f := range m.Funcs {
			for i := range f.Body {
				if ok && f.Body[i].Pos.Line == n+1 {
					f.Body[i].Op, f.Body[i].Mods, _ = ir.SplitOpcode(strings.Fields(code)[0])
				}
			}
		}
	}
	return string(text), m
}

// Every detector has kernels that it flags, at the lines that say so, and kernels close to them that it does not; and nobody
// flags anything else.
func TestCorpus(t *testing.T) {
	files, err := filepath.Glob("testdata/*.ptx")
	require.NoError(t, err)
	seen := map[analyze.Class]bool{}
	for _, d := range analyze.Detectors() {
		require.False(t, seen[d.Class], "two detectors of class %s", d.Class)
		seen[d.Class] = true
		require.NotEmpty(t, d.Doc)
		require.NotEmpty(t, d.Fix)
		t.Run(string(d.Class), func(t *testing.T) {
			name := string(d.Class) + ".ptx"
			require.Contains(t, files, filepath.Join("testdata", name))
			text, m := load(t, name)
			want := wants(text)
			require.Condition(t, func() bool {
				return slices.ContainsFunc(want, func(w string) bool { return strings.HasSuffix(w, " "+string(d.Class)) })
			}, "no kernel that is flagged")
			clean := check(t, m, want, d.Strict)
			if slices.Contains(files, filepath.Join("testdata", string(d.Class)+"_ok.ptx")) {
				text, m := load(t, string(d.Class)+"_ok.ptx")
				require.Empty(t, wants(text))
				clean += check(t, m, nil, d.Strict)
			}
			require.Positive(t, clean, "no kernel that is not flagged")
		})
	}
	for _, f := range files {
		class := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(f), ".ptx"), "_ok")
		require.True(t, seen[analyze.Class(class)] || class == "report", "%s belongs to no detector", f)
	}
}

// check compares findings with those wanted and returns the number of kernels without any.
func check(t *testing.T, m *ir.Module, want []string, strict bool) int {
	t.Helper()
	r, err := analyze.Module(m, analyze.Options{Strict: strict})
	require.NoError(t, err)
	var got []string
	flagged := map[string]bool{}
	for _, f := range r.Findings {
		got = append(got, fmt.Sprintf("%d %s", f.Pos.Line, f.Class))
		flagged[f.Kernel] = true
		require.NotEmpty(t, f.Message)
		for _, p := range f.More {
			got = append(got, fmt.Sprintf("%d %s", p.Line, f.Class))
		}
	}
	slices.Sort(got)
	got = slices.Compact(got)
	if !slices.Equal(want, got) {
		for _, f := range r.Findings {
			t.Logf("%s %s %s: %s (%s)", f.Pos, f.Kernel, f.Class, f.Message, f.Instr)
		}
	}
	require.Equal(t, append([]string{}, want...), append([]string{}, got...))
	clean := 0
	for _, f := range m.Funcs {
		if f.Entry && !flagged[f.Name] {
			clean++
		}
	}
	return clean
}
