package simd_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/conformance"
	"github.com/wavelane/wavelane/simd"
)

func TestMain(m *testing.M) {
	code := m.Run()
	fmt.Print(conformance.Summary())
	os.Exit(code)
}

func open(t testing.TB, opts ...simd.Option) *simd.Device {
	d, err := simd.Open(opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

func TestConformance(t *testing.T) {
	d := open(t)
	conformance.Run(t, fmt.Sprintf("cpu (%s, %d workers)", d.Info().Tier, d.Info().Workers), d)
}
