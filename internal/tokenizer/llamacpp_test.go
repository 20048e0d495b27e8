package tokenizer

import (
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/quant/gguf"
)

// What llama.cpp makes of real vocabularies; testdata/llamacpp.py writes it.
var (
	//go:embed testdata/vocabularies.json
	vocabulariesJSON []byte

	realVocabularies = flag.String("vocabularies", "", "folder of whole vocabularies with texts and tokens, as llama.cpp has it in models")
)

// repeated is the metadata of a file, with changes.
func repeated(t testing.TB, name string, changes map[string]any) *gguf.File {
	from, err := gguf.Open(name)
	require.NoError(t, err)
	defer from.Close()
	var pairs []any
	for _, key := range from.Keys() {
		v, _ := from.Value(key)
		if other, ok := changes[key]; ok {
			v = other
		}
		pairs = append(pairs, key, v)
	}
	return metadataFile(t, pairs...)
}

func TestRealVocabularies(t *testing.T) {
	var all map[string]struct {
		Ends  []int32
		Cases map[string][]goldenCase
	}
	require.NoError(t, json.Unmarshal(vocabulariesJSON, &all))
	require.Len(t, all, 4)
	for name, v := range all {
		for pre, cases := range v.Cases {
			require.NotEmpty(t, cases)
			x, err := New(repeated(t, filepath.Join("testdata", "vocabulary-"+name+".gguf"), map[string]any{ggml + "pre": pre}))
			require.NoError(t, err)
			x.addBOS, x.sep = false, -1
			for id := range int32(x.Len()) {
				if v.Ends == nil { // an encoder's
					break
				}
				// llama.cpp goes by the names alone, even of tokens that ordinary text has.
				want := slices.Contains(v.Ends, id) && x.kinds[id] != normalToken
				require.Equal(t, want, x.Ends(id), "%s %q", name, x.pieces[id])
			}
			for _, c := range cases {
				require.Equal(t, c.Tokens, append([]int32{}, x.Encode(c.Text)...), "%s %s %q", name, pre, c.Text)
			}
		}
	}
}

// TestVocabularyFiles reads vocabularies as models have them: those that are cut down, or whole ones with llama.cpp's texts and
// tokens beside them where the flag says so.
func TestVocabularyFiles(t *testing.T) {
	folder := "testdata"
	if *realVocabularies != "" {
		folder = *realVocabularies
	}
	files, err := filepath.Glob(filepath.Join(folder, "*vocab*.gguf"))
	require.NoError(t, err)
	known := 0
	for _, name := range files {
		f, err := gguf.Open(name)
		require.NoError(t, err, name)
		defer f.Close()
		x, err := New(f)
		if errors.Is(err, gguf.ErrMissing) { // older files
			require.ErrorContains(t, err, "tokenizer.ggml.pre")
			continue
		} else if err != nil {
			require.ErrorIs(t, err, compute.ErrUnsupported, name)
			continue
		}
		known++
		texts, err := os.ReadFile(name + ".inp")
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		require.NoError(t, err)
		x.addBOS, x.sep = false, -1
		tokens, err := os.ReadFile(name + ".out")
		require.NoError(t, err)
		lines := strings.Split(string(tokens), "\n")
		for i, text := range strings.Split(string(texts), "\n__ggml_vocab_test__\n") {
			got := x.Encode(text)
			require.Equal(t, strings.Join(strings.Fields(lines[i]), " "), strings.Trim(fmt.Sprint(got), "[]"), "%s %q", name, text)
			switch x.alphabet.(type) {
			case *wordPieces, *unigram: // which change texts
			default:
				require.Equal(t, text, x.Decode(got))
			}
		}
		t.Log(filepath.Base(name))
	}
	require.Positive(t, known)
}
