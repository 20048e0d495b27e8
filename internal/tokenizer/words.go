package tokenizer

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// cutter cuts a text into the words in which bytes are joined. Models state it as a regular expression with a look-ahead for white space,
// which package regexp does not have; the alternatives stand at the methods.
type cutter struct {
	modern bool // as from GPT-4 on; GPT-2's otherwise
	digits int  // of a number at most, 0 for any; unless modern, 1 cuts the text at each digit before all else
	marks  bool // marks belong to letters
	whole  bool // a word that is a token is not cut further
	begin  bool // a text begins with a token of its own unless the file says otherwise
	raw    bool // characters are joined, not bytes spelled as characters, and spaces are ▁
	threes bool // before all else, numbers are cut into threes from their end
	alone  bool // … those of decimal digits that no letter, mark or _ follows
	// Expressions that are looked for one after the other: what one finds, and what is between, is a piece for the next.
	before, after []string
	main          string // alternatives for words in place of the methods, followed by those of white space; "-" for none
}

const (
	contractions = `(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])`
	upper        = `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`
	lower        = `[\p{Ll}\p{Lm}\p{Lo}\p{M}]`
	first        = `[^\r\n\p{L}\p{N}]?`
	word         = first + upper + `*` + lower + `+`
	capitals     = first + upper + `+` + lower + `*`
	symbols      = ` ?[^\s\p{L}\p{N}]+[\r\n/]*`
	upperNotHan  = `(?:[\p{Lu}\p{Lt}]|` + notHan + `)`
	lowerNotHan  = `(?:\p{Ll}|` + notHan + `)`
	notHan       = `[^\P{Lm}\p{Han}]|[^\P{Lo}\p{Han}]|[^\P{M}\p{Han}]`
	simple       = first + `\p{L}+`
	contracted   = word + contractions + `?|` + capitals + contractions + `?`
	marked       = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*"
	sentence     = ` ?[^(\s|.,!?…。，、।۔،)]+`
	ideographs   = `[一-龥ࠀ-一가-\x{d7ff}]+`
)

// cased are the letters of scripts with capitals, as deepseek-llm lists them.
const cased = `[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]`

// cutters are those that tokenizer.ggml.pre names.
var cutters = [...]struct {
	names string // with spaces between
	cutter
}{
	{"default", cutter{before: []string{`[\p{P}$+<=>^~|]+`}, after: []string{`\p{N}+`, `[0-9][0-9][0-9]`}}},
	{"gpt-2 phi-2 mpt olmo jais trillion exaone4 gigachat a.x-4.0 mellum granite-docling modern-bert jina-es jina-de jina-v1-en jina-v2-es jina-v2-de " +
		"jina-v2-code roberta-bpe", cutter{}},
	{"smollm starcoder refact command-r codeshell exaone minerva-7b mellum2", cutter{digits: 1}},
	{"llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano", cutter{modern: true, digits: 3, whole: true, begin: true}},
	{"glm4 glm5", cutter{modern: true, digits: 3, whole: true}},
	{"dbrx smaug-bpe chatglm-bpe", cutter{modern: true, digits: 3}},
	{"minicpm5", cutter{modern: true, whole: true, before: []string{`\p{N}{1,3}`}}},
	{"qwen2 deepseek-r1-qwen kormo megrez stablelm2 hunyuan solar-open grok-2 f2llmv2 bailingmoe bailingmoe2 llada-moe", cutter{modern: true, digits: 1}},
	{"laguna", cutter{modern: true, digits: 1, before: []string{`\n+`}}},
	{"qwen35", cutter{modern: true, digits: 1, marks: true}},
	{"falcon", cutter{before: []string{"[\\p{P}$+<=>^~|`]+"}, after: []string{`[0-9][0-9][0-9]`}}},
	{"deepseek-llm", cutter{main: "-", before: []string{`[\r\n]`, `[\s]?` + cased + `+`, `[\s]?[!-/:-~！-／：-～‘-‟　-。]+`, `[\s]+$`, ideographs, `\p{N}+`}}},
	{"deepseek-coder", cutter{main: "-", before: []string{`[\r\n]`, `[\s]?\p{L}+`, `[\s]?\p{P}+`, ideographs, `\p{N}`}}},
	{"deepseek-v3 hunyuan-dense joyai-llm hy_v4", cutter{before: []string{`\p{N}{1,3}`, `[一-龥぀-ゟ゠-ヿ]+`}, main: marked}},
	{"afmoe", cutter{threes: true, before: []string{`[一-鿿㐀-䶿豈-﫿぀-ゟ゠-ヿ･-ﾟ⼀-⿟เ-๿຀-໿ក-៿က-႟ꩠ-ꩿꧠ-꧿가-힯ᄀ-ᇿ]+`}, main: marked}},
	{"tekken", cutter{whole: true, begin: true, main: word + `|` + capitals + `|\p{N}|` + symbols}},
	{"gpt-4o llama4 kanana2 talkie minimax-m2", cutter{main: contracted + `|\p{N}{1,3}|` + symbols}},
	{"granite-embed-multi-97m", cutter{whole: true, main: contracted + `|\p{N}{1,3}|` + symbols}},
	{"tiny_aya cohere2moe", cutter{threes: true, alone: true, main: contracted + `|\p{N}{1,3}|` + symbols}},
	{"youtu", cutter{whole: true, before: []string{`[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+`},
		main: contracted + `|\p{N}|` + symbols}},
	{"seed-coder", cutter{main: contractions + `|` + simple + `|\p{N}| ?[^\s\p{L}\p{N}\r\n]+`}},
	{"ufakzeka", cutter{main: simple + `|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*`}},
	{"exaone-moe", cutter{main: contractions + `|` + first + `(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?`}},
	{"poro-chat bloom gpt3-finnish", cutter{main: "-", before: []string{sentence}}},
	{"viking", cutter{main: "-", before: []string{sentence, `\p{N}`}}},
	{"kimi-k2", cutter{main: `\p{Han}+|` + first + upperNotHan + `*` + lowerNotHan + `+` + contractions + `?|` + first + upperNotHan + `+` + lowerNotHan + `*` +
		contractions + `?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*`}},
	{"chameleon", cutter{begin: true, before: []string{`<sentinel:[0-9]+>`, `IMGIMG[A-I]{1,4}Z`, `[\t\n]|    |  `, `\p{N}`, "[\\p{P}!-/:-@\\[-`{-~]"}}},
	{"gemma4 granite-embed-multi-311m sarvam-moe", cutter{raw: true, main: "-", before: []string{`\n+`}}},
}

func cutterOf(pre string) (cutter, bool) {
	for _, c := range cutters {
		if slices.Contains(strings.Fields(c.names), pre) {
			return c.cutter, true
		}
	}
	return cutter{}, false
}

func cutterNames() string {
	var names []string
	for _, c := range cutters {
		names = append(names, strings.Fields(c.names)...)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// words returns a function that calls f for each word of a text; together they are the text.
func (c cutter) words() func(text string, f func(word string)) {
	var passes []func(text string, f func(word string))
	add := func(expressions []string) {
		for _, e := range expressions {
			passes = append(passes, c.pass(unicodeSpace(e)))
		}
	}
	if c.threes {
		passes = append(passes, c.cutThrees)
	}
	add(c.before)
	switch {
	case c.main == "-":
	case c.main != "":
		passes = append(passes, c.mainPass(unicodeSpace(c.main)))
	default:
		passes = append(passes, c.byMethods)
	}
	add(c.after)
	var from func(i int, text string, f func(word string))
	from = func(i int, text string, f func(word string)) {
		switch {
		case text == "":
		case i == len(passes):
			f(text)
		default:
			passes[i](text, func(word string) { from(i+1, word, f) })
		}
	}
	return func(text string, f func(word string)) { from(0, text, f) }
}

// unicodeSpace has \s in the classes of an expression mean all white space.
func unicodeSpace(expression string) string {
	return strings.ReplaceAll(expression, `\s`, `\t-\r\x{85}\p{Z}`)
}

// pass cuts a text at what an expression finds.
func (c cutter) pass(expression string) func(text string, f func(word string)) {
	found := regexp.MustCompile(expression)
	return func(text string, f func(word string)) {
		at := 0
		for _, m := range found.FindAllStringIndex(text, -1) {
			f(text[at:m[0]])
			f(text[m[0]:m[1]])
			at = m[1]
		}
		f(text[at:])
	}
}

// cutThrees cuts numbers into threes from their end.
func (c cutter) cutThrees(text string, f func(word string)) {
	digit := isNumber
	if c.alone {
		digit = unicode.IsDigit
	}
	from := 0
	for at := 0; at < len(text); {
		n := span(text[at:], digit, 0)
		next, size := utf8.DecodeRuneInString(text[at+n:])
		if n == 0 || c.alone && (isLetterOrMark(next) || next == '_' || unicode.Is(unicode.Pc, next)) {
			at += n + size
			continue
		}
		f(text[from:at])
		for rest := utf8.RuneCountInString(text[at : at+n]); rest > 0; {
			most := (rest-1)%3 + 1
			size := span(text[at:], digit, most)
			f(text[at : at+size])
			at, rest = at+size, rest-most
		}
		from = at
	}
	f(text[from:])
}

// mainPass cuts a text into words that an expression has, and white space.
func (c cutter) mainPass(expression string) func(text string, f func(word string)) {
	c.modern = true // as far as white space is concerned
	word := regexp.MustCompile(`^(?:` + expression + `)`)
	next := func(text string) int {
		if m := word.FindStringIndex(text); m != nil && m[1] > 0 {
			return m[1]
		}
		if r, _ := utf8.DecodeRuneInString(text); unicode.IsSpace(r) {
			return c.space(text)
		}
		return 0
	}
	return func(text string, f func(word string)) {
		for text != "" {
			n := next(text)
			for at := 0; n == 0; { // characters that no alternative has are a piece
				_, size := utf8.DecodeRuneInString(text[at:])
				if at += size; at == len(text) || next(text[at:]) > 0 {
					n = at
				}
			}
			f(text[:n])
			text = text[n:]
		}
	}
}

func (c cutter) byMethods(text string, f func(word string)) {
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

func isLetterOrMark(r rune) bool { return isLetter(r) || unicode.Is(unicode.M, r) }

func isBlank(r rune) bool { return r == ' ' }

// letters is [^\r\n\p{L}\p{N}]?\p{L}+, with marks [^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+, before that " ?\p{L}+".
func (c cutter) letters(text string) int {
	if c.modern {
		letter := isLetter
		if c.marks {
			letter = isLetterOrMark
		}
		first := func(r rune) bool { return !isBreak(r) && !isLetter(r) && !isNumber(r) }
		if n := after(text, first, letter); n > 0 || !c.marks {
			return n
		}
		return span(text, letter, 0) // a mark alone
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
	class := isOther
	if c.marks {
		class = func(r rune) bool { return isOther(r) && !unicode.Is(unicode.M, r) }
	}
	n := after(text, isBlank, class)
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
