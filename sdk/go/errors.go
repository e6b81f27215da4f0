package toolbus

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"connectrpc.com/connect"

	errorv1 "toolbus.dev/gen/go/toolbus/error/v1"
	runv1 "toolbus.dev/gen/go/toolbus/run/v1"
)

// Error is what the suite refused, or could not do.
type Error struct {
	// Code is one of gRPC, as not_found.
	Code connect.Code
	// Reason tells cases of one code apart, as AGENT_NOT_FOUND; empty where none was told.
	Reason   string
	Message  string
	Metadata map[string]string
	cause    error
}

func (e *Error) Error() string { return e.Code.String() + ": " + e.Message }
func (e *Error) Unwrap() error { return e.cause }

// RunError is a run that failed or was canceled.
type RunError struct {
	RunID string
	State runv1.RunState
	// EndReason says why, as MODEL_ERROR.
	EndReason string
	Message   string
}

func (e *RunError) Error() string { return e.Message }

var errEnded = connect.NewError(connect.CodeUnavailable, errors.New("the stream ended"))

func errorOf(err error) error {
	var told *Error
	if err == nil || errors.As(err, &told) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	message := err.Error()
	if refused := new(connect.Error); errors.As(err, &refused) {
		message = refused.Message()
	}
	failure := &Error{Code: connect.CodeOf(err), Message: message, cause: err}
	if detail := detailOf(err); detail != nil {
		failure.Reason, failure.Metadata = reasonName(detail.GetReason()), detail.GetMetadata()
	}
	return failure
}

func reasonOf(err error) string {
	if told := new(Error); errors.As(errorOf(err), &told) {
		return told.Reason
	}
	return ""
}

// reasonName is a number of a suite that is newer than this library.
func reasonName(reason errorv1.Reason) string {
	if name, isKnown := errorv1.Reason_name[int32(reason)]; isKnown {
		return strings.TrimPrefix(name, "REASON_")
	}
	return strconv.Itoa(int(reason))
}

func detailOf(err error) *errorv1.ErrorDetail {
	refused := new(connect.Error)
	if !errors.As(err, &refused) {
		return nil
	}
	for _, packed := range refused.Details() {
		if value, err := packed.Value(); err == nil {
			if detail, isOurs := value.(*errorv1.ErrorDetail); isOurs {
				return detail
			}
		}
	}
	return nil
}

// isPassing tells whether the same may be answered a little later: the suite says so, or the way to it is broken, of which no answer of
// the suite tells, since those have a reason.
func isPassing(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	code := connect.CodeOf(err)
	if detailOf(err) != nil {
		return code == connect.CodeUnavailable
	}
	switch code {
	case connect.CodeUnknown, connect.CodeInternal, connect.CodeUnavailable, connect.CodeAborted, connect.CodeDataLoss, connect.CodeCanceled:
		return true
	default:
		return false
	}
}
