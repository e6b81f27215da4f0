import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { openBackground } from "#runtime/lifecycle/background.ts";
import { readLines } from "#runtime/lifecycle/child-process/lines.ts";
import { repeatUntilAborted } from "#runtime/time/retry/retry.ts";
import { type CallerToolsConfig, callLine, codes, FrameFault, parseFrame, saidSchema } from "./frames.ts";

export interface SocketClient extends AsyncDisposable {
  /** What the caller declares; nothing before the socket was reached. */
  readonly config: CallerToolsConfig;
  /** Resolves when the socket has said what is declared, or was not there at the first attempt. */
  readonly tried: Promise<void>;
  /** The result; throws a `FrameFault`. */
  call(tool: string, given: Record<string, unknown>): Promise<unknown>;
}

export interface SocketClientOptions {
  readonly path: string;
  readonly onConfig: () => void;
  /** Told once of each time without a connection. */
  readonly onAway: (why: string) => void;
}

type Waiting = PromiseWithResolvers<unknown>;

/** The agent's side of the socket: connects again whenever the connection ends. Calls of an ended one have failed. */
export function openSocketClient({ path, onConfig, onAway }: SocketClientOptions): SocketClient {
  const tried = Promise.withResolvers<void>();
  const waiting = new Map<number, Waiting>();
  let config: CallerToolsConfig = { caller_id: "", tools: [] };
  let socket: Socket | undefined;
  let lastId = 0;
  let isAway = false;

  function hear(line: string): void {
    const said = saidSchema.parse(parseFrame(line));
    if ("method" in said) {
      config = said.params;
      tried.resolve();
      onConfig();
      return;
    }
    const call = waiting.get(Number(said.id));
    waiting.delete(Number(said.id));
    if ("error" in said) call?.reject(new FrameFault(said.error.code, said.error.message));
    else call?.resolve(said.result);
  }

  async function follow(works: () => void, signal: AbortSignal): Promise<never> {
    const opened = connect(path);
    try {
      await once(opened, "connect", { signal });
      works();
      isAway = false;
      socket = opened;
      for await (const line of readLines(opened)) hear(line);
      throw new Error("it was closed");
    } finally {
      opened.destroy();
      socket = undefined;
      tried.resolve();
      for (const call of waiting.values()) call.reject(lost("ended before the call was answered"));
      waiting.clear();
    }
  }

  function onError(error: unknown): void {
    if (!isAway) onAway(messageFromUnknown(error));
    isAway = true;
  }

  const running = openBackground((signal) =>
    repeatUntilAborted((works) => follow(works, signal), { initialMs: 50, maxMs: 1_000, signal, onError }),
  );
  return {
    tried: tried.promise,
    get config() {
      return config;
    },
    async call(tool, given) {
      if (socket === undefined) throw lost("is not there at the moment");
      lastId += 1;
      const call: Waiting = Promise.withResolvers();
      waiting.set(lastId, call);
      socket.write(callLine(lastId, tool, given));
      return await call.promise;
    },
    async [Symbol.asyncDispose]() {
      socket?.destroy();
      await running[Symbol.asyncDispose]();
    },
  };

  function lost(what: string): FrameFault {
    return new FrameFault(codes.connectionLost, `Connection lost: the socket ${path} ${what}`);
  }
}
