package cuda

import (
	"bytes"
	"context"
	"encoding/binary"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/testseed"
)

// logged collects what is logged.
type logged struct {
	mu      sync.Mutex
	records []slog.Record
}

func (l *logged) Enabled(context.Context, slog.Level) bool { return true }
func (l *logged) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *logged) WithGroup(string) slog.Handler            { return l }

func (l *logged) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = append(l.records, r)
	return nil
}

// warnings returns the warnings so far, and forgets everything.
func (l *logged) warnings() (w []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.records {
		if r.Level >= slog.LevelWarn {
			w = append(w, r.Message)
		}
	}
	l.records = nil
	return w
}

// randomSource returns the random numbers of a test.
func randomSource(t *testing.T) *rand.Rand { return testseed.Rand(t) }

func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func testCache(t *testing.T) (*cache, *logged) {
	l := &logged{}
	return newCache(filepath.Join(t.TempDir(), "a", "b"), slog.New(l)), l
}

func TestCacheKeeps(t *testing.T) {
	r := randomSource(t)
	c, log := testCache(t)
	payloads := map[cacheKey][]byte{}
	for i := range 20 {
		key := keyOf([]byte{byte(i)})
		require.Nil(t, c.get(key))
		payloads[key] = randomBytes(r, 1+r.IntN(5000))
		c.put(key, payloads[key])
		require.Equal(t, payloads[key], c.get(key))
		payloads[key] = randomBytes(r, 1+r.IntN(5000))
		c.put(key, payloads[key])
	}
	for key, p := range payloads {
		require.Equal(t, p, c.get(key))
	}
	require.Empty(t, log.warnings())
	if runtime.GOOS != "windows" {
		for path, mode := range map[string]os.FileMode{c.dir: 0o700, c.path(keyOf([]byte{3})): 0o600} {
			info, err := os.Stat(path)
			require.NoError(t, err)
			require.Equal(t, mode, info.Mode().Perm(), path)
		}
	}
	list, err := os.ReadDir(c.dir)
	require.NoError(t, err)
	require.Len(t, list, len(payloads)) // no temporary file is left
}

func TestCacheKeyTellsPartsApart(t *testing.T) {
	keys := map[cacheKey]bool{}
	for _, parts := range [][][]byte{{}, {nil}, {nil, nil}, {[]byte("ab")}, {[]byte("a"), []byte("b")}, {[]byte("ab"), nil},
		{nil, []byte("ab")}} {
		keys[keyOf(parts...)] = true
	}
	require.Len(t, keys, 7)
}

// Every damage is found, logged, and the file deleted, so that the next one can take its place.
func TestCacheDamage(t *testing.T) {
	r := randomSource(t)
	c, log := testCache(t)
	key, payload := keyOf([]byte("it")), randomBytes(r, 1+r.IntN(60))
	good := encodeEntry(key, payload)
	got, err := decodeEntry(good, key)
	require.NoError(t, err)
	require.Equal(t, payload, got)
	for n := range good {
		_, err := decodeEntry(good[:n], key)
		require.Error(t, err, "%d bytes of %d", n, len(good))
	}
	for bit := range 8 * len(good) {
		bad := bytes.Clone(good)
		bad[bit/8] ^= 1 << (bit % 8)
		_, err := decodeEntry(bad, key)
		require.Error(t, err, "bit %d", bit)
	}
	later := bytes.Clone(good)
	binary.LittleEndian.PutUint32(later[8:], cacheFormat+1)
	for name, bad := range map[string][]byte{
		"nothing": {}, "a part of the header": good[:entryHeader-1], "the header": good[:entryHeader],
		"a part of the payload": good[:entryHeader+len(payload)/2], "more": append(bytes.Clone(good), 0),
		"zeros": make([]byte, len(good)), "another format": later, "another key": encodeEntry(keyOf([]byte("other")), payload),
		"no payload": encodeEntry(key, nil), "anything": randomBytes(r, r.IntN(300)),
	} {
		c.put(key, payload)
		require.Equal(t, payload, c.get(key), name)
		require.NoError(t, os.WriteFile(c.path(key), bad, 0o600))
		require.Empty(t, log.warnings(), name)
		require.Nil(t, c.get(key), name)
		require.Len(t, log.warnings(), 1, name)
		require.NoFileExists(t, c.path(key), name)
	}
}

func TestCacheIsBounded(t *testing.T) {
	r := randomSource(t)
	c, log := testCache(t)
	const each = 1000
	c.limit = 5*(each+entryHeader) + 10
	in := func(name string) string { return filepath.Join(c.dir, name) }
	foreign, fresh, stale := in("notes.txt"), in(tempPrefix+"1"), in(tempPrefix+"2")
	key := func(i int) cacheKey { return keyOf([]byte{byte(i)}) }
	c.put(key(0), randomBytes(r, each))
	for _, f := range []string{foreign, fresh, stale} {
		require.NoError(t, os.WriteFile(f, make([]byte, 10*each), 0o600))
	}
	old := time.Now().Add(-2 * tempAge)
	require.NoError(t, os.Chtimes(stale, old, old))
	for i := 1; i < 12; i++ {
		c.put(key(i), randomBytes(r, each))
		for j := range i + 1 { // the times of files may be coarse
			at := time.Now().Add(time.Duration(j-100) * time.Minute)
			_ = os.Chtimes(c.path(key(j)), at, at)
		}
		require.NotNil(t, c.get(key(0)), "what is used stays") // and is the youngest now
	}
	for i := range 12 {
		require.Equal(t, i == 0 || i > 7, c.get(key(i)) != nil, i)
	}
	require.FileExists(t, foreign)
	require.FileExists(t, fresh)
	require.NoFileExists(t, stale)
	require.Empty(t, log.warnings())
	c.put(key(50), randomBytes(r, int(c.limit)+1))
	require.Nil(t, c.get(key(50)), "what is larger than the cache is not kept")

	few, _ := testCache(t)
	few.files = 3
	for i := range 6 {
		few.put(key(i), randomBytes(r, 10))
		at := time.Now().Add(time.Duration(i-100) * time.Minute)
		_ = os.Chtimes(few.path(key(i)), at, at)
	}
	for i := range 6 {
		require.Equal(t, i > 2, few.get(key(i)) != nil, i)
	}
}

// A missing cache directory is no error.
func TestCacheWithoutPlace(t *testing.T) {
	log := &logged{}
	key := keyOf([]byte("k"))
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	c := newCache(file, slog.New(log)) // a directory that cannot be made
	c.put(key, []byte("p"))
	require.Len(t, log.warnings(), 1)
	require.Nil(t, c.get(key))

	c, log = testCache(t)
	require.NoError(t, os.MkdirAll(filepath.Join(c.path(key), "full"), 0o700)) // something that cannot be replaced
	require.Nil(t, c.get(key))
	require.Len(t, log.warnings(), 1)
	c.put(key, []byte("p"))
	require.Len(t, log.warnings(), 1)
	c.drop(key, os.ErrInvalid)
	require.Len(t, log.warnings(), 2)
	list, err := os.ReadDir(c.dir)
	require.NoError(t, err)
	require.Len(t, list, 1, "no temporary file is left")

	none := newCache(noCache, slog.New(log))
	none.put(key, []byte("p"))
	none.drop(key, os.ErrInvalid)
	require.Nil(t, none.get(key))
	require.Empty(t, log.warnings())
}

func TestCacheDirectoryOfTheUser(t *testing.T) {
	log := &logged{}
	home := t.TempDir()
	for _, v := range []string{"XDG_CACHE_HOME", "HOME", "LocalAppData", "home"} {
		t.Setenv(v, home)
	}
	user, err := os.UserCacheDir()
	require.NoError(t, err)
	require.Equal(t, filepath.Join(user, "wavelane", "cuda"), newCache("", slog.New(log)).dir)
	for _, v := range []string{"XDG_CACHE_HOME", "HOME", "LocalAppData", "home"} {
		t.Setenv(v, "")
	}
	require.Nil(t, newCache("", slog.New(log)))
	require.Len(t, log.warnings(), 1)
}

// Caches on one directory have nothing in common but the directory, as processes do.
func TestCacheIsShared(t *testing.T) {
	r := randomSource(t)
	dir, log := t.TempDir(), &logged{}
	payloads := make([][]byte, 6)
	for i := range payloads {
		payloads[i] = randomBytes(r, 1+r.IntN(20000))
	}
	seed := r.Uint64()
	var wg sync.WaitGroup
	wrong := make([]int, 8)
	for g := range wrong {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(g)))
			c := newCache(dir, slog.New(log))
			c.limit = 60000 // so that they delete each other's
			for range 60 {
				i := r.IntN(len(payloads))
				if r.IntN(2) == 0 {
					c.put(keyOf([]byte{byte(i)}), payloads[i])
				} else if got := c.get(keyOf([]byte{byte(i)})); got != nil && !bytes.Equal(got, payloads[i]) {
					wrong[g]++
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, make([]int, len(wrong)), wrong)
	if runtime.GOOS != "windows" { // which lets nobody replace what somebody reads
		require.Empty(t, log.warnings())
	}
}

func FuzzCacheEntry(f *testing.F) {
	key := keyOf([]byte("key"))
	good := encodeEntry(key, []byte("payload"))
	f.Add(good)
	f.Add(good[:entryHeader])
	f.Add([]byte("wavelane"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if payload, err := decodeEntry(b, key); err == nil {
			require.Equal(t, b, encodeEntry(key, payload))
		}
	})
}
