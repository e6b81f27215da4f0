import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { CallerService, type WatchCallerResponse } from "#gen/toolbus/caller/v1/caller_service_pb.ts";
import { BoundedMap } from "#runtime/collections/maps/bounded-map.ts";
import { type Connection, randomName } from "./connection.ts";
import { errorOf } from "./error.ts";
import { type KeptStream, keepStream } from "./kept-stream.ts";
import { answerCall, outcomeOf, type Tool } from "./tool.ts";

export interface AttachOptions {
  readonly sessionId: string;
  /** Stands before the names of the tools, as the agent sees them: `<callerId>_<name>`. */
  readonly callerId: string;
  readonly tools: readonly Tool[];
  /** Of the session: each stream of this program gets requests for all that it offers, and those that another one was executing. */
  readonly requests?: ReturnType<typeof createRequests>;
  /** How long requests wait for this program when its connection breaks, in ms; 10,000 unless given. */
  readonly graceMs?: number | undefined;
}

/** Tools of this program in a session, offered until it is closed. */
export interface Attachment extends KeptStream {
  /** The names that the agent sees. */
  readonly names: readonly string[];
}

/** More requests than are answered while one that was sent again is on its way. */
const MAX_OVER = 1_000;

/** What this program has offered in a session, and the requests that it executes and has executed. */
export const createRequests = () => ({
  offered: new Map<string, Tool>(),
  running: new Map<string, AbortController>(),
  over: new BoundedMap<string, true>(MAX_OVER),
});

/** Offers the tools, and executes the agent's requests, each once however often the connection breaks. */
export async function attach(connection: Connection, options: AttachOptions): Promise<Attachment> {
  const { sessionId, callerId, tools, requests = createRequests(), graceMs = 10_000 } = options;
  const { offered, running, over } = requests;
  const callers = connection.client(CallerService);
  const declared = tools.map(({ name, description, input }) => ({
    name,
    description,
    ...(input && { inputSchemaJson: JSON.stringify(input) }),
  }));
  for (const one of tools) offered.set(one.name, one);
  const { names } = await connection.repeat(() =>
    callers.declareTools({ sessionId, declaration: { callerId, tools: declared } }),
  );
  const streamId = randomName();

  async function execute(requestId: string, tool: string, argumentsJson: string): Promise<void> {
    const canceling = new AbortController();
    running.set(requestId, canceling);
    try {
      const { signal } = canceling;
      const outcome = await outcomeOf(offered.get(tool)?.run, argumentsJson, { callId: requestId, signal });
      await answerCall(outcome, (answer) =>
        connection.repeat(() => callers.respond({ sessionId, requestId, ...answer }), signal),
      );
    } catch (error) {
      if (!canceling.signal.aborted) stream.fail(error);
    } finally {
      running.delete(requestId);
      over.set(requestId, true);
    }
  }

  const stream = await keepStream<WatchCallerResponse>({
    open: (signal) => callers.watchCaller({ sessionId, streamId, reconnectGrace: durationFromMs(graceMs) }, { signal }),
    isOpen: ({ event }) => event.case === "attached",
    isOver: (error) => errorOf(error).reason === "SESSION_CLOSED",
    take({ event }) {
      if (event.case === "canceled") running.get(event.value.requestId)?.abort();
      if (event.case !== "request") return;
      const { requestId, tool, argumentsJson } = event.value;
      // sent again when the stream broke before its answer was there, and may come when it is
      if (!running.has(requestId) && !over.has(requestId)) void execute(requestId, tool, argumentsJson);
    },
  });
  return Object.assign(stream, { names });
}
