package pretrained

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/quant"
	"github.com/wavelane/wavelane/quant/gguf"
	"github.com/wavelane/wavelane/quant/safetensors"
)

// ErrMalformed is the error of files of a folder that contradict each other or their formats.
var ErrMalformed = errors.New("malformed model folder")

// Options parametrise [Open].
type Options struct {
	// Format is what matrices become whose rows are whole blocks of it. With F32, which is the zero value, they stay as they are.
	Format quant.Type
}

// Folder is an open folder.
type Folder struct {
	*gguf.File
	weights []*safetensors.File
}

// Close closes all files. It is idempotent.
func (f *Folder) Close() error {
	var all []error
	if f.File != nil {
		all = append(all, f.File.Close())
	}
	for _, w := range f.weights {
		all = append(all, w.Close())
	}
	return errors.Join(all...)
}

// Open opens a folder. Errors wrap [ErrMalformed], [compute.ErrUnsupported] for what is not known here, [compute.ErrShape] and those of opening
// files, such as fs.ErrNotExist.
func Open(folder string, o Options) (*Folder, error) {
	f := &Folder{}
	err := f.open(folder, o)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("pretrained: %s: %w", folder, err), f.Close())
	}
	return f, nil
}

func (f *Folder) open(folder string, o Options) error {
	if !o.Format.Convertible() {
		return fmt.Errorf("weights as %v: %w", o.Format, compute.ErrUnsupported)
	}
	var c config
	if err := readJSON(folder, "config.json", &c.values); err != nil {
		return err
	}
	tensors, err := f.openWeights(folder)
	if err != nil {
		return err
	}
	m := newImage()
	if err := c.write(m, folder); err != nil {
		return fmt.Errorf("config.json: %w", err)
	}
	if err := writeTokenizer(m, folder, &c); err != nil {
		return err
	}
	w := &weights{config: &c, image: m, format: o.Format, from: tensors, stacks: map[string][]*safetensors.Tensor{}}
	if err := w.write(); err != nil {
		return err
	}
	f.File, err = m.file()
	return err
}

// openWeights opens the files of weights and returns their tensors by name.
func (f *Folder) openWeights(folder string) (map[string]*safetensors.Tensor, error) {
	const single, index = "model.safetensors", "model.safetensors.index.json"
	names := []string{single}
	if _, err := os.Stat(filepath.Join(folder, single)); errors.Is(err, fs.ErrNotExist) {
		var x struct {
			Files map[string]string `json:"weight_map"`
		}
		if err := readJSON(folder, index, &x); err != nil {
			return nil, err
		}
		names = slices.Compact(slices.Sorted(maps.Values(x.Files)))
		if len(names) == 0 {
			return nil, fmt.Errorf("%s names no files: %w", index, ErrMalformed)
		}
	}
	all := map[string]*safetensors.Tensor{}
	for _, name := range names {
		if !filepath.IsLocal(name) || strings.ContainsAny(name, `/\`) {
			return nil, fmt.Errorf("%s names %q, which is not in the folder: %w", index, name, ErrMalformed)
		}
		w, err := safetensors.Open(filepath.Join(folder, name))
		if err != nil {
			return nil, err
		}
		f.weights = append(f.weights, w)
		for _, t := range w.Tensors() {
			if all[t.Name()] != nil {
				return nil, fmt.Errorf("tensor %q is in two files: %w", t.Name(), ErrMalformed)
			}
			all[t.Name()] = t
		}
	}
	return all, nil
}

// mostJSON is the largest file in JSON that is read: that of a vocabulary.
const mostJSON = 256 << 20

func readJSON(folder, name string, to any) error {
	b, err := readFile(folder, name)
	if err != nil {
		return err
	}
	return parseJSON(name, b, to)
}

func readFile(folder, name string) ([]byte, error) {
	info, err := os.Stat(filepath.Join(folder, name))
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > mostJSON {
		return nil, fmt.Errorf("%s: %d bytes, at most %d of a file are read: %w", name, info.Size(), mostJSON, compute.ErrTooLarge)
	}
	return os.ReadFile(filepath.Join(folder, name))
}

func parseJSON(name string, b []byte, to any) error {
	if err := json.Unmarshal(b, to); err != nil {
		return fmt.Errorf("%s: %w: %w", name, ErrMalformed, err)
	}
	return nil
}

// optionalJSON is readJSON for a file that need not be there.
func optionalJSON(folder, name string, to any) error {
	if err := readJSON(folder, name, to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
