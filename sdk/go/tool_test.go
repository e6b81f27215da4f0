package toolbus

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"
	toolv1 "toolbus.dev/gen/go/toolbus/tool/v1"
)

func TestEachFaultOfAFunctionCanBeTold(t *testing.T) {
	functions := map[string]Function{
		"an error of bytes that are no text": func(context.Context, json.RawMessage) (any, error) { return nil, errors.New("no file \xff") },
		"a panic of such bytes":              func(context.Context, json.RawMessage) (any, error) { panic("no file \xff") },
		"a panic without words":              func(context.Context, json.RawMessage) (any, error) { panic("") },
		"an error without words":             func(context.Context, json.RawMessage) (any, error) { return nil, errors.New("") },
		"a result that is no JSON":           func(context.Context, json.RawMessage) (any, error) { return func() {}, nil },
	}
	for name, function := range functions {
		t.Run(name, func(t *testing.T) {
			told := outcomeOf(t.Context(), function, "")
			if told.fault == "" {
				t.Errorf("told %q, and no fault", told.resultJSON)
			}
			outcome := &toolv1.SubmitToolResultRequest_Error{Error: told.fault}
			if _, err := proto.Marshal(&toolv1.SubmitToolResultRequest{Outcome: outcome}); err != nil {
				t.Error(err)
			}
		})
	}
}
