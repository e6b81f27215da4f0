module toolbus.dev/sdk/go

go 1.26.0

require (
	connectrpc.com/connect v1.21.1
	github.com/cenkalti/backoff/v5 v5.0.3
	github.com/google/jsonschema-go v0.4.3
	google.golang.org/protobuf v1.36.12
	toolbus.dev/gen/go v0.0.0
)

require buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go v1.36.12-20260825204119-511051f7f437.2 // indirect

replace toolbus.dev/gen/go => ../../gen/go
