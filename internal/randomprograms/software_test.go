//go:build !hardware

package randomprograms

const cudaSoftware = true
