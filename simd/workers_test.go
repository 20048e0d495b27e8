package simd

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// As many chunks are worked on at once as there are workers: each waits until all of them have one.
func TestWorkersWorkSideBySide(t *testing.T) {
	const n = 5
	w := startWorkers(n - 1) // the publisher is the fifth
	defer w.close()
	l := &loop{args: &args{stop: new(atomic.Bool)}, chunks: n}
	l.left.L = &w.mu
	w.count = n
	var all sync.WaitGroup
	all.Add(n)
	var done [n]atomic.Int32
	l.phase = &phase{units: n, grain: 1, do: func(_ *args, lo, hi int) {
		all.Done()
		all.Wait()
		for u := lo; u < hi; u++ {
			done[u].Add(1)
		}
	}}
	w.each(l)
	for u := range done {
		require.EqualValues(t, 1, done[u].Load())
	}
	require.Empty(t, w.loops)
}
