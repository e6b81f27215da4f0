import { constants } from "node:http2";
import { bodyOfRequest, type HttpRequest } from "../messages.ts";

/** What is passed over of a body that nobody reads any more, so that its client takes the answer before it is cut off. */
const MOST_BYTES = 1024 * 1024;
/** As so long a part counts, however short it is. */
const LEAST_PART_BYTES = 1024;
const LINGER_MS = 5_000;

/** For a request that is answered before all of it has come: passes over a rest that is short, and then ends it. */
export function leaveBody(request: HttpRequest): void {
  const source = bodyOfRequest(request);
  if (source.readableEnded || source.destroyed) return;
  let bytes = 0;
  const timer = setTimeout(cut, LINGER_MS);
  source.on("data", onData);
  source.once("end", letGo);
  source.once("close", letGo);
  source.on("error", letGo);
  source.resume();

  function onData(chunk: Uint8Array): void {
    bytes += Math.max(chunk.length, LEAST_PART_BYTES);
    if (bytes > MOST_BYTES) cut();
  }
  function cut(): void {
    letGo();
    if ("stream" in request) request.stream.close(constants.NGHTTP2_NO_ERROR);
    else request.socket.destroy();
  }
  function letGo(): void {
    clearTimeout(timer);
    source.off("data", onData);
  }
}
