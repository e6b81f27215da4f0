import { createContextKey, createContextValues, type HandlerContext } from "@connectrpc/connect";
import type { UniversalHandler, UniversalServerRequest, UniversalServerResponse } from "@connectrpc/connect/protocol";
import { startTimer } from "../../time/timer.ts";

/** Clients and proxies wait for a head for minutes at most, and what is watched may be silent for hours. */
export const HEAD_MS = 1_000;

/** Told by the request gate, with all that a head is made of. */
export const onBegunKey = createContextKey<(context: HandlerContext) => void>(() => {});

/** The answer of Connect's own handler, which waits for the first message: a stream that is silent for longer begins without one. */
export async function answerWithHeadInTime(
  handler: UniversalHandler,
  { contextValues = createContextValues(), ...request }: UniversalServerRequest,
): Promise<UniversalServerResponse> {
  const begun = Promise.withResolvers<UniversalServerResponse>();
  let stopWaiting = () => {};
  contextValues.set(onBegunKey, ({ responseHeader: header, responseTrailer, protocolName }) => {
    const trailer = protocolName === "grpc" ? { trailer: responseTrailer } : {};
    const begin = () => begun.resolve({ status: 200, header, body: headFirst(answer), ...trailer });
    stopWaiting = startTimer(HEAD_MS, begin);
  });
  const answer = handler({ ...request, contextValues });
  try {
    return await Promise.race([answer, begun.promise]);
  } finally {
    stopWaiting();
  }
}

/** An empty part sends the head. If whoever asked has left by then, the body is left, too. */
async function* headFirst(answer: Promise<UniversalServerResponse>): AsyncIterable<Uint8Array> {
  try {
    yield new Uint8Array();
  } catch (error) {
    for await (const _ of (await answer).body ?? []) throw error;
    throw error;
  }
  const { body } = await answer;
  if (body) yield* body;
}
