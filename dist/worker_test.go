//go:build linux

package dist_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cpu"
	"github.com/wavelane/wavelane/cuda"
	"github.com/wavelane/wavelane/dist"
)

// The test binary runs itself under the launchers: in a worker these variables say what to do, and where to write what came of it.
const (
	roleVariable   = "WAVELANE_DIST_TEST_ROLE"
	folderVariable = "WAVELANE_DIST_TEST_FOLDER"
	shortVariable  = "WAVELANE_DIST_TEST_SHORT"
)

func TestMain(m *testing.M) {
	role := os.Getenv(roleVariable)
	if role == "" {
		flag.Parse()
		short = testing.Short()
		os.Exit(m.Run())
	}
	short = os.Getenv(shortVariable) != ""
	if err := work(role); err != nil {
		fmt.Fprintf(os.Stderr, "worker: %v\n", err)
		os.Exit(3)
	}
}

// roles are what workers do after Init. What they return is written to a file; nil leaves it to the parent to find none.
var roles = map[string]func(w *dist.World) error{
	"suite":    suiteOf,
	"signals":  signals,
	"many":     many,
	"messages": messages,
	"copied": func(w *dist.World) error {
		dist.CopyMessages(w)
		return suiteOf(w)
	},
	"kill": func(w *dist.World) error {
		return dying(w, func() { syscall.Kill(os.Getpid(), syscall.SIGKILL) })
	},
	"panic":  func(w *dist.World) error { return dying(w, func() { panic("on purpose") }) },
	"exit":   func(w *dist.World) error { return dying(w, func() { os.Exit(5) }) },
	"abort":  func(w *dist.World) error { return dying(w, func() { w.Abort(7) }) },
	"hang":   func(w *dist.World) error { return dying(w, func() { time.Sleep(time.Hour) }) },
	"cancel": cancelled,
	"absent": absent,
	"mixed":  mixed,
	"differ": differing,
	"nccl":   overNCCL,
	"stuck":  stuck,
	"batch": func(w *dist.World) error {
		d, err := cpu.Open(context.Background())
		if err != nil {
			return err
		}
		return collectiveBatch(d, w.Group)
	},
}

// opened is a worker's device.
var opened dist.Device

func work(role string) error {
	ctx := context.Background()
	var device dist.Device
	var err error
	if os.Getenv(dist.EngineVariable) == dist.EngineNCCL {
		device, err = cuda.Open(ctx, cuda.WithSoftware(), cuda.WithoutCache())
	} else {
		device, err = cpu.Open(ctx)
	}
	if err != nil {
		return err
	}
	options := []dist.Option{dist.WithDevice(device)}
	opened = device
	switch role {
	case "ordered":
		role, options = "suite", append(options, dist.WithRankOrder())
	case "hang", "stuck":
		options = append(options, dist.WithTimeout(3*time.Second)) // more than a busy machine takes for what comes before
	case "cancel", "absent":
	default:
		options = append(options, dist.WithTimeout(3*time.Minute))
	}
	w, err := dist.Init(ctx, options...)
	if err != nil {
		return err
	}
	if err := roles[role](w); err != nil {
		return fmt.Errorf("rank %d: %w", w.Rank(), err)
	}
	i := w.Info()
	text := fmt.Sprintf("%s of %d, %s, %s", strconv.Itoa(i.Rank), i.Size, i.Family, i.Version)
	if err := os.WriteFile(filepath.Join(os.Getenv(folderVariable), strconv.Itoa(w.Rank())), []byte(text), 0o644); err != nil {
		return err
	}
	if err := w.Close(); err != nil && role != "cancel" {
		return err
	}
	if err := w.Close(); err != nil && role != "cancel" {
		return err
	}
	if err := w.Barrier(ctx); !errors.Is(err, compute.ErrClosed) && role != "cancel" {
		return fmt.Errorf("a barrier after Close: %v", err)
	}
	return nil
}

func suiteOf(w *dist.World) error {
	if err := suite(w.Group, os.Getenv(roleVariable) == "ordered"); err != nil {
		return err
	}
	// Halves, in reverse, and then those of one color alone.
	ctx := context.Background()
	half, err := w.Split(ctx, w.Rank()%2, -w.Rank())
	if err != nil {
		return err
	}
	if want := (w.Size() + 1 - w.Rank()%2) / 2; half.Size() != want || half.Rank() != want-1-w.Rank()/2 {
		return fmt.Errorf("half has rank %d of %d", half.Rank(), half.Size())
	}
	sum := []int32{int32(w.Rank())}
	if err := half.AllReduce(ctx, sum, sum, dist.Sum); err != nil {
		return err
	}
	want := int32(0)
	for r := w.Rank() % 2; r < w.Size(); r += 2 {
		want += int32(r)
	}
	if sum[0] != want {
		return fmt.Errorf("half's sum is %d, not %d", sum[0], want)
	}
	if w.LocalRank() != w.Rank() {
		return fmt.Errorf("local rank %d", w.LocalRank())
	}
	return nil
}

// signals finds out whether Go's handlers are in place.
func signals(w *dist.World) error {
	caught := func() (err error) {
		defer func() { err, _ = recover().(error) }()
		var p *int
		return fmt.Errorf("%d", *p)
	}()
	if caught == nil {
		return errors.New("a nil dereference was not recovered")
	}
	fault := func() (err any) {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		defer func() { err = recover() }()
		page, e := syscall.Mmap(-1, 0, 4096, syscall.PROT_NONE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
		if e != nil {
			return nil
		}
		defer syscall.Munmap(page)
		page[0] = 1
		return nil
	}()
	if fault == nil {
		return errors.New("a fault was not recovered")
	}
	got := make(chan os.Signal, 1)
	signal.Notify(got, syscall.SIGUSR1)
	if err := syscall.Kill(os.Getpid(), syscall.SIGUSR1); err != nil {
		return err
	}
	select {
	case <-got:
	case <-time.After(10 * time.Second):
		return errors.New("SIGUSR1 was not delivered")
	}
	var profile bytes.Buffer
	if err := pprof.StartCPUProfile(&profile); err != nil {
		return err
	}
	x := make([]float32, 1<<16)
	for end := time.Now().Add(500 * time.Millisecond); time.Now().Before(end); {
		reference(x, dist.Sum, [][]float32{x, x, x})
	}
	pprof.StopCPUProfile()
	if !bytes.Contains(unzip(profile.Bytes()), []byte("dist_test.reference")) {
		return errors.New("the profile has no sample of what ran")
	}
	return w.Barrier(context.Background())
}

// many makes many collectives while the collector runs.
func many(w *dist.World) error {
	n := 500
	if os.Getenv("WAVELANE_PROOFS") != "" {
		n = 100_000
	}
	ctx, stop := context.Background(), make(chan struct{})
	go func() {
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
				time.Sleep(time.Millisecond)
			}
		}
	}()
	defer close(stop)
	var before int
	var resident int64
	for i := range n {
		x := make([]float32, 1+i%100)
		for j := range x {
			x[j] = float32(i + j + w.Rank())
		}
		if err := w.AllReduce(ctx, x, x, dist.Sum); err != nil {
			return err
		}
		for j, got := range x {
			if want := float32(w.Size()*(i+j) + w.Size()*(w.Size()-1)/2); got != want {
				return fmt.Errorf("call %d, element %d: %v, not %v", i, j, got, want)
			}
		}
		if i == 100 {
			var err error
			before = runtime.NumGoroutine()
			if resident, err = residentMemory(); err != nil {
				return err
			}
		}
	}
	if after := runtime.NumGoroutine(); after > before+2 {
		return fmt.Errorf("%d goroutines after %d", after, before)
	}
	const least = 200 // bytes that a call would lose
	after, err := residentMemory()
	if err == nil && after-resident > 16<<20+least*int64(n) {
		err = fmt.Errorf("%d bytes of memory after %d", after, resident)
	}
	return err
}

// residentMemory returns how many bytes of the process are in memory, the MPI library's included.
func residentMemory() (int64, error) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	var size, resident int64
	_, err = fmt.Sscan(string(text), &size, &resident)
	return resident * int64(os.Getpagesize()), err
}

// messages sends in a ring, in both directions at once, and finds a wrong length.
func messages(w *dist.World) error {
	ctx, n := context.Background(), w.Size()
	right, left := (w.Rank()+1)%n, (w.Rank()+n-1)%n
	for _, length := range []int{0, 1, 77, 1 << 20, 1<<20 + 13} {
		out, in := make([]int32, length), make([]int32, length)
		for i := range out {
			out[i] = int32(w.Rank()*1000 + i)
		}
		for _, to := range []int{right, left} {
			from := left
			if to == left {
				from = right
			}
			sent := make(chan error, 1)
			go func() { sent <- w.Send(ctx, out, to) }()
			if err := w.Recv(ctx, in, from); err != nil {
				return err
			}
			if err := <-sent; err != nil {
				return err
			}
			for i, x := range in {
				if x != int32(from*1000+i) {
					return fmt.Errorf("element %d of %d is %d", i, length, x)
				}
			}
		}
	}
	return nil
}

// dying has the last rank go while the others wait for it.
func dying(w *dist.World, die func()) error {
	ctx := context.Background()
	if err := w.Barrier(ctx); err != nil {
		return err
	}
	if w.Rank() == w.Size()-1 {
		time.Sleep(100 * time.Millisecond)
		die()
	}
	x := make([]float32, 10_000)
	if err := w.AllReduce(ctx, x, x, dist.Sum); err != nil {
		return err
	}
	return errors.New("all-reduce with a dead member succeeded")
}

// cancelled has a context end in a barrier.
func cancelled(w *dist.World) error {
	if w.Rank() != 0 {
		time.Sleep(time.Hour)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	err := w.Barrier(ctx)
	var broken *dist.BrokenError
	if !errors.As(err, &broken) || !errors.Is(err, dist.ErrBroken) || !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the barrier returned %v", err)
	}
	if again := w.AllReduce(context.Background(), []int32{1}, []int32{1}, dist.Sum); again != err {
		return fmt.Errorf("the next call returned %v", again)
	}
	if closed := w.Close(); closed != err {
		return fmt.Errorf("Close returned %v", closed)
	}
	if err := os.WriteFile(filepath.Join(os.Getenv(folderVariable), "0"), []byte(broken.Call+" "+broken.Caller), 0o644); err != nil {
		return err
	}
	w.Abort(9)
	return nil
}

// differing records another collective on rank 1, of which Compile tells every rank; the next plan is fine.
func differing(w *dist.World) error {
	ctx := context.Background()
	d, err := cpu.Open(ctx)
	if err != nil {
		return err
	}
	defer d.Close()
	for _, wrong := range []bool{true, false} {
		b := batch.New(d)
		x := b.Upload([]float32{1, 2})
		if wrong && w.Rank() == 1 {
			b.Read(b.Broadcast(x, w, 0))
		} else {
			b.Read(b.AllReduce(x, w, dist.Max))
		}
		err := b.Run(ctx)
		if !wrong {
			return err
		}
		if !errors.Is(err, dist.ErrMismatch) ||
			!strings.Contains(err.Error(), "collective 1 of the batches for world: rank 0 has all_reduce[max] [[2]], rank 1 has broadcast[from 0] [[2]]") {
			return fmt.Errorf("unlike collectives: %v", err)
		}
	}
	return nil
}

// absent has a process not close.
func absent(w *dist.World) error {
	const wait = 300 * time.Millisecond
	dist.SetCloseTimeout(wait)
	if w.Rank() != 0 {
		time.Sleep(time.Hour)
	}
	start := time.Now()
	err := w.Close()
	took := time.Since(start)
	var broken *dist.BrokenError
	if !errors.As(err, &broken) || broken.Call != "Close" || !errors.Is(err, context.DeadlineExceeded) || took < wait || took > wait+20*time.Second {
		return fmt.Errorf("Close returned %v after %v", err, took)
	}
	if again := w.Barrier(context.Background()); again != err {
		return fmt.Errorf("a barrier after it returned %v", again)
	}
	if err := os.WriteFile(filepath.Join(os.Getenv(folderVariable), "0"), []byte(broken.Call+" "+broken.Caller), 0o644); err != nil {
		return err
	}
	w.Abort(9)
	return nil
}

// mixed has a message be on its way while a collective waits: rank 1 begins that only when it has received.
func mixed(w *dist.World) error {
	ctx, sum, x := context.Background(), []int32{1}, make([]float32, 1<<19+1)
	for round := range 20 {
		if w.Rank() == 1 {
			if err := w.Recv(ctx, x, 0); err != nil {
				return err
			}
			if last := x[len(x)-1]; last != float32(round) {
				return fmt.Errorf("round %d: received %v", round, last)
			}
			if err := w.AllReduce(ctx, sum, sum, dist.Sum); err != nil {
				return err
			}
			continue
		}
		reduced := make(chan error)
		go func() { reduced <- w.AllReduce(ctx, sum, sum, dist.Sum) }()
		time.Sleep(2 * time.Millisecond) // in which it begins
		x[len(x)-1] = float32(round)
		if err := w.Send(ctx, x, 1); err != nil {
			return err
		}
		if err := <-reduced; err != nil {
			return err
		}
	}
	if sum[0] != 1<<20 {
		return fmt.Errorf("the sum is %d", sum[0])
	}
	return nil
}

// family is an MPI library of Debian's, with its launcher.
type family struct {
	name, library string
	command       []string
}

var families = []family{
	{"Open MPI", "libmpi.so.40", []string{"mpirun.openmpi", "--oversubscribe", "--allow-run-as-root", "--bind-to", "none", "-np"}},
	{"MPICH", "libmpich.so.12", []string{"mpiexec.hydra", "-np"}},
}

// launched is what came of a job.
type launched struct {
	status int
	time   time.Duration
	output string
	files  []string // by rank, those that were written
}

func launch(t *testing.T, f family, ranks int, role string, env ...string) launched {
	t.Helper()
	folder := t.TempDir()
	exe, err := os.Executable()
	require.NoError(t, err)
	limit := 5 * time.Minute
	if os.Getenv("WAVELANE_PROOFS") != "" { // in which a busy machine takes long for many collectives
		limit = time.Hour
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, f.command[0], append(f.command[1:len(f.command):len(f.command)], strconv.Itoa(ranks), exe)...)
	cmd.Env = append(os.Environ(), append(env, roleVariable+"="+role, folderVariable+"="+folder, "GOMAXPROCS=2")...)
	if short {
		cmd.Env = append(cmd.Env, shortVariable+"=1")
	}
	cmd.WaitDelay = 10 * time.Second
	start := time.Now()
	out, err := cmd.CombinedOutput()
	l := launched{time: time.Since(start), output: string(out)}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		l.status = exit.ExitCode()
	} else {
		require.NoError(t, err, "scripts/setup test installs %s", f.name)
	}
	require.NoError(t, ctx.Err(), l.output)
	for r := range ranks {
		if b, err := os.ReadFile(filepath.Join(folder, strconv.Itoa(r))); err == nil {
			l.files = append(l.files, string(b))
		}
	}
	return l
}
