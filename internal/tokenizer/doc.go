// Package tokenizer turns text into tokens and back with the vocabulary of a GGUF file: SentencePiece, byte-level BPE, and
// WordPiece. [New] reads it, [Tokenizer.Encode] and [Tokenizer.Decode] are inverse, and a [Stream] decodes tokens one by one.
package tokenizer
