package corpus

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cpu"
	"github.com/wavelane/wavelane/cuda"
	"github.com/wavelane/wavelane/gpu"
	"github.com/wavelane/wavelane/onnx"
)

var groups = []string{"node", "light", "simple", "pytorch-operator", "pytorch-converted", "microsoft"}

// Every case passes on the CPU device, but for those of testdata/lacks.tsv, none of which passes.
func TestCases(t *testing.T) {
	dev, err := cpu.Open(t.Context())
	require.NoError(t, err)
	defer dev.Close()
	operators := table{}
	check(t, dev, 1, operators)
	if os.Getenv("WAVELANE_ONNX_ONLY") == "" {
		operators.compare(t)
	}
}

// A sample of the cases passes where devices are GPUs; with WAVELANE_PROOFS=all all of them are run.
func TestCasesOnWebGPU(t *testing.T) {
	dev, err := gpu.Open(t.Context(), gpu.WithSoftware(), gpu.WithAutotune(compute.TuneOff))
	require.NoError(t, err, "no software WebGPU adapter: 'scripts/setup test' installs it")
	defer dev.Close()
	check(t, dev, sample, table{})
}

func TestCasesOnCUDA(t *testing.T) {
	dev, err := cuda.Open(t.Context(), cuda.WithSoftware(), cuda.WithCache(t.TempDir()))
	require.NoError(t, err)
	defer dev.Close()
	check(t, dev, sample, table{})
}

// illConditioned are cases whose result rounding decides, so that it is the expected one on the CPU only: the classes' scores are 6.7e9, equal
// but for the order of sums.
var illConditioned = []string{"light/light_squeezenet"}

// all reports whether everything is asked for, however long it takes.
func all() bool { return os.Getenv("WAVELANE_PROOFS") == "all" }

// sample is every how many cases are run where it takes long.
const sample = 23

// check runs every so many cases and compares what does not pass with the list.
func check(t *testing.T, dev onnx.Device, every int, operators table) {
	known := lacks(t)
	only := os.Getenv("WAVELANE_ONNX_ONLY")
	if all() || only != "" {
		every = 1
	}
	var report bytes.Buffer
	for _, group := range groups {
		passed, count, onDevice := 0, 0, 0
		for i, name := range list(t, group) {
			if _, onCPU := dev.(*cpu.Device); i%every != 0 || only != "" && !strings.Contains(name, only) ||
				!onCPU && slices.Contains(illConditioned, group+"/"+name) {
				continue
			}
			count++
			folder := filepath.Join(cases(t), group, name)
			o := run(t.Context(), folder, dev)
			if m, err := onnx.Open(filepath.Join(folder, "model.onnx")); err == nil {
				operators.add(m, o)
				m.Close()
			}
			key := group + "/" + name
			reason, expected := known[key]
			switch {
			case o.err == nil && expected:
				t.Errorf("%s passes: take it off the list (%s)", key, reason)
			case o.err != nil && !expected:
				t.Errorf("%s: %v", key, o.err)
			}
			if o.err == nil {
				passed++
				if strings.Contains(o.trace, "device:") {
					onDevice++
				}
			} else {
				fmt.Fprintf(&report, "%s\t%s\n", key, strings.ReplaceAll(o.err.Error(), "\n", " "))
			}
			if only != "" {
				t.Logf("%s\n%s", key, o.trace)
			}
		}
		t.Logf("%s: %d of %d pass, %d of them with steps on the device", group, passed, count, onDevice)
	}
	if file := os.Getenv("WAVELANE_ONNX_REPORT"); file != "" {
		lines := strings.Split(strings.TrimSpace(report.String()), "\n")
		sort.Strings(lines)
		require.NoError(t, os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644))
	}
}
