/** In `error.data.reason` of an answer that the HTTP transport gives itself: the server ended the stream without one. */
export const STREAM_ENDED = "toolbus:stream-ended";
