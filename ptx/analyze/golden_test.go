package analyze_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/ptx/analyze"
	"github.com/wavelane/wavelane/ptx/parse"
)

// Each module in testdata/golden has beside it what a user is told of it: why the parser refuses it, or what is found in it.
// -update writes that anew.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/golden/*.ptx")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			src, err := os.ReadFile(file)
			require.NoError(t, err)
			var told bytes.Buffer
			m, err := parse.Module(filepath.Base(file), src)
			if err != nil {
				told.WriteString(err.Error() + "\n")
			} else {
				require.NoError(t, analysed(t, m, analyze.Options{}).WriteText(&told))
			}
			pair := strings.TrimSuffix(file, ".ptx") + ".txt"
			if *update {
				require.NoError(t, os.WriteFile(pair, told.Bytes(), 0o644))
			}
			want, err := os.ReadFile(pair)
			require.NoError(t, err)
			require.Equal(t, string(want), told.String())
		})
	}
}
