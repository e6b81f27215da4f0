import type { CallerAnswer, CallHistory, EndedStream, FaultTool, Strike } from "../check/history.ts";
import type { SubmitterWord, WatcherWord } from "../setting.ts";

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** What is known of a call while the run goes on: the record and the inbox are read at its end. */
export type WitnessedCall = Mutable<
  Omit<CallHistory, "record" | "inbox" | "handings" | "executions" | "submissions">
> & {
  readonly handings: CallHistory["handings"][number][];
  readonly executions: CallHistory["executions"][number][];
  readonly submissions: CallHistory["submissions"][number][];
};

/** Writes down what everybody outside of the routers saw. */
export class Witness {
  readonly calls = new Map<string, WitnessedCall>();
  readonly strikes: Strike[] = [];
  readonly endedStreams: EndedStream[] = [];

  began(callId: string, tool: FaultTool, number: number): void {
    const nothing = { attempts: 0, answer: undefined, failure: "" };
    this.calls.set(callId, { callId, tool, number, ...nothing, handings: [], executions: [], submissions: [] });
  }

  attempted(callId: string): void {
    const call = this.calls.get(callId);
    if (call) call.attempts += 1;
  }

  ended(callId: string, end: { answer: CallerAnswer } | { failure: string }): void {
    Object.assign(this.calls.get(callId) ?? {}, end);
  }

  onWatcherWord(word: WatcherWord): void {
    if (word.kind === "stream ended") this.endedStreams.push(word);
    if (word.kind === "handed") this.calls.get(word.callId)?.handings.push(word);
    if (word.kind === "executed") this.calls.get(word.callId)?.executions.push(word);
  }

  onSubmitterWord(word: SubmitterWord): void {
    if (word.kind === "submitted") this.calls.get(word.callId)?.submissions.push(word);
  }
}
