package testseed_test

import (
	"flag"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/testseed"
)

func TestSeed(t *testing.T) {
	want := uint64(1)
	if s := os.Getenv(testseed.Variable); s != "" {
		var err error
		want, err = strconv.ParseUint(s, 0, 64)
		require.NoError(t, err)
	}
	require.Equal(t, want, testseed.Of(t))
	require.Equal(t, strconv.FormatUint(max(want, 1), 10), flag.Lookup("rapid.seed").Value.String())
	require.NotEqual(t, testseed.Rand(t).Uint64(), testseed.Rand(t).Uint64(), "two sources of one test")
}
