// Package kerneltest runs lowerings of PTX kernels on the software GPU, for tests.
package kerneltest
