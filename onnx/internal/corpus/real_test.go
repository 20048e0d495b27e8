package corpus

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cpu"
	"github.com/wavelane/wavelane/cuda"
	"github.com/wavelane/wavelane/gpu"
	"github.com/wavelane/wavelane/onnx"
)

// Real models give what ONNX Runtime gives, within 1e-4 and 1e-3 of the value.
func TestRealModels(t *testing.T) {
	dev, err := cpu.Open(t.Context())
	require.NoError(t, err)
	defer dev.Close()
	real(t, dev)
}

func TestRealModelsOnWebGPU(t *testing.T) {
	dev, err := gpu.Open(t.Context(), gpu.WithSoftware(), gpu.WithAutotune(compute.TuneOff))
	require.NoError(t, err, "no software WebGPU adapter: 'scripts/setup test' installs it")
	defer dev.Close()
	real(t, dev, "ch_ppocr_mobile_v2.0_cls_infer", "silero_vad", "ch_PP-OCRv4_det_infer")
}

func TestRealModelsOnCUDA(t *testing.T) {
	dev, err := cuda.Open(t.Context(), cuda.WithSoftware(), cuda.WithCache(t.TempDir()))
	require.NoError(t, err)
	defer dev.Close()
	real(t, dev, "silero_vad")
}

// real runs all models, or a few where that takes long and it is not all that is asked for.
func real(t *testing.T, dev onnx.Device, few ...string) {
	for _, name := range list(t, "real") {
		if len(few) > 0 && !slices.Contains(few, name) && !all() {
			continue
		}
		o := run(t.Context(), filepath.Join(cases(t), "real", name), dev)
		require.NoError(t, o.err, name)
		t.Logf("%s: largest difference %.3g of the tolerance", name, o.worst)
	}
}
