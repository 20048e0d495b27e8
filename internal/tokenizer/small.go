package tokenizer

import "strings"

// WriteSmall sets the metadata of a vocabulary that spells every text, for models with random weights, and returns how many tokens it
// has. The model is "llama" (SentencePiece), "t5" (Unigram), "gpt2" (byte-level BPE) or "bert" (WordPiece).
func WriteSmall(set func(key string, value any), model string) int {
	words := strings.Fields("th he in er an re on at en nd the and ing tion is to of")
	var tokens []string
	var kinds []int32
	add := func(kind int32, list ...string) {
		for _, s := range list {
			tokens, kinds = append(tokens, s), append(kinds, kind)
		}
	}
	set("tokenizer.ggml.model", model)
	switch model {
	case "bert":
		add(controlToken, "[PAD]")
		add(unknownToken, "[UNK]")
		add(controlToken, "[CLS]", "[SEP]")
		for c := 'a'; c <= 'z'; c++ {
			add(normalToken, string(c), spaceMark+string(c))
		}
		for _, s := range words {
			add(normalToken, s, spaceMark+s)
		}
		set("tokenizer.ggml.unknown_token_id", uint32(1))
		set("tokenizer.ggml.cls_token_id", uint32(2))
		set("tokenizer.ggml.seperator_token_id", uint32(3)) // as files spell it
	case "llama", "t5":
		add(unknownToken, "<unk>")
		add(controlToken, "<s>", "</s>")
		for b := range 256 {
			add(byteToken, byteName(byte(b)))
		}
		add(normalToken, spaceMark)
		for c := 'a'; c <= 'z'; c++ {
			add(normalToken, string(c))
		}
		add(normalToken, words...)
		for _, s := range words {
			add(normalToken, spaceMark+s)
		}
		scores := make([]float32, len(tokens))
		for i := range scores {
			scores[i] = -float32(i)
		}
		if model == "t5" {
			for i, s := range tokens { // so that longer ones are better
				scores[i] = -16 - float32(i)/64 + float32(len(s))
			}
			set("tokenizer.ggml.add_bos_token", true)
			set("tokenizer.ggml.remove_extra_whitespaces", true)
		}
		set("tokenizer.ggml.scores", scores)
		set("tokenizer.ggml.unknown_token_id", uint32(0))
		set("tokenizer.ggml.bos_token_id", uint32(1))
		set("tokenizer.ggml.eos_token_id", uint32(2))
	default:
		add(normalToken, spelling().letters[:]...)
		var merges []string
		for _, s := range words {
			if len(s) == 2 {
				add(normalToken, s)
				merges = append(merges, s[:1]+" "+s[1:])
			}
		}
		add(normalToken, "the", "Ġthe")
		merges = append(merges, "th e", "Ġ the")
		add(controlToken, "<|endoftext|>", "<|im_start|>", "<|im_end|>")
		set("tokenizer.ggml.pre", "qwen2")
		set("tokenizer.ggml.merges", merges)
		set("tokenizer.ggml.bos_token_id", uint32(len(tokens)-3))
		set("tokenizer.ggml.eos_token_id", uint32(len(tokens)-3))
		set("tokenizer.ggml.add_bos_token", false)
	}
	set("tokenizer.ggml.tokens", tokens)
	set("tokenizer.ggml.token_type", kinds)
	return len(tokens)
}
