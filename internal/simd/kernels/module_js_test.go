package kernels

import (
	"slices"
	"strings"
	"syscall/js"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSideModuleIsLoaded(t *testing.T) {
	require.NoError(t, Missing())
	require.Contains(t, Available(), SIMD128)
	require.NoError(t, SetTier(SIMD128))
	defer func() { active, forcedErr = forced("") }()
	// The same call with the side module disconnected computes nothing: it is the side module that computes.
	x, y := make([]float32, 100), make([]float32, 100)
	for i := range x {
		x[i] = float32(i)
	}
	connected := module
	object := js.Global().Get("Array").New()
	module = object
	Add(y, x, x)
	module = connected
	require.Equal(t, make([]float32, 100), y)
	Add(y, x, x)
	require.Equal(t, float32(198), y[99])
}

// reload starts over, with a constructor of the WebAssembly object replaced by a function of that body, unless it is empty.
func reload(t *testing.T, code []byte, name, body string) {
	assembly := js.Global().Get("WebAssembly")
	original := assembly.Get(name)
	tiers, tier, forcedBefore, err, connected := available, active, forcedErr, loadErr, module
	t.Cleanup(func() {
		assembly.Set(name, original)
		available, active, forcedErr, loadErr, module = tiers, tier, forcedBefore, err, connected
	})
	if body != "" {
		assembly.Set(name, js.Global().Get("Function").New(body))
	}
	module = js.Value{}
	loadErr = load(code)
	available, active = []Tier{Scalar}, Scalar
}

// settled says that nothing goes on in the background any longer.
func settled() bool { return loadErr == nil || !strings.HasPrefix(loadErr.Error(), "not yet") }

func TestLoadsInBackground(t *testing.T) {
	for _, name := range []string{"Module", "Instance"} {
		t.Run(name, func(t *testing.T) {
			reload(t, moduleCode, name, "throw new RangeError('too large for the main thread')")
			require.ErrorContains(t, Missing(), "no simd128: not yet: JavaScript error: too large for the main thread")
			require.Equal(t, []Tier{Scalar}, Available())
			require.Eventually(t, settled, time.Minute, time.Millisecond)
			require.NoError(t, Missing())
			require.Equal(t, []Tier{Scalar, SIMD128}, Available())
			require.Equal(t, SIMD128, Active())
		})
	}
}

func TestEngineWithoutSIMD(t *testing.T) {
	code := slices.Clone(moduleCode)
	code[len(code)-relaxedLen-40] ^= 0xff
	reload(t, code, "Module", "")
	require.ErrorContains(t, Missing(), "no simd128: ")
	require.Eventually(t, settled, time.Minute, time.Millisecond)
	require.ErrorContains(t, Missing(), "no simd128: JavaScript error: ")
	require.Equal(t, Scalar, Active())
}

func TestForeignMemory(t *testing.T) {
	reload(t, moduleCode, "Memory", "this.x = 1") // of which the program's memory is no instance
	require.ErrorContains(t, Missing(), "no simd128: the Go program's memory is not where Go 1.26 has it")
	require.Equal(t, Scalar, Active())
}

func TestCallsAllocateNothing(t *testing.T) {
	require.NoError(t, SetTier(SIMD128))
	x, y := make([]float32, 1000), make([]float32, 1000)
	require.Zero(t, testing.AllocsPerRun(100, func() { Add(y, x, x) }))
	require.Zero(t, testing.AllocsPerRun(100, func() { Sum(x) }))
}

// TestOperandsOnStack calls kernels with local arrays from ever deeper stacks, which move when they grow.
func TestOperandsOnStack(t *testing.T) {
	require.NoError(t, SetTier(SIMD128))
	var deeper func(depth int)
	deeper = func(depth int) {
		var x, y [128]float32
		for i := range x {
			x[i] = float32(depth + i)
		}
		Add(y[:], x[:], x[:])
		for i := range x {
			require.Equal(t, 2*x[i], y[i])
		}
		if depth < 200 {
			deeper(depth + 1)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		deeper(0)
	}()
	<-done
}

// TestMemoryGrows calls kernels while the Go program's memory grows.
func TestMemoryGrows(t *testing.T) {
	require.NoError(t, SetTier(SIMD128))
	memory, err := goMemory()
	require.NoError(t, err)
	size := func() int { return memory.Get("buffer").Get("byteLength").Int() }
	start := size()
	var keep [][]float32
	for size() == start {
		x := make([]float32, 1<<20)
		for i := range x {
			x[i] = float32(i)
		}
		Add(x, x, x)
		require.Equal(t, float32(2<<20-2), x[1<<20-1])
		keep = append(keep, x)
	}
	x := make([]float32, 1<<20)
	Add(x, keep[0], keep[len(keep)-1])
	require.Equal(t, float32(4<<20-4), x[1<<20-1])
}
