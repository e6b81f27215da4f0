// An implementation of the wire as a subject under test: it serves the echo service and makes calls, as a runner asks it to.

import type { Bytes } from "./echo.ts";
import {
  bytesOf,
  type CallCommand,
  type Command,
  metadataOf,
  type Outcome,
  type ReportedError,
  textOf,
} from "./protocol.ts";
import { Requests } from "./requests.ts";

/** A call of the client under test. */
export interface SubjectCall {
  readonly messages: AsyncIterable<Bytes>;
  /** Complete when the call is over. */
  readonly header: Headers;
  readonly trailer: Headers;
}

export interface CallRequest {
  readonly service: string;
  readonly method: string;
  readonly requests: AsyncIterable<Bytes>;
  readonly metadata: Headers;
  readonly timeoutMs: number | undefined;
  readonly signal: AbortSignal;
}

/** What an implementation has to offer. */
export interface Implementation {
  serve(service: string, patienceMs: number | undefined): Promise<AsyncDisposable>;
  call(request: CallRequest): SubjectCall;
  errorFrom(thrown: unknown): ReportedError;
}

interface OpenCall {
  readonly requests: Requests;
  readonly abort: AbortController;
  readonly readAll: PromiseWithResolvers<void>;
}

export class Subject implements AsyncDisposable {
  readonly #implementation: Implementation;
  readonly #tell: (subject: string, event: object) => void;
  readonly #servers = new Map<string, AsyncDisposable>();
  readonly #calls = new Map<string, OpenCall>();

  constructor(implementation: Implementation, tell: (subject: string, event: object) => void) {
    this.#implementation = implementation;
    this.#tell = tell;
  }

  /** Does what a runner asks; resolves with the answer to it. */
  async obey(command: Command): Promise<object> {
    try {
      await this.#do(command);
      return { ok: true };
    } catch (error) {
      return { error: String(error) };
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { abort } of this.#calls.values()) abort.abort();
    await Promise.all([...this.#servers.values()].map((server) => server[Symbol.asyncDispose]()));
  }

  async #do(command: Command): Promise<void> {
    if (command.do === "serve") {
      this.#servers.set(command.service, await this.#implementation.serve(command.service, command.patience_ms));
    } else if (command.do === "stop") {
      const server = this.#servers.get(command.service);
      if (!server) throw new Error(`nothing is served as "${command.service}"`);
      this.#servers.delete(command.service);
      void server[Symbol.asyncDispose](); // it finishes its calls, for which nobody waits here
    } else if (command.do === "call") this.#start(command);
    else this.#goOn(command);
  }

  #goOn(command: Exclude<Command, { do: "serve" | "stop" | "call" }>): void {
    const call = this.#calls.get(command.id);
    if (!call) throw new Error(`there is no call "${command.id}"`);
    if (command.do === "request") call.requests.push(bytesOf(command.body));
    else if (command.do === "end") call.requests.end();
    else if (command.do === "read") call.readAll.resolve();
    else call.abort.abort();
  }

  #start(command: CallCommand): void {
    const requests = new Requests(command.requests.map(bytesOf));
    if (!command.open) requests.end();
    const call = { requests, abort: new AbortController(), readAll: Promise.withResolvers<void>() };
    this.#calls.set(command.id, call);
    const made = this.#implementation.call({
      service: command.service,
      method: command.method,
      requests,
      metadata: metadataOf(command.metadata),
      timeoutMs: command.timeout_ms,
      signal: call.abort.signal,
    });
    void this.#outcome(command, call, made).then((outcome) => {
      this.#calls.delete(command.id);
      this.#tell(command.events, outcome);
    });
  }

  async #outcome({ reads }: CallCommand, { readAll }: OpenCall, made: SubjectCall): Promise<Outcome> {
    const messages: string[] = [];
    let error: ReportedError | null = null;
    try {
      if (reads === 0) await readAll.promise;
      for await (const message of made.messages) {
        messages.push(textOf(message));
        if (messages.length === reads) await readAll.promise;
      }
    } catch (thrown) {
      error = this.#implementation.errorFrom(thrown);
    }
    return { messages, error, header: Object.fromEntries(made.header), trailer: Object.fromEntries(made.trailer) };
  }
}
