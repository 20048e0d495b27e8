//go:build linux && (amd64 || arm64)

package dist_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cpu"
	"github.com/wavelane/wavelane/dist"
	"github.com/wavelane/wavelane/dist/internal/nccl/nccltest"
)

// launchNCCL starts ranks as torchrun does, with a libnccl that needs no GPU. It returns what each printed, and its status.
func launchNCCL(t *testing.T, library string, ranks int, role string) (l launched, statuses []int) {
	t.Helper()
	folder := t.TempDir()
	exe, err := os.Executable()
	require.NoError(t, err)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(free.Addr().String())
	require.NoError(t, err)
	require.NoError(t, free.Close())
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	commands, outputs := make([]*exec.Cmd, ranks), make([]strings.Builder, ranks)
	for r := range commands {
		c := exec.CommandContext(ctx, exe)
		c.Env = append(os.Environ(), roleVariable+"="+role, folderVariable+"="+folder, shortVariable+"=1", "GOMAXPROCS=2", dist.NCCLLibraryVariable+"="+library,
			dist.EngineVariable+"="+dist.EngineNCCL, fmt.Sprint("RANK=", r), fmt.Sprint("LOCAL_RANK=", r), fmt.Sprint("WORLD_SIZE=", ranks),
			"MASTER_ADDR=127.0.0.1", "MASTER_PORT="+port, dist.SecretVariable+"=secret")
		c.Stdout, c.Stderr = &outputs[r], &outputs[r]
		require.NoError(t, c.Start())
		commands[r] = c
	}
	for r, c := range commands {
		status := 0
		if exit := (*exec.ExitError)(nil); errors.As(c.Wait(), &exit) {
			status = exit.ExitCode()
		}
		statuses = append(statuses, status)
		l.output += outputs[r].String()
		if status != 0 { // as torchrun does
			cancel()
		}
		if b, err := os.ReadFile(filepath.Join(folder, strconv.Itoa(r))); err == nil {
			l.files = append(l.files, string(b))
		}
	}
	return l, statuses
}

// TestNCCL makes every collective on slices, on tensors, in split groups and in batches.
func TestNCCL(t *testing.T) {
	library, err := nccltest.Build(t.TempDir(), 22703)
	require.NoError(t, err)
	for ranks, role := range map[int]string{1: "suite", 2: "nccl", 3: "suite", 4: "ordered"} {
		if testing.Short() && ranks != 2 && ranks != 3 { // with the race detector
			continue
		}
		l, statuses := launchNCCL(t, library, ranks, role)
		require.Equal(t, make([]int, ranks), statuses, l.output)
		require.Len(t, l.files, ranks, l.output)
		require.Contains(t, l.files[0], fmt.Sprintf("0 of %d, , NCCL 2.27.3", ranks))
	}
}

// TestNCCLFailures has a rank not take part, be late to close, and give up.
func TestNCCLFailures(t *testing.T) {
	skipShort(t)
	library, err := nccltest.Build(t.TempDir(), 22703)
	require.NoError(t, err)
	for role, want := range map[string]int{"hang": dist.StatusTimeout, "stuck": dist.StatusTimeout, "absent": 9, "cancel": 9} {
		t.Run(role, func(t *testing.T) {
			t.Parallel() // they wait
			l, statuses := launchNCCL(t, library, 2, role)
			require.Equal(t, want, statuses[0], l.output)
			switch role {
			case "hang":
				require.Contains(t, l.output, "rank 0 of world: AllReduce (sum) of 10000 float32, call 2, at ")
			case "stuck":
				require.Contains(t, l.output, "rank 0 of world: all_reduce[sum] or one of the 1 collectives after it in a batch, call 11, at ")
				require.Contains(t, l.output, "nccl_test.go:")
			default:
				require.Contains(t, l.files[0], "worker_test.go:")
			}
		})
	}
	l, _ := launchNCCL(t, "libnothing.so.1", 1, "nccl")
	require.Contains(t, l.output, "libnothing.so.1")
	require.Contains(t, l.output, "device unavailable")
}

// TestNCCLEnvironment gives Init an environment that lacks something.
func TestNCCLEnvironment(t *testing.T) {
	d, err := cpu.Open(t.Context())
	require.NoError(t, err)
	defer d.Close()
	t.Setenv("RANK", "1")
	t.Setenv("WORLD_SIZE", "2")
	t.Setenv("LOCAL_RANK", "1")
	require.Equal(t, 1, dist.LocalRank())
	_, err = dist.Init(t.Context(), dist.WithDevice(d))
	require.ErrorIs(t, err, compute.ErrUnsupported)
	_, err = dist.Init(t.Context(), dist.WithEngine(dist.EngineNCCL), dist.WithDevice(d))
	require.ErrorIs(t, err, compute.ErrArgument)
	devices, _ := devicesOf(t, "cuda", 1)
	library, err := nccltest.Build(t.TempDir(), 22703)
	require.NoError(t, err)
	t.Setenv(dist.NCCLLibraryVariable, library)
	_, err = dist.Init(t.Context(), dist.WithDevice(devices[0])) // takes NCCL by itself
	require.ErrorIs(t, err, compute.ErrArgument)
	require.ErrorContains(t, err, "MASTER_ADDR")
	t.Setenv("MASTER_ADDR", "127.0.0.1")
	t.Setenv("MASTER_PORT", "1")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = dist.Init(ctx, dist.WithDevice(devices[0]))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "rank 0 at 127.0.0.1:1")
}

// overNCCL sends round a ring, of which some receive first, and has collectives be steps of a batch on the software GPU.
func overNCCL(w *dist.World) error {
	ctx, n := context.Background(), w.Size()
	for _, length := range []int{0, 1, 77, 1<<20 + 13} {
		out, in := make([]int32, length), make([]int32, length)
		for i := range out {
			out[i] = int32(w.Rank()*1000 + i)
		}
		from := (w.Rank() + n - 1) % n
		send := func() error { return w.Send(ctx, out, (w.Rank()+1)%n) }
		receive := func() error { return w.Recv(ctx, in, from) }
		calls := []func() error{send, receive}
		if w.Rank()%2 == 1 {
			calls = []func() error{receive, send}
		}
		for _, call := range calls {
			if err := call(); err != nil {
				return err
			}
		}
		for i, x := range in {
			if x != int32(from*1000+i) {
				return fmt.Errorf("element %d of %d is %d", i, length, x)
			}
		}
	}
	b := batch.New(opened.(batch.Device))
	x := b.Upload([]float32{float32(w.Rank()), 3})
	sum := b.Read(b.AllReduce(b.Scale(x, 2), w, dist.Sum))
	all := b.Read(b.AllGather(b.Barrier(x, w), w))
	plan, err := b.Compile(ctx)
	if err != nil {
		return err
	}
	defer plan.Close()
	for range 3 {
		if err := plan.Run(ctx); err != nil {
			return err
		}
		if got := fmt.Sprint(sum.Float32s(), all.Float32s()); got != "[2 12] [0 3 1 3]" {
			return fmt.Errorf("the batch gave %s", got)
		}
	}
	return nil
}

// stuck has a rank not run a plan of two collectives which all have compiled.
func stuck(w *dist.World) error {
	b := batch.New(opened.(batch.Device))
	b.Read(b.AllReduce(b.AllReduce(b.Upload([]float32{1}), w, dist.Sum), w, dist.Sum))
	plan, err := b.Compile(context.Background())
	if err != nil {
		return err
	}
	for run := range 10 {
		if run == 4 && w.Rank() == 1 {
			time.Sleep(time.Hour)
		}
		if err := plan.Run(context.Background()); err != nil {
			return err
		}
	}
	return errors.New("runs without a member succeeded")
}
