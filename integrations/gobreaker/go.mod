module github.com/latchfree/latchfree/integrations/gobreaker

go 1.26.0

require github.com/latchfree/latchfree v0.0.0-00010101000000-000000000000

require (
	github.com/stretchr/testify v1.12.1
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)

require github.com/puzpuzpuz/xsync/v3 v3.5.1 // indirect

replace github.com/latchfree/latchfree => ../..
