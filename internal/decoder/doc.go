// Package decoder runs decoder-only transformers from GGUF files, on any device: the network is one graph in package batch, of which the
// step of a token and the chunk of a prompt are two plans. It also has small models at random for tests and for trying.
//
// [Read] looks at a file, [Model.Load] brings its weights to a device, [Weights.NewSession] makes a sequence with its cache of
// keys and values, and [Session.Feed] continues it. [Weights.NewPaged] makes a cache for many sequences, which [Paged.Step] continues together.
//
// Sources: Touvron and others, "LLaMA" (2023); Yang and others, "Qwen2 Technical Report" (2024) and "Qwen3 Technical Report" (2025); Gemma
// Team, "Gemma 2" (2024) and "Gemma 3 Technical Report" (2025); Abdin and others, "Phi-3 Technical Report" (2024). Names of metadata and
// tensors are those of docs/gguf.md of github.com/ggml-org/ggml.
package decoder
