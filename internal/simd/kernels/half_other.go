//go:build !amd64 && !arm64

package kernels

// Nothing is done by vectors: WebAssembly has no instructions for halves, and bytes go through Go's memory.

func widenF16(_ []float32, _ []uint16) int { return 0 }

func widenBF16(_ []float32, _ []uint16) int { return 0 }

func narrowF16(_ []uint16, _ []float32) int { return 0 }

func narrowBF16(_ []uint16, _ []float32) int { return 0 }

func widenU8(_ []float32, _ []uint8) int { return 0 }

func narrowU8(_ []uint8, _ []float32) int { return 0 }

func widenF16Rows(_ []float32, _ []uint16, _, _ int) bool { return false }
