//go:build !race

package batch_test

const racing = false
