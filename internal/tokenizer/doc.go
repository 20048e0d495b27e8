// Package tokenizer turns text into tokens and back with the vocabulary of a GGUF file: SentencePiece in its BPE mode, and byte-level
// BPE. [New] reads it, [Tokenizer.Encode] and [Tokenizer.Decode] are inverse, and a [Stream] decodes tokens one by one.
package tokenizer
