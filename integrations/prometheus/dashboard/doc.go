// Package dashboard has the tests of ../dashboard.json that need Grafana's schema and the
// parser of Prometheus. It is a module of its own, so that package latchprom needs neither.
//
// The files of ../ are read through links in testdata: the go command looks only at files in
// the module when it decides whether the result of a test can be used again.
package dashboard
