import { type ApiError, JetStreamApiError, JetStreamError } from "@nats-io/jetstream";
import { errors, type Msg, type MsgHdrs, type NatsConnection } from "@nats-io/transport-node";
import { CallMux, type MuxCall } from "../../rpc/nats/channel/mux.ts";
import type { Link } from "../link/link.ts";

/*
 * Publishes to streams, whose acknowledgements come as answers of calls do: by one subscription and one timer a connection. The client's
 * own publish makes a timer, several promises and their listeners for each, which costs more than the message.
 *
 *   publish ──▶ stream ──▶ acknowledgement ──▶ its sequence, or the server's refusal
 *                     link lost, or silence ──▶ an outcome that is unknown
 */

export interface AcknowledgedPublish {
  subject: string;
  payload: Uint8Array | string;
  headers: MsgHdrs;
  timeoutMs: number;
}

/** Gives the sequence under which the message stands. Rejects at once when the server is lost. */
export function publishAcknowledged(
  { connection, link }: { connection: NatsConnection; link: Link },
  { subject, payload, headers, timeoutMs }: AcknowledgedPublish,
): Promise<number> {
  if (!link.isUp) return Promise.reject(link.down.reason);
  const mux = CallMux.of(connection);
  return new Promise((resolve, reject) => {
    const givenUpAt = performance.now() + timeoutMs;
    const end = (error: unknown) => {
      mux.release(reply);
      reject(error);
    };
    const waiting: MuxCall = {
      receive(message) {
        mux.release(reply);
        try {
          resolve(sequenceFrom(message, subject));
        } catch (error) {
          reject(error);
        }
      },
      tick: (now) => void (now >= givenUpAt && end(new errors.TimeoutError())),
      fail: (error) => end(link.isUp ? error : link.down.reason),
    };
    const reply = mux.register(waiting);
    connection.publish(subject, payload, { reply, headers });
  });
}

function sequenceFrom(message: Msg, subject: string): number {
  if (message.data.length === 0 && message.headers?.code === 503) throw new errors.NoRespondersError(subject);
  const { seq, stream, error } = message.json<{ seq: number; stream?: string; error?: ApiError }>();
  if (error) throw new JetStreamApiError(error);
  if (!stream) throw new JetStreamError("invalid ack response");
  return seq;
}
