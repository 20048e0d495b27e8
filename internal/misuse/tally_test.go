package misuse

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/testseed"
)

const (
	// A call may take so long, by the clock and by the processor time of all threads: on a machine that is busy with other work a minute
	// of the clock is nothing, and what waits for something that never comes takes no processor time.
	mostTime, mostComputing = 20 * time.Minute, 2 * time.Minute
	// single names the environment variable that chooses one call by its number.
	single = "WAVELANE_MISUSE"
)

// classes are the errors that calls may wrap.
var classes = map[string]error{
	"shape": compute.ErrShape, "type": compute.ErrDType, "argument": compute.ErrArgument, "unavailable": compute.ErrUnavailable,
	"unsupported": compute.ErrUnsupported, "lost": compute.ErrDeviceLost, "memory": compute.ErrOutOfMemory, "too large": compute.ErrTooLarge,
	"closed": compute.ErrClosed, "foreign": compute.ErrForeignTensor, "not finite": compute.ErrNotFinite, "diverged": compute.ErrDiverged,
	"in flight": compute.ErrInFlight, "not run": compute.ErrNotRun, "cancelled": context.Canceled, "deadline": context.DeadlineExceeded,
}

// outcome is what a call ended with: "ok", the classes of its error, or why it must not end so, which begins with an exclamation mark.
type outcome struct {
	class   string
	err     error
	results []any
}

func classOf(err error) string {
	if err == nil {
		return "ok"
	}
	var is []string
	for name, sentinel := range classes {
		if errors.Is(err, sentinel) {
			is = append(is, name)
		}
	}
	if len(is) == 0 {
		return "!no sentinel: " + err.Error()
	}
	slices.Sort(is)
	return strings.Join(is, "+")
}

// guarded makes a call. One that does not return in time goes on.
func guarded(call func() (error, []any)) outcome {
	done := make(chan outcome, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				done <- outcome{class: fmt.Sprintf("!panic: %v\n%s", p, debug.Stack())}
			}
		}()
		err, results := call()
		done <- outcome{classOf(err), err, results}
	}()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for start, used := time.Now(), processorTime(); ; {
		select {
		case o := <-done:
			return o
		case <-tick.C:
			if took, computed := time.Since(start), processorTime()-used; took > mostTime || computed > mostComputing {
				return outcome{class: fmt.Sprintf("!no return in %v, %v of processor time", took, computed)}
			}
		}
	}
}

// tally counts outcomes.
type tally struct {
	calls, bad int
	classes    map[string]int
}

func (n *tally) add(where string, o outcome) {
	n.calls++
	if n.classes == nil {
		n.classes = map[string]int{}
	}
	if !strings.HasPrefix(o.class, "!") {
		n.classes[where+": "+o.class]++
	}
}

func (n *tally) log(t *testing.T) {
	t.Logf("%d calls, %d of them wrong", n.calls, n.bad)
	for _, k := range slices.Sorted(maps.Keys(n.classes)) {
		t.Logf("%8d %s", n.classes[k], k)
	}
}

// each makes calls 0 to count−1, or those that fit into the time of "make proofs", or the one that WAVELANE_MISUSE names. It ends with
// the twentieth wrong call.
func each(t *testing.T, count int, share time.Duration, call func(r *rand.Rand) (wrong string)) (made, bad int) {
	seed := testseed.Of(t)
	begin, end := 0, count
	var until time.Time
	if one := os.Getenv(single); one != "" {
		i, err := strconv.Atoi(one)
		if err != nil {
			t.Fatalf("%s: %v", single, err)
		}
		begin, end = i, i+1
	} else if os.Getenv("WAVELANE_PROOFS") == "all" {
		until, end = time.Now().Add(share), 1<<40
	} else if testing.Short() {
		end = max(1, count/20)
	}
	for i := begin; i < end && (until.IsZero() || time.Now().Before(until)); i++ {
		made++
		if wrong := call(rand.New(rand.NewPCG(seed, uint64(i)))); wrong != "" {
			t.Errorf("%s=%d %s=%d go test -run '^%s$' .\n%s", testseed.Variable, seed, single, i, t.Name(), wrong)
			if bad++; bad == 20 {
				t.Fatal("too many wrong calls")
			}
		}
	}
	return made, bad
}
