/*
 * Renders a run as the events of a response: a function of what a watch of the run brings, and of nothing else.
 *
 * rendering-1  A client that follows the run live gets the same events, under the same numbers, as one that gets them from the log
 *     later. So any gateway can resume a stream behind any number.
 * rendering-2  An item is added before its deltas, and done after them; `output_index` counts the items as they were added.
 * rendering-3  One event ends it: the response, whole.
 */

import type { Timestamp } from "@bufbuild/protobuf/wkt";
import type { CallFinished, RunAccepted, RunEnded, RunEvent, TurnCommitted } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { type FunctionCall, RunEndReason, RunState, type TextCheckpoint } from "#gen/toolbus/run/v1/run_pb.ts";
import type { WatchRunResponse } from "#gen/toolbus/run/v1/run_service_pb.ts";
import type { Usage } from "#gen/toolbus/tool/v1/usage_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { noTokens, plusTokens } from "#runtime/money/tokens.ts";
import { notesOf } from "../request/notes.ts";
import { AgentCall, renderClientCall } from "./call-item.ts";
import { EventWriter, type StreamEvent } from "./event-writer.ts";
import { type RenderedRun, type ResponseResource, responseFrom } from "./resource.ts";
import { SpokenItem } from "./spoken-item.ts";
import { TurnRenderer } from "./turn-renderer.ts";

export class ResponseRenderer {
  readonly #writer = new EventWriter();
  readonly #isOnSocket: boolean;
  #run: RenderedRun | undefined;
  #turn = 1;
  #turnRenderer: TurnRenderer | undefined;
  #draft = "";
  readonly #agentCalls = new Map<string, AgentCall>();
  /** Calls of the client's tools of which the log does not say yet whether the client gets them. */
  readonly #undecided = new Map<string, { call: FunctionCall; place: string }>();

  /** On a socket, an `error` event would end the turn before `response.failed`. */
  constructor({ isOnSocket = false } = {}) {
    this.#isOnSocket = isOnSocket;
  }

  take({ update }: WatchRunResponse): StreamEvent[] {
    if (update.case === "event") this.#event(update.value);
    if (update.case === "delta" && update.value.turn === this.#turn) this.#current().delta(update.value);
    if (update.case === "replaced" && update.value.turn === this.#turn) this.#current().replaced(update.value);
    if (update.case === "gap")
      refuse("data_loss", "events of the response are lost, or cannot be read", { reason: "RECORD_LOST" });
    return this.#writer.take();
  }

  get response(): ResponseResource {
    return responseFrom({ ...this.#known(), output: this.#writer.output });
  }

  #known(): RenderedRun {
    return this.#run ?? refuse("data_loss", "the beginning of the response is lost", { reason: "RECORD_LOST" });
  }

  #current(): TurnRenderer {
    this.#turnRenderer ??= new TurnRenderer(this.#writer, `${this.#known().runId}_${this.#turn}`);
    return this.#turnRenderer;
  }

  #event({ runId, createTime, event }: RunEvent): void {
    if (event.case === "accepted") this.#accepted(runId, event.value, createTime);
    if (event.case === "claimed") this.#claimed();
    if (event.case === "textCheckpoint") this.#checkpoint(event.value);
    if (event.value && "usage" in event.value) this.#use(event.value.usage);
    if (event.case === "turnCommitted") this.#committed(event.value);
    if (event.case === "callFinished") this.#finished(event.value);
    if (event.case === "ended") this.#ended(event.value, createTime);
  }

  #accepted(runId: string, accepted: RunAccepted, createTime: Timestamp | undefined): void {
    const used = noTokens;
    this.#run = { runId, accepted, createTime, hasBegun: false, ended: undefined, used, output: [] };
    this.#emitResponse("response.created");
  }

  /** A run that is claimed again goes on. */
  #claimed(): void {
    this.#draft = "";
    const run = this.#known();
    if (run.hasBegun) return;
    this.#run = { ...run, hasBegun: true };
    this.#emitResponse("response.in_progress");
  }

  #checkpoint({ text, firstDelta }: TextCheckpoint): void {
    this.#draft = firstDelta === 0 ? text : this.#draft + text;
  }

  #committed(committed: TurnCommitted): void {
    const { accepted } = this.#known();
    const ofClient = new Set(accepted.options?.functionTools.map(({ name }) => name));
    for (const { call, place } of this.#current().commit(committed)) {
      const { callId, name } = call;
      if (ofClient.has(name)) this.#undecided.set(callId, { call, place });
      else this.#agentCalls.set(callId, new AgentCall(this.#writer, call, { place, accepted }));
    }
    this.#turn = committed.turn + 1;
    this.#turnRenderer = undefined;
    this.#draft = "";
  }

  #finished({ callId, result }: CallFinished): void {
    const refused = this.#undecided.get(callId);
    const { accepted } = this.#known();
    const call =
      this.#agentCalls.get(callId) ?? (refused && new AgentCall(this.#writer, refused.call, { ...refused, accepted }));
    call?.finish(result);
    this.#agentCalls.delete(callId);
    this.#undecided.delete(callId);
  }

  #ended(event: RunEnded, time: Timestamp | undefined): void {
    if (this.#turnRenderer !== undefined || this.#draft !== "") this.#current().cutOff(this.#draft);
    for (const call of this.#agentCalls.values()) call.finish(undefined);
    const run = this.#known();
    const { namespaces } = notesOf(run.accepted.options);
    if (event.state === RunState.COMPLETED)
      for (const { call, place } of this.#undecided.values())
        renderClientCall(this.#writer, call, { place, namespaces });
    if (event.endReason === RunEndReason.STOPPED_AT_TOOL && event.outputText !== "")
      new SpokenItem(this.#writer, "message", `${run.runId}_answer`).finish(event.outputText);
    this.#run = { ...run, ended: { event, time } };
    const { status, error } = this.response;
    if (error && !this.#isOnSocket) this.#writer.emit("error", { ...error, type: "error", error });
    this.#emitResponse(TERMINAL[status] ?? "response.failed");
  }

  #use(usage: Usage | undefined): void {
    const run = this.#known();
    if (usage === undefined) return;
    this.#run = { ...run, used: plusTokens(run.used, usage) };
  }

  #emitResponse(type: string): void {
    this.#writer.emit(type, { response: this.response });
  }
}

/** The specification has no event for what was canceled: it is incomplete, and its status says why. */
const TERMINAL: Readonly<Record<string, string>> = {
  completed: "response.completed",
  incomplete: "response.incomplete",
  cancelled: "response.incomplete",
};
