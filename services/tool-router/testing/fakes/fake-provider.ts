import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import {
  type ExecuteToolRequest,
  type ExecuteToolResponseSchema,
  type OfferedToolSchema,
  ToolProviderService,
} from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import type { SourceStatusSchema } from "#gen/toolbus/tool/v1/source_pb.ts";

type Offered = MessageInitShape<typeof OfferedToolSchema>;
type Status = MessageInitShape<typeof SourceStatusSchema>;
type Event = MessageInitShape<typeof ExecuteToolResponseSchema>;

/** A provider in memory that speaks the whole contract; a test says what it offers and how it answers. */
export class FakeProvider {
  readonly calls: ExecuteToolRequest[] = [];
  readonly canceled: string[] = [];
  /** The scopes that it was told to let go of. */
  readonly released: { sessionId: string; agent: string }[] = [];
  tools: Offered[] = [];
  sources: Status[] = [];
  /** Asked for tools, it stays silent. */
  isHanging = false;
  /** It tells of the sources that it is asked for, and of no others. */
  isCandid = true;
  answer: (request: ExecuteToolRequest, signal: AbortSignal) => AsyncIterable<Event> = echo;
  #changed = Promise.withResolvers<void>();

  /** Offers other tools and tells all who watch. */
  offer(tools: Offered[], sources: Status[] = []): void {
    this.tools = tools;
    this.sources = sources;
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }

  readonly routes = (router: ConnectRouter): void => {
    router.service(ToolProviderService, {
      getProvidedTools: async (request, { signal }) => {
        if (this.isHanging) await ended(signal);
        return this.#offerFor(request.sources.map(({ name }) => name));
      },
      watchProvidedTools: (request, { signal }) =>
        this.#watch(
          request.sources.map(({ name }) => name),
          signal,
        ),
      executeTool: (request, { signal }) => this.#call(request, signal),
      releaseScope: ({ scope }) => {
        const { sessionId = "", agent = "" } = scope ?? {};
        this.released.push({ sessionId, agent });
        return { closedCount: 1 };
      },
    });
  };

  async *#watch(sources: string[], signal: AbortSignal) {
    if (this.isHanging) await ended(signal);
    while (!signal.aborted) {
      const changed = this.#changed.promise;
      yield this.#offerFor(sources);
      await Promise.race([changed, ended(signal)]);
    }
  }

  async *#call(request: ExecuteToolRequest, signal: AbortSignal) {
    this.calls.push(request);
    signal.addEventListener("abort", () => this.canceled.push(request.callId), { once: true });
    yield* this.answer(request, signal);
  }

  #offerFor(sources: string[]) {
    const isAsked = ({ source = "" }: { source?: string }) =>
      !this.isCandid || (sources.length === 0 ? source === "" : sources.includes(source));
    return { tools: this.tools.filter(isAsked), sources: this.sources.filter(isAsked) };
  }
}

async function* echo(request: ExecuteToolRequest): AsyncIterable<Event> {
  yield { event: { case: "progress", value: { progress: 1, total: 2, message: "half" } } };
  yield { event: { case: "result", value: { outputJson: request.argumentsJson } } };
}

/** Resolves when the signal aborts. */
export function ended(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
