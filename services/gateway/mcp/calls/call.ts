import type { MessageInitShape } from "@bufbuild/protobuf";
import type { CallOptions } from "@connectrpc/connect";
import type { InputRequiredResult } from "@modelcontextprotocol/server";
import type { CallTaskSchema, ToolCall } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import type { CallToolResult as Answer, CallToolResponse } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { isUnavailable } from "#runtime/failure/connect.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { deliveryOf } from "#runtime/rpc/nats/call/delivery.ts";
import { resumed, WAITED_MS } from "#runtime/rpc/watching/resumed.ts";
import { openEnding } from "#runtime/time/ending.ts";
import type { Notify } from "./notifications.ts";
import type { Answers } from "./questions.ts";

/** Calls a tool in a session that both sides know. */
export type CallInSession = (
  call: CalledTool & { readonly answersForms: boolean; readonly answersUrls: boolean },
  options: CallOptions,
) => AsyncIterable<CallToolResponse>;

export interface CalledTool {
  readonly callId: string;
  readonly name: string;
  readonly argumentsJson: string;
  /** What the client asked of it as a task. */
  readonly task?: MessageInitShape<typeof CallTaskSchema>;
}

export interface CallParts {
  readonly callTool: CallInSession;
  readonly options: CallOptions;
  /** Counts a call of the principal until it is given back. */
  readonly takeCall: () => () => void;
  readonly answers: Answers;
}

export interface Followed {
  readonly signal: AbortSignal;
  readonly notify: Notify;
  /** Puts questions to the client. What it gives answers the client's request, and the call goes on without the client. */
  readonly ask: (questions: readonly ToolCall[]) => Promise<InputRequiredResult | undefined>;
  /** What the call may have asked before, for a client that comes back to it. */
  readonly asked?: ((signal: AbortSignal) => AsyncGenerator<ToolCall[]>) | undefined;
}

export type Outcome = { kind: "answer"; answer: Answer } | { kind: "asked"; asked: InputRequiredResult };

/** Its id is the same at the next router: what may have begun is not begun again. */
export async function follow(parts: CallParts, called: CalledTool, followed: Followed): Promise<Outcome> {
  using release = new DisposableStack();
  release.defer(parts.takeCall());
  const ending = release.use(openEnding(followed.signal));
  const { signal } = ending;
  const request = { ...called, answersForms: parts.answers.forms, answersUrls: parts.answers.urls };
  let unknown: unknown;
  async function* open() {
    try {
      yield* parts.callTool(request, { ...parts.options, signal });
    } catch (error) {
      if (deliveryOf(error) === "UNKNOWN") unknown = error;
      throw isUnavailable(error) ? (unknown ?? error) : error; // what may have begun is not told as what was never sent
    }
  }
  const events = resumed({ open, patienceMs: WAITED_MS, signal });
  const looking = release.use(openEnding(signal));
  release.defer(() => looking.end());
  let isHeld = false;
  release.defer(() => void (isHeld || events.return(undefined).catch(() => {})));
  for await (const { event } of withAsked(events, followed.asked?.(looking.signal))) {
    if (event.case === "result") {
      void events.next().catch(() => {}); // its end, which nobody waits for
      return { kind: "answer", answer: event.value };
    }
    if (event.case !== "questions") await followed.notify(event);
    const asked = event.case === "questions" ? await followed.ask(event.value.questions) : undefined;
    if (asked === undefined) continue;
    looking.end();
    isHeld = true;
    ending[Symbol.dispose](); // the client's request is over, and its call is not
    void holdOpen(events, release.move());
    return { kind: "asked", asked };
  }
  return refuse("unavailable", "the call ended without a result", { reason: "OUTCOME_UNKNOWN" });
}

type Told = Pick<CallToolResponse, "event">;

/** Whichever comes first of what the call tells and what it has asked. The first one's end is the end, and it is not closed. */
async function* withAsked(
  events: AsyncGenerator<Told>,
  asked: AsyncGenerator<ToolCall[]> | undefined,
): AsyncGenerator<Told> {
  const from = async (questions: AsyncGenerator<ToolCall[]>) => {
    const { value } = await questions.next();
    return value && { event: { case: "questions", value: { questions: value } } as Told["event"] };
  };
  let event = events.next();
  let found = asked && from(asked);
  for (;;) {
    const isFound = found === undefined ? false : await Promise.race([event.then(() => false), found.then(() => true)]);
    const next = isFound ? await found : undefined;
    if (isFound) found = next && asked && from(asked);
    if (next) yield next;
    if (isFound) continue;
    const { done, value } = await event;
    if (done) return;
    yield value;
    event = events.next();
  }
}

/** Nobody here waits for what it tells; whoever leaves a call has canceled it. */
async function holdOpen(events: AsyncGenerator<unknown>, release: DisposableStack): Promise<void> {
  using _ = release;
  try {
    while (!(await events.next()).done);
  } catch {
    // its client asks another router
  }
}
