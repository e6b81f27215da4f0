import { equals } from "@bufbuild/protobuf";
import { type McpServer, McpServerSchema } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { createChanges } from "#runtime/collections/changes.ts";
import { BoundedMap } from "#runtime/collections/maps/bounded-map.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import type { OpenedLink, OpeningEvents, OpenLink } from "../link/link-keeper.ts";
import { programOf } from "../servers/start-time.ts";
import { refuseSampling } from "./input/sampling.ts";

type Begin = (events: OpeningEvents, over: AbortSignal, closing: Promise<unknown>[]) => Promise<OpenedLink>;

interface Start {
  readonly server: McpServer;
  readonly program: string;
  readonly opened: Promise<OpenedLink>;
  /** What is left of it when it has failed. */
  readonly closing: Promise<unknown>[];
  /** Aborts when it is to be closed: then nobody takes it over. */
  readonly over: AbortController;
  /** Whose start it is at the moment; undefined after its connection was closed. */
  events: OpeningEvents | undefined;
}

const MOST_KNOWN = 1_000;

/**
 * The starts of servers that a program like npx may have to fetch first. Such a start belongs to the server, not to the session
 * that needed it first: npx that is killed in the middle leaves a broken cache behind.
 *
 * START1  A start whose connection is closed goes on until it ends or its own time is over; the next connection to the same server
 *     takes it over, unused as it is. What nobody has taken over when its turn comes is not begun, and when it is ready is closed.
 * START2  What was never started here is started once at a time: the others wait for the end of the first.
 */
export class Starts implements AsyncDisposable {
  readonly #going = new Set<Start>();
  readonly #known = new BoundedMap<string, true>(MOST_KNOWN);
  readonly #changes = createChanges();

  /** Opens as `open` does, with what was said above. */
  opener(server: McpServer, open: OpenLink): OpenLink {
    return async (events, time, signal, closing) => {
      const begin: Begin = (forwarded, ...ends) => open(forwarded, time, ...ends);
      const own = await this.#takeOrBegin(server, events, begin, signal);
      try {
        return await this.#opened(own, signal);
      } finally {
        if (!this.#going.has(own)) closing.push(...own.closing);
      }
    };
  }

  /** Ends what goes on for a server that is no more. */
  end(server: McpServer): void {
    for (const start of this.#going) {
      if (start.events === undefined && equals(McpServerSchema, start.server, server)) start.over.abort();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const going = [...this.#going];
    for (const { over } of going) over.abort();
    await Promise.allSettled(going.map(({ opened }) => opened));
    await Promise.all(going.flatMap(({ closing }) => closing));
  }

  async #takeOrBegin(server: McpServer, events: OpeningEvents, begin: Begin, signal: AbortSignal): Promise<Start> {
    const program = programOf(server);
    for (;;) {
      using change = this.#changes.next();
      const going = [...this.#going].filter((start) => start.program === program);
      const isLeft = ({ events, over }: Start) => events === undefined && !over.signal.aborted;
      const left = going.find((start) => isLeft(start) && equals(McpServerSchema, start.server, server));
      if (left !== undefined) {
        left.events = events;
        return left;
      }
      if (going.length === 0 || this.#known.get(program)) return this.#begin(server, program, events, begin);
      events.onWords("another session fetches it");
      await unlessAborted(change.happened, signal);
    }
  }

  #begin(server: McpServer, program: string, events: OpeningEvents, begin: Begin): Start {
    const over = new AbortController();
    const closing: Promise<unknown>[] = [];
    const opened = begin(
      {
        onWords: (text) => start.events?.onWords(text),
        isUnclaimed: () => start.events === undefined,
        onToolsChanged: () => start.events?.onToolsChanged(),
        onResourceUpdated: (uri) => start.events?.onResourceUpdated(uri),
        onSubscriptionsLost: (lost) => start.events?.onSubscriptionsLost(lost),
        onLog: (log) => start.events?.onLog(log),
        onElicit: async (...asked) => start.events?.onElicit(...asked) ?? { action: "cancel" },
        onSample: (...asked) => start.events?.onSample(...asked) ?? refuseSampling("nobody calls"),
      },
      over.signal,
      closing,
    );
    const start: Start = { server, program, opened, closing, over, events };
    this.#going.add(start);
    const ended = () => {
      this.#going.delete(start);
      this.#known.set(program, true);
      this.#changes.tell();
    };
    opened.then(async ({ link }) => {
      if (start.events === undefined) {
        over.abort(); // START1: from now on it is nobody's
        await link[Symbol.asyncDispose]();
      }
      ended();
    }, ended);
    return start;
  }

  async #opened(start: Start, signal: AbortSignal): Promise<OpenedLink> {
    const { events } = start;
    try {
      return await unlessAborted(start.opened, signal);
    } catch (error) {
      if (signal.aborted && start.events === events) {
        const isGoing = this.#going.has(start);
        start.events = undefined; // START1
        this.#changes.tell();
        if (!isGoing) await start.opened.then(({ link }) => link[Symbol.asyncDispose]()).catch(() => {}); // it was ready just then
      }
      throw error;
    }
  }
}
