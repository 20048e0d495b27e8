package pretrained

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wavelane/wavelane/compute"
)

// tokenizerFile is tokenizer.json.
type tokenizerFile struct {
	Added         []addedToken `json:"added_tokens"`
	Normalizer    *stage       `json:"normalizer"`
	PreTokenizer  *stage       `json:"pre_tokenizer"`
	PostProcessor *stage       `json:"post_processor"`
	Model         struct {
		Type         string          `json:"type"`
		Vocabulary   json.RawMessage `json:"vocab"`
		Merges       json.RawMessage `json:"merges"`
		ByteFallback bool            `json:"byte_fallback"`
		IgnoreMerges bool            `json:"ignore_merges"`
		Unknown      string          `json:"unk_token"`
		UnknownID    *int            `json:"unk_id"`
		Continuing   string          `json:"continuing_subword_prefix"`
		EndOfWord    string          `json:"end_of_word_suffix"`
	} `json:"model"`
}

type addedToken struct {
	ID      int    `json:"id"`
	Content string `json:"content"`
	Special bool   `json:"special"`
}

// stage is a step before or after the model of a tokenizer; which fields it has depends on its type.
type stage struct {
	Type           string          `json:"type"`
	Normalizers    []stage         `json:"normalizers"`
	PreTokenizers  []stage         `json:"pretokenizers"`
	Processors     []stage         `json:"processors"`
	Pattern        *pattern        `json:"pattern"`
	Behavior       string          `json:"behavior"`
	Invert         bool            `json:"invert"`
	Content        string          `json:"content"`
	Prepend        string          `json:"prepend"`
	Individual     bool            `json:"individual_digits"`
	UseRegex       *bool           `json:"use_regex"`
	AddPrefixSpace *bool           `json:"add_prefix_space"`
	Scheme         string          `json:"prepend_scheme"`
	Replacement    string          `json:"replacement"`
	Split          *bool           `json:"split"`
	Lowercase      *bool           `json:"lowercase"`
	StripAccents   *bool           `json:"strip_accents"`
	StripRight     bool            `json:"strip_right"`
	StripLeft      bool            `json:"strip_left"`
	Charsmap       []byte          `json:"precompiled_charsmap"`
	Single         json.RawMessage `json:"single"`
}

type pattern struct {
	Regex  string
	String string
}

// scored is a token of a Unigram vocabulary, which is a list of pairs.
type scored struct {
	piece string
	score float32
}

func (s *scored) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &[]any{&s.piece, &s.score}) }

// flatten lists the stages of a sequence.
func (s *stage) flatten() []stage {
	if s == nil {
		return nil
	}
	if s.Type != "Sequence" {
		return []stage{*s}
	}
	var all []stage
	for _, list := range [][]stage{s.Normalizers, s.PreTokenizers, s.Processors} {
		for i := range list {
			if list[i].Type == "Sequence" { // no more than one level, so that nesting is bounded
				all = append(all, stage{Type: "Sequence of sequences"})
				continue
			}
			all = append(all, list[i])
		}
	}
	return all
}

// Kinds of tokens, with the numbers of tokenizer.ggml.token_type.
const (
	normalToken  int32 = 1
	unknownToken int32 = 2
	controlToken int32 = 3
	userToken    int32 = 4
	unusedToken  int32 = 5
	byteToken    int32 = 6
)

// vocabulary is the tokens of a folder.
type vocabulary struct {
	tokenizerFile
	settings map[string]any // of tokenizer_config.json
	tokens   []string
	kinds    []int32
	ids      map[string]int
	merges   [][2]string
	scores   []float32   // of a Unigram vocabulary
	pieces   *pieceModel // in place of tokenizer.json
}

// mostTokens bounds the numbers of tokens.
const mostTokens = 1 << 22

// writeTokenizer sets the metadata of the tokenizer and the chat template.
func writeTokenizer(m *image, folder string, c *config) error {
	v := &vocabulary{}
	if err := optionalJSON(folder, "tokenizer_config.json", &v.settings); err != nil {
		return err
	}
	err := readJSON(folder, "tokenizer.json", &v.tokenizerFile)
	if errors.Is(err, fs.ErrNotExist) {
		if other := v.readPieces(folder); !errors.Is(other, fs.ErrNotExist) {
			err = other
		}
	}
	if err != nil {
		return err
	}
	if err := v.read(); err != nil {
		return fmt.Errorf("tokenizer: %w", err)
	}
	switch {
	case v.pieces != nil:
		v.writePieces(m)
	case v.Model.Type == "WordPiece":
		err = v.wordPiece(m)
	case v.Model.Type == "Unigram":
		err = v.unigram(m)
	case v.Model.ByteFallback:
		err = v.sentencePiece(m)
	default:
		err = v.byteLevel(m)
	}
	if err != nil {
		return fmt.Errorf("tokenizer.json: %w", err)
	}
	m.set("tokenizer.ggml.tokens", v.tokens)
	m.set("tokenizer.ggml.token_type", v.kinds)
	if err := v.ends(m, folder, c); err != nil {
		return err
	}
	return v.template(m, folder)
}

// read reads tokens and merges.
func (v *vocabulary) read() error {
	if !slices.Contains([]string{"BPE", "WordPiece", "Unigram"}, v.Model.Type) {
		return fmt.Errorf("a vocabulary of type %q, need BPE, WordPiece or Unigram: %w", v.Model.Type, compute.ErrUnsupported)
	}
	if v.Model.EndOfWord != "" {
		return fmt.Errorf("words that end in %q: %w", v.Model.EndOfWord, compute.ErrUnsupported)
	}
	if err := v.readIDs(); err != nil {
		return err
	}
	most := len(v.ids)
	for _, a := range v.Added {
		most = max(most, a.ID+1)
	}
	for _, id := range v.ids {
		most = max(most, id+1)
	}
	if most > mostTokens || most > 4*(len(v.ids)+len(v.Added))+1024 {
		return fmt.Errorf("a token has the number %d, and there are %d: %w", most-1, len(v.ids), ErrMalformed)
	}
	v.tokens, v.kinds = make([]string, most), slices.Repeat([]int32{unusedToken}, most)
	put := func(id int, s string, kind int32) error {
		if id < 0 || v.kinds[id] != unusedToken && v.tokens[id] != s {
			return fmt.Errorf("token %q has the number %d: %w", s, id, ErrMalformed)
		}
		v.tokens[id], v.kinds[id] = s, kind
		return nil
	}
	for s, id := range v.ids {
		if err := put(id, s, normalToken); err != nil {
			return err
		}
	}
	for _, a := range v.Added {
		kind := userToken
		if a.Special {
			kind = controlToken
		}
		if err := put(a.ID, a.Content, kind); err != nil {
			return err
		}
		v.ids[a.Content] = a.ID
	}
	for i, k := range v.kinds {
		if k == unusedToken {
			v.tokens[i] = fmt.Sprintf("[PAD%d]", i)
		}
	}
	return v.readMerges()
}

// readIDs reads the tokens of the model: numbers by name, or a list in their order.
func (v *vocabulary) readIDs() error {
	switch {
	case v.pieces != nil:
		return nil
	case v.Model.Type != "Unigram":
		return parseJSON("vocab", v.Model.Vocabulary, &v.ids)
	}
	var list []scored
	if err := parseJSON("vocab", v.Model.Vocabulary, &list); err != nil {
		return err
	}
	v.ids = make(map[string]int, len(list))
	for i, x := range list {
		if _, twice := v.ids[x.piece]; twice {
			return fmt.Errorf("token %q has two numbers, one is %d: %w", x.piece, i, ErrMalformed)
		}
		v.ids[x.piece] = i
		v.scores = append(v.scores, x.score)
	}
	return nil
}

// readMerges reads pairs, which are strings with a space between or lists of two.
func (v *vocabulary) readMerges() error {
	if v.Model.Type != "BPE" || v.pieces != nil {
		return nil
	}
	if err := json.Unmarshal(v.Model.Merges, &v.merges); err == nil {
		return nil
	}
	var lines []string
	if err := parseJSON("merges", v.Model.Merges, &lines); err != nil {
		return err
	}
	v.merges = make([][2]string, len(lines))
	for i, s := range lines {
		left, right, ok := strings.Cut(s, " ")
		if !ok || left == "" || right == "" {
			return fmt.Errorf("merge %d is %q: %w", i, s, ErrMalformed)
		}
		v.merges[i] = [2]string{left, right}
	}
	return nil
}

// wordPiece is BERT's vocabulary, in which GGUF files mark the pieces that begin a word and not the others.
func (v *vocabulary) wordPiece(m *image) error {
	m.set("tokenizer.ggml.model", "bert")
	if v.Model.Continuing != "##" {
		return fmt.Errorf("pieces that continue words begin with %q: %w", v.Model.Continuing, compute.ErrUnsupported)
	}
	n := v.Normalizer
	if n == nil || n.Type != "BertNormalizer" || n.Lowercase == nil || !*n.Lowercase || n.StripAccents != nil && !*n.StripAccents {
		return fmt.Errorf("texts that are not in lower case without accents: %w", compute.ErrUnsupported)
	}
	if v.PreTokenizer == nil || v.PreTokenizer.Type != "BertPreTokenizer" {
		return fmt.Errorf("words are not cut as BERT's: %w", compute.ErrUnsupported)
	}
	for i, name := range []string{v.Model.Unknown, v.setting("cls_token", "[CLS]"), v.setting("sep_token", "[SEP]")} {
		id, ok := v.ids[name]
		if !ok {
			return fmt.Errorf("there is no token %q: %w", name, ErrMalformed)
		}
		if i == 0 {
			v.kinds[id] = unknownToken
		}
		m.set("tokenizer.ggml."+[]string{"unknown", "cls", "seperator"}[i]+"_token_id", uint32(id)) // as files spell it
	}
	for i, s := range v.tokens {
		if v.kinds[i] != normalToken {
			continue
		}
		if rest, ok := strings.CutPrefix(s, "##"); ok {
			v.tokens[i] = rest
		} else {
			v.tokens[i] = "▁" + s
		}
	}
	return nil
}

// sentencePiece is a vocabulary whose texts have marks for spaces, and bytes for what has no token. GGUF files have scores instead of merges: a
// token's is the higher the earlier it is merged.
func (v *vocabulary) sentencePiece(m *image) error {
	m.set("tokenizer.ggml.model", "llama")
	prefix := false
	for _, n := range v.Normalizer.flatten() {
		switch {
		case n.Type == "Prepend" && n.Prepend == "▁":
			prefix = true
		case n.Type == "Replace" && n.Pattern != nil && n.Pattern.String == " " && n.Content == "▁":
		default:
			return fmt.Errorf("a normalizer %q before merges with bytes: %w", n.Type, compute.ErrUnsupported)
		}
	}
	for _, p := range v.PreTokenizer.flatten() {
		switch {
		case p.Type == "Metaspace" && p.Replacement == "▁" && (p.Split == nil || !*p.Split):
			prefix = prefix || p.Scheme == "first" || p.Scheme == "always" || p.Scheme == "" && (p.AddPrefixSpace == nil || *p.AddPrefixSpace)
		case p.Type == "Split" && p.Pattern != nil && p.Pattern.String == " " && p.Behavior == "MergedWithPrevious": // there are no spaces left
		default:
			return fmt.Errorf("a pre-tokenizer %q before merges with bytes: %w", p.Type, compute.ErrUnsupported)
		}
	}
	m.set("tokenizer.ggml.add_space_prefix", prefix)
	scores, merged := make([]float32, len(v.tokens)), make([]bool, len(v.tokens))
	for i, pair := range v.merges {
		if id, ok := v.ids[pair[0]+pair[1]]; ok && !merged[id] {
			merged[id], scores[id] = true, -float32(i)
		}
	}
	for i, s := range v.tokens {
		switch {
		case s == v.Model.Unknown && v.Model.Unknown != "":
			v.kinds[i] = unknownToken
			m.set("tokenizer.ggml.unknown_token_id", uint32(i))
		case v.kinds[i] != normalToken:
		case byteNamed(s):
			v.kinds[i] = byteToken
		case !merged[i] && len([]rune(s)) > 1:
			v.kinds[i] = unusedToken // nothing is merged to it
		}
	}
	m.set("tokenizer.ggml.scores", scores)
	return nil
}

// unigram is SentencePiece's vocabulary with scores. Spaces at the ends of texts and all but one of several are left out if words are cut at white
// space, or runs of spaces replaced.
func (v *vocabulary) unigram(m *image) error {
	m.set("tokenizer.ggml.model", "t5")
	prefix, merged := false, false
	for _, n := range v.Normalizer.flatten() {
		switch {
		case n.Type == "Precompiled":
			if len(n.Charsmap) > 0 && m.keys["tokenizer.ggml.precompiled_charsmap"] == nil {
				m.set("tokenizer.ggml.precompiled_charsmap", n.Charsmap)
			}
		case n.Type == "Replace" && n.Pattern != nil && n.Pattern.Regex == " {2,}" && (n.Content == " " || n.Content == "▁"):
			merged = true
		case n.Type == "Strip" && n.StripRight && !n.StripLeft: // with runs of spaces
		default:
			return fmt.Errorf("a normalizer %q before a Unigram vocabulary: %w", n.Type, compute.ErrUnsupported)
		}
	}
	for _, p := range v.PreTokenizer.flatten() {
		switch {
		case p.Type == "WhitespaceSplit":
			merged = true
		case p.Type == "Metaspace" && p.Replacement == "▁":
			prefix = p.Scheme == "first" || p.Scheme == "always" || p.Scheme == "" && (p.AddPrefixSpace == nil || *p.AddPrefixSpace)
			for i, s := range v.tokens {
				if (p.Split == nil || *p.Split) && v.kinds[i] == normalToken && strings.LastIndex(s, "▁") > 0 {
					v.kinds[i] = unusedToken // as words are cut before marks
				}
			}
		default:
			return fmt.Errorf("a pre-tokenizer %q before a Unigram vocabulary: %w", p.Type, compute.ErrUnsupported)
		}
	}
	m.set("tokenizer.ggml.add_space_prefix", prefix)
	m.set("tokenizer.ggml.remove_extra_whitespaces", merged)
	unknown := v.Model.UnknownID
	if unknown == nil || *unknown < 0 || *unknown >= len(v.scores) {
		return fmt.Errorf("\"unk_id\" is none of %d tokens: %w", len(v.scores), ErrMalformed)
	}
	v.kinds[*unknown] = unknownToken
	m.set("tokenizer.ggml.unknown_token_id", uint32(*unknown))
	for i, s := range v.tokens {
		if v.Model.ByteFallback && v.kinds[i] == normalToken && byteNamed(s) {
			v.kinds[i] = byteToken
		}
	}
	m.set("tokenizer.ggml.scores", append(v.scores, make([]float32, len(v.tokens)-len(v.scores))...))
	return nil
}

// byteNamed reports the name of a token of a byte.
func byteNamed(s string) bool { return len(s) == 6 && strings.HasPrefix(s, "<0x") && s[5] == '>' }

// setting is a token of tokenizer_config.json, which is a text or an object with one.
func (v *vocabulary) setting(key, otherwise string) string {
	switch x := v.settings[key].(type) {
	case string:
		return x
	case map[string]any:
		if s, ok := x["content"].(string); ok {
			return s
		}
	}
	return otherwise
}

// ends sets the tokens between which texts are.
func (v *vocabulary) ends(m *image, folder string, c *config) error {
	var generation map[string]any
	if err := optionalJSON(folder, "generation_config.json", &generation); err != nil {
		return err
	}
	numbers := func(key string) (all []int, err error) {
		for _, from := range []map[string]any{generation, c.values} {
			list, ok := from[key].([]any)
			if !ok && from[key] != nil {
				list = []any{from[key]}
			}
			for _, x := range list {
				id, ok := x.(float64)
				if !ok || id < 0 || id >= float64(len(v.tokens)) || id != float64(int(id)) {
					return nil, fmt.Errorf("%q is %v, and there are %d tokens: %w", key, x, len(v.tokens), ErrMalformed)
				}
				all = append(all, int(id))
			}
			if len(all) > 0 {
				break
			}
		}
		if id, ok := v.ids[v.setting(strings.TrimSuffix(key, "_id"), "")]; ok && !slices.Contains(all, id) {
			all = append([]int{id}, all...)
		}
		return all, nil
	}
	begin, err := numbers("bos_token_id")
	if err != nil {
		return err
	}
	end, err := numbers("eos_token_id")
	if err != nil {
		return err
	}
	if v.Model.Type == "Unigram" {
		first, last, _ := v.around()
		for _, x := range []struct {
			name string
			list *[]int
		}{{first, &begin}, {last, &end}} {
			id, ok := v.ids[x.name]
			if x.name != "" && !ok {
				return fmt.Errorf("texts are put between %q and %q, which are no tokens: %w", first, last, ErrMalformed)
			}
			if ok {
				*x.list = append([]int{id}, slices.DeleteFunc(*x.list, func(other int) bool { return other == id })...)
			}
		}
		m.set("tokenizer.ggml.add_eos_token", last != "")
	}
	if len(begin) > 0 && v.Model.Type != "WordPiece" {
		m.set("tokenizer.ggml.bos_token_id", uint32(begin[0]))
	}
	keys := []string{"eos", "eot", "eom"}
	if len(end) > len(keys) {
		return fmt.Errorf("texts end with %d tokens, at most %d are known: %w", len(end), len(keys), compute.ErrUnsupported)
	}
	for i, id := range end {
		m.set("tokenizer.ggml."+keys[i]+"_token_id", uint32(id))
	}
	if v.Model.Type != "WordPiece" {
		m.set("tokenizer.ggml.add_bos_token", v.begins())
	}
	return nil
}

// begins reports texts that begin with a token of their own: as the template of the post-processor says, or else the settings.
func (v *vocabulary) begins() bool {
	if first, _, ok := v.around(); ok {
		return first != ""
	}
	b, said := v.settings["add_bos_token"].(bool)
	return b || !said && v.pieces != nil && v.pieces.kind == 2 // as the class for such files has it by default
}

// around returns the tokens that the template of the post-processor begins and ends texts with, empty for none.
func (v *vocabulary) around() (first, last string, ok bool) {
	for _, p := range v.PostProcessor.flatten() {
		if p.Type != "TemplateProcessing" {
			continue
		}
		var single []struct {
			SpecialToken struct{ ID string }
		}
		if json.Unmarshal(p.Single, &single) == nil && len(single) > 0 {
			return single[0].SpecialToken.ID, single[len(single)-1].SpecialToken.ID, true
		}
	}
	return "", "", false
}

// template sets the chat template: that of a file of its own, or of the settings.
func (v *vocabulary) template(m *image, folder string) error {
	const name = "chat_template.jinja"
	info, err := os.Stat(filepath.Join(folder, name))
	switch {
	case err == nil && info.Size() > 1<<20:
		return fmt.Errorf("%s has %d bytes: %w", name, info.Size(), compute.ErrTooLarge)
	case err == nil:
		b, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return err
		}
		m.set("tokenizer.chat_template", string(b))
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	switch x := v.settings["chat_template"].(type) {
	case string:
		m.set("tokenizer.chat_template", x)
	case []any: // of several, the one for all purposes
		for _, y := range x {
			if t, ok := y.(map[string]any); ok && t["name"] == "default" {
				if s, ok := t["template"].(string); ok {
					m.set("tokenizer.chat_template", s)
				}
			}
		}
	}
	return nil
}
