//go:build !js

package benchmarks

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func durations(n ...int) (list []time.Duration) {
	for _, d := range n {
		list = append(list, time.Duration(d))
	}
	return list
}

const peerVariable = "WAVELANE_TEST_PEER"

// TestMain is a peer in a process that a test has started: one that takes 3 ms for everything, knows no softmax, and dies of
// argmax.
func TestMain(m *testing.M) {
	if os.Getenv(peerVariable) == "" {
		os.Exit(m.Run())
	}
	if os.Getenv(peerVariable) == "mute" {
		os.Exit(3)
	}
	fmt.Println(`{"name": "stopwatch"}`)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var r Request
		switch err := json.Unmarshal(in.Bytes(), &r); {
		case err != nil || len(r.Shapes) == 0 || r.Calls < 1:
			fmt.Println(`{"error": "what?"}`)
		case r.Op == "softmax":
			fmt.Println(`{"error": "no softmax"}`)
		case r.Op == "argmax":
			os.Exit(1)
		default:
			fmt.Println(`{"seconds": 0.003}`)
		}
	}
}

func named(t *testing.T, name string) *Benchmark {
	for _, b := range All() {
		if b.Name == name {
			return &b
		}
	}
	require.Fail(t, "no benchmark "+name)
	return nil
}

func TestPeer(t *testing.T) {
	t.Setenv(peerVariable, "yes")
	exe, err := os.Executable()
	require.NoError(t, err)
	peer, err := StartPeer(t.Context(), exe)
	require.NoError(t, err)
	require.Equal(t, "stopwatch", peer.Name)
	dev := software(t)
	o := Options{Runs: 3, Budget: time.Minute, Peer: peer}

	r, err := named(t, "cuda_add").Measure(t.Context(), dev, o)
	require.NoError(t, err)
	require.Equal(t, "stopwatch", r[1].Way)
	require.Equal(t, 3*time.Millisecond, r[1].Median)
	require.Equal(t, 3, r[1].Runs)
	require.InEpsilon(t, float64(r[1].Median)/float64(r[0].Median), r[1].Relative, 1e-9)
	require.Equal(t, "device copy", r[2].Way)

	r, err = named(t, "cuda_softmax").Measure(t.Context(), dev, o)
	require.NoError(t, err)
	last := r[len(r)-1]
	require.Contains(t, last.Error, "no softmax")
	require.Zero(t, last.Runs)
	require.Equal(t, "device copy", r[1].Way)

	_, err = named(t, "cuda_argmax").Measure(t.Context(), dev, o)
	require.ErrorContains(t, err, "it has ended")
	require.Error(t, peer.Close(), "its exit status")

	t.Setenv(peerVariable, "mute")
	_, err = StartPeer(t.Context(), exe)
	require.ErrorContains(t, err, "it has ended")
	_, err = StartPeer(t.Context(), exe+".is.not.there")
	require.Error(t, err)
}
