import { errors, type Msg } from "@nats-io/transport-node";
import type { Bus } from "#runtime/bus/bus.ts";
import { Failure, messageFromUnknown } from "#runtime/failure/failure.ts";
import { type Asker, requireOwner } from "#runtime/failure/session-owner.ts";
import type { InFlightCalls } from "../../calls/in-flight.ts";
import type { RunningCalls } from "../../calls/requests/cancellation.ts";
import type { Ownership } from "../../sessions/ownership.ts";

const CANCELED = "toolbus.call.cancel";
const ANSWER_MS = 500;

export interface RunningCallParts {
  inFlight: Pick<InFlightCalls, "cancel" | "sessionOf">;
  ownership: Ownership;
  onFault(fault: string): void;
}

interface Question {
  callId: string;
  /** Absent for the suite's own services. */
  asker?: string;
}

/** Tells all routers of a cancellation; those that run the call answer, with its session when that is somebody else's. */
export function openRunningCalls(bus: Bus, parts: RunningCallParts): RunningCalls & Disposable {
  const { inFlight, ownership, onFault } = parts;

  async function answer(message: Msg): Promise<void> {
    const { callId, asker } = message.json<Question>();
    const sessionId = inFlight.sessionOf(callId);
    if (sessionId !== undefined && !(await isFor(sessionId, asker))) message.respond(sessionId);
    else if (inFlight.cancel(callId, asker)) message.respond();
  }

  async function isFor(sessionId: string, asker: Asker): Promise<boolean> {
    try {
      await ownership.requireSession(sessionId, asker);
      return true;
    } catch (error) {
      if (error instanceof Failure && error.code === "permission_denied") return false;
      throw error;
    }
  }

  const subscription = bus.connection.subscribe(CANCELED, {
    callback: (error, message) => {
      if (error !== null) return;
      answer(message).catch((fault: unknown) => onFault(`a cancellation is not heard: ${messageFromUnknown(fault)}`));
    },
  });
  return {
    async cancel(callId, asker) {
      const question: Question = { callId, ...(asker !== undefined && { asker }) };
      const foreignSession = await ask(bus, JSON.stringify(question));
      if (foreignSession) requireOwner({ sessionId: foreignSession, principal: "" }, asker);
      return foreignSession !== undefined;
    },
    [Symbol.dispose]: () => subscription.unsubscribe(),
  };
}

/** What the first router says that runs the call; undefined when all have heard it, and none does. */
async function ask(bus: Bus, question: string): Promise<string | undefined> {
  try {
    return (await bus.connection.request(CANCELED, question, { timeout: ANSWER_MS })).string();
  } catch (error) {
    if (error instanceof errors.TimeoutError) return undefined;
    throw error;
  }
}
