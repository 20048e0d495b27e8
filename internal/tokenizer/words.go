package tokenizer

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// cutter cuts a text into the words in which bytes are joined. Models state it as a regular expression with a look-ahead, which
// package regexp does not have; the alternatives stand at its methods.
type cutter struct {
	modern bool // as from GPT-4 on; GPT-2's otherwise
	digits int  // of a number at most, 0 for any; unless modern, 1 cuts the text at each digit before all else
	whole  bool // a word that is a token is not cut further
	begin  bool // a text begins with a token of its own unless the file says otherwise
}

// cutters are those that tokenizer.ggml.pre names.
var cutters = [...]struct {
	name string
	cutter
}{
	{"gpt-2", cutter{}},
	{"smollm", cutter{digits: 1}},
	{"starcoder", cutter{digits: 1}},
	{"refact", cutter{digits: 1}},
	{"command-r", cutter{digits: 1}},
	{"mpt", cutter{}},
	{"llama-bpe", cutter{modern: true, digits: 3, whole: true, begin: true}},
	{"llama3", cutter{modern: true, digits: 3, whole: true, begin: true}},
	{"llama-v3", cutter{modern: true, digits: 3, whole: true, begin: true}},
	{"falcon3", cutter{modern: true, digits: 3, whole: true, begin: true}},
	{"qwen2", cutter{modern: true, digits: 1}},
	{"deepseek-r1-qwen", cutter{modern: true, digits: 1}},
}

func cutterOf(pre string) (cutter, bool) {
	for _, c := range cutters {
		if c.name == pre {
			return c.cutter, true
		}
	}
	return cutter{}, false
}

func cutterNames() string {
	var names []string
	for _, c := range cutters {
		names = append(names, c.name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// words calls f for each word; together they are the text.
func (c cutter) words(text string, f func(word string)) {
	if c.modern || c.digits == 0 {
		c.cut(text, f)
		return
	}
	from := 0
	for i, r := range text {
		if !unicode.IsNumber(r) {
			continue
		}
		c.cut(text[from:i], f)
		from = i + utf8.RuneLen(r)
		f(text[i:from])
	}
	c.cut(text[from:], f)
}

func (c cutter) cut(text string, f func(word string)) {
	for text != "" {
		n := c.next(text)
		f(text[:n])
		text = text[n:]
	}
}

// next is the length of the first word: that of the first alternative that fits.
func (c cutter) next(text string) int {
	for _, alternative := range []func(string) int{c.contraction, c.letters, c.number, c.other} {
		if n := alternative(text); n > 0 {
			return n
		}
	}
	return c.space(text)
}

// contraction is 's|'t|'re|'ve|'m|'ll|'d, in either case if modern.
func (c cutter) contraction(text string) int {
	for _, ending := range []string{"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"} {
		if len(text) < len(ending) {
			continue
		}
		if got := text[:len(ending)]; got == ending || c.modern && strings.EqualFold(got, ending) {
			return len(ending)
		}
	}
	return 0
}

func isLetter(r rune) bool { return unicode.Is(unicode.L, r) }
func isNumber(r rune) bool { return unicode.Is(unicode.N, r) }
func isBreak(r rune) bool  { return r == '\r' || r == '\n' }
func isOther(r rune) bool  { return !unicode.IsSpace(r) && !isLetter(r) && !isNumber(r) }

// span is the length of the leading characters that are in a class, up to a maximum number; 0 for any number.
func span(text string, class func(rune) bool, most int) int {
	n := 0
	for i, r := range text {
		if !class(r) || most > 0 && n == most {
			return i
		}
		n++
	}
	return len(text)
}

// after is the length of one character, if it is in the class, and span after it; 0 if nothing follows it.
func after(text string, first, class func(rune) bool) int {
	skip := span(text, first, 1)
	if n := span(text[skip:], class, 0); n > 0 {
		return skip + n
	}
	return 0
}

func isBlank(r rune) bool { return r == ' ' }

// letters is [^\r\n\p{L}\p{N}]?\p{L}+, before that " ?\p{L}+".
func (c cutter) letters(text string) int {
	if c.modern {
		return after(text, func(r rune) bool { return !isBreak(r) && !isLetter(r) && !isNumber(r) }, isLetter)
	}
	return after(text, isBlank, isLetter)
}

// number is \p{N}{1,3} or as many digits as the model says, before that " ?\p{N}+".
func (c cutter) number(text string) int {
	if c.modern {
		return span(text, isNumber, c.digits)
	}
	return after(text, isBlank, isNumber)
}

// other is " ?[^\s\p{L}\p{N}]+[\r\n]*", before that without line breaks.
func (c cutter) other(text string) int {
	n := after(text, isBlank, isOther)
	if c.modern && n > 0 {
		n += span(text[n:], isBreak, 0)
	}
	return n
}

// space is \s*[\r\n]+ if modern, then \s+(?!\S)|\s+: the last space before a word is left to the word.
func (c cutter) space(text string) int {
	n := span(text, unicode.IsSpace, 0)
	if c.modern {
		if i := strings.LastIndexAny(text[:n], "\r\n"); i >= 0 {
			return i + 1
		}
	}
	if n < len(text) {
		if _, last := utf8.DecodeLastRuneInString(text[:n]); n > last {
			return n - last
		}
	}
	return max(n, 1)
}
