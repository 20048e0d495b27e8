//go:build !js

package pretrained_test

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/pretrained"
	"github.com/wavelane/wavelane/internal/tokenizer"
	"github.com/wavelane/wavelane/quant"
	"github.com/wavelane/wavelane/quant/gguf"
)

// number, float and text append fields of a protobuf message.
func number(b []byte, field int, v uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(field)<<3), v)
}

func float(b []byte, field int, v float32) []byte {
	return binary.LittleEndian.AppendUint32(binary.AppendUvarint(b, uint64(field)<<3|5), math.Float32bits(v))
}

func text[T string | []byte](b []byte, field int, v T) []byte {
	return append(binary.AppendUvarint(binary.AppendUvarint(b, uint64(field)<<3|2), uint64(len(v))), v...)
}

// piecesOf is tokenizer.model for the vocabulary of a file, of a kind.
func piecesOf(t testing.TB, f *gguf.File, kind uint64) []byte {
	tokens, err := gguf.Values[string](f, "tokenizer.ggml.tokens")
	require.NoError(t, err)
	kinds, err := gguf.Values[int32](f, "tokenizer.ggml.token_type")
	require.NoError(t, err)
	scores, err := gguf.Values[float32](f, "tokenizer.ggml.scores")
	require.NoError(t, err)
	var b []byte
	for i, s := range tokens {
		p := float(text(nil, 1, s), 2, scores[i])
		if kinds[i] != 1 { // which is the default
			p = number(p, 3, uint64(kinds[i]))
		}
		b = text(b, 1, p)
	}
	b = text(b, 2, number(number(float(nil, 10, 0.9995), 4, uint64(len(tokens))), 3, kind))
	if kind == 2 {
		b = text(b, 3, number(text(nil, 1, "identity"), 4, 0))
	}
	return b
}

// withPieces is a folder with tokenizer.model in place of tokenizer.json.
func withPieces(t testing.TB, kind string, pieces uint64) (*gguf.File, string) {
	f, dir := written(t, kind, samples[kind], 1)
	require.NoError(t, os.Remove(filepath.Join(dir, "tokenizer.json")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tokenizer.model"), piecesOf(t, f, pieces), 0o666))
	return f, dir
}

// TestPieces compares with the same vocabularies in GGUF files.
func TestPieces(t *testing.T) {
	for kind, pieces := range map[string]uint64{"llama": 2, "xlm-roberta": 1} {
		file, dir := withPieces(t, kind, pieces)
		f, err := pretrained.Open(dir, pretrained.Options{})
		require.NoError(t, err)
		defer f.Close()
		want, err := tokenizer.New(file)
		require.NoError(t, err)
		got, err := tokenizer.New(f.File)
		require.NoError(t, err)
		require.True(t, want.Same(got))
		for _, text := range texts {
			tokens := want.Encode(text)
			if kind == "xlm-roberta" {
				tokens = tokens[1 : len(tokens)-1] // what goes around texts, the file does not say
			}
			require.Equal(t, tokens, append([]int32{}, got.Encode(text)...), "%q", text)
			require.Equal(t, want.Decode(tokens), got.Decode(tokens))
		}
	}
}

// TestAddedPieces has tokens in tokenizer_config.json besides.
func TestAddedPieces(t *testing.T) {
	file, dir := withPieces(t, "llama", 2)
	n, err := gguf.Values[string](file, "tokenizer.ggml.tokens")
	require.NoError(t, err)
	save(t, dir, "added_tokens.json", dict{"<|im_end|>": len(n), "plus": len(n) + 1})
	for _, settings := range []dict{{}, {"added_tokens_decoder": dict{"1": dict{"content": "<s>", "special": true},
		"0": dict{"content": "<unk>", "special": true}, strconv.Itoa(len(n)): dict{"content": "<|im_end|>", "special": true}}}} {
		save(t, dir, "tokenizer_config.json", settings)
		f, err := pretrained.Open(dir, pretrained.Options{})
		require.NoError(t, err)
		defer f.Close()
		x, err := tokenizer.New(f.File)
		require.NoError(t, err)
		require.Contains(t, x.Encode("the<|im_end|>"), int32(len(n)))
		require.True(t, x.Ends(int32(len(n))))
		require.Equal(t, len(settings) == 0, x.Len() == len(n)+2)
	}
}

func TestPiecesErrors(t *testing.T) {
	one := text(nil, 1, "a")
	for _, c := range []struct {
		pieces []byte
		want   error
		says   string
	}{
		{[]byte{0x80}, pretrained.ErrMalformed, "without a number"},
		{[]byte{0x08, 0x80}, pretrained.ErrMalformed, "cut off"},
		{[]byte{0x0d, 1, 2, 3}, pretrained.ErrMalformed, "cut off"},
		{[]byte{0x09, 1, 2, 3, 4, 5, 6, 7}, pretrained.ErrMalformed, "cut off"},
		{[]byte{0x0a, 5, 1}, pretrained.ErrMalformed, "5 bytes of 1"},
		{[]byte{0x0b}, pretrained.ErrMalformed, "wire type 3"},
		{text(text(nil, 1, one), 1, one), pretrained.ErrMalformed, "there already"},
		{text(nil, 1, number(one, 3, 9)), pretrained.ErrMalformed, "kind 9"},
		{text(nil, 2, number(nil, 3, 3)), compute.ErrUnsupported, "type 3"},
		{text(nil, 2, number(nil, 24, 1)), compute.ErrUnsupported, "words that end in marks"},
		{text(nil, 3, number(nil, 5, 0)), compute.ErrUnsupported, "words that end in marks"},
		{text(nil, 2, number(nil, 3, 2)), compute.ErrUnsupported, "spaces left out"},
		{text(text(nil, 2, number(nil, 3, 2)), 3, text(number(nil, 4, 0), 2, "x")), compute.ErrUnsupported, "characters are replaced"},
	} {
		_, dir := withPieces(t, "llama", 2)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "tokenizer.model"), c.pieces, 0o666))
		_, err := pretrained.Open(dir, pretrained.Options{})
		require.ErrorIs(t, err, c.want, c.says)
		require.ErrorContains(t, err, c.says)
	}
	_, dir := withPieces(t, "llama", 2)
	save(t, dir, "tokenizer_config.json", dict{"added_tokens_decoder": dict{"one": dict{"content": "x"}}})
	_, err := pretrained.Open(dir, pretrained.Options{})
	require.ErrorIs(t, err, pretrained.ErrMalformed)
}

// FuzzPieces reads any tokenizer.model: an error, or a tokenizer.
func FuzzPieces(f *testing.F) {
	file, dir := withPieces(f, "llama", 2)
	for kind := range uint64(3) {
		f.Add(piecesOf(f, file, kind), []byte(`{"added_tokens_decoder": {"999": {"content": "x", "special": true}}}`))
	}
	f.Fuzz(func(t *testing.T, pieces, settings []byte) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "tokenizer.model"), pieces, 0o666))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "tokenizer_config.json"), settings, 0o666))
		m, err := pretrained.Open(dir, pretrained.Options{Format: quant.Q8_0})
		if err != nil {
			return
		}
		defer m.Close()
		readAll(t, m.File)
	})
}
