//go:build !js

package main

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
)

func listed(t *testing.T, args ...string) (list []listedKernel) {
	status, out, errOut := call(t.Context(), append([]string{"kernels", "--json"}, args...)...)
	require.Zero(t, status, errOut)
	require.NoError(t, json.Unmarshal([]byte(out), &list))
	return list
}

// Every operation of the catalogue that computes has a kernel on every device, and every PTX kernel there is is listed.
func TestKernels(t *testing.T) {
	list := listed(t)
	uses := map[string]map[string]bool{"cuda": {}, "gpu": {}, "cpu": {}}
	ptx := 0
	for _, k := range list {
		require.Contains(t, uses, k.Device)
		require.NotEmpty(t, k.Name)
		require.NotEmpty(t, k.Family, k.Name)
		for _, e := range k.Entries {
			require.NotNil(t, catalogue.Lookup(e), "%s of %s is no entry", e, k.Name)
			uses[k.Device][e] = true
		}
		switch k.Device {
		case "cuda":
			ptx++
			require.NotEmpty(t, k.Parameters, k.Name)
			require.Positive(t, k.Block[0], k.Name)
			for _, c := range k.Compiled {
				require.Positive(t, c.Registers, k.Name)
			}
		case "gpu":
			require.NotNil(t, k.WebGPU)
			require.NotEmpty(t, k.WebGPU.Bindings, k.Name)
			require.LessOrEqual(t, k.WebGPU.Shared, 16384, k.Name)
		default:
			require.NotEmpty(t, k.Tiers, k.Name)
		}
	}
	n := 0
	for _, f := range kit.Families() {
		n += len(f.Kernels)
	}
	require.Equal(t, n, ptx)
	// What only moves memory as a whole needs no kernel.
	for _, e := range catalogue.All() {
		for device, used := range uses {
			copies := slices.Contains([]string{"copy", "reshape", "fill"}, e.Name)
			require.True(t, used[e.Name] || copies, "%s has no kernel on %s: go generate ./internal/ptxkernels ./wgsl", e.Name, device)
		}
	}
}

func TestKernelsPicked(t *testing.T) {
	for _, k := range listed(t, "softmax") {
		require.True(t, k.Name == "softmax" || slices.Contains(k.Entries, "softmax"))
	}
	for _, k := range listed(t, "--device", "cuda", "--family", "rows") {
		require.Equal(t, []string{"cuda", "rows"}, []string{k.Device, k.Family})
	}
	status, out, _ := call(t.Context(), "kernels")
	require.Zero(t, status)
	for _, head := range []string{"CUDA", "WEBGPU", "CPU", "rows/softmax"} {
		require.Contains(t, out, head)
	}
	for _, wrong := range [][]string{{"--device", "tpu"}, {"--family", "none"}, {"no_such_kernel"}, {"a", "b"}} {
		status, _, errOut := call(t.Context(), append([]string{"kernels"}, wrong...)...)
		require.Equal(t, 2, status, wrong)
		require.NotEmpty(t, errOut)
	}
}
