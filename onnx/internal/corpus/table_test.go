package corpus

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/onnx"
)

var update = flag.Bool("update", false, "write docs/onnx-operators.md")

// tally is what cases of an operator have shown.
type tally struct {
	cases, passed  int
	opsets         map[int64]bool
	device, onHost bool
}

// table counts cases by operator.
type table map[string]*tally

// add counts a case. What runs where is told by cases of one node.
func (t table) add(m *onnx.Model, o outcome) {
	operators := m.Operators()
	for name := range operators {
		x := t[name]
		if x == nil {
			x = &tally{opsets: map[int64]bool{}}
			t[name] = x
		}
		x.cases++
		if o.err != nil {
			continue
		}
		x.passed++
		domain, _, other := strings.Cut(name, ":")
		if !other {
			domain = ""
		}
		x.opsets[m.Opsets()[domain]] = true
		if len(operators) == 1 {
			x.device = x.device || strings.Contains(o.trace, "device:")
		}
		plain := name[strings.LastIndex(name, ":")+1:]
		x.onHost = x.onHost || strings.Contains(o.trace, plain+")\n") && strings.Contains(o.trace, "host:")
	}
}

const tableFile = "../../../docs/onnx-operators.md"

func (t table) text() string {
	var b strings.Builder
	b.WriteString(`# Operators of ONNX

Written by the test of the standard's cases (` + "`go test ./onnx/internal/corpus -run 'TestCases$' -update`" + `): for each operator the cases
that have it, those that pass, in which operator sets, and where it was computed in cases that pass. *Device* means floats on the device;
*host* the other element types, and the operators that only the host has; neither, that it is gone when a model is compiled.
[What does not pass, and why](../onnx/internal/corpus/testdata/lacks.tsv). Devices are WebGPU, CUDA and the CPU alike.

| operator | cases | pass | operator sets | computed on |
|---|---|---|---|---|
`)
	for _, name := range slices.Sorted(maps.Keys(t)) {
		x := t[name]
		var sets, where []string
		for _, v := range slices.Sorted(maps.Keys(x.opsets)) {
			sets = append(sets, fmt.Sprint(v))
		}
		if x.device {
			where = append(where, "device")
		}
		if x.onHost {
			where = append(where, "host")
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %s | %s |\n", name, x.cases, x.passed, strings.Join(sets, ", "), strings.Join(where, ", "))
	}
	return b.String()
}

// compare demands that the file is what the cases have shown.
func (t table) compare(test *testing.T) {
	if *update {
		require.NoError(test, os.WriteFile(tableFile, []byte(t.text()), 0o644))
	}
	have, err := os.ReadFile(tableFile)
	require.NoError(test, err)
	require.Equal(test, t.text(), string(have), "-update writes the table")
}
