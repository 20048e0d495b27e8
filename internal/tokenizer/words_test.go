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
	var all struct {
		Texts []string
		Words map[string][][]int // bytes of each word
	}
	require.NoError(t, json.Unmarshal(wordsJSON, &all))
	require.Len(t, all.Words, 21)
	for pre, lengths := range all.Words {
		c, ok := cutterOf(pre)
		require.True(t, ok, pre)
		words := c.words()
		require.Len(t, lengths, len(all.Texts))
		for i, text := range all.Texts {
			var got, want []string
			words(text, func(w string) { got = append(got, w) })
			at := 0
			for _, n := range lengths[i] {
				want = append(want, text[at:at+n])
				at += n
			}
			require.Equal(t, want, got, "%s %q", pre, text)
		}
	}
}
