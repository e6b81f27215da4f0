module toolbus.dev/examples/callers/go

go 1.26.0

require toolbus.dev/sdk/go v0.0.0

require (
	buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go v1.36.12-20260825204119-511051f7f437.2 // indirect
	connectrpc.com/connect v1.21.1 // indirect
	github.com/cenkalti/backoff/v5 v5.0.3 // indirect
	github.com/google/jsonschema-go v0.4.3 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
	toolbus.dev/gen/go v0.0.0 // indirect
)

replace toolbus.dev/gen/go => ../../../gen/go

replace toolbus.dev/sdk/go => ../../../sdk/go
