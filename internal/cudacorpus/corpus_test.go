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

// corpus is what of a folder is compiled, for which architectures, and the runs of kernels in it: all, or a part that the seed draws.
func corpus(t *testing.T, folder, extension string, runs []run, architectures []string) ([]string, []string, []run) {
	t.Helper()
	files := sources(t, filepath.Join("testdata", folder), extension)
	for _, f := range files {
		require.True(t, slices.ContainsFunc(runs, func(r run) bool { return r.file+extension == f }), "nobody runs a kernel of %s", f)
	}
	files, architectures = part(t, files, architectures)
	return files, architectures, of(runs, files, extension)
}

// part is what go test takes of files and architectures: a sixth of the files, and the first two architectures.
func part(t *testing.T, files, architectures []string) ([]string, []string) {
	t.Helper()
	if whole() {
		return files, architectures
	}
	rng := ptxtest.Random(t)
	rng.Shuffle(len(files), func(i, j int) { files[i], files[j] = files[j], files[i] })
	return files[:(len(files)+5)/6], architectures[:2]
}

// of are the runs of kernels in files.
func of(runs []run, files []string, extension string) []run {
	return slices.DeleteFunc(slices.Clone(runs), func(r run) bool { return !slices.Contains(files, r.file+extension) })
}

// TestCUDA: what NVRTC makes of CUDA C computes what it has to, with every check on several schedules, and the analyser has nothing to
// object to.
func TestCUDA(t *testing.T) {
	files, architectures, runs := corpus(t, "cuda", ".cu", cudaRuns, nvrtcArchitectures)
	units := compile(t, "cuda", filepath.Join("testdata", "cuda"), files, architectures)
	f := figures{}
	execute(t, units, runs, f)
	assemble(t, ptxas(t), units, f)
	f.record(t, "CUDA C, by NVRTC")
}

// TestClang: so does what clang makes of the files that have no need of NVIDIA's headers, optimised or not.
func TestClang(t *testing.T) {
	files, architectures := part(t, slices.Clone(clangFiles), []string{"sm_80", "sm_75", "sm_86"})
	for level, title := range map[string]string{"-O0": "CUDA C, by clang, not optimised", "-O2": "CUDA C, by clang, optimised"} {
		t.Run(level, func(t *testing.T) {
			units, f := withClang(t, level, files, architectures), figures{}
			execute(t, units, of(cudaRuns, files, ".cu"), f)
			assemble(t, ptxas(t), units, f)
			f.record(t, title)
		})
	}
}

// TestTriton: so does what Triton makes of Python.
func TestTriton(t *testing.T) {
	files, architectures, runs := corpus(t, "triton", ".py", tritonRuns,
		[]string{"compute_90", "compute_80", "compute_75", "compute_86", "compute_89", "compute_100", "compute_120"})
	units := compile(t, "triton", filepath.Join("testdata", "triton"), files, architectures)
	f := figures{}
	execute(t, units, runs, f)
	assemble(t, tool(t, "triton", "triton/backends/nvidia/bin/ptxas-blackwell"), units, f)
	f.record(t, "Python, by Triton")
}

var (
	nvrtcArchitectures = []string{"compute_90", "compute_75", "compute_70", "compute_80", "compute_86", "compute_89", "compute_100", "compute_120"}
	// clangFiles include no header of NVIDIA's, or one that testdata/clang has.
	clangFiles = []string{"histogram.cu", "physics.cu", "scan.cu", "sort.cu", "stencil.cu", "transform.cu"}
)

// ptxas is NVIDIA's assembler, as it comes with NVRTC.
func ptxas(t *testing.T) string { return tool(t, "cuda", "nvidia/cuda_nvcc/bin/ptxas") }

// execute runs and analyses kernels.
func execute(t *testing.T, units []unit, runs []run, figures figures) {
	t.Helper()
	rng := ptxtest.Random(t)
	schedules := 1
	if whole() {
		schedules = 4
	}
	for _, u := range units {
		figures.of(u.arch).parsed++
	}
	for i := range runs {
		r := &runs[i]
		n := 0
		for _, u := range units {
			if u.file != r.file || u.part != r.part || !r.covers(u.arch) {
				continue
			}
			n++
			figure := figures.of(u.arch)
			r := r.of(&u)
			name, right := r.part+" "+r.kernel+" for "+u.arch, true
			wrong := func(format string, args ...any) {
				right = false
				t.Errorf(name+", "+format, args...)
			}
			if err := r.execute(u.module, sanitize.All, 0, rng); err != nil {
				wrong("without checks: %v", err)
			}
			for n := range schedules + 1 {
				seed := uint64(n) * (1 + rng.Uint64N(1<<60))
				if err := r.execute(u.module, 0, seed, rng); err != nil {
					wrong("seed %d: %v", seed, err)
				}
			}
			for _, known := range []bool{false, true} {
				report := r.analysis(t, u.module, known)
				figure.findings += len(report.Findings)
				for _, f := range report.Findings {
					t.Errorf("%s, launch known %v: %s: %s: %s (%s)", name, known, f.Pos, f.Class, f.Message, f.Instr)
				}
			}
			optimised, _, err := opt.Run(u.module, opt.Options{})
			require.NoError(t, err)
			if err := r.execute(optimised, 0, 0, rng); err != nil {
				wrong("optimised: %v", err)
			}
			figure.executed++
			if right {
				figure.right++
			}
		}
		covered := slices.ContainsFunc(units, func(u unit) bool { return u.file == r.file && r.covers(u.arch) })
		require.Equal(t, covered, n > 0, "%s was not compiled", r.kernel)
	}
}

// assemble gives every module to NVIDIA's assembler: as it was compiled, as it is printed, of which the machine code is the same, and
// optimised.
func assemble(t *testing.T, ptxas string, units []unit, figures figures) {
	t.Helper()
	for _, u := range units {
		name := u.file + " " + u.part + " for " + u.arch
		printed := u.module.String()
		again, err := parse.Module(name, []byte(printed))
		require.NoError(t, err, name)
		require.Equal(t, printed, again.String(), name)
		optimised, _, err := opt.Run(u.module, opt.Options{})
		require.NoError(t, err, name)
		want := code(t, ptxas, u.module, string(u.text)) // none where the file has nothing for the architecture
		figure := figures.of(u.arch)
		figure.functions += len(want)
		have := code(t, ptxas, u.module, printed)
		require.Len(t, have, len(want), name)
		for f, c := range want {
			if have[f] == c {
				figure.same++
			} else {
				t.Errorf("%s: machine code of %s as it is printed is another", name, f)
			}
		}
		figure.optimised += len(code(t, ptxas, u.module, optimised.String()))
	}
	for arch, f := range figures {
		require.Positive(t, f.functions, "sm_%d", arch)
	}
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
