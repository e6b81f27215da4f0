import { Match, MsgHdrsImpl } from "@nats-io/nats-core";

/** A client of HTTP/1.1 may send half as many, and the gateway passes them on. */
const MOST_HEADERS = 4_096;
const LINE_FEED = 10;
const { decode } = MsgHdrsImpl;
const { findKeys } = MsgHdrsImpl.prototype;

/**
 * Finds a header by its name at once, and reads no more headers than anybody sends. The client goes through all that it has read for each one
 * that it reads: one answer of a third party, with 500 KB of them, kept a service busy for minutes.
 *
 * Made for @nats-io/nats-core 3.4.0.
 */
MsgHdrsImpl.prototype.findKeys = function (key, match = Match.Exact) {
  if (match !== Match.Exact) return findKeys.call(this, key, match);
  return this.headers.has(key) ? [key] : [];
};
MsgHdrsImpl.decode = (bytes) => {
  let count = 0;
  for (let at = bytes.indexOf(LINE_FEED); at >= 0; at = bytes.indexOf(LINE_FEED, at + 1)) count += 1;
  if (count > MOST_HEADERS) throw new Error(`the message has more than ${MOST_HEADERS} headers`);
  return decode(bytes);
};
