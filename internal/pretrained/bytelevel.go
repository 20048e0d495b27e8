package pretrained

import (
	"fmt"
	"strings"

	"github.com/wavelane/wavelane/compute"
)

// What texts are cut by before bytes are merged, as folders state it, and the name that GGUF files give it. Where merges are ignored, a word that is
// a token is not cut further.
var cuts = []struct {
	stages  string // see cut
	ignored bool   // merges of words that are tokens
	name    string
}{
	{"bytes", false, "gpt-2"},
	{"digits bytes", false, "smollm"},
	{`split ` + modern + `\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*` + blanks, true, "llama-bpe"},
	{`split ` + modern + `\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*` + blanks, false, "dbrx"},
	{`split ` + modern + `\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*` + blanks, false, "qwen2"},
	{`split ` + modern + `[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*` + blanks, false, "qwen35"},
	{`split ` + word + `|` + capitals + `|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*` + blanks, true, "tekken"},
	{`split ` + word + contractions + `?|` + capitals + contractions + `?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*` + blanks, false, "gpt-4o"},
}

const (
	contractions = `(?i:'s|'t|'re|'ve|'m|'ll|'d)`
	modern       = contractions + `|[^\r\n\p{L}\p{N}]?`
	word         = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+`
	capitals     = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*`
	blanks       = `|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// cut writes the stages before bytes are merged in one line.
func (v *vocabulary) cut() (string, error) {
	var all []string
	for _, p := range v.PreTokenizer.flatten() {
		switch {
		case p.Type == "ByteLevel" && (p.AddPrefixSpace == nil || !*p.AddPrefixSpace):
			if p.UseRegex == nil || *p.UseRegex {
				all = append(all, "bytes")
			}
		case p.Type == "Digits" && p.Individual:
			all = append(all, "digits")
		case p.Type == "Split" && p.Pattern != nil && p.Pattern.Regex != "" && (p.Behavior == "Isolated" || p.Behavior == "Removed" && p.Invert):
			all = append(all, "split "+p.Pattern.Regex)
		default:
			return "", fmt.Errorf("a pre-tokenizer %q before merges of bytes: %w", p.Type, compute.ErrUnsupported)
		}
	}
	return strings.Join(all, " "), nil
}

// byteLevel is a vocabulary whose merges are of bytes.
func (v *vocabulary) byteLevel(m *image) error {
	m.set("tokenizer.ggml.model", "gpt2")
	for _, n := range v.Normalizer.flatten() {
		if n.Type != "NFC" { // texts are in that form, mostly, and llama.cpp does not see to it either
			return fmt.Errorf("a normalizer %q before merges of bytes: %w", n.Type, compute.ErrUnsupported)
		}
	}
	stages, err := v.cut()
	if err != nil {
		return err
	}
	name := ""
	for _, c := range cuts {
		if c.stages == stages && c.ignored == v.Model.IgnoreMerges {
			name = c.name
			break
		}
	}
	if name == "" {
		return fmt.Errorf("texts are cut by %.200q, words that are tokens are cut: %v: %w", stages, !v.Model.IgnoreMerges, compute.ErrUnsupported)
	}
	m.set("tokenizer.ggml.pre", name)
	merges := make([]string, len(v.merges))
	for i, p := range v.merges {
		merges[i] = p[0] + " " + p[1]
	}
	m.set("tokenizer.ggml.merges", merges)
	return nil
}
