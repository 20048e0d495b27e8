// Package mapped reads ranges of files: through a memory mapping where the system has one, else by reading.
package mapped

import (
	"fmt"
	"io"
	"math"
	"os"
	"sync"

	"github.com/wavelane/wavelane/compute"
)

// Source is a file or something like one. Its methods may be called from many goroutines.
type Source struct {
	reader io.ReaderAt
	size   int64

	mu     sync.RWMutex
	data   []byte // the mapping, if there is one
	file   *os.File
	closed bool
}

// Open opens a file and maps it. A file that cannot be mapped, such as one in a browser, is read instead.
func Open(name string) (*Source, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file: %w", name, compute.ErrArgument)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	s := &Source{reader: f, size: info.Size(), file: f}
	if s.size > 0 && s.size <= math.MaxInt {
		s.data = mapFile(f, int(s.size))
	}
	return s, nil
}

// From makes a source of size bytes of r. Closing the source does not close r.
func From(r io.ReaderAt, size int64) *Source { return &Source{reader: r, size: size} }

// Size is the number of bytes.
func (s *Source) Size() int64 { return s.size }

// ReadAt implements [io.ReaderAt]. After Close it returns [compute.ErrClosed].
func (s *Source) ReadAt(p []byte, at int64) (int, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	switch {
	case s.closed:
		return 0, fmt.Errorf("file: %w", compute.ErrClosed)
	case at < 0 || at > s.size:
		return 0, io.EOF
	}
	want := len(p)
	p = p[:min(int64(want), s.size-at)]
	var n int
	var err error
	if s.data != nil {
		n = copy(p, s.data[at:])
	} else {
		n, err = s.reader.ReadAt(p, at)
	}
	if n == len(p) {
		err = nil
		if n < want {
			err = io.EOF
		}
	}
	return n, err
}

// Bytes returns n bytes: those of the mapping, which must not be written to nor be used after Close, or a copy if there is
// none.
func (s *Source) Bytes(at, n int64) ([]byte, error) {
	s.mu.RLock()
	data, closed := s.data, s.closed
	s.mu.RUnlock()
	switch {
	case closed:
		return nil, fmt.Errorf("file: %w", compute.ErrClosed)
	case at < 0 || n < 0 || at > s.size || n > s.size-at || n > math.MaxInt:
		return nil, fmt.Errorf("bytes %d and the next %d of %d: %w", at, n, s.size, compute.ErrArgument)
	case data != nil:
		return data[at : at+n : at+n], nil
	}
	b := make([]byte, n)
	if _, err := s.ReadAt(b, at); err != nil {
		return nil, err
	}
	return b, nil
}

// Close ends the mapping and closes the file that [Open] opened. It may be called again.
func (s *Source) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	var err error
	if s.data != nil {
		err = unmap(s.data)
		s.data = nil
	}
	if s.file != nil {
		if e := s.file.Close(); err == nil {
			err = e
		}
	}
	return err
}
