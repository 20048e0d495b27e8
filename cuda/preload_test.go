package cuda

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/cuda/internal/softgpu"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/parse"
)

// All families load, with the parameters that their lowerings fill in and the blocks that they launch, and are found again
// without another call.
func TestPreloadLoadsTheCatalogue(t *testing.T) {
	if testing.Short() { // for the race detector
		t.Skip("its goroutines are those of TestPreloadLoadsModules")
	}
	d, g := openSoft(t, softgpu.Config{})
	begin := time.Now()
	own, err := d.Preload(t.Context())
	require.NoError(t, err)
	require.Empty(t, own)
	families := kit.Families()
	require.NotEmpty(t, families)
	n := 0
	for _, f := range families {
		n += len(f.Kernels)
	}
	t.Logf("%d kernels of %d families in %v", n, len(families), time.Since(begin).Round(time.Millisecond))
	require.Equal(t, len(families), g.Live().Modules)
	before := g.Calls()
	for _, f := range families {
		for _, k := range f.Kernels {
			handle, err := d.catalogueKernel(k, false)
			require.NoError(t, err)
			require.NotZero(t, handle)
			loaded := d.loader.families[f.Name].loaded.Load().kernels[k.Name]
			require.Equal(t, xyz(uint32(k.Block[0]), uint32(k.Block[1]), uint32(k.Block[2])), loaded.RequiredBlock())
			layout, err := k.Layout()
			require.NoError(t, err)
			require.Equal(t, layout, loaded.layout)
		}
	}
	_, err = d.Preload(t.Context())
	require.NoError(t, err)
	require.Equal(t, before, g.Calls())
}

func named(t *testing.T, name string) *ir.Module {
	m, err := parse.Module("", []byte(strings.Replace(addText, "add(", name+"(", 1)))
	require.NoError(t, err)
	return m
}

// fewFamilies leaves a device the first families of kernels: to load all takes ten seconds of a core, a minute with the race detector.
func fewFamilies(d *Device) {
	for _, f := range kit.Families()[3:] {
		delete(d.loader.families, f.Name)
	}
}

func TestPreloadLoadsModules(t *testing.T) {
	d, g := openSoft(t, softgpu.Config{})
	fewFamilies(d)
	var modules []*ir.Module
	for i := range 9 {
		modules = append(modules, named(t, fmt.Sprint("add", i)))
	}
	own, err := d.Preload(t.Context(), modules...)
	require.NoError(t, err)
	for i, m := range own {
		require.Equal(t, []string{fmt.Sprint("add", i)}, m.Kernels())
	}
	live := g.Live()
	// One that fails takes the others with it.
	early, err := parse.Module("", []byte(newText))
	require.NoError(t, err)
	modules[5] = early
	none, err := d.Preload(t.Context(), modules...)
	require.Nil(t, none)
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Contains(t, e.Log, ".version 7.8")
	require.Contains(t, err.Error(), "module 5: ")
	modules[5] = nil
	_, err = d.Preload(t.Context(), modules...)
	require.ErrorIs(t, err, compute.ErrArgument)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = d.Preload(ctx, modules[:3]...)
	require.ErrorIs(t, err, context.Canceled)
	for _, m := range own {
		require.NoError(t, m.Close())
	}
	live.Modules -= len(own)
	require.Equal(t, live, g.Live())
}

// A family that could not be loaded is tried again; many goroutines load it once.
func TestFamilyLoadsOnce(t *testing.T) {
	fail := &injector{}
	d, g := openSoft(t, softgpu.Config{Inject: fail.next})
	k := kit.Families()[0].Kernels[0]
	fail.set("ModuleLoadData", driver.OutOfMemory)
	_, err := d.catalogueKernel(k, false)
	require.ErrorIs(t, err, compute.ErrOutOfMemory)
	require.Contains(t, err.Error(), "family "+k.Family)
	calls := g.Calls()["ModuleLoadData"]
	var wg sync.WaitGroup
	var handles sync.Map
	for range 8 {
		wg.Go(func() {
			f, err := d.catalogueKernel(k, false)
			handles.Store([2]any{f, err}, true)
		})
	}
	wg.Wait()
	n := 0
	handles.Range(func(key, _ any) bool {
		n++
		require.Nil(t, key.([2]any)[1])
		return true
	})
	require.Equal(t, 1, n)
	require.EqualValues(t, 1, g.Calls()["ModuleLoadData"]-calls)
}

func TestSideBySide(t *testing.T) {
	var running, most, done atomic.Int32
	piece := func() error {
		for n := running.Add(1); ; {
			m := most.Load()
			if n <= m || most.CompareAndSwap(m, n) {
				break
			}
		}
		time.Sleep(time.Millisecond)
		running.Add(-1)
		done.Add(1)
		return nil
	}
	work := make([]func() error, 20)
	for i := range work {
		work[i] = piece
	}
	require.NoError(t, side(t.Context(), nil))
	require.NoError(t, side(t.Context(), work))
	require.EqualValues(t, 20, done.Load())
	require.LessOrEqual(t, most.Load(), int32(abreast))
	require.Greater(t, most.Load(), int32(1))
	bad := errors.New("bad")
	work[7] = func() error { return bad }
	for i := 8; i < len(work); i++ { // long enough for the failure to get about
		work[i] = func() error { time.Sleep(20 * time.Millisecond); return piece() }
	}
	done.Store(0)
	require.ErrorIs(t, side(t.Context(), work), bad)
	require.Less(t, done.Load(), int32(19))
}
