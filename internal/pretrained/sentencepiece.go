package pretrained

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/wavelane/wavelane/compute"
)

// pieceModel is what a file of SentencePiece says, a protobuf message (ModelProto).
type pieceModel struct {
	ids      map[string]int
	kinds    []int32 // whose numbers are those of tokenizer.ggml.token_type
	scores   []float32
	kind     uint64 // 1 Unigram, 2 BPE
	charsmap []byte
	prefix   bool // a space goes before each text
	merged   bool // spaces at the ends of texts and all but one of several are left out
	marked   bool // spaces are ▁
	suffix   bool // marks end words
}

// message calls f for each field of a protobuf message: with the value of a number, or the bytes of what has a length.
func message(b []byte, f func(number, value uint64, data []byte) error) error {
	for len(b) > 0 {
		tag, n := binary.Uvarint(b)
		if n <= 0 {
			return fmt.Errorf("a field without a number: %w", ErrMalformed)
		}
		b = b[n:]
		var value uint64
		var data []byte
		switch wire := tag & 7; wire {
		case 0, 2:
			if value, n = binary.Uvarint(b); n <= 0 {
				return fmt.Errorf("field %d is cut off: %w", tag>>3, ErrMalformed)
			}
			if b = b[n:]; wire == 2 {
				if value > uint64(len(b)) {
					return fmt.Errorf("field %d has %d bytes of %d: %w", tag>>3, value, len(b), ErrMalformed)
				}
				data, b = b[:value], b[value:]
			}
		case 1, 5:
			size := 8 / (1 + int(wire/4))
			if len(b) < size {
				return fmt.Errorf("field %d is cut off: %w", tag>>3, ErrMalformed)
			}
			for i := range size {
				value |= uint64(b[i]) << (8 * i)
			}
			b = b[size:]
		default:
			return fmt.Errorf("field %d is of wire type %d: %w", tag>>3, wire, ErrMalformed)
		}
		if err := f(tag>>3, value, data); err != nil {
			return err
		}
	}
	return nil
}

// piece reads a token.
func (p *pieceModel) piece(b []byte) error {
	s, score, kind := "", float32(0), uint64(normalToken)
	err := message(b, func(number, value uint64, data []byte) error {
		switch number {
		case 1:
			s = string(data)
		case 2:
			score = math.Float32frombits(uint32(value))
		case 3:
			kind = value
		}
		return nil
	})
	if err != nil {
		return err
	}
	if _, twice := p.ids[s]; twice || kind < uint64(normalToken) || kind > uint64(byteToken) {
		return fmt.Errorf("token %q, number %d, is of kind %d or there already: %w", s, len(p.kinds), kind, ErrMalformed)
	}
	p.ids[s] = len(p.kinds)
	p.kinds, p.scores = append(p.kinds, int32(kind)), append(p.scores, score)
	return nil
}

func readPieces(b []byte) (*pieceModel, error) {
	p := &pieceModel{ids: map[string]int{}, kind: 1, prefix: true, merged: true, marked: true}
	trainer := func(number, value uint64, _ []byte) error {
		switch number {
		case 3:
			p.kind = value
		case 24:
			p.suffix = value != 0
		}
		return nil
	}
	normalizer := func(number, value uint64, data []byte) error {
		switch number {
		case 2:
			p.charsmap = data
		case 3:
			p.prefix = value != 0
		case 4:
			p.merged = value != 0
		case 5:
			p.marked = value != 0
		}
		return nil
	}
	err := message(b, func(number, _ uint64, data []byte) error {
		switch number {
		case 1:
			return p.piece(data)
		case 2:
			return message(data, trainer)
		case 3:
			return message(data, normalizer)
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case p.kind != 1 && p.kind != 2:
		return nil, fmt.Errorf("a model of type %d, need Unigram (1) or BPE (2): %w", p.kind, compute.ErrUnsupported)
	case p.suffix || !p.marked:
		return nil, fmt.Errorf("words that end in marks, or have none: %w", compute.ErrUnsupported)
	case p.kind == 2 && (p.merged || len(p.charsmap) > 0):
		return nil, fmt.Errorf("BPE of texts in which characters are replaced or spaces left out: %w", compute.ErrUnsupported)
	}
	return p, nil
}

// readPieces reads tokenizer.model, and the tokens that tokenizer_config.json or added_tokens.json add.
func (v *vocabulary) readPieces(folder string) error {
	const name = "tokenizer.model"
	b, err := readFile(folder, name)
	if err != nil {
		return err
	}
	if v.pieces, err = readPieces(b); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	v.ids, v.scores = v.pieces.ids, v.pieces.scores
	v.Model.Type = []string{"Unigram", "BPE"}[v.pieces.kind-1]
	var added map[string]int
	if err := optionalJSON(folder, "added_tokens.json", &added); err != nil {
		return err
	}
	decoder, _ := v.settings["added_tokens_decoder"].(map[string]any)
	for _, s := range slices.Sorted(maps.Keys(added)) {
		if decoder == nil {
			v.Added = append(v.Added, addedToken{added[s], s, false})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(decoder)) {
		t, _ := decoder[key].(map[string]any)
		s, ok := t["content"].(string)
		id, err := strconv.Atoi(key)
		if err != nil || !ok {
			return fmt.Errorf("tokenizer_config.json: \"added_tokens_decoder\" has %q, which is no token: %w", key, ErrMalformed)
		}
		v.Added = append(v.Added, addedToken{id, s, t["special"] == true})
	}
	return nil
}

// writePieces sets what tokenizer.model says.
func (v *vocabulary) writePieces(m *image) {
	p := v.pieces
	for i, kind := range p.kinds {
		if v.kinds[i] == normalToken || kind == unknownToken {
			v.kinds[i] = kind
		}
		if kind == unknownToken {
			m.set("tokenizer.ggml.unknown_token_id", uint32(i))
		}
	}
	if p.kind == 1 {
		m.set("tokenizer.ggml.model", "t5")
		m.set("tokenizer.ggml.remove_extra_whitespaces", p.merged)
		if len(p.charsmap) > 0 {
			m.set("tokenizer.ggml.precompiled_charsmap", p.charsmap)
		}
	} else {
		m.set("tokenizer.ggml.model", "llama")
	}
	m.set("tokenizer.ggml.add_space_prefix", p.prefix)
	m.set("tokenizer.ggml.scores", append(p.scores, make([]float32, len(v.tokens)-len(p.scores))...))
}
