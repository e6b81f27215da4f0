package toolbus

import (
	"context"
	"iter"
	"sync"

	"connectrpc.com/connect"
)

// Stream brings work until it is closed; one that breaks is opened again for as long as the program runs.
type Stream struct {
	endsWellBy string
	close      context.CancelFunc
	stands     chan struct{}
	ended      chan struct{}
	err        error
}

// Close ends it, and waits until it has ended.
func (s *Stream) Close() {
	s.close()
	<-s.ended
}

// Wait waits until it was closed, or its session was; gives what ended it else.
func (s *Stream) Wait() error {
	<-s.ended
	if s.endsWellBy != "" && reasonOf(s.err) == s.endsWellBy {
		return nil
	}
	return s.err
}

func (s *Stream) whenStanding(ctx context.Context) error {
	select {
	case <-s.stands:
		return nil
	case <-s.ended:
		return s.err
	case <-ctx.Done():
		s.Close()
		return ctx.Err()
	}
}

// keepStream lives on when the context of whoever opened it ends, until it is closed.
func keepStream[T any](ctx context.Context, open func(context.Context) iter.Seq2[T, error], take func(context.Context, T)) *Stream {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stream := &Stream{close: cancel, stands: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(stream.ended)
		defer cancel()
		var standing sync.Once
		endlessly := func(ctx context.Context) iter.Seq2[T, error] { return endless(open(ctx)) }
		for message, err := range resumed(ctx, forever, endlessly) {
			if err != nil {
				if ctx.Err() == nil {
					stream.err = err
				}
				return
			}
			standing.Do(func() { close(stream.stands) })
			take(ctx, message)
		}
	}()
	return stream
}

// watched opens a stream of the server when it is read.
func watched[Request, Response any](
	ctx context.Context,
	method func(context.Context, *connect.Request[Request]) (*connect.ServerStreamForClient[Response], error),
	request *Request,
) iter.Seq2[*Response, error] {
	return func(yield func(*Response, error) bool) {
		received(method(ctx, connect.NewRequest(request)))(yield)
	}
}
