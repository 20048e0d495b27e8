// Package reference computes the entries of the catalogue in float64, for tests and for comparing devices. Programs that do neither
// do not link it.
package reference
