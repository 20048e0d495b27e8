//go:build !js

package gpu

import (
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/batch"
)

// Goroutines run plans and single operations while the collector runs all the time: what the driver was given stays where it is, results
// are those of the call, and nothing piles up. In make proofs there are 10⁵ round trips; WAVELANE_ROUNDTRIPS sets any number.
func TestRoundTrips(t *testing.T) {
	const workers, n = 8, 1000
	trips := 800
	if os.Getenv("WAVELANE_PROOFS") == "all" {
		trips = 100_000
	}
	if s := os.Getenv("WAVELANE_ROUNDTRIPS"); s != "" {
		var err error
		trips, err = strconv.Atoi(s)
		require.NoError(t, err)
	}
	d := open(t)
	var stop atomic.Bool
	collected := make(chan struct{})
	go func() {
		defer close(collected)
		for !stop.Load() {
			runtime.GC()
		}
	}()
	defer func() { stop.Store(true); <-collected }()

	run := func(each int) {
		var all sync.WaitGroup
		work := func(w int) error {
			x, want := make([]float32, n), make([]float32, n)
			b := batch.New(d)
			in := b.Upload(x)
			r := b.Read(b.Add(b.Mul(in, in), b.Scalar(1)))
			p, err := b.Compile(ctx)
			if err != nil {
				return err
			}
			defer p.Close()
			for i := range each {
				x := make([]float32, n) // that the collector may take as soon as nobody needs it
				for k := range x {
					x[k] = float32((w + i + k) % 64)
					want[k] = x[k]*x[k] + 1
				}
				got := make([]float32, n)
				if i%4 == 3 {
					if err := d.Mul(ctx, got, x, x); err != nil {
						return err
					}
					for k := range got {
						got[k]++
					}
				} else {
					if err := p.SetInput(in, x); err != nil {
						return err
					}
					if err := p.Run(ctx); err != nil {
						return err
					}
					copy(got, r.Float32s())
				}
				if k := differ(got, want); k >= 0 {
					t.Errorf("worker %d, round trip %d: element %d is %v, want %v", w, i, k, got[k], want[k])
					return nil
				}
			}
			return nil
		}
		for w := range workers {
			all.Go(func() {
				if err := work(w); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
	run(trips / workers / 10) // pools and caches fill
	before, goroutines := d.Memory(), runtime.NumGoroutine()
	start := time.Now()
	run(trips / workers)
	t.Logf("%d round trips of 4 KB by %d goroutines: %v each", trips/workers*workers, workers, (time.Since(start) / time.Duration(trips)).Round(time.Microsecond))
	require.Eventually(t, func() bool {
		after := d.Memory()
		return after.InUse <= before.InUse && after.Buffers <= 32*workers && runtime.NumGoroutine() <= goroutines+1 // Eventually's
	}, 10*time.Second, time.Millisecond, "before %+v and %d goroutines, after %+v and %d", before, goroutines, d.Memory(), runtime.NumGoroutine())
}

// differ returns the first element that is not the same, or −1.
func differ(a, b []float32) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}
