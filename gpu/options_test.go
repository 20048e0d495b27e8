package gpu

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/wgsl"
)

func TestOptionErrors(t *testing.T) {
	for name, o := range map[string]Option{
		"nil":        nil,
		"adapter":    WithAdapter(-1),
		"preference": WithPowerPreference(9),
		"memory":     WithMemoryLimit(0),
		"logger":     WithLogger(nil),
		"variant":    WithVariant("matmul", ""),
		"class":      WithVariant("", "naive"),
		"tune":       WithAutotune(9),
		"tune cache": WithTuneCache(""),
		"alignment":  WithLimits(wgsl.Caps{StorageAlign: 48}),
	} {
		_, err := Open(context.Background(), o)
		require.ErrorIs(t, err, compute.ErrArgument, name)
	}
	_, err := newConfig([]Option{WithLogger(slog.Default()), WithVariant("matmul", "naive"), WithDefaultLimits()})
	require.NoError(t, err)
}

func TestCancelledOpen(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := Open(ctx)
	require.ErrorIs(t, err, context.Canceled)
}

func TestChoose(t *testing.T) {
	soft := AdapterInfo{Name: "llvmpipe", Type: Software}
	weak := AdapterInfo{Name: "weak", Type: Integrated}
	fast := AdapterInfo{Name: "fast", Type: Discrete}
	cloud := AdapterInfo{Name: "cloud", Type: Virtual}
	direct := AdapterInfo{Name: "direct", Type: Discrete, Backend: "dx12"}
	warp := AdapterInfo{Name: "warp", Type: Software, Backend: "dx12"}
	number := func(list ...AdapterInfo) []AdapterInfo {
		for i := range list {
			list[i].Index = i
		}
		return list
	}
	for name, c := range map[string]struct {
		list []AdapterInfo
		opts []Option
		want string // name, or part of the error
	}{
		"nothing":               {nil, nil, "mesa-vulkan-drivers"},
		"discrete first":        {number(soft, weak, fast), nil, "fast"},
		"integrated if asked":   {number(soft, fast, weak), []Option{WithPowerPreference(LowPower)}, "weak"},
		"the only hardware":     {number(soft, weak), nil, "weak"},
		"virtual last":          {number(cloud, soft, weak), nil, "weak"},
		"virtual":               {number(soft, cloud), nil, "cloud"},
		"first of equals":       {number(fast, AdapterInfo{Name: "second", Type: Discrete}), nil, "fast"},
		"not Direct3D":          {number(direct, warp, weak, soft), nil, "weak"},
		"only Direct3D":         {number(direct, warp), nil, "WithAdapter"},
		"Direct3D by index":     {number(weak, direct), []Option{WithAdapter(1)}, "direct"},
		"Direct3D's software":   {number(warp, soft), []Option{WithSoftware()}, "llvmpipe"},
		"software only":         {number(soft), nil, "WithSoftware"},
		"software asked":        {number(fast, soft), []Option{WithSoftware()}, "llvmpipe"},
		"software missing":      {number(fast), []Option{WithSoftware()}, "no software adapter"},
		"by index":              {number(soft, fast, weak), []Option{WithAdapter(2)}, "weak"},
		"index of software":     {number(soft, fast), []Option{WithAdapter(0)}, "WithSoftware"},
		"index of software, ok": {number(soft, fast), []Option{WithAdapter(0), WithSoftware()}, "llvmpipe"},
		"index too large":       {number(soft, fast), []Option{WithAdapter(2)}, "no adapter 2 (adapters: 0: llvmpipe"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := newConfig(c.opts)
			require.NoError(t, err)
			got, err := choose(c.list, cfg)
			if err != nil {
				require.ErrorIs(t, err, compute.ErrUnavailable)
				require.ErrorContains(t, err, c.want)
				return
			}
			require.Equal(t, c.want, got.Name)
		})
	}
}

func TestInfoIsJSON(t *testing.T) {
	text, err := json.Marshal(AdapterInfo{Name: "x", Type: Discrete, Limits: wgsl.DefaultCaps, Features: []string{}})
	require.NoError(t, err)
	var back AdapterInfo
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, wgsl.DefaultCaps, back.Limits)
	require.Contains(t, string(text), `"type":"discrete"`)
}
