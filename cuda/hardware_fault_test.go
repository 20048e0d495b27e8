//go:build hardware

package cuda

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/driver"
)

const faulting = `.version 7.0
.target sm_70
.address_size 64

.visible .entry harmless(.param .u64 at)
{
	.reg .b32 %r<2>;
	.reg .b64 %rd<2>;
	ld.param.u64 %rd1, [at];
	mov.u32 %r1, 1;
	st.global.u32 [%rd1], %r1;
	ret;
}

.visible .entry stray(.param .u64 at)
{
	.reg .b32 %r<2>;
	.reg .b64 %rd<3>;
	mov.u64 %rd2, 16;
	mov.u32 %r1, 1;
	st.global.u32 [%rd2], %r1;
	ret;
}

.visible .entry askew(.param .u64 at)
{
	.reg .b32 %r<2>;
	.reg .b64 %rd<2>;
	ld.param.u64 %rd1, [at];
	mov.u32 %r1, 1;
	st.global.u32 [%rd1+2], %r1;
	ret;
}

.visible .entry stops(.param .u64 at)
{
	trap;
}
`

// faults are kernels and the codes that a GPU may report for them. For trap it is one or the other, by the driver's version.
var faults = map[string][]driver.Result{
	"harmless": nil,
	"stray":    {driver.IllegalAddress},
	"askew":    {driver.MisalignedAddress},
	"stops":    {driver.LaunchFailed, driver.IllegalInstruction},
}

const faultVariable = "WAVELANE_TEST_FAULT"

// A fault kills the context of its process, with an error that says why and after which launches, and nothing else: this
// process, which has the GPU open meanwhile, and later ones work.
func TestHardwareFaults(t *testing.T) {
	if os.Getenv(faultVariable) != "" {
		return // this is the child
	}
	d := openHardware(t)
	for _, kernel := range []string{"stray", "harmless", "askew", "harmless", "stops", "harmless", "debug stray", "debug harmless"} {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		exe, err := os.Executable()
		require.NoError(t, err)
		c := exec.CommandContext(ctx, exe, "-test.run=^TestHardwareFaultChild$", "-test.v")
		c.Env = append(os.Environ(), faultVariable+"="+kernel)
		out, err := c.CombinedOutput()
		cancel()
		require.NoError(t, err, "%s:\n%s", kernel, out)
		require.Contains(t, string(out), "child: "+kernel+" as expected", "%s", out)
		t.Logf("%s:\n%s", kernel, out)

		b := uploaded(t, d, []uint32{1, 2, 3})
		back := make([]uint32, 3)
		require.NoError(t, b.Download(t.Context(), back))
		require.Equal(t, []uint32{1, 2, 3}, back)
		require.NoError(t, b.Close())
	}
}

// TestHardwareFaultChild does something else only in a process that TestHardwareFaults starts.
func TestHardwareFaultChild(t *testing.T) {
	name := os.Getenv(faultVariable)
	if name == "" {
		return
	}
	opts := []Option{WithoutCache()}
	what, debug := strings.CutPrefix(name, "debug ")
	if debug {
		opts = append(opts, WithDebug())
	}
	d, err := Open(t.Context(), hardwareOptions(opts...)...)
	require.NoError(t, err)
	m, err := d.Load(faulting)
	require.NoError(t, err)
	b, err := Alloc[uint32](d, 16)
	require.NoError(t, err)
	s, err := d.NewStream(StreamOptions{})
	require.NoError(t, err)
	var launched error // what the launch itself returned
	run := func(name string) error {
		k, err := m.Kernel(name)
		require.NoError(t, err)
		r, err := s.Begin()
		if err != nil {
			return err
		}
		launched = r.Launch(k, Launch{Block: [3]uint32{1}}, b.Arg())
		x, submitErr := r.Submit()
		if launched != nil || submitErr != nil {
			return errors.Join(launched, submitErr)
		}
		_, err = x.Wait(t.Context())
		return err
	}
	for range 3 {
		require.NoError(t, run("harmless"))
	}
	err = run(what)
	want, known := faults[what]
	require.True(t, known)
	if want == nil {
		require.NoError(t, err)
		require.NoError(t, d.Synchronize())
		fmt.Printf("child: %s as expected\n", name)
		require.NoError(t, d.Close())
		return
	}
	if debug { // the launch waits, and says which kernel is guilty
		require.ErrorIs(t, launched, ErrContextPoisoned)
		require.ErrorContains(t, launched, "kernel "+what)
	}
	require.ErrorIs(t, err, ErrContextPoisoned)
	require.ErrorIs(t, err, compute.ErrDeviceLost)
	var dead *PoisonedError
	require.ErrorAs(t, err, &dead)
	require.True(t, slices.Contains(want, driver.Result(dead.Cause.Code)), "%v is none of %v", dead.Cause, want)
	require.Len(t, dead.Launches, 4)
	last := dead.Launches[3]
	require.Equal(t, what, last.Kernel)
	require.Equal(t, [3]uint32{1, 1, 1}, last.Block)
	require.Equal(t, "harmless", dead.Launches[2].Kernel)

	// Whatever comes later says the same.
	require.ErrorIs(t, run("harmless"), ErrContextPoisoned)
	_, err = Alloc[uint32](d, 1<<20)
	require.ErrorIs(t, err, ErrContextPoisoned)
	_, err = d.Load(faulting)
	require.ErrorIs(t, err, ErrContextPoisoned)
	require.ErrorIs(t, d.Synchronize(), ErrContextPoisoned)
	_, err = d.Upload(t.Context(), []float32{1})
	require.ErrorIs(t, err, ErrContextPoisoned)
	fmt.Printf("child: %s as expected\n%v\n", name, dead)
	require.NoError(t, d.Close())
}
