//go:build ((linux && !android) || darwin || windows) && (amd64 || arm64)

package wgpu

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/wavelane/wavelane/compute"
)

// Library is a library in use.
type Library struct {
	Functions
	Version Version
	Path    string // as it was asked for, "" for the archive in the program
	ABI     *ABI
	// DeviceCreateShaderModuleTrusted leaves out what is not asked for in its third argument; 0 in version 27.
	DeviceCreateShaderModuleTrusted uintptr
	// survives reports whether a panic of the library is an error of the call. Otherwise it ends the process.
	survives bool
}

// String names the library for users.
func (l *Library) String() string {
	from, end := "linked", ""
	if l.Path != "" {
		from = "loaded from " + l.Path
	}
	if !l.survives {
		end = "; it ends the process when a driver fails"
	}
	return fmt.Sprintf("wgpu-native %v, %s%s", l.Version, from, end)
}

// Environment is the variable that names a library, or is [LinkedName].
const Environment = "WAVELANE_WGPU"

// LinkedName stands for the archive in the program in place of a path.
const LinkedName = "linked"

var found struct {
	sync.Mutex
	by map[string]*Library
}

// Find returns the library of a path; "" stands for the environment variable WAVELANE_WGPU or else the first that fits. A library
// stays loaded, and a second Find returns the same. Errors wrap compute.ErrUnavailable.
func Find(path string) (*Library, error) {
	if path == "" {
		path = os.Getenv(Environment)
	}
	found.Lock()
	defer found.Unlock()
	if l := found.by[path]; l != nil {
		return l, nil
	}
	var l *Library
	var err error
	switch path {
	case "":
		l, err = first()
	case LinkedName:
		l, err = linked()
	default:
		l, err = loaded(path)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, compute.ErrUnavailable)
	}
	if found.by == nil {
		found.by = map[string]*Library{}
	}
	found.by[path] = l
	return l, nil
}

// first tries what may be there without having been asked for.
func first() (*Library, error) {
	var errs []string
	try := func(path string) *Library {
		l, err := loaded(path)
		if err != nil {
			errs = append(errs, err.Error())
		}
		return l
	}
	if program, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(program), FileName)
		if _, err := os.Stat(beside); err == nil {
			if l := try(beside); l != nil {
				return l, nil
			}
		}
	}
	if l := try(FileName); l != nil {
		return l, nil
	}
	l, err := linked()
	if err == nil {
		return l, nil
	}
	return nil, errors.New(strings.Join(append(errs, err.Error()), "; "))
}

// loaded loads a library and checks that it fits.
func loaded(path string) (*Library, error) {
	if strings.IndexByte(path, 0) >= 0 {
		return nil, fmt.Errorf("path %q has a NUL", path)
	}
	handle, err := load(path)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", path, err)
	}
	l, err := check(path, func(name string) uintptr { return lookUp(handle, name) })
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", path, err)
	}
	l.survives = intercept(handle)
	return l, nil
}

// check asks a library for its version before its functions, since it is the version that says what others lack.
func check(path string, lookUp func(string) uintptr) (*Library, error) {
	l := &Library{Path: path}
	version := lookUp("wgpuGetVersion")
	if version == 0 {
		return nil, errors.New("it is no wgpu-native")
	}
	l.Version = Version(uint32(Call(version)))
	var err error
	if l.ABI, err = fitting(l.Version); err != nil {
		return nil, err
	}
	if err := l.fill(lookUp); err != nil {
		return nil, err
	}
	if l.ABI.ShaderRuntimeChecks_BoundsChecks != 0 {
		const name = "wgpuDeviceCreateShaderModuleTrusted"
		if l.DeviceCreateShaderModuleTrusted = lookUp(name); l.DeviceCreateShaderModuleTrusted == 0 {
			return nil, errors.New("it lacks " + name)
		}
	}
	Call(l.SetLogLevel, LogLevel_Off)
	return l, nil
}
