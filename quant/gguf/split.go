package gguf

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/mapped"
)

// The metadata of split models.
const (
	splitNumber  = "split.no"
	splitCount   = "split.count"
	splitTensors = "split.tensors.count"
)

// maxSplits is what fits in the five digits of the names.
const maxSplits = 99999

// openRest opens the other files of a split model.
func (f *File) openRest(name string) error {
	count, err := f.splits()
	if err != nil || count == 1 {
		return err
	}
	end := fmt.Sprintf("-00001-of-%05d.gguf", count)
	stem, ok := strings.CutSuffix(name, end)
	if !ok {
		return fmt.Errorf("the first of %d files, whose names end in %s and so on: %w", count, end, compute.ErrArgument)
	}
	var parts []*File
	for i := 2; i <= count && err == nil; i++ {
		var p *File
		if p, err = openPart(fmt.Sprintf("%s-%05d-of-%05d.gguf", stem, i, count)); err == nil {
			parts = append(parts, p)
		}
	}
	if err == nil {
		err = f.join(parts)
	}
	if err != nil {
		for _, p := range parts {
			p.Close()
		}
	}
	return err
}

func openPart(name string) (*File, error) {
	s, err := mapped.Open(name)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			err = fmt.Errorf("a file of the model is missing: %w", err)
		}
		return nil, err
	}
	f, err := read(s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, errors.Join(err, s.Close()))
	}
	return f, nil
}

// splits returns of how many files f is the first.
func (f *File) splits() (int, error) {
	if _, ok := f.values[splitCount]; !ok {
		return 1, nil
	}
	count, err := f.Int(splitCount)
	if err != nil {
		return 0, err
	}
	if count < 0 || count > maxSplits {
		return 0, fmt.Errorf("%w: %s is %d", ErrMalformed, splitCount, count)
	}
	if no, err := f.Int(splitNumber); err != nil || no != 0 {
		err = errors.Join(err, compute.ErrArgument)
		return 0, fmt.Errorf("file %d of %d of a split model; open the first: %w", no+1, count, err)
	}
	return max(count, 1), nil
}

// join adds the tensors of the other files of a split model.
func (f *File) join(parts []*File) error {
	count, err := f.splits()
	if err != nil {
		return err
	}
	if count != len(parts)+1 {
		return fmt.Errorf("%d files of a model of %d: %w", len(parts)+1, count, compute.ErrArgument)
	}
	for i, p := range parts {
		no, err := p.Int(splitNumber)
		if err != nil {
			return err
		}
		of, err := p.Int(splitCount)
		if err != nil {
			return err
		}
		if no != i+1 || of != count {
			return fmt.Errorf("%w: file %d of %d says that it is file %d of %d", ErrMalformed, i+2, count, no+1, of)
		}
		for _, t := range p.tensors {
			if _, double := f.byName[t.name]; double {
				return fmt.Errorf("%w: tensor %q is in two files", ErrMalformed, t.name)
			}
			f.byName[t.name] = t
		}
		f.tensors = append(f.tensors, p.tensors...)
		f.size += p.size
	}
	if _, ok := f.values[splitTensors]; ok {
		if n, err := f.Int(splitTensors); err != nil || n != len(f.tensors) {
			return fmt.Errorf("%w: %d tensors in all files, but %s is %d", ErrMalformed, len(f.tensors), splitTensors, n)
		}
	}
	for _, p := range parts {
		f.sources = append(f.sources, p.sources...)
	}
	return nil
}
