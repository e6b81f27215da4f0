/** What can be seen of runs on the wire between a process and the broker. */

import { fromBinary } from "@bufbuild/protobuf";
import { StoredRunEventSchema } from "#gen/toolbus/internal/run/v1/run_log_pb.ts";
import type { RunEvent } from "#gen/toolbus/run/v1/run_event_pb.ts";
import type { NatsFrame } from "../../harness/proxy/nats-frames.ts";
import type { Verdict } from "../../harness/proxy/nats-proxy.ts";

export type WireMoment =
  /** An event is on its way to the store, or the store's word that it stands is on its way back. */
  | { readonly kind: "sent" | "stored"; readonly event: RunEvent; readonly epoch: number }
  /** A session's tools are asked for. */
  | { readonly kind: "listing"; readonly request: Buffer };

export interface WireEyes {
  /** What a frame means, if anything, and what becomes of it. */
  look(frame: NatsFrame, direction: "up" | "down"): Verdict | Promise<Verdict>;
}

const runLog = /^toolbus\.run\.run_[0-9a-z]+$/;

/** Tells of each moment; frames without meaning pass. */
export function createWireEyes(onMoment: (moment: WireMoment) => Verdict | Promise<Verdict>): WireEyes {
  const recordsByReply = new Map<string, { event: RunEvent; epoch: number }>();
  return {
    look({ subject, reply, payload }, direction) {
      if (direction === "up") {
        if (subject.endsWith(".ToolService.ListTools")) return onMoment({ kind: "listing", request: payload });
        if (!runLog.test(subject) || reply === "") return "pass";
        const { event, epoch } = fromBinary(StoredRunEventSchema, payload);
        if (event === undefined) return "pass";
        recordsByReply.set(reply, { event, epoch });
        return onMoment({ kind: "sent", event, epoch });
      }
      const record = recordsByReply.get(subject);
      if (record === undefined) return "pass";
      recordsByReply.delete(subject);
      const isStored = !payload.includes('"error"');
      return isStored ? onMoment({ kind: "stored", ...record }) : "pass";
    },
  };
}

/** Which run's call, if any, is brought to a router. */
export function callBrought({ subject, payload }: NatsFrame, direction: "up" | "down"): string | undefined {
  if (direction !== "down" || !subject.endsWith(".ToolService.CallTool")) return undefined;
  return /run_[0-9a-z]{21}/.exec(payload.toString("latin1"))?.[0];
}
