//go:build !linux && !windows

package cpu

// available knows nothing of other systems but how much processes can address.
func available() uint64 { return addressSpace }
