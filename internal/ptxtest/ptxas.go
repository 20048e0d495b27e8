package ptxtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wavelane/wavelane/ptx/ir"
)

// assemblerVariable is the environment variable with the path of ptxas.
const assemblerVariable = "PTXAS"

// FindPtxas returns the path of NVIDIA's assembler: PTXAS in the environment, or ptxas in PATH. That PTXAS names no program
// fails the test.
func FindPtxas(t testing.TB) (path string, ok bool) {
	t.Helper()
	name := os.Getenv(assemblerVariable)
	if name == "" {
		path, err := exec.LookPath("ptxas")
		return path, err == nil
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%s: %v", assemblerVariable, err)
	}
	return path, true
}

// Ptxas returns the path of NVIDIA's assembler, see [FindPtxas], or skips the test.
func Ptxas(t testing.TB) string {
	t.Helper()
	path, ok := FindPtxas(t)
	if !ok {
		t.Skipf("%s: ptxas is not in PATH, and %s is not set (the README says how to get it)", t.Name(), assemblerVariable)
	}
	return path
}

// ErrTarget says that ptxas does not know a target: newer ones have left the oldest, older ones lack the newest.
var ErrTarget = errors.New("this ptxas does not know the target")

// TargetOf is what to assemble a module for: its own target, or sm_80 where it asks for an older one, which not every ptxas knows.
func TargetOf(m *ir.Module) string {
	if m.Target.SM < 80 {
		return "sm_80"
	}
	return m.Target.String()
}

// Assemble gives a module to ptxas, for a target such as sm_90a, and throws the result away. It returns what ptxas printed. The
// error, if ptxas rejects the text, contains that; it is [ErrTarget] if ptxas does not know the target. Everything else that
// goes wrong fails the test.
func Assemble(t testing.TB, ptxas, target, text string, options ...string) (log string, err error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "module.ptx")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"-arch=" + target, "-o", os.DevNull}, options...)
	out, err := exec.CommandContext(t.Context(), ptxas, append(args, file)...).CombinedOutput()
	log = string(out)
	var exit *exec.ExitError
	switch {
	case err == nil:
		return log, nil
	case !errors.As(err, &exit) || !exit.Exited():
		t.Fatalf("%s: %v: %s", ptxas, err, log)
	case strings.Contains(log, "is not defined for option 'gpu-name'"):
		return log, ErrTarget
	}
	return log, fmt.Errorf("ptxas for %s: %w: %s", target, err, log)
}
