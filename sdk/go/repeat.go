package toolbus

import (
	"context"
	"iter"
	"time"

	"connectrpc.com/connect"
	"github.com/cenkalti/backoff/v5"
)

// forever is the patience of streams that stand for as long as their program does.
const forever = time.Duration(1<<63 - 1)

// standsAfter is when a stream was served, though it may have had nothing to tell.
const standsAfter = 10 * time.Second

func newBackoff() *backoff.ExponentialBackOff {
	waits := backoff.NewExponentialBackOff()
	waits.InitialInterval, waits.MaxInterval, waits.Multiplier = 50*time.Millisecond, 2*time.Second, 2
	return waits
}

// send sends what may arrive twice until it is answered.
func send[Request, Response any](
	ctx context.Context, patience time.Duration, method func(context.Context, *connect.Request[Request]) (*connect.Response[Response], error), request *Request,
) (*Response, error) {
	attempt := func() (*Response, error) {
		response, err := method(ctx, connect.NewRequest(request))
		switch {
		case err == nil:
			return response.Msg, nil
		case isPassing(ctx, err):
			return nil, err
		default:
			return nil, backoff.Permanent(err)
		}
	}
	response, err := backoff.Retry(ctx, attempt, backoff.WithBackOff(newBackoff()), backoff.WithMaxElapsedTime(patience))
	return response, errorOf(err)
}

// resumed opens a stream again that breaks, which open does where it broke. It is given up when for patience no opening has told anything or
// stood for a while. open ends with errEnded where it must not end by itself.
func resumed[T any](ctx context.Context, patience time.Duration, open func(context.Context) iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		ctx, leave := context.WithCancel(ctx) // a stream that is left would go on
		defer leave()
		waits := newBackoff()
		var failingSince, none = time.Time{}, *new(T)
		for {
			openedAt := time.Now()
			var broken error
			for message, err := range open(ctx) {
				if err != nil {
					broken = err
					break
				}
				failingSince = time.Time{}
				if !yield(message, nil) {
					return
				}
			}
			if broken == nil {
				return
			}
			if failingSince.IsZero() || time.Since(openedAt) > standsAfter {
				failingSince = time.Now()
				waits.Reset()
			}
			if !isPassing(ctx, broken) || time.Since(failingSince) > patience {
				yield(none, errorOf(broken))
				return
			}
			select {
			case <-ctx.Done():
				yield(none, ctx.Err())
				return
			case <-time.After(waits.NextBackOff()):
			}
		}
	}
}

// received gives what a stream of the server brings.
func received[T any](stream *connect.ServerStreamForClient[T], err error) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		if err != nil {
			yield(nil, err)
			return
		}
		defer stream.Close()
		for stream.Receive() {
			if !yield(stream.Msg(), nil) {
				return
			}
		}
		if err := stream.Err(); err != nil {
			yield(nil, err)
		}
	}
}

// endless breaks where the stream ends.
func endless[T any](stream iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for message, err := range stream {
			if !yield(message, err) {
				return
			}
		}
		yield(*new(T), errEnded)
	}
}
