package llm_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/wavelane/wavelane/cpu"
	"github.com/wavelane/wavelane/internal/decoder"
	"github.com/wavelane/wavelane/llm"
)

// Example is the code of the guide.
func Example() {
	folder, err := os.MkdirTemp("", "llm")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "model.gguf")
	f, err := os.Create(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	model := decoder.Random{Architecture: "llama", Tokenizer: "llama", Blocks: 1, Width: 32, Hidden: 32, Heads: 2, KVHeads: 1, Context: 256,
		ChatTemplate: "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}", Seed: 1}
	if err := model.Write(f); err != nil {
		fmt.Println(err)
		return
	}
	if err := f.Close(); err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	dev, err := cpu.Open(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close()
	var out, answers strings.Builder
	log.SetOutput(&answers)
	defer log.SetOutput(os.Stderr)
	if err := guide(ctx, dev, path, &out); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(out.Len() > 32, strings.Count(answers.String(), "\n") >= 2) // what weights at random say
	// Output: true true
}

func guide(ctx context.Context, dev llm.Device, path string, out io.Writer) error {
	m, err := llm.Open(path)
	if err != nil {
		return err
	}
	defer m.Close()
	w, err := m.Load(ctx, dev) // the weights, in the blocks that the file has them in
	if err != nil {
		return err
	}
	defer w.Close()
	s, err := w.NewSession(ctx, llm.WithContext(256)) // one text; any number of sessions share the weights
	if err != nil {
		return err
	}
	defer s.Close()
	for token, err := range s.Generate(ctx, "The sea is", llm.WithMaxTokens(32)) {
		if err != nil {
			return err
		}
		fmt.Fprint(out, token.Text)
	}

	talk := []llm.Message{{Role: "system", Content: "Be brief."}, {Role: "user", Content: "Why is the sky blue?"}}
	for token, err := range s.Chat(ctx, talk, llm.WithMaxTokens(64), llm.WithStop("\n\n"),
		llm.WithSampling(llm.Sampling{Temperature: 0.7, TopK: 40, TopP: 0.9, Seed: 1})) {
		if err != nil {
			return err
		}
		fmt.Fprint(out, token.Text)
	}

	many, err := w.NewScheduler(ctx, llm.WithContext(256), llm.WithSequences(4)) // any number of goroutines may call it
	if err != nil {
		return err
	}
	defer many.Close()
	var all sync.WaitGroup
	for _, question := range []string{"Why is the sky blue?", "Why is the sea salty?"} {
		all.Go(func() {
			answer := ""
			for token, err := range many.Chat(ctx, []llm.Message{{Role: "user", Content: question}}, llm.WithMaxTokens(32)) {
				if err != nil {
					log.Print(err)
					return
				}
				answer += token.Text
			}
			log.Print(answer)
		})
	}
	all.Wait()

	e, err := w.NewEmbedder(ctx, llm.WithContext(256))
	if err != nil {
		return err
	}
	defer e.Close()
	vectors, err := e.Embed(ctx, "the sea", "the ocean")
	if err != nil {
		return err
	}
	likeness := 0.0 // of their directions, from -1 to 1
	for i, x := range vectors[0] {
		likeness += float64(x) * float64(vectors[1][i])
	}
	log.Print(likeness)
	return nil
}
