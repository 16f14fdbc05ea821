// Package scale measures what docs/scale.md says about cluster/: servers, mirrors and
// clients share one process. All of it runs by
//
//	CLUSTER_LONG=1 go test -run '^$' -bench . -benchtime 1x -timeout 1h ./internal/scale
package scale
