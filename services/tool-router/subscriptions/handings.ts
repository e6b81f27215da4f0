import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { errors, type Msg, type Subscription } from "@nats-io/transport-node";
import { type ToolCallRecord, ToolCallRecordSchema } from "#gen/toolbus/router/v1/tool_calls_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import { FIRST_LOOK_MS } from "../duty.ts";
import { tokenFrom } from "./subject-token.ts";

/*
 * Calls that go straight from the router that recorded them to one that holds a watcher of their tool.
 *
 * G1  A subject a tool, with a queue group of the routers that hold watchers of it: the server gives a call to one of them,
 *     or says that there is none.
 * G2  Nothing is handed, and nothing is taken, later than the time at which the duty of the record begins to ask who has it.
 *     So what nobody admits to have by then is in nobody's hands, and may be offered.
 * G3  The word that it is taken decides nothing: when none comes, it may be in somebody's hands, and the duty finds out.
 */

const QUEUE = "watchers";
/** A call that is handed so shortly before its time is over would come too late. */
const MARGIN_MS = 250;
const REVISION_BYTES = 8;
const [NO, YES] = [new Uint8Array([0]), new Uint8Array([1])];

export interface Handings extends Disposable {
  hand(record: ToolCallRecord, revision: number): Promise<boolean>;
  /** Calls of the tool may come here. */
  open(tool: string): void;
  close(tool: string): void;
}

/** `onHanded` gives whether a watcher here has it. A revision of 0 is not known. */
export function openHandings(bus: Bus, onHanded: (record: ToolCallRecord, revision: number) => boolean): Handings {
  const { connection } = bus;
  const subscriptions = new Map<string, Subscription>();

  function receive(message: Msg): void {
    const { data } = message;
    const revision = new DataView(data.buffer, data.byteOffset).getFloat64(0);
    const record = fromBinary(ToolCallRecordSchema, data.subarray(REVISION_BYTES));
    message.respond(leftMs(record) > 0 && onHanded(record, revision) ? YES : NO);
  }

  function close(tool: string): void {
    const closed = subscriptions.get(tool);
    subscriptions.delete(tool);
    void closed?.drain().catch(() => {}); // the connection is closing, and the subscription with it
  }

  return {
    async hand(record, revision) {
      if (leftMs(record) < MARGIN_MS || !bus.link.isUp) return false;
      try {
        const asked = connection.request(subjectOf(record.tool), encoded(record, revision), { timeout: FIRST_LOOK_MS });
        const { data } = await unlessAborted(asked, bus.link.down);
        return data[0] === YES[0];
      } catch (error) {
        return !isNobody(error); // G3
      }
    },
    open(tool) {
      if (subscriptions.has(tool)) return;
      const callback = (error: Error | null, message: Msg) => {
        if (error === null) receive(message);
      };
      subscriptions.set(tool, connection.subscribe(subjectOf(tool), { queue: QUEUE, callback }));
    },
    close,
    [Symbol.dispose]() {
      for (const tool of [...subscriptions.keys()]) close(tool);
    },
  };
}

function subjectOf(tool: string): string {
  return `toolbus.call.hand.${tokenFrom(tool)}`;
}

/** G2 */
function leftMs({ createdAt }: ToolCallRecord): number {
  return createdAt === undefined ? 0 : timestampMs(createdAt) + FIRST_LOOK_MS - Date.now();
}

function encoded(record: ToolCallRecord, revision: number): Uint8Array {
  const body = toBinary(ToolCallRecordSchema, record);
  const bytes = new Uint8Array(REVISION_BYTES + body.length);
  new DataView(bytes.buffer).setFloat64(0, revision);
  bytes.set(body, REVISION_BYTES);
  return bytes;
}

function isNobody(error: unknown): boolean {
  if (error instanceof errors.NoRespondersError) return true;
  return error instanceof errors.RequestError && error.isNoResponders();
}
