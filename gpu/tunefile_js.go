package gpu

// cacheFile does not exist: pages have no files, and what reads and writes them would be a twentieth of the download.
type cacheFile struct{}

func newCacheFile(dir, fingerprint string) (*cacheFile, error) { return nil, nil }

func (*cacheFile) Path() string { return "" }

func (*cacheFile) Read() (map[string]string, bool, error) { return nil, false, nil }

func (*cacheFile) Write(map[string]string) error { return nil }
