package tokenizer

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/wavelane/wavelane/quant/gguf"
)

// sentencePiece is the tokenizer of Llama 1 and 2 (Kudo and Richardson, "SentencePiece", 2018, in its BPE mode): of all
// neighbours whose text is a token, those with the highest score are joined first. Spaces are ▁; what no token spells is bytes.
type sentencePiece struct {
	*Tokenizer
	scores []float32
	bytes  [256]int32 // tokens of single bytes, −1 for those that have none
	prefix bool       // a space goes before each text
}

const spaceMark = "▁"

func newSentencePiece(f *gguf.File, t *Tokenizer) (*sentencePiece, error) {
	s := &sentencePiece{Tokenizer: t, prefix: true}
	var err error
	if s.scores, err = perToken[float32](f, "scores", len(t.pieces)); err != nil {
		return nil, err
	}
	if prefix, err := gguf.Value[bool](f, "tokenizer.ggml.add_space_prefix"); err == nil {
		s.prefix = prefix
	} else if !errors.Is(err, gguf.ErrMissing) {
		return nil, err
	}
	unknown := int32(-1)
	for i, k := range t.kinds {
		if k == unknownToken {
			unknown = int32(i)
			break
		}
	}
	for b := range s.bytes {
		id, ok := t.ids[byteName(byte(b))]
		if !ok {
			id = unknown
		}
		s.bytes[b] = id
	}
	return s, nil
}

func (s *sentencePiece) encode(tokens []int32, text string) []int32 {
	text = strings.ReplaceAll(s.begins()+text, " ", spaceMark)
	ends := merge(text, characters(text), func(left, right string) (float64, bool) {
		id, ok := s.ordinary(left + right)
		if !ok {
			return 0, false
		}
		return -float64(s.scores[id]), true
	})
	pieces(text, ends, func(piece string) {
		if id, ok := s.ordinary(piece); ok {
			tokens = append(tokens, id)
			return
		}
		for _, b := range []byte(piece) {
			if id := s.bytes[b]; id >= 0 {
				tokens = append(tokens, id)
			}
		}
	})
	return tokens
}

// ordinary is a token that spells text as its name does.
func (s *sentencePiece) ordinary(piece string) (int32, bool) {
	id, ok := s.ids[piece]
	return id, ok && (s.kinds[id] == normalToken || s.kinds[id] == userToken)
}

func (s *sentencePiece) spell(text []byte, piece string, kind int32) []byte {
	return spellMarked(text, piece, kind)
}

// byteName is the name of the token of a byte.
func byteName(b byte) string { return fmt.Sprintf("<0x%02X>", b) }

// spellMarked appends what a piece with marks for spaces stands for.
func spellMarked(text []byte, piece string, kind int32) []byte {
	switch kind {
	case byteToken:
		if b, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimPrefix(piece, "<0x"), ">"), 16, 8); err == nil {
			return append(text, byte(b))
		}
	case unknownToken:
		return append(text, "\uFFFD"...)
	}
	return append(text, strings.ReplaceAll(piece, spaceMark, " ")...)
}

func (s *sentencePiece) begins() string {
	if s.prefix {
		return " "
	}
	return ""
}
