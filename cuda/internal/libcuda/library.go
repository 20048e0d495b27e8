//go:build ((linux && !android) || windows) && (amd64 || arm64)

package libcuda

import (
	"fmt"
	"sync/atomic"

	"github.com/wavelane/wavelane/cuda/internal/driver"
)

// library is a loaded and initialised driver library. It does not change, and is never unloaded.
type library struct {
	functions
	current atomic.Pointer[[1]uintptr] // the arguments of the last cuCtxSetCurrent
}

var _ driver.Driver = (*library)(nil)

func open(path string) (driver.Driver, error) {
	d, err := bind(path)
	if err != nil {
		return nil, err
	}
	if r := call(d.cuInit, 0); r != driver.Success {
		err = fmt.Errorf("cuInit: %s, %s", r.Name(), d.ResultText(r))
		if hint := hints[r]; hint != "" {
			err = fmt.Errorf("%w; %s", err, hint)
		}
		return nil, err
	}
	return d, nil
}

// bind loads a library and finds its functions.
func bind(path string) (*library, error) {
	var handle uintptr
	var err error
	if path == "" {
		path = systemLibrary
		if handle, err = loadSystem(); err != nil {
			err = fmt.Errorf("%w; %s", err, hintMissing)
		}
	} else {
		handle, err = load(path)
	}
	if err != nil {
		return nil, fmt.Errorf("loading %s: %w", path, err)
	}
	d := &library{}
	if err := d.lookUpAll(handle); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return d, nil
}

// hints say what to do about results of cuInit.
var hints = map[driver.Result]string{
	driver.OutOfMemory:          "other processes may have the devices' memory",
	driver.StubLibrary:          `take the toolkit's folder "stubs" out of LD_LIBRARY_PATH: its library is for linking only`,
	driver.DeviceUnavailable:    "another process may have the device for itself (nvidia-smi shows its compute mode)",
	driver.NoDevice:             "there is no NVIDIA GPU, or CUDA_VISIBLE_DEVICES hides it, or this container lacks it",
	driver.SystemDriverMismatch: "library and kernel module are of different versions: reboot after updating the driver",
	driver.Unknown:              "the kernel module may have failed: see dmesg, load nvidia_uvm again, or reboot",
	304:                         "the device files /dev/nvidia* may be missing or not permitted",
	802:                         "the fabric manager of this machine may not be running",
	804:                         "take the compatibility library out of LD_LIBRARY_PATH: this GPU cannot use it",
}
