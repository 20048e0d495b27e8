//go:build linux && !android && (amd64 || arm64)

package libcuda

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/internal/testseed"
)

// headerVariable is the environment variable with the path of NVIDIA's cuda.h. With it, the test's library takes types and
// constants from there, and the compiler checks its functions against the prototypes; all tests run on that library.
const headerVariable = "CUDA_H"

var folder string // of this process

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if folder, err = os.MkdirTemp("", "libcuda"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(folder)
		return m.Run()
	}())
}

// compiled is the path of the test's library.
var compiled = sync.OnceValues(func() (string, error) {
	compiler := os.Getenv("CC")
	if compiler == "" {
		compiler = "gcc"
	}
	at := filepath.Join(folder, "libcuda.so.1")
	args := []string{"-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o", at}
	if header := os.Getenv(headerVariable); header != "" {
		args = append(args, "-Wmissing-prototypes", fmt.Sprintf("-DCUDA_H=%q", header))
	}
	if out, err := exec.Command(compiler, append(args, "testdata/libcuda.c")...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", compiler, err, out)
	}
	return at, nil
})

// stub is the test's library, seen from the OS thread that the test is locked to: all that it keeps is that thread's.
type stub struct {
	driver.Driver
	trace func(on int32)
	take  func() string
	fail  func(function string, code driver.Result)
	out   func(i int32, value uint64)
	logs  func(info, error string, mode int32)
}

func stubPath(t testing.TB) string {
	path, err := compiled()
	require.NoError(t, err, "the tests need a C compiler")
	return path
}

// control finds the functions that the test calls.
func control(t testing.TB, path string) *stub {
	handle, err := load(path)
	require.NoError(t, err)
	s := &stub{}
	for name, fn := range map[string]any{
		"stub_trace": &s.trace, "stub_take": &s.take, "stub_fail": &s.fail, "stub_out": &s.out, "stub_logs": &s.logs,
	} {
		purego.RegisterLibFunc(fn, handle, name)
	}
	return s
}

// openStub opens a driver on the test's library, with all calls written down. It locks the goroutine to its thread until the
// test ends.
func openStub(t testing.TB) *stub {
	path := stubPath(t)
	s := control(t, path)
	runtime.LockOSThread()
	t.Cleanup(func() {
		s.trace(0)
		s.fail("", 0)
		runtime.UnlockOSThread()
	})
	d, err := Open(path)
	require.NoError(t, err)
	s.begin(d)
	return s
}

// begin writes down from here on what a driver on the library does, on the thread that the caller is locked to. Others may have
// used the thread before.
func (s *stub) begin(d driver.Driver) {
	s.Driver = d
	s.fail("", 0)
	s.trace(1)
	s.take()
}

// Places of values whose meaning restricts them.
const (
	cubinSize     = 2 // of 64
	captureStatus = 3
	captureNodes  = 4
)

// outs sets fresh values for what functions write, and returns them.
func (s *stub) outs(r *rand.Rand) (o [5]uint64) {
	o = [...]uint64{0: r.Uint64(), 1: r.Uint64(), cubinSize: r.Uint64N(65), captureStatus: 1, captureNodes: 1}
	for i, v := range o {
		s.out(int32(i), v)
	}
	return o
}

// line is a call as the library writes it down.
func line(name string, args ...any) string {
	var b strings.Builder
	b.WriteString(name + "(")
	for _, a := range args {
		switch a := a.(type) {
		case []byte:
			fmt.Fprintf(&b, "%x,", a)
		default:
			fmt.Fprintf(&b, "%v,", a)
		}
	}
	return b.String() + ")\n"
}

// random returns the random numbers of one of the streams of the run's seed.
func random(t testing.TB, stream uint64) *rand.Rand {
	return rand.New(rand.NewPCG(testseed.Of(t), stream))
}

// results are all that the driver has names for, but for success.
func results() (all []driver.Result) {
	for r := driver.Result(1); r <= driver.Unknown; r++ {
		if !strings.HasPrefix(r.Name(), "CUresult") {
			all = append(all, r)
		}
	}
	return all
}
