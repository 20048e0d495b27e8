// Package conformance is the one suite that every device passes: each entry of the catalogue over a sweep of shapes,
// aliasing, special values and limits against the entry's float64 reference, then programs of many steps, resident tensors,
// replay, concurrency and errors. A device registers by calling [Run]; it cannot choose its tests.
//
// Inputs are random, from the seed of package testseed, which every failure names.
//
// An entry without cases is a failure: adding an operation to the catalogue without saying how to test it does not go unseen.
package conformance
