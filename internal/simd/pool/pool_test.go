package pool

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/monotime"
)

type taskFunc func(part int)

func (f taskFunc) Do(part int) { f(part) }

func TestEachDoesEveryPartOnce(t *testing.T) {
	p := New(4)
	defer p.Close()
	for _, parts := range []int{0, 1, 2, 3, 4, 5, 100, 10_000} {
		for threads := range 7 {
			count := make([]atomic.Int32, parts)
			p.EachN(taskFunc(func(i int) { count[i].Add(1) }), parts, threads)
			for i := range count {
				require.EqualValues(t, 1, count[i].Load(), "part %d of %d on %d threads", i, parts, threads)
			}
		}
	}
	require.Empty(t, p.loops)
}

// As many parts are worked on at once as there are threads: each waits until all of them have one.
func TestPartsSideBySide(t *testing.T) {
	const n = 5
	for _, p := range []*Pool{New(n), New(0)} {
		var all sync.WaitGroup
		all.Add(n)
		p.EachN(taskFunc(func(int) {
			all.Done()
			all.Wait()
		}), n, n)
		p.Close()
	}
}

// Never more than the call allows, however many workers are idle.
func TestThreadsAreBounded(t *testing.T) {
	p := New(8)
	defer p.Close()
	for threads := 1; threads < 10; threads++ {
		var now, most atomic.Int32
		p.EachN(taskFunc(func(int) {
			n := now.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			time.Sleep(10 * time.Microsecond)
			now.Add(-1)
		}), 50, threads)
		require.LessOrEqual(t, int(most.Load()), min(threads, 8))
	}
	require.LessOrEqual(t, p.started, 8)
}

func TestNestedLoops(t *testing.T) {
	p := New(3)
	defer p.Close()
	var leaves atomic.Int32
	var nest func(depth int) Task
	nest = func(depth int) Task {
		return taskFunc(func(int) {
			if depth == 0 {
				leaves.Add(1)
				return
			}
			p.Each(nest(depth-1), 4)
		})
	}
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() { p.Each(nest(5), 4) })
	}
	callers.Wait()
	require.EqualValues(t, 4*4*4*4*4*4*4, leaves.Load())
}

func TestPanicReachesTheCaller(t *testing.T) {
	p := New(4)
	defer p.Close()
	own := errors.New("own")
	for _, where := range []string{"caller", "helper"} {
		for range 50 {
			var inside atomic.Int32
			caller := make(chan struct{})
			var once, first sync.Once
			require.PanicsWithError(t, "own", func() {
				p.Each(taskFunc(func(int) {
					inside.Add(1)
					defer inside.Add(-1)
					helper := true
					first.Do(func() { helper = false }) // one part waits for another thread, which alone panics or not
					if !helper {
						<-caller
						if where == "caller" {
							panic(own)
						}
						return
					}
					once.Do(func() { close(caller) })
					if where == "helper" {
						panic(own)
					}
				}), 64)
			})
			require.Zero(t, inside.Load(), "somebody is still at work")
		}
	}
	done := atomic.Int32{}
	p.Each(taskFunc(func(int) { done.Add(1) }), 100)
	require.EqualValues(t, 100, done.Load(), "the pool goes on")
}

func TestJobs(t *testing.T) {
	p := New(2)
	const n = 200
	var done sync.WaitGroup
	done.Add(n)
	var order []int
	var mu sync.Mutex
	for i := range n {
		p.Submit(&Job{Do: func() {
			mu.Lock()
			order = append(order, i)
			mu.Unlock()
			done.Done()
		}})
	}
	done.Wait()
	require.Len(t, order, n)
	require.LessOrEqual(t, p.started, 2)
	p.Close()
	late := make(chan struct{})
	p.Submit(&Job{Do: func() { close(late) }})
	<-late
	sum := atomic.Int32{}
	p.Each(taskFunc(func(i int) { sum.Add(int32(i)) }), 10)
	require.EqualValues(t, 45, sum.Load())
}

// Helpers leave a loop for a job.
func TestJobsGoFirst(t *testing.T) {
	p := New(2)
	p.started = 1 // pretends to be busy for good, so that there is one worker
	defer p.Close()
	const parts = 2000
	var done, atJob atomic.Int32
	var submit sync.Once
	p.Each(taskFunc(func(int) {
		done.Add(1)
		time.Sleep(10 * time.Microsecond)
		submit.Do(func() { p.Submit(&Job{Do: func() { atJob.Store(done.Load()) }}) })
	}), parts)
	require.Eventually(t, func() bool { return atJob.Load() > 0 }, time.Minute, time.Millisecond)
	require.Less(t, int(atJob.Load()), parts)
}

type nothing struct{ n atomic.Int64 }

func (t *nothing) Do(int) { t.n.Add(1) }

func TestEachAllocatesNothing(t *testing.T) {
	p := New(3)
	defer p.Close()
	task := &nothing{}
	p.Each(task, 10)
	require.Zero(t, testing.AllocsPerRun(100, func() { p.Each(task, 10) }))
}

func TestAwake(t *testing.T) {
	p := New(2)
	p.asked.Store(int64(monotime.Now().Add(-linger)))
	require.False(t, p.Awake())
	p.asked.Store(int64(monotime.Now().Add(time.Hour)))
	require.Equal(t, runtime.GOOS != "js", p.Awake())
}

func TestManyCallers(t *testing.T) {
	var all sync.WaitGroup
	var n atomic.Int64
	for range 16 {
		all.Go(func() {
			for range 200 {
				Shared().EachN(taskFunc(func(int) { n.Add(1) }), 7, 5)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 16*200*7, n.Load())
}

func BenchmarkEach(b *testing.B) {
	for _, threads := range []int{1, 2} {
		b.Run(map[int]string{1: "one", 2: "two"}[threads], func(b *testing.B) {
			p := New(threads)
			defer p.Close()
			task := &nothing{}
			for b.Loop() {
				p.Each(task, 2)
			}
		})
	}
}
