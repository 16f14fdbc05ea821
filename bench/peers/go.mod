module github.com/latchfree/latchfree/bench/peers

go 1.26.0

require (
	github.com/failsafe-go/failsafe-go v0.9.8
	github.com/latchfree/latchfree v0.0.0-00010101000000-000000000000
	github.com/maypok86/otter/v2 v2.4.0
	github.com/puzpuzpuz/xsync/v3 v3.5.1
	github.com/puzpuzpuz/xsync/v4 v4.5.0
	github.com/sony/gobreaker/v2 v2.4.0
	github.com/stretchr/testify v1.12.1
	golang.org/x/sync v0.24.0
)

require (
	github.com/bits-and-blooms/bitset v1.24.4 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)

replace github.com/latchfree/latchfree => ../..
