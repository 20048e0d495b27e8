package cuda

import (
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/ptx/ir"
)

// loader brings modules to a device. It is safe for concurrent use.
//
// A module is loaded from the binary cached on disk; else from one that the driver's linker makes, which is cached, because
// the driver returns binaries in no other way; else from the text, which the driver compiles itself. The linker is only used
// for the cache: without a cache, and for modules that it would not translate faithfully, the text is loaded at once.
type loader struct {
	p        *primary
	info     Info
	cache    *cache
	log      compute.Logger
	families map[string]*family // of package lower; never changes
	made     *made
	busy     func() (bool, error) // whether the device's streams have work

	mu      sync.Mutex
	retired []driver.Module // modules that were closed while something held them
}

func newLoader(p *primary, info Info, cacheDir string, log compute.Logger) *loader {
	return &loader{p: p, info: info, cache: newCache(cacheDir, log), log: log, families: newFamilies(), made: newMade(madeMost),
		busy: func() (bool, error) { return false, nil }}
}

// source is a module as text, with what has to be known about it.
type source struct {
	name string // for reports
	text []byte
	m    *ir.Module
	jit  driver.JIT // options
}

// supported compares the module's target with the device's.
func (l *loader) supported(m *ir.Module) error {
	have := l.info.Target()
	if m.AddressSize != 64 {
		return fmt.Errorf("addresses of %d bits, the device has 64: %w", m.AddressSize, compute.ErrUnsupported)
	}
	if most := (ir.Target{SM: have.SM, Suffix: "a"}); !most.Covers(m.Target) {
		return fmt.Errorf("its target is %s, the device is %s: %w", m.Target, have, compute.ErrUnsupported)
	}
	return nil
}

// relocatable reports whether the driver's linker translates the module correctly: it ignores setmaxnreg.
func relocatable(m *ir.Module) bool {
	return !slices.ContainsFunc(m.Funcs, func(f *ir.Func) bool {
		return slices.ContainsFunc(f.Body, func(in ir.Instr) bool { return strings.HasPrefix(string(in.Op), "setmaxnreg") })
	})
}

// key is what the binary of a source depends on.
func (l *loader) key(s *source) cacheKey {
	number := func(n int) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(n)) }
	lines := 0
	if s.jit.LineInfo {
		lines = 1
	}
	return keyOf(number(cacheFormat), []byte(l.p.drv.Kind()), number(l.info.driverNumber), number(l.info.Target().SM),
		number(s.jit.MaxRegisters), number(lines), s.text)
}

// load loads a module. The caller unloads it. An earlier kernel's fault is not reported as an error of the load.
func (l *loader) load(s source) (driver.Module, error) {
	if err := l.supported(s.m); err != nil {
		return 0, fmt.Errorf("module %s: %w", s.name, err)
	}
	if err := l.p.enter(); err != nil {
		return 0, fmt.Errorf("module %s: %w", s.name, err)
	}
	defer l.p.leave()
	if err := l.settle(); err != nil {
		return 0, fmt.Errorf("work submitted before module %s was loaded: %w", s.name, err)
	}
	m, err := l.climb(&s)
	if err != nil && l.p.poison.Load() != nil {
		return 0, fmt.Errorf("work submitted before module %s was loaded: %w", s.name, err)
	}
	if err != nil {
		return 0, fmt.Errorf("module %s for %s on %s: %w", s.name, s.m.Target, l.info.Target(), err)
	}
	return m, nil
}

// settle asks for faults of the context's work, and unloads what was closed since. While the device is busy it does neither, since it
// would have to wait, nor while a graph is captured, which the driver breaks then. The context has been entered.
func (l *loader) settle() error {
	if !l.p.capture.TryLock() {
		return nil
	}
	defer l.p.capture.Unlock()
	if busy, err := l.busy(); busy || err != nil {
		return err
	}
	if err := l.p.check("cuCtxSynchronize", l.p.drv.CtxSynchronize()); err != nil {
		return err
	}
	return l.unloadRetired()
}

func (l *loader) unloadRetired() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, m := range l.retired {
		errs = append(errs, l.p.check("cuModuleUnload", l.p.drv.ModuleUnload(m)))
	}
	l.retired = nil
	return errors.Join(errs...)
}

// close unloads what the loader still has. The context has been entered; the device is no longer in use.
func (l *loader) close() error {
	errs := []error{l.unloadRetired()}
	for _, f := range l.families {
		if m := f.loaded.Load(); m != nil {
			errs = append(errs, m.unload())
		}
	}
	for m := range l.made.modules {
		errs = append(errs, l.p.check("cuModuleUnload", l.p.drv.ModuleUnload(m)))
	}
	return errors.Join(errs...)
}

// retire unloads a module at the next occasion.
func (l *loader) retire(m driver.Module) {
	l.made.forget(m)
	l.mu.Lock()
	l.retired = append(l.retired, m)
	l.mu.Unlock()
}

func (l *loader) climb(s *source) (driver.Module, error) {
	if l.cache == nil || !relocatable(s.m) {
		return l.loadText(s)
	}
	key := l.key(s)
	if binary := l.cache.get(key); binary != nil {
		m, err, mine := l.loadBinary(s, binary)
		if err == nil || !mine {
			return m, err
		}
		l.cache.drop(key, err)
	}
	jit := s.jit
	binary, r := l.p.drv.Compile(s.text, &jit)
	switch r {
	case driver.Success:
	case driver.InvalidPTX, driver.InvalidSource, driver.UnsupportedPTXVersion:
		return 0, l.refused("cuLinkComplete", r, s, &jit)
	default:
		err := l.refused("cuLinkComplete", r, s, &jit)
		if r.Sticky() {
			return 0, err
		}
		l.log.Debug("cuda: the driver's linker fails, the text is loaded", "module", s.name, "error", err)
		return l.loadText(s)
	}
	m, err, mine := l.loadBinary(s, binary)
	switch {
	case err == nil:
		l.cache.put(key, binary)
		return m, nil
	case mine:
		l.log.Warn("cuda: the driver refuses what its linker made, the text is loaded", "module", s.name, "error", err)
		return l.loadText(s)
	}
	return 0, err
}

// loadBinary loads a binary. mine tells whether an error may be the binary's own.
func (l *loader) loadBinary(s *source, binary []byte) (m driver.Module, err error, mine bool) {
	jit := s.jit
	m, r := l.p.drv.ModuleLoadData(binary, &jit)
	if r == driver.Success {
		return m, nil, false
	}
	switch r {
	case driver.OutOfMemory, driver.NotInitialized, driver.Deinitialized, driver.InvalidContext:
	default:
		mine = !r.Sticky()
	}
	return 0, l.p.failed("cuModuleLoadDataEx", r, logOf(&jit)), mine
}

func (l *loader) loadText(s *source) (driver.Module, error) {
	jit := s.jit
	m, r := l.p.drv.ModuleLoadData(s.text, &jit)
	if r != driver.Success {
		return 0, l.refused("cuModuleLoadDataEx", r, s, &jit)
	}
	if log := logOf(&jit); log != "" {
		l.log.Debug("cuda: the driver's compiler", "module", s.name, "log", log)
	}
	return m, nil
}

// refused is the error of a compilation, with the lines that its log names.
func (l *loader) refused(call string, r driver.Result, s *source, jit *driver.JIT) error {
	log := logOf(jit)
	err := l.p.failed(call, r, log)
	if e, ok := err.(*Error); ok && e.Detail == "" {
		e.Detail = cited(log, s.text)
	}
	return err
}

func logOf(jit *driver.JIT) string {
	return strings.TrimSpace(strings.TrimSpace(jit.ErrorLog) + "\n" + strings.TrimSpace(jit.InfoLog))
}

var citation = regexp.MustCompile(`line (\d+)`)

// cited are the lines of the text that a log names, the first few.
func cited(log string, text []byte) string {
	const most = 8
	lines := strings.Split(string(text), "\n")
	var out []string
	for _, match := range citation.FindAllStringSubmatch(log, -1) {
		n, err := strconv.Atoi(match[1])
		if err != nil || n < 1 || n > len(lines) {
			continue
		}
		line := fmt.Sprintf("line %d: %s", n, strings.TrimSpace(lines[n-1]))
		if !slices.Contains(out, line) {
			out = append(out, line)
		}
		if len(out) == most {
			break
		}
	}
	return strings.Join(out, "\n")
}
