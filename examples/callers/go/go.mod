module toolbus.dev/examples/callers/go

go 1.26.0

require (
	connectrpc.com/connect v1.21.1
	toolbus.dev/gen/go v0.0.0
)

require (
	buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go v1.36.12-20260825204119-511051f7f437.2 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace toolbus.dev/gen/go => ../../../gen/go
