package wasm

import (
	"encoding/binary"
	"errors"
	"slices"
)

// dataSection is the number of the section that says what is in memory when a module of WebAssembly starts.
const dataSection = 11

// joinSegments returns a module with its data in one segment. Go's linker leaves out zeros, eight or more in a row, by beginning another
// segment after them. That makes some 94,000 segments, and their headers compress badly: 0.17 MB of the download. The zeros instead of them
// make the module 1 MB longer, and compress to next to nothing.
func joinSegments(module []byte) ([]byte, error) {
	const header = 8 // magic number and version
	if len(module) < header {
		return nil, errors.New("pack: no module of WebAssembly")
	}
	joined := module[:header:header]
	for rest := reader(module[header:]); len(rest) > 0; {
		section := rest
		kind := rest.bytes(1)
		body := rest.bytes(rest.number())
		if body == nil {
			return nil, errors.New("pack: a section of WebAssembly is cut short")
		}
		if kind[0] != dataSection {
			joined = append(joined, section[:len(section)-len(rest)]...)
			continue
		}
		data, err := joinedData(reader(body))
		if err != nil {
			return nil, err
		}
		joined = append(joined, dataSection)
		joined = binary.AppendUvarint(joined, uint64(len(data)))
		joined = append(joined, data...)
	}
	return joined, nil
}

// joinedData returns the body of a data section with one segment, from the body of one with any number of them.
func joinedData(body reader) ([]byte, error) {
	// What comes before the bytes of a segment: in memory 0, at a constant (i32.const), which is all that Go's linker writes.
	const memory, constant, end = 0, 0x41, 0x0b
	malformed := errors.New("pack: the data of the module are not what Go's linker writes")
	type segment struct {
		start int
		bytes []byte
	}
	var segments []segment
	for range body.number() {
		if string(body.bytes(2)) != string([]byte{memory, constant}) {
			return nil, malformed
		}
		start := body.number()
		if string(body.bytes(1)) != string([]byte{end}) {
			return nil, malformed
		}
		segments = append(segments, segment{start, body.bytes(body.number())})
	}
	if len(segments) == 0 || len(body) > 0 {
		return nil, malformed
	}
	slices.SortFunc(segments, func(a, b segment) int { return a.start - b.start })
	start := segments[0].start
	var data []byte
	for _, s := range segments {
		gap := s.start - start - len(data)
		if s.bytes == nil || gap < 0 {
			return nil, malformed
		}
		data = append(append(data, make([]byte, gap)...), s.bytes...)
	}
	joined := binary.AppendUvarint([]byte{1, memory, constant}, uint64(start))
	if last := len(joined) - 1; joined[last]&0x40 != 0 { // the constant has a sign, which would be this bit
		joined[last] |= 0x80
		joined = append(joined, 0)
	}
	joined = binary.AppendUvarint(append(joined, end), uint64(len(data)))
	return append(joined, data...), nil
}

// reader is what is left to read of a module.
type reader []byte

// number returns the next number in LEB128, or -1 where there is none below 2³¹.
func (r *reader) number() int {
	n, size := binary.Uvarint(*r)
	if size <= 0 || n > 1<<31-1 {
		*r = nil
		return -1
	}
	*r = (*r)[size:]
	return int(n)
}

// bytes returns the next n bytes, or nil where there are not as many.
func (r *reader) bytes(n int) []byte {
	if n < 0 || n > len(*r) {
		*r = nil
		return nil
	}
	b := (*r)[:n:n]
	*r = (*r)[n:]
	return b
}
