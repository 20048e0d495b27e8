package corpus

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/cpu"
)

// Real models give what ONNX Runtime gives, within 1e-4 and 1e-3 of the value.
func TestRealModels(t *testing.T) {
	dev, err := cpu.Open(t.Context())
	require.NoError(t, err)
	defer dev.Close()
	for _, name := range list(t, "real") {
		o := run(t.Context(), filepath.Join(cases(t), "real", name), dev)
		require.NoError(t, o.err, name)
		t.Logf("%s: largest difference %.3g of the tolerance", name, o.worst)
	}
}
