//go:build race

package batch_test

// racing: under the race detector a sync.Pool forgets at random what it was given, so that runs allocate now and then.
const racing = true
