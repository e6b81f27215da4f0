import { answersPromptly, askOnce } from "#runtime/bus/ask.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { delay } from "#runtime/time/delay.ts";

/*
 * Which router executes a call is asked of all at once; only the one that does answers.
 *
 * H1  An answer is believed at once. Only silence means that nobody executes the call, never an error of asking.
 * H2  Silence counts when this router's own link stood all the while and for a time before: after a loss of the bus the
 *     others return a little later, too.
 * H3  Silence counts when the server itself answers promptly: else it, or this process, is what is slow.
 */

const HELD = "toolbus.call.held";

/** How long each of the questions waits: the time of silence is their sum. */
const ANSWER_MS = 750;
const QUESTIONS = 2;

/** How long after a return of the bus silence means nothing. */
const SETTLING_MS = 1_000;

export interface CallHolders extends Disposable {
  /** Whether a router executes the call; rejects with the signal's reason. */
  isHeld(callId: string, signal: AbortSignal): Promise<boolean>;
}

/** Answers for the calls that this router executes, and asks about others. */
export function openCallHolders(bus: Bus, executing: Pick<ReadonlySet<string>, "has">): CallHolders {
  const questions = bus.connection.subscribe(HELD, {
    callback: (error, message) => {
      if (error === null && executing.has(message.string())) message.respond();
    },
  });

  return {
    async isHeld(callId, signal) {
      for (;;) {
        await bus.link.whenUp(signal);
        const askedAt = performance.now();
        const answer = await askUntilSilent(bus, callId, signal);
        if (answer === "held") return true;
        if (answer === "lost") continue;
        if (askedAt - bus.link.returnedAtMs < SETTLING_MS) await delay(25, signal);
        else if (await answersPromptly(bus, ANSWER_MS / 2)) return false;
      }
    },
    [Symbol.dispose]: () => questions.unsubscribe(),
  };
}

type Answer = "held" | "silent" | "lost";

/** Asks again in the time of silence: a question that a router lost with its link is heard when it is back. */
async function askUntilSilent(bus: Bus, callId: string, signal: AbortSignal): Promise<Answer> {
  for (let question = 0; question < QUESTIONS; question++) {
    const { kind } = await askOnce(bus, { subject: HELD, text: callId, timeoutMs: ANSWER_MS, signal });
    if (kind === "answered") return "held";
    if (kind !== "silent") return "lost"; // when nobody listens, this router's own subscription is on its way to the server
  }
  return "silent";
}
