import { createHash } from "node:crypto";
import { ToolCallRecordSchema } from "#gen/toolbus/router/v1/tool_calls_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import type { StoreResult } from "../answer.ts";
import type { CallStore } from "../record.ts";
import type { Waiters } from "../waiters.ts";
import { openCallHolders } from "./call-holders.ts";
import { createDocuments } from "./documents.ts";

const CHANGED = "toolbus.call.changed";

export interface CallBus {
  waiters: Waiters;
  /** The calls that this router executes. */
  executing: ReadonlySet<string>;
}

/** The recorded calls, with the news and the questions about them that go between routers. */
export async function openCallStore(bus: Bus, { waiters, executing }: CallBus): Promise<CallStore & Disposable> {
  using stack = new DisposableStack();
  const { connection } = bus;
  const documents = createDocuments(bus, { bucket: "toolbus_calls", prefix: "", schema: ToolCallRecordSchema });
  const news = connection.subscribe(CHANGED, {
    callback: (error, message) => (error ? waiters.wakeAll() : waiters.wake(message.string())),
  });
  const holders = stack.use(openCallHolders(bus, executing));
  stack.defer(() => news.unsubscribe());
  stack.defer(bus.link.onReturn(() => waiters.wakeAll()));
  await connection.flush();
  const owned = stack.move();
  return {
    read: async (callId) => (await documents.read(callId))?.value,
    create: async (record) => (await documents.create(record.callId, record)) !== undefined,
    async update(callId, decide) {
      const update = await documents.update(callId, (record) => record && decide(record));
      const { before, value, hasChanged } = update;
      return before && value && { before, record: value, hasChanged };
    },
    list: (signal) => documents.list(signal),
    announce: (callId) => connection.publish(CHANGED, callId),
    isHeld: holders.isHeld,
    [Symbol.dispose]: () => owned.dispose(),
  };
}

/** Keeps results that are too large for a message, under their digest. */
export function createResultStore(bus: Bus): StoreResult {
  return async (outputJson) => {
    const bytes = Buffer.from(outputJson);
    const name = `sha256-${createHash("sha256").update(bytes).digest("hex")}`;
    const results = await bus.objectStore("toolbus_results");
    if ((await results.info(name)) === null) await results.putBlob({ name }, bytes);
    return name;
  };
}
