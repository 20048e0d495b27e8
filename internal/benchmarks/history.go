package benchmarks

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"
)

// Run is one run of benchmarks as a history keeps it.
type Run struct {
	Time    time.Time `json:"time"`
	Version string    `json:"version"` // of the program that measured
	Host    string    `json:"host"`
	Results []Result  `json:"results"`
}

// ReadHistory reads a file of runs, a line of JSON each. A file that there is not has none.
func ReadHistory(path string) ([]Run, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readHistory(path, f)
}

func readHistory(name string, from io.Reader) ([]Run, error) {
	var runs []Run
	lines := bufio.NewReader(from)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if len(line) > 1 {
			var r Run
			if bad := json.Unmarshal(line, &r); bad != nil {
				return nil, fmt.Errorf("%s:%d: %w", name, n, bad)
			}
			runs = append(runs, r)
		}
		switch {
		case errors.Is(err, io.EOF):
			return runs, nil
		case err != nil:
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
}

// AppendHistory adds a run to the end of a file.
func AppendHistory(path string, r Run) error {
	r.Results = slices.Clone(r.Results)
	for i := range r.Results {
		r.Results[i].Times = nil // the interval says enough
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	return errors.Join(err, f.Close())
}
