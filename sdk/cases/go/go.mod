module toolbus.dev/sdk/cases/go

go 1.26.0

require (
	github.com/goccy/go-yaml v1.18.0
	toolbus.dev/gen/go v0.0.0
	toolbus.dev/sdk/go v0.0.0
)

require (
	buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go v1.36.12-20260825204119-511051f7f437.2 // indirect
	connectrpc.com/connect v1.21.1 // indirect
	github.com/cenkalti/backoff/v5 v5.0.3 // indirect
	github.com/google/jsonschema-go v0.4.3 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace toolbus.dev/gen/go => ../../../gen/go

replace toolbus.dev/sdk/go => ../../go
