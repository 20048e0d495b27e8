//go:build !js

package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// Without a launcher, check measures a world of one.
func TestDistCheck(t *testing.T) {
	for _, v := range []string{"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "RANK", "WAVELANE_DIST_ENGINE"} {
		t.Setenv(v, "")
	}
	var out, errOut bytes.Buffer
	require.Zero(t, execute(t.Context(), []string{"dist", "check", "--time", "1ms", "--bytes", "4,1024", "--json"}, &out, &errOut), errOut.String())
	var r distReport
	require.NoError(t, json.Unmarshal(out.Bytes(), &r))
	require.Equal(t, "none", r.World.Engine)
	require.Len(t, r.Ranks, 1)
	require.Contains(t, r.Ranks[0].Device, ": ")
	require.Len(t, r.Measured, 11, "five collectives of two sizes, and the barrier")
	for _, m := range r.Measured {
		require.Positive(t, m.Median, m.Collective)
		require.Positive(t, m.Memory, m.Collective)
	}
	out.Reset()
	require.Zero(t, execute(t.Context(), []string{"dist", "check", "--time", "1ms", "--bytes", "4", "--device", "cpu"}, &out, &errOut), errOut.String())
	require.Contains(t, out.String(), "local rank 0, cpu: ")
	require.Contains(t, out.String(), "all-reduce")
	require.Equal(t, 2, execute(t.Context(), []string{"dist", "check", "--bytes", "5"}, &out, &errOut))
	require.Equal(t, 2, execute(t.Context(), []string{"dist", "check", "--time", "0s"}, &out, &errOut))
}
