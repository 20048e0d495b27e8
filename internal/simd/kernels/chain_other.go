//go:build !amd64

package kernels

// ChainWidth is 0: there are no links here, and none can be run.
func ChainWidth() int { return 0 }

func linkCode(LinkOp) uintptr { return 0 }

// RunChain is never called.
func RunChain([]Link, int) {}
