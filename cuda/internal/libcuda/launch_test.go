//go:build linux && !android && (amd64 || arm64)

package libcuda

import (
	"bytes"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/cuda/internal/driver"
)

// TestLaunch takes the four ways to launch, with numbers of parameters, and limits in every field.
func TestLaunch(t *testing.T) {
	s, r := openStub(t), random(t, 30)
	const most = math.MaxUint32
	for _, cluster := range [][3]uint32{{}, {2, 1, 1}, {0, 0, 1}, {most, most, most}} {
		for _, cooperative := range []bool{false, true} {
			for _, parameters := range []driver.Function{0, 1, 2, 7, 63} {
				fn := driver.Function(math.MaxUint64&^63) | parameters
				l := randomLaunch(r, fn)
				l.Grid, l.Block, l.Shared = [3]uint32{most, 0, 1}, [3]uint32{1024, most, 0}, most
				l.Cluster, l.Cooperative = cluster, cooperative
				before := *l
				require.Equal(t, driver.Success, s.LaunchKernel(fn, l, math.MaxUint64))
				require.Equal(t, launched(fn, l, math.MaxUint64), s.take())
				require.Equal(t, before, *l)
			}
		}
	}
}

// TestLaunchFromStack launches from a goroutine's stack, deep and shallow in turn, so that it grows and shrinks while the
// collector runs.
func TestLaunchFromStack(t *testing.T) {
	s := openStub(t)
	stop, stopped := make(chan bool), make(chan bool)
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	}()
	var dive func(depth int, b byte) string
	dive = func(depth int, b byte) string {
		var room [512]byte
		for i := range room {
			room[i] = b
		}
		if depth > 0 {
			got := dive(depth-1, b+1)
			if room[depth] != b {
				return "stack overwritten"
			}
			return got
		}
		l := driver.Launch{Grid: [3]uint32{uint32(b), 1, 1}, Block: [3]uint32{1, 1, 1}, Params: room[:],
			Offsets: []int{0, 16, 504}}
		s.LaunchKernel(3, &l, 2)
		if want := launched(3, &l, 2); s.take() != want {
			return "not " + want
		}
		return ""
	}
	for i := range 300 {
		require.Empty(t, dive(i%40, byte(i)))
	}
	close(stop)
	<-stopped
}

// TestNodeWithCluster asks for what CUDA_KERNEL_NODE_PARAMS cannot say.
func TestNodeWithCluster(t *testing.T) {
	s := openStub(t)
	require.Equal(t, driver.NotSupported, s.GraphExecKernelNodeSetParams(1, 2, 3, &driver.Launch{Cluster: [3]uint32{2, 1, 1}}))
	require.Empty(t, s.take())
}

// TestCaptureNode goes through what the library may say of a stream: status, and number of nodes.
func TestCaptureNode(t *testing.T) {
	s := openStub(t)
	const none, active, invalidated = 0, 1, 2
	for _, c := range []struct {
		status, nodes uint64
		want          driver.Result
	}{
		{none, 0, driver.InvalidValue},
		{none, 1, driver.InvalidValue},
		{invalidated, 1, driver.CaptureInvalidated},
		{active, 0, driver.NotFound},
		{active, 2, driver.NotFound},
		{active, 1, driver.Success},
	} {
		s.out(0, 77)
		s.out(captureStatus, c.status)
		s.out(captureNodes, c.nodes)
		node, result := s.StreamCaptureNode(5)
		require.Equal(t, c.want, result, "%+v", c)
		if c.want == driver.Success {
			require.Equal(t, driver.GraphNode(77), node)
		} else {
			require.Zero(t, node)
		}
	}
}

// TestLogs takes logs as libraries write them: counted or not, with a NUL or without, longer than the buffer, on success and on
// failure.
func TestLogs(t *testing.T) {
	s, r := openStub(t), random(t, 31)
	text := func(n int) string {
		return string(bytes.ReplaceAll(randomBytes(r, n), []byte{0}, []byte{1}))
	}
	const counted, countedWithNUL, uncounted, overcounted = 0, 1, 2, 3
	for _, mode := range []int32{counted, countedWithNUL, uncounted, overcounted} {
		for _, n := range []int{0, 1, 1000, logBytes - 1, logBytes, logBytes + 1} {
			for _, failing := range []string{"", "cuModuleLoadDataEx", "cuLinkAddData_v2", "cuLinkComplete", "cuLinkDestroy"} {
				info, failed := text(n), text(max(0, n-3))
				s.logs(info, failed, mode)
				s.fail(failing, driver.InvalidPTX)
				room := logBytes
				if mode != counted {
					room-- // for the NUL
				}
				var loaded, linked driver.JIT
				s.ModuleLoadData([]byte("ptx"), &loaded)
				_, result := s.Compile([]byte("ptx"), &linked)
				require.Equal(t, strings.HasPrefix(failing, "cuLink"), result != driver.Success)
				for _, j := range []driver.JIT{loaded, linked} {
					require.True(t, j.InfoLog == info[:min(n, room)], "mode %d, %d bytes, %q", mode, n, failing)
					require.True(t, j.ErrorLog == failed[:min(len(failed), room)], "mode %d, %d bytes, %q", mode, n, failing)
				}
				s.take()
			}
		}
	}
	s.fail("cuLinkCreate_v2", driver.OutOfMemory)
	j := driver.JIT{InfoLog: "old", ErrorLog: "old"}
	_, result := s.Compile(nil, &j)
	require.Equal(t, driver.OutOfMemory, result)
	require.Zero(t, j, "no log is no log, not that of the last call")
}

// TestNoOptions compiles and loads without a place for logs.
func TestNoOptions(t *testing.T) {
	s := openStub(t)
	s.out(cubinSize, 3)
	s.logs("", "", 0)
	cubin, result := s.Compile([]byte("ptx"), nil)
	require.Equal(t, driver.Success, result)
	require.Len(t, cubin, 3)
	s.take()
	_, result = s.ModuleLoadData(nil, nil)
	require.Equal(t, driver.Success, result)
	require.Equal(t, line("cuModuleLoadDataEx", `""`, "info 65536", "error 65536"), s.take())
}

// TestNames gives names that C would cut.
func TestNames(t *testing.T) {
	s := openStub(t)
	_, result := s.ModuleGetFunction(1, "kernel\x00s")
	require.Equal(t, driver.NotFound, result)
	_, _, result = s.ModuleGetGlobal(1, "\x00")
	require.Equal(t, driver.NotFound, result)
	require.Empty(t, s.take())
	s.ModuleGetFunction(1, "")
	require.Equal(t, line("cuModuleGetFunction", 1, `""`), s.take())
}

// TestResultText asks for results that no library knows.
func TestResultText(t *testing.T) {
	s := openStub(t)
	require.Equal(t, "text of -1", s.ResultText(-1))
	require.Equal(t, "CUresult 12345", s.ResultText(12345))
}
