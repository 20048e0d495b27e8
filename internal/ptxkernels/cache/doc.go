// Package cache has the kernels that append keys and values to caches, contiguous or paged.
package cache
