//go:build !amd64 && !arm64

package kernels

// Nothing is done by vectors: WebAssembly has no instructions for halves.

func widenF16(_ []float32, _ []uint16) int { return 0 }

func widenBF16(_ []float32, _ []uint16) int { return 0 }

func narrowF16(_ []uint16, _ []float32) int { return 0 }

func narrowBF16(_ []uint16, _ []float32) int { return 0 }

func widenF16Rows(_ []float32, _ []uint16, _, _ int) bool { return false }
