// One run of a case: the calls that it has open, the commands that it gives to the subject under test, and what came back.

import { createInbox, type Msg, type NatsConnection, type Subscription } from "nats";
import type { Command, Outcome } from "../../../examples/wire-conformance/subject/protocol.ts";
import type { Bounds, WireCase } from "./case-file.ts";
import { type Arrival, kinds, type WireCall } from "./wire-call.ts";

export const echoService = "toolbus.echo.v1.EchoService";
export const defaultWithinMs = 8_000;

export interface SubjectAddress {
  /** Where the subject under test takes commands. */
  readonly control: string;
  /** The bus service under which it serves the echo service. */
  readonly service: string;
}

export interface TimedOutcome {
  readonly at: number;
  readonly outcome: Outcome;
}

interface Note {
  readonly at: number;
  readonly text: string;
}

let runs = 0;

export class CaseRun implements AsyncDisposable {
  readonly connection: NatsConnection;
  readonly wireCase: WireCase;
  readonly service: string;
  readonly calls = new Map<string, WireCall>();
  readonly openings: { at: number; message: Msg }[] = [];
  readonly cancels: { at: number; id: string }[] = [];
  readonly #address: SubjectAddress;
  readonly #notes = new Map<string, Note[]>();
  readonly #outcomes = new Map<string, TimedOutcome[]>();
  readonly #subscriptions: Subscription[] = [];
  readonly #prefix = `case-${process.pid}-${runs++}`;
  readonly #served = new Set<string>();
  /** When the runner did its last deed, from which bounds of time count. */
  actedAt = performance.now();

  constructor(connection: NatsConnection, wireCase: WireCase, address: SubjectAddress) {
    this.connection = connection;
    this.wireCase = wireCase;
    this.#address = address;
    this.service = wireCase.side === "client" || wireCase.isAlone ? this.#prefix : address.service;
  }

  /** Listens where a server would, for a client under test. */
  async begin(): Promise<void> {
    if (this.wireCase.side === "client" && !this.wireCase.isAlone) {
      this.#listen(`toolbus.rpc.${this.service}.${echoService}.*`, (message) =>
        this.openings.push({ at: performance.now(), message }),
      );
      this.#listen(`toolbus.rpc.${this.service}.cancel`, (message) =>
        this.cancels.push({ at: performance.now(), id: message.string() }),
      );
    }
    await this.connection.flush();
  }

  acted(): void {
    this.actedAt = performance.now();
  }

  call(name: string): WireCall {
    const call = this.calls.get(name);
    if (!call) throw new Error(`the case has no call "${name}"`);
    return call;
  }

  idOf(name: string): string {
    return `${this.#prefix}-${name}`;
  }

  /** Where the service under test notes what becomes of a call. */
  async notesOf(name: string): Promise<string> {
    const subject = `${this.#prefix}.notes.${name}`;
    if (this.#notes.has(name)) return subject;
    const notes: Note[] = [];
    this.#notes.set(name, notes);
    this.#listen(subject, (message) => notes.push({ at: performance.now(), text: message.string() }));
    await this.connection.flush();
    return subject;
  }

  notes(name: string): readonly Note[] {
    return this.#notes.get(name) ?? [];
  }

  /** Gives a command to the subject under test, and waits until it was taken. */
  async command(command: Command): Promise<void> {
    const answer = await this.connection.request(this.#address.control, JSON.stringify(command), { timeout: 5_000 });
    const { error } = answer.json<{ error?: string }>();
    if (error !== undefined) throw new Error(`the subject under test refuses "${command.do}": ${error}`);
    if (command.do === "serve") this.#served.add(command.service);
    if (command.do === "stop") this.#served.delete(command.service);
  }

  /** Listens for the outcome of a call of the client under test. */
  async events(name: string): Promise<string> {
    const inbox = createInbox();
    const outcomes: TimedOutcome[] = [];
    this.#outcomes.set(name, outcomes);
    this.#listen(inbox, (message) => outcomes.push({ at: performance.now(), outcome: message.json<Outcome>() }));
    await this.connection.flush();
    return inbox;
  }

  outcome(name: string): TimedOutcome | undefined {
    return this.#outcomes.get(name)?.[0];
  }

  /** Waits for what the check finds, and judges its time. */
  async awaited<T extends { at: number }>(what: string, bounds: Bounds, find: () => T | undefined): Promise<T> {
    const withinMs = bounds.within ?? defaultWithinMs;
    for (;;) {
      const found = find();
      this.assertNoFaults();
      if (found) return this.#judged(what, bounds, found);
      if (performance.now() - this.actedAt > withinMs) throw new Error(`${what} did not come within ${withinMs} ms`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  /** The next arrival of a call that is no heartbeat or credit, or the next of the kind that is asked for. */
  nextArrival(call: WireCall, isWanted: (arrival: Arrival) => boolean): Arrival | undefined {
    for (;;) {
      const arrival = call.arrivals[0];
      if (!arrival) return undefined;
      call.arrivals.shift();
      if (isWanted(arrival) || !isPassedOver(arrival)) return arrival;
    }
  }

  assertNoFaults(): void {
    for (const call of this.calls.values()) {
      if (call.faults.length > 0) throw new Error(call.faults.join("; "));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const [name, call] of this.calls) {
      if (this.wireCase.side === "server") {
        this.connection.publish(`toolbus.rpc.${this.service}.cancel`, call.inbox);
      }
      if (this.#outcomes.has(name) && !this.outcome(name)) await this.command({ do: "abort", id: this.idOf(name) });
      call.leave();
    }
    for (const service of this.#served) await this.command({ do: "stop", service });
    for (const subscription of this.#subscriptions) subscription.unsubscribe();
  }

  #judged<T extends { at: number }>(what: string, { within, after }: Bounds, found: T): T {
    const tookMs = Math.round(found.at - this.actedAt);
    if (within !== undefined && tookMs > within)
      throw new Error(`${what} came after ${tookMs} ms, not within ${within}`);
    if (after !== undefined && tookMs < after) throw new Error(`${what} came after ${tookMs} ms, before ${after}`);
    return found;
  }

  #listen(subject: string, onMessage: (message: Msg) => void): void {
    const callback = (error: Error | null, message: Msg) => {
      if (!error) onMessage(message);
    };
    this.#subscriptions.push(this.connection.subscribe(subject, { callback }));
  }
}

export function isPassedOver({ kind, status }: Arrival): boolean {
  return status === undefined && (kind === kinds.heartbeat || kind === kinds.credit);
}
