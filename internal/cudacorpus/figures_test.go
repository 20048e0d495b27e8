package cudacorpus

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the tables of docs/ptx-corpus.md, with WAVELANE_PROOFS=all")

// figure is what tests have seen of the modules for an architecture.
type figure struct {
	parsed                     int // modules
	executed, right            int // kernels that were executed, with a right result every time
	findings                   int // of the analyser, in kernels that are right
	functions, same, optimised int // that ptxas translates; to the same machine code as they are printed; as they are optimised
}

// figures are those of a compiler, by architecture, such as 90.
type figures map[int]*figure

func (f figures) of(arch string) *figure {
	n := capability(arch)
	if f[n] == nil {
		f[n] = &figure{}
	}
	return f[n]
}

// text is the table under a title.
func (f figures) text() string {
	var b strings.Builder
	b.WriteString(`| architecture | modules | kernels executed | right | findings | functions assembled | same machine code as printed | assembled as optimised |
|---|---|---|---|---|---|---|---|
`)
	for _, arch := range slices.Sorted(maps.Keys(f)) {
		x := f[arch]
		fmt.Fprintf(&b, "| sm_%d | %d | %d | %d | %d | %d | %d | %d |\n", arch, x.parsed, x.executed, x.right, x.findings, x.functions, x.same, x.optimised)
	}
	return b.String()
}

const tablesFile = "../../docs/ptx-corpus.md"

// record prints the table, and demands that it is the one in the docs if it is about everything.
func (f figures) record(t *testing.T, title string) {
	t.Helper()
	record(t, title, f.text())
}

// record is for any table under a title.
func record(t *testing.T, title, table string) {
	t.Helper()
	t.Logf("%s\n%s", title, table)
	if !whole() || t.Failed() {
		return
	}
	text, err := os.ReadFile(tablesFile)
	require.NoError(t, err)
	have, from, to := section(t, string(text), title)
	if *update {
		require.NoError(t, os.WriteFile(tablesFile, []byte(string(text[:from])+table+string(text[to:])), 0o644))
		return
	}
	require.Equal(t, table, have, "-update writes the table")
}

// section is the table under a title of the docs, and where it is.
func section(t *testing.T, text, title string) (table string, from, to int) {
	t.Helper()
	heading := "## " + title + "\n"
	_, rest, ok := strings.Cut(text, heading)
	require.True(t, ok, "docs/ptx-corpus.md has no section %q", title)
	body, _, _ := strings.Cut(rest, "\n## ")
	table = body
	if i := strings.Index(body, "\n|"); i >= 0 {
		table = body[i+1:]
	}
	from = strings.Index(text, heading) + len(heading) + len(body) - len(table)
	return table, from, from + len(table)
}

// TestTables: the docs have the kernels that there are.
func TestTables(t *testing.T) {
	text, err := os.ReadFile(tablesFile)
	require.NoError(t, err)
	row := regexp.MustCompile(`(?m)^\| sm_(\d+) \| \d+ \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$`)
	for title, runs := range map[string][]run{
		"CUDA C, by NVRTC": cudaRuns, "Python, by Triton": tritonRuns, "CUDA C, by clang, optimised": of(cudaRuns, clangFiles, ".cu"),
		"CUDA C, by clang, not optimised": of(cudaRuns, clangFiles, ".cu"),
	} {
		table, _, _ := section(t, string(text), title)
		rows := row.FindAllStringSubmatch(table, -1)
		require.NotEmpty(t, rows, title)
		for _, r := range rows {
			n := 0
			for i := range runs {
				n += map[bool]int{true: 1}[runs[i].covers("compute_"+r[1])]
			}
			require.Equal(t, []string{strconv.Itoa(n), strconv.Itoa(n), "0"}, r[2:5], "%s for sm_%s: kernels, right, findings", title, r[1])
			require.Equal(t, []string{r[5], r[5]}, r[6:], "%s for sm_%s: machine code", title, r[1])
		}
	}
	require.Equal(t, len(mistakes), cmp.Or(strings.Count(string(text), "\n| `"), -1), "mistakes that are listed")
}
