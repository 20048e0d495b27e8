package cudacorpus

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/opt"
	"github.com/wavelane/wavelane/ptx/parse"
	"github.com/wavelane/wavelane/ptx/sanitize"
)

// whole tells that make proofs asks for everything; otherwise the seed draws some of the files.
func whole() bool { return os.Getenv("WAVELANE_PROOFS") == "all" }

// corpus is what the tests of a compiler have: units, and the runs of kernels in them.
func corpus(t *testing.T, compiler, extension string, runs []run, architectures []string) ([]unit, []run) {
	t.Helper()
	files := sources(t, filepath.Join("testdata", compiler), extension)
	if !whole() {
		rng := ptxtest.Random(t)
		rng.Shuffle(len(files), func(i, j int) { files[i], files[j] = files[j], files[i] })
		files, architectures = files[:(len(files)+2)/3], architectures[:2]
	}
	has := func(name string) bool { return slices.Contains(files, name+extension) }
	for _, f := range files {
		require.True(t, slices.ContainsFunc(runs, func(r run) bool { return r.file+extension == f }), "nobody runs a kernel of %s", f)
	}
	runs = slices.DeleteFunc(slices.Clone(runs), func(r run) bool { return !has(r.file) })
	return compile(t, compiler, files, architectures), runs
}

// TestCUDA: what NVRTC makes of CUDA C computes what it has to, with every check on several schedules, and the analyser has nothing to
// object to.
func TestCUDA(t *testing.T) {
	units, runs := corpus(t, "cuda", ".cu", cudaRuns, []string{"compute_90", "compute_75", "compute_70", "compute_80", "compute_120"})
	execute(t, units, runs)
	assemble(t, tool(t, "cuda", "nvidia/cuda_nvcc/bin/ptxas"), units)
}

// TestTriton: so does what Triton makes of Python.
func TestTriton(t *testing.T) {
	units, runs := corpus(t, "triton", ".py", tritonRuns, []string{"compute_90", "compute_80", "compute_75", "compute_100", "compute_120"})
	execute(t, units, runs)
	assemble(t, tool(t, "triton", "triton/backends/nvidia/bin/ptxas-blackwell"), units)
}

// execute runs and analyses kernels.
func execute(t *testing.T, units []unit, runs []run) {
	t.Helper()
	rng := ptxtest.Random(t)
	schedules := 1
	if whole() {
		schedules = 4
	}
	executed, findings := 0, 0
	for i := range runs {
		r := &runs[i]
		n := 0
		for _, u := range units {
			if u.file != r.file || u.part != r.part || !r.covers(u.arch) {
				continue
			}
			n++
			r := r.of(&u)
			name := r.part + " " + r.kernel + " for " + u.arch
			if err := r.execute(u.module, sanitize.All, 0, rng); err != nil {
				t.Errorf("%s, without checks: %v", name, err)
			}
			for n := range schedules + 1 {
				seed := uint64(n) * (1 + rng.Uint64N(1<<60))
				if err := r.execute(u.module, 0, seed, rng); err != nil {
					t.Errorf("%s, seed %d: %v", name, seed, err)
				}
			}
			for _, known := range []bool{false, true} {
				report := r.analysis(t, u.module, known)
				findings += len(report.Findings)
				for _, f := range report.Findings {
					t.Errorf("%s, launch known %v: %s: %s: %s (%s)", name, known, f.Pos, f.Class, f.Message, f.Instr)
				}
			}
			optimised, _, err := opt.Run(u.module, opt.Options{})
			require.NoError(t, err)
			if err := r.execute(optimised, 0, 0, rng); err != nil {
				t.Errorf("%s, optimised: %v", name, err)
			}
		}
		require.Positive(t, n, "%s was not compiled", r.kernel)
		executed += n
	}
	t.Logf("%d files parsed, %d kernels executed on %d schedules, %d findings", len(units), executed, schedules+1, findings)
}

// assemble gives every module to NVIDIA's assembler: as it was compiled, as it is printed, of which the machine code is the same, and
// optimised.
func assemble(t *testing.T, ptxas string, units []unit) {
	t.Helper()
	equal := 0
	for _, u := range units {
		name := u.file + " " + u.part + " for " + u.arch
		printed := u.module.String()
		again, err := parse.Module(name, []byte(printed))
		require.NoError(t, err, name)
		require.Equal(t, printed, again.String(), name)
		optimised, _, err := opt.Run(u.module, opt.Options{})
		require.NoError(t, err, name)
		want := code(t, ptxas, u.module, string(u.text))
		require.Equal(t, want, code(t, ptxas, u.module, printed), "%s: machine code of what is printed", name)
		require.Len(t, code(t, ptxas, u.module, optimised.String()), len(want), name)
		equal += len(want)
	}
	require.Positive(t, equal)
	t.Logf("ptxas makes the same of %d functions as they were and as they are printed", equal)
}

// elfVersion is where in a file its e_version is.
const elfVersion = 20

// code is what ptxas makes of each function of a text: a hash of its machine code. Line numbers are left out.
func code(t *testing.T, ptxas string, m *ir.Module, text string) map[string]string {
	t.Helper()
	folder := t.TempDir()
	source, binary := filepath.Join(folder, "module.ptx"), filepath.Join(folder, "module.cubin")
	require.NoError(t, os.WriteFile(source, []byte(text), 0o600))
	said, err := exec.CommandContext(t.Context(), ptxas, "-arch="+m.Target.String(), "-o", binary, source).CombinedOutput()
	require.NoError(t, err, "%s\n%s", said, text)
	cubin, err := os.ReadFile(binary)
	require.NoError(t, err)
	cubin[elfVersion] = byte(elf.EV_CURRENT) // NVIDIA's is another
	file, err := elf.NewFile(bytes.NewReader(cubin))
	require.NoError(t, err)
	functions := map[string]string{}
	for _, s := range file.Sections {
		if name, ok := strings.CutPrefix(s.Name, ".text."); ok {
			data, err := s.Data()
			require.NoError(t, err)
			functions[name] = fmt.Sprintf("%d bytes %x", len(data), sha256.Sum256(data))
		}
	}
	return functions
}
