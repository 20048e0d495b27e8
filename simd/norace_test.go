//go:build !race

package simd_test

const racing = false
