import type { Client } from "@connectrpc/connect";
import type { ToolCallDelivery, ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { delay } from "#runtime/time/delay.ts";

type Calls = Client<typeof ToolCallService>;

/** A service outside as one should be written: it takes up a broken watch, takes each call before it executes it, and says a result until it is heard. */
export class SteadyService implements AsyncDisposable {
  /** What it executed, in order. */
  readonly executed: string[] = [];
  readonly #calls: Calls;
  readonly #leaving = new AbortController();
  readonly #watching: Promise<void>;

  constructor(calls: Calls, request: { tools: string[]; watcherId: string }) {
    this.#calls = calls;
    this.#watching = this.#watch(request);
  }

  async #watch(request: { tools: string[]; watcherId: string }): Promise<void> {
    const { signal } = this.#leaving;
    while (!signal.aborted) {
      try {
        for await (const { update } of this.#calls.watchToolCalls(request, { signal })) {
          if (update.case === "call") void this.#execute(update.value);
        }
      } catch {
        // its router is gone, or it leaves
      }
      await delay(20, signal).catch(() => {});
    }
  }

  async #execute({ call, deliveryId }: ToolCallDelivery): Promise<void> {
    const { callId = "", argumentsJson = "" } = call ?? {};
    const isMine = await this.#heard(() => this.#calls.acknowledgeToolCall({ callId, deliveryId }));
    if (!isMine) return;
    this.executed.push(callId);
    await this.#heard(() =>
      this.#calls.submitToolResult({ callId, outcome: { case: "resultJson", value: argumentsJson } }),
    );
  }

  /** Until it was done or refused: what got no answer is asked again, which is the same as once. */
  async #heard(ask: () => Promise<unknown>): Promise<boolean> {
    while (!this.#leaving.signal.aborted) {
      try {
        await ask();
        return true;
      } catch (error) {
        if (failureFromConnectError(error).code !== "unavailable") return false;
      }
      await delay(20);
    }
    return false;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#leaving.abort();
    await this.#watching;
  }
}
