package tokenizer

import (
	_ "embed"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// What regular expressions with look-ahead cut texts into; testdata/words.py writes it.
//
//go:embed testdata/words.json
var wordsJSON []byte

func TestWords(t *testing.T) {
	var all map[string][]goldenCase
	require.NoError(t, json.Unmarshal(wordsJSON, &all))
	require.Len(t, all, 6)
	for pre, cases := range all {
		c, ok := cutterOf(pre)
		require.True(t, ok, pre)
		words := c.words()
		for _, x := range cases {
			got := []string{}
			words(x.Text, func(w string) { got = append(got, w) })
			require.Equal(t, x.Words, got, "%s %q", pre, x.Text)
		}
	}
}
