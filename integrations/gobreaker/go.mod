module github.com/latchfree/latchfree/integrations/gobreaker

go 1.26.0

require (
	github.com/latchfree/latchfree v0.0.0-00010101000000-000000000000
	github.com/sony/gobreaker/v2 v2.4.0
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/puzpuzpuz/xsync/v3 v3.5.1 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)

replace github.com/latchfree/latchfree => ../..
