package ptxtest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// disassemblerVariable is the environment variable with the path of nvdisasm.
const disassemblerVariable = "NVDISASM"

// FindNvdisasm returns the path of NVIDIA's disassembler: NVDISASM in the environment, or nvdisasm in PATH. That NVDISASM names no
// program fails the test.
func FindNvdisasm(t testing.TB) (path string, ok bool) {
	t.Helper()
	name := os.Getenv(disassemblerVariable)
	if name == "" {
		path, err := exec.LookPath("nvdisasm")
		return path, err == nil
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%s: %v", disassemblerVariable, err)
	}
	return path, true
}

// Sass is the machine code of a kernel: one instruction a line, without its address, and labels that end in a colon.
type Sass []string

var (
	section     = regexp.MustCompile(`^\.text\.([^:]+):`)
	label       = regexp.MustCompile(`^(\.L_[^:]+):`)
	instruction = regexp.MustCompile(`^\s*/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;`)
	branch      = regexp.MustCompile("\\bBRA(?:\\.[A-Z.]+)? .*`\\((\\.L_[^)]+)\\)")
	operation   = regexp.MustCompile(`^(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9]*)`)
)

// Disassemble returns the machine code that ptxas makes of every kernel of a text for a target. A target that ptxas does not know
// is [ErrTarget].
func Disassemble(t testing.TB, ptxas, nvdisasm, target, text string) (map[string]Sass, error) {
	t.Helper()
	folder := t.TempDir()
	source, binary := filepath.Join(folder, "module.ptx"), filepath.Join(folder, "module.cubin")
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), ptxas, "-arch="+target, "-o", binary, source).CombinedOutput(); err != nil {
		if strings.Contains(string(out), "is not defined for option 'gpu-name'") {
			return nil, ErrTarget
		}
		return nil, errors.New(string(out))
	}
	out, err := exec.CommandContext(t.Context(), nvdisasm, "-c", binary).Output()
	if err != nil {
		t.Fatalf("%s: %v", nvdisasm, err)
	}
	code := map[string]Sass{}
	kernel := ""
	for line := range strings.Lines(string(out)) {
		if m := section.FindStringSubmatch(line); m != nil {
			kernel = m[1]
		} else if m := label.FindStringSubmatch(line); m != nil {
			code[kernel] = append(code[kernel], m[1]+":")
		} else if m := instruction.FindStringSubmatch(line); m != nil {
			code[kernel] = append(code[kernel], m[1])
		}
	}
	return code, nil
}

// Loops are the bodies of the innermost loops: from a label to the branch back to it, with no other such within.
func (s Sass) Loops() (loops []Sass) {
	at := map[string]int{}
	begin := 0 // of what is in no loop yet
	for i, line := range s {
		if name, ok := strings.CutSuffix(line, ":"); ok {
			at[name] = i
		} else if m := branch.FindStringSubmatch(line); m != nil {
			if from, back := at[m[1]]; back && from >= begin {
				loops = append(loops, s[from:i+1])
				begin = i + 1
			}
		}
	}
	return loops
}

// Count is the number of instructions of some kinds ("FFMA"), or of all if none is named.
func (s Sass) Count(kinds ...string) (n int) {
	for _, line := range s {
		m := operation.FindStringSubmatch(line)
		if m == nil || strings.HasSuffix(line, ":") {
			continue
		}
		if len(kinds) == 0 {
			n++
		}
		for _, k := range kinds {
			if m[1] == k {
				n++
			}
		}
	}
	return n
}
