import { errors, type Msg } from "@nats-io/transport-node";
import type { Bus } from "#runtime/bus/bus.ts";
import { listen } from "#runtime/bus/link/listen.ts";
import { askWhetherAlive } from "#runtime/bus/liveness.ts";
import { isFailure, messageFromUnknown } from "#runtime/failure/failure.ts";
import { requireOwner } from "#runtime/failure/session-owner.ts";
import type { SessionOwners } from "#runtime/rpc/access/session-owners.ts";
import type { Caller } from "#runtime/rpc/identity.ts";
import { delay } from "#runtime/time/delay.ts";
import type { InFlightCalls } from "../../calls/in-flight.ts";
import type { RunningCalls } from "../../calls/records/running.ts";
import { followEvents, publishEvent } from "./call-events.ts";

/*
 * All routers are asked at once (`#runtime/bus/liveness.ts`); only the one that executes the call answers. Whoever asks follows the
 * call as a rule: for a while after each question, the one that executes it publishes what the call tells (call-events.ts).
 */

const HELD = "toolbus.call.held";
const CANCELED = "toolbus.call.cancel";

/** A router that executes calls of others may be slow to answer. */
const SILENCE_MS = 1_500;
const CANCEL_MS = 500;
const ASK_AGAIN_MS = 25;
/** Whoever follows a call asks once a second. */
const FOLLOWED_MS = 5_000;

export interface RunningCallParts {
  isExecuting(callId: string): boolean;
  inFlight: Pick<InFlightCalls, "cancel" | "sessionOf" | "observe">;
  ownership: SessionOwners;
  onFault(fault: string): void;
}

interface CancelQuestion {
  callId: string;
  /** Absent for the suite's own services. */
  caller: Caller;
}

/** Answers for the calls that this router executes, and asks about those of others. */
export function openRunningCalls(bus: Bus, parts: RunningCallParts): RunningCalls & Disposable {
  const { isExecuting, inFlight, ownership, onFault } = parts;

  /** Answers with the call's session when that belongs to somebody else. */
  async function answerCancel(message: Msg): Promise<void> {
    const { callId, caller } = message.json<CancelQuestion>();
    const sessionId = inFlight.sessionOf(callId);
    if (sessionId !== undefined && !(await isFor(sessionId, caller))) message.respond(sessionId);
    else if (inFlight.cancel(callId, caller)) message.respond();
  }

  async function isFor(sessionId: string, caller: Caller): Promise<boolean> {
    try {
      await ownership.requireSession(sessionId, caller);
      return true;
    } catch (error) {
      if (isFailure(error, "permission_denied")) return false;
      throw error;
    }
  }

  const subscriptions = [
    listen(bus, HELD, (message) => {
      const callId = message.string();
      if (!isExecuting(callId)) return;
      message.respond();
      inFlight.observe(callId, (event) => publishEvent(bus, callId, event), FOLLOWED_MS);
    }),
    listen(bus, CANCELED, (message) => {
      const onFailed = (fault: unknown) => onFault(`a cancellation is not heard: ${messageFromUnknown(fault)}`);
      answerCancel(message).catch(onFailed);
    }),
  ];
  return {
    async isHeld(callId, signal) {
      for (;;) {
        const holder = await askWhetherAlive(bus, { subject: HELD, text: callId, silenceMs: SILENCE_MS, signal });
        if (holder.kind !== "nobody") return holder.kind === "alive";
        await delay(ASK_AGAIN_MS, signal); // this router listens, too: its subscription is on its way to the server, or was refused
      }
    },
    follow: (callId, onEvent) => followEvents(bus, callId, onEvent),
    async cancel(callId, caller) {
      const question: CancelQuestion = { callId, caller };
      const foreignSession = await firstAnswer(bus, JSON.stringify(question));
      if (foreignSession) requireOwner({ principal: "" }, caller, `call ${callId}`);
      return foreignSession !== undefined;
    },
    [Symbol.dispose]() {
      for (const subscription of subscriptions) subscription.unsubscribe();
    },
  };
}

/** What the first router answers that runs the call; undefined when all have heard it, and none does. */
async function firstAnswer(bus: Bus, question: string): Promise<string | undefined> {
  try {
    return (await bus.connection.request(CANCELED, question, { timeout: CANCEL_MS })).string();
  } catch (error) {
    if (error instanceof errors.TimeoutError) return undefined;
    throw error;
  }
}
