import type { MessageInitShape } from "@bufbuild/protobuf";
import type { CallOptions, Client } from "@connectrpc/connect";
import type {
  ToolCallDelivery,
  ToolCallService,
  WatchToolCallsRequestSchema,
} from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";

type Calls = Client<typeof ToolCallService>;
type Handed = Pick<ToolCallDelivery, "call" | "deliveryId"> & { withdrawn: boolean };

/** Takes the call, then answers with its arguments. */
export async function takeAndAnswer(calls: Calls, { call, deliveryId }: Handed): Promise<void> {
  const { callId = "", argumentsJson = "" } = call ?? {};
  await calls.acknowledgeToolCall({ callId, deliveryId });
  await calls.submitToolResult({ callId, outcome: { case: "resultJson", value: argumentsJson || "{}" } });
}

/** Answers without taking the call first. */
export async function answerAtOnce(calls: Calls, { call }: Handed): Promise<void> {
  await calls.submitToolResult({
    callId: call?.callId ?? "",
    outcome: { case: "resultJson", value: call?.argumentsJson || "{}" },
  });
}

export async function takeOnly(calls: Calls, { call, deliveryId }: Handed): Promise<void> {
  await calls.acknowledgeToolCall({ callId: call?.callId ?? "", deliveryId });
}

export async function neither(): Promise<void> {}

/** A service outside that watches for calls and does with each what it is told to. */
export class ExternalService implements AsyncDisposable {
  readonly handed: Handed[] = [];
  /** What keeps calls from coming, as it was told. */
  readonly notices: string[] = [];
  /** What went wrong with a call that it was handed. */
  readonly faults: unknown[] = [];
  /** What ended its stream, if it was not its own leaving. */
  end: unknown;
  readonly #leaving = new AbortController();
  readonly #watching: Promise<void>;

  constructor(
    calls: Calls,
    request: MessageInitShape<typeof WatchToolCallsRequestSchema>,
    act: (calls: Calls, handed: Handed) => Promise<void> = takeAndAnswer,
    by: CallOptions = {},
  ) {
    this.#watching = this.#watch(calls, request, { act, by });
  }

  get callIds(): string[] {
    return this.handed.filter(({ withdrawn }) => !withdrawn).map(({ call }) => call?.callId ?? "");
  }

  async #watch(
    calls: Calls,
    request: MessageInitShape<typeof WatchToolCallsRequestSchema>,
    how: { act: (calls: Calls, handed: Handed) => Promise<void>; by: CallOptions },
  ): Promise<void> {
    const { signal } = this.#leaving;
    try {
      for await (const { update } of calls.watchToolCalls(request, { ...how.by, signal })) {
        if (update.case === "notice") this.notices.push(update.value.problem);
        if (update.case !== "call" && update.case !== "withdrawn") continue;
        const handed = { ...update.value, withdrawn: update.case === "withdrawn" };
        this.handed.push(handed);
        if (!handed.withdrawn) void how.act(calls, handed).catch((error) => this.faults.push(error));
      }
    } catch (error) {
      if (!signal.aborted) this.end = error;
    }
  }

  /** Its stream ends, as when it dies. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#leaving.abort();
    await this.#watching;
  }
}
