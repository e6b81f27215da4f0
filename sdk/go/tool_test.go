package toolbus

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"connectrpc.com/connect"
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

func TestAResultThatIsRefusedIsToldAsAnError(t *testing.T) {
	told := map[string]outcome{}
	err := outcome{resultJSON: `"long"`}.answer(func(result outcome, submissionID string) error {
		told[submissionID] = result
		if result.fault == "" {
			return &Error{Code: connect.CodeInvalidArgument, Reason: "MESSAGE_TOO_LARGE", Message: "too large"}
		}
		if result.fault != "invalid_argument: too large" {
			t.Errorf("told %q", result.fault)
		}
		return nil
	})
	if err != nil || len(told) != 2 {
		t.Errorf("%v, after %d submissions", err, len(told))
	}
}
