module github.com/latchfree/latchfree/bench/failures

go 1.26.0

require (
	github.com/Yiling-J/theine-go v0.6.3
	github.com/jellydator/ttlcache/v3 v3.4.1
	github.com/latchfree/latchfree v0.0.0-00010101000000-000000000000
	github.com/latchfree/latchfree/bench/peers v0.0.0-00010101000000-000000000000
	github.com/maypok86/otter/v2 v2.4.0
	github.com/stretchr/testify v1.12.1
	github.com/viccon/sturdyc v1.1.5
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/klauspost/cpuid/v2 v2.0.9 // indirect
	github.com/puzpuzpuz/xsync/v3 v3.5.1 // indirect
	github.com/zeebo/xxh3 v1.0.2 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.35.0 // indirect
)

replace (
	github.com/latchfree/latchfree => ../..
	github.com/latchfree/latchfree/bench/peers => ../peers
)
