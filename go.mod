module github.com/latchfree/latchfree

go 1.25.0

require (
	github.com/HdrHistogram/hdrhistogram-go v1.4.0
	github.com/aclements/go-moremath v0.0.0-20210112150236-f10218a38794
	github.com/anishathalye/porcupine v1.3.1
	github.com/puzpuzpuz/xsync/v3 v3.5.1
	github.com/stretchr/testify v1.12.1
	golang.org/x/perf v0.0.0-20250813145418-2f7363a06fe1
)

require go.yaml.in/yaml/v3 v3.0.5 // indirect

tool golang.org/x/perf/cmd/benchstat
