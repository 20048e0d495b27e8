//go:build linux && (amd64 || arm64)

package dist_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/dist"
	"github.com/wavelane/wavelane/internal/testseed"
)

// TestMPI makes every collective on both libraries.
func TestMPI(t *testing.T) {
	for i, f := range families {
		for ranks := 1; ranks <= 4; ranks++ {
			if testing.Short() && ranks != 2 { // with the race detector
				continue
			}
			// Of the other numbers each family takes some, by the seed.
			if ranks != 2 && !testseed.Whole() && (uint64(ranks/2+i)+testseed.Value())%2 > 0 {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d", f.name, ranks), func(t *testing.T) {
				var env []string
				if ranks%2 == 1 { // the number of processes does not change how large data are cut
					env = []string{shortVariable + "=1"}
				}
				l := launch(t, f, ranks, "suite", env...)
				require.Zero(t, l.status, l.output)
				require.Len(t, l.files, ranks, l.output)
				require.Contains(t, l.files[0], fmt.Sprintf("0 of %d, %s,", ranks, f.name))
				t.Logf("%v: %s", l.time, l.files[0])
			})
		}
	}
}

// skipShort leaves out what has no goroutines to look at for the race detector.
func skipShort(t *testing.T) {
	if testing.Short() {
		t.Skip("makes the same calls as others, or none")
	}
}

func TestMPIInRankOrder(t *testing.T) {
	skipShort(t)
	for _, f := range families {
		l := launch(t, f, 3, "ordered", shortVariable+"=1")
		require.Zero(t, l.status, l.output)
		require.Len(t, l.files, 3, l.output)
	}
}

// TestMPICopied has no memory of the callers be sent from, as among several machines.
func TestMPICopied(t *testing.T) {
	skipShort(t)
	for _, f := range families {
		l := launch(t, f, 2, "copied")
		require.Zero(t, l.status, l.output)
		require.Len(t, l.files, 2, l.output)
	}
}

func TestMPIMessages(t *testing.T) {
	for _, f := range families {
		l := launch(t, f, 3, "messages")
		require.Zero(t, l.status, l.output)
		require.Len(t, l.files, 3, l.output)
	}
}

// TestMPIBatch has collectives be steps of batches.
func TestMPIBatch(t *testing.T) {
	for _, f := range families {
		l := launch(t, f, 3, "batch")
		require.Zero(t, l.status, l.output)
		require.Len(t, l.files, 3, l.output)
	}
}

// TestMPIMismatch has the members of a world record different collectives.
func TestMPIMismatch(t *testing.T) {
	for _, f := range families {
		l := launch(t, f, 3, "differ")
		require.Zero(t, l.status, l.output)
		require.Len(t, l.files, 3, l.output)
	}
}

// TestMPIMessagesBesideCollectives sends while a collective of the same process waits for who receives.
func TestMPIMessagesBesideCollectives(t *testing.T) {
	for _, f := range families {
		l := launch(t, f, 2, "mixed")
		require.Zero(t, l.status, l.output)
		require.Len(t, l.files, 2, l.output)
	}
}

// TestMPICloseAlone has a process wait in Close for another that never closes.
func TestMPICloseAlone(t *testing.T) {
	for _, f := range families {
		l := launch(t, f, 2, "absent")
		require.Equal(t, 9, l.status, l.output)
		require.Len(t, l.files, 1, l.output)
		require.True(t, strings.HasPrefix(l.files[0], "Close "), l.files[0])
		require.Contains(t, l.files[0], "worker_test.go:")
	}
}

func TestMPISignals(t *testing.T) {
	for _, f := range families {
		l := launch(t, f, 2, "signals")
		require.Zero(t, l.status, l.output)
		require.Len(t, l.files, 2, l.output)
	}
}

func TestMPIManyCollectives(t *testing.T) {
	for _, f := range families {
		l := launch(t, f, 2, "many")
		require.Zero(t, l.status, l.output)
		require.Len(t, l.files, 2, l.output)
		t.Logf("%s: %v", f.name, l.time)
	}
}

// TestMPIWrongLauncher has each launcher start programs with the other's library: without the check every process would be alone, and
// succeed.
func TestMPIWrongLauncher(t *testing.T) {
	skipShort(t)
	for i, f := range families {
		l := launch(t, f, 2, "signals", dist.LibraryVariable+"="+families[1-i].library)
		require.NotZero(t, l.status, l.output)
		require.Contains(t, l.output, dist.ErrLauncher.Error())
		require.Empty(t, l.files)
	}
}

func TestMPIMissingLibrary(t *testing.T) {
	skipShort(t)
	for _, f := range families {
		l := launch(t, f, 2, "signals", dist.LibraryVariable+"=libnothing.so.1")
		require.NotZero(t, l.status, l.output)
		require.Contains(t, l.output, "libnothing.so.1")
		require.Contains(t, l.output, "device unavailable")
		require.Empty(t, l.files)
	}
}

// TestMPIDeath has one of three processes end in several ways: the launcher ends the others. Hydra reports the status of the one that it
// sees end first, which may be one that it has killed itself.
func TestMPIDeath(t *testing.T) {
	skipShort(t)
	for _, f := range families {
		for role, want := range map[string][]int{"kill": {137, 9}, "panic": {2, 9}, "exit": {5, 9}, "abort": {7}} {
			t.Run(f.name+"/"+role, func(t *testing.T) {
				t.Parallel() // they wait for launchers
				l := launch(t, f, 3, role)
				require.Contains(t, want, l.status, l.output)
				require.Empty(t, l.files)
				require.Less(t, l.time, time.Minute)
				t.Logf("status %d after %v", l.status, l.time)
			})
		}
	}
}

// TestMPIWatchdog has a process not take part.
func TestMPIWatchdog(t *testing.T) {
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel() // they wait
			l := launch(t, f, 2, "hang")
			require.Equal(t, dist.StatusTimeout, l.status, l.output)
			require.Empty(t, l.files)
			for _, part := range []string{"rank 0 of world: AllReduce (sum) of 10000 float32, call 2, at ", "worker_test.go:", "not done after 3s", "goroutine "} {
				require.Contains(t, l.output, part)
			}
			require.Less(t, l.time, time.Minute)
			t.Logf("status %d after %v", l.status, l.time)
		})
	}
}

func TestMPICancelled(t *testing.T) {
	for _, f := range families {
		l := launch(t, f, 2, "cancel")
		require.Equal(t, 9, l.status, l.output)
		require.Len(t, l.files, 1, l.output)
		require.True(t, strings.HasPrefix(l.files[0], "Barrier "), l.files[0])
		require.Contains(t, l.files[0], "worker_test.go:")
	}
}
