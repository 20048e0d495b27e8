// Package benchmarks defines what is measured, once, for both go test -bench and the command wavelane bench.
//
// A benchmark does the same work in several ways on one device. Ways alternate, so that a busy moment of the machine hits all
// alike and the ratios between them hold where absolute figures do not.
package benchmarks
