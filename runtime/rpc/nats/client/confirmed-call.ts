import { Code } from "@connectrpc/connect";
import { comesWithin } from "#runtime/time/comes-within.ts";
import { notSent } from "../call/delivery.ts";
import type { Channel } from "../channel/channel.ts";
import type { Credit } from "../frame/frame.ts";
import { type ClientContext, type ClientRequest, openChannel, openChannelCall } from "./client-call.ts";

/*
 * A call of one request that nobody starts before its caller has heard of somebody who lives.
 *
 *   opening without the request ──▶ an instance that is silent      after a while another opening goes out
 *   opening without the request ──▶ an instance that lives ──▶ credit ──▶ the request goes to it, the other openings are canceled
 *
 * confirmed-call-1  A handler starts when its request is whole, and only one instance gets it: so any number of openings starts one call.
 * confirmed-call-2  When nobody shows himself, nothing was started, and the error says so.
 */

/** The channel of the instance that took the request; fails NOT_SENT when none does before a silent one counts as dead. */
export async function openConfirmed(
  context: ClientContext,
  request: ClientRequest,
  { body, window }: { body: Uint8Array; window: Credit },
): Promise<Channel> {
  const { heartbeatMs, silenceMs } = context.timings;
  const channels: Channel[] = [];
  const taken = Promise.withResolvers<Channel>();
  let failed = 0;
  const open = () => {
    const channel = openChannel(context, request, { window });
    channels.push(channel);
    openChannelCall(context, request, channel, { body: NO_BODY, isConfirmed: true }).then(
      () => taken.resolve(channel),
      (error) => {
        if (channel.isOpen) channel.fail(error);
        failed += 1;
        if (failed === channels.length) taken.reject(error);
      },
    );
  };
  const startedAt = performance.now();
  let taker: Channel | undefined;
  try {
    for (open(); !(await comesWithin(heartbeatMs / 4, taken.promise)); open())
      if (performance.now() - startedAt >= silenceMs)
        throw notSent(`no instance that serves ${request.subject} took the call within ${silenceMs} ms`); // confirmed-call-2
    taker = await taken.promise;
    if (channels.length === 1) context.silence?.tookAtOnce();
    else context.silence?.notice();
    void taker.sendRest(body);
    return taker;
  } finally {
    for (const channel of channels)
      if (channel !== taker) channel.abort(notSent("another instance took the call", Code.Canceled));
  }
}

const NO_BODY = new Uint8Array(0);
