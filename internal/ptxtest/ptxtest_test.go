package ptxtest_test

import (
	"fmt"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/ptxtest"
)

// outcome runs a test that may fail or skip.
type outcome struct {
	testing.TB
	log             string
	failed, skipped bool
}

func (o *outcome) Helper()                           {}
func (o *outcome) Logf(format string, args ...any)   { o.log += fmt.Sprintf(format, args...) }
func (o *outcome) Failed() bool                      { return o.failed }
func (o *outcome) Errorf(format string, args ...any) { o.failed = true; o.Logf(format, args...) }
func (o *outcome) Fatalf(format string, args ...any) { o.failed = true; o.end(format, args...) }
func (o *outcome) Fatal(args ...any)                 { o.Fatalf("%s", fmt.Sprint(args...)) }
func (o *outcome) Skipf(format string, args ...any)  { o.skipped = true; o.end(format, args...) }

func (o *outcome) end(format string, args ...any) {
	o.Logf(format, args...)
	runtime.Goexit()
}

func run(t *testing.T, test func(testing.TB)) *outcome {
	o, done := &outcome{TB: t}, make(chan struct{})
	go func() {
		defer close(done)
		test(o)
	}()
	<-done
	return o
}

func TestNoAssembler(t *testing.T) {
	find := func(t testing.TB) { ptxtest.Ptxas(t) }
	t.Setenv("PATH", t.TempDir())
	t.Setenv("PTXAS", "")
	o := run(t, find)
	require.True(t, o.skipped)
	require.Contains(t, o.log, t.Name())

	t.Setenv("PTXAS", filepath.Join(t.TempDir(), "ptxas"))
	require.True(t, run(t, find).failed, "PTXAS names a program that is not there")
	require.True(t, run(t, func(t testing.TB) { _, _ = ptxtest.Assemble(t, "/nowhere/ptxas", "sm_80", "") }).failed)
}

func TestPtxasRejects(t *testing.T) {
	ptxas := ptxtest.Ptxas(t)
	const head = ".version 7.0\n.target sm_80\n.address_size 64\n"
	log, err := ptxtest.Assemble(t, ptxas, "sm_80", head+".entry k() { ret; }\n", "-v")
	require.NoError(t, err)
	require.NotEmpty(t, log)
	_, err = ptxtest.Assemble(t, ptxas, "sm_80", head+".entry k() { nonsense; }\n")
	require.Error(t, err)
	require.NotErrorIs(t, err, ptxtest.ErrTarget)
	require.ErrorContains(t, err, "nonsense")
	_, err = ptxtest.Assemble(t, ptxas, "sm_1", head)
	require.ErrorIs(t, err, ptxtest.ErrTarget)
}
