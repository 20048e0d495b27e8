//go:build !js

package llm_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/testseed"
	"github.com/wavelane/wavelane/llm"
)

// TestJSONSchema has models whose weights are at random write JSON: with both kinds of vocabulary, in a session and beside others.
func TestJSONSchema(t *testing.T) {
	schema := []byte(`{"type": "object", "properties": {"name": {"type": "string", "maxLength": 6}, "sizes": {"items": {"type": "integer"}, "maxItems": 2},
		"kind": {"enum": ["a", "bc"]}}, "required": ["name", "kind"]}`)
	check := func(text string, finish llm.Finish) error {
		var x struct {
			Name  *string
			Sizes []json.Number
			Kind  string
		}
		if err := json.Unmarshal([]byte(text), &x); err != nil {
			return fmt.Errorf("%q: %w", text, err)
		}
		if x.Name == nil || len(x.Sizes) > 2 || x.Kind != "a" && x.Kind != "bc" || finish != llm.EndOfText {
			return fmt.Errorf("%q, %v", text, finish)
		}
		return nil
	}
	dev := device(t, "cpu")
	for _, vocabulary := range []string{"llama", "gpt2"} {
		r := small(testseed.Of(t))
		r.Tokenizer, r.Context = vocabulary, 256
		w := loaded(t, read(t, written(t, r)), dev)
		s := session(t, w)
		for seed := range uint64(4) {
			text, _, finish := said(t, s.Generate(t.Context(), "the", llm.WithJSONSchema(schema), llm.WithIgnoreEnd(),
				llm.WithSampling(llm.Sampling{Temperature: float64(seed), TopK: 40, Seed: seed})))
			require.NoError(t, check(text, finish))
		}
		many, err := w.NewScheduler(t.Context())
		require.NoError(t, err)
		var all sync.WaitGroup
		for seed := range uint64(4) {
			all.Go(func() {
				text, last := "", llm.Token{}
				for token, err := range many.Generate(t.Context(), "the", llm.WithJSONSchema(schema), llm.WithSampling(llm.Sampling{Temperature: 2, Seed: seed})) {
					if err != nil {
						t.Error(err)
						return
					}
					text, last = text+token.Text, token
				}
				if err := check(text, last.Finish); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		require.NoError(t, many.Close())

		// A text may end where it is whole, and only there.
		text, _, finish := said(t, s.Generate(t.Context(), "the", llm.WithJSONSchema([]byte(`{"enum": [1, 12]}`))))
		require.Regexp(t, `^\s*12?$`, text)
		require.Equal(t, llm.EndOfText, finish)
		err = failure(t, s.Generate(t.Context(), "the", llm.WithJSONSchema([]byte(`{"pattern": "a"}`))))
		require.ErrorIs(t, err, compute.ErrUnsupported)
		require.Equal(t, err, llm.CheckJSONSchema([]byte(`{"pattern": "a"}`)))
		require.NoError(t, llm.CheckJSONSchema(schema))
	}
}
