package format

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// externalOf reads where data is. Locations are paths below the folder of the model.
func externalOf(place map[string]string) (*External, error) {
	x := &External{Location: place["location"]}
	number := func(key string) (int64, bool, error) {
		text, ok := place[key]
		if !ok {
			return 0, false, nil
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err == nil && n < 0 {
			err = fmt.Errorf("negative")
		}
		if err != nil {
			return 0, false, fmt.Errorf("%s of external data is %q: %w", key, text, err)
		}
		return n, true, nil
	}
	var err error
	if x.Offset, _, err = number("offset"); err != nil {
		return nil, err
	}
	if x.Length, x.HasLength, err = number("length"); err != nil {
		return nil, err
	}
	if x.Location == "" || !filepath.IsLocal(filepath.FromSlash(x.Location)) || strings.ContainsRune(x.Location, 0) {
		return nil, fmt.Errorf("external data at %q: it must be a file below the model's folder", x.Location)
	}
	return x, nil
}
