// Package browser tests the npm package in Chromium: on WebGPU and on the CPU, in pages and workers. It is a module of its own because of
// what drives the browser.
package browser
