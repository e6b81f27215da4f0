import { once } from "node:events";
import { lstat, rm } from "node:fs/promises";
import { connect, createServer, type Server, type Socket } from "node:net";
import { isErrno } from "#runtime/failure/errno.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { readLines } from "#runtime/lifecycle/child-process/lines.ts";
import { UsageFault } from "../../../faults/fault.ts";
import {
  type CallerToolsConfig,
  type CallFrame,
  callOfFrame,
  codes,
  configLine,
  errorLine,
  FrameFault,
  idOfFrame,
  parseFrame,
  resultLine,
} from "./frames.ts";

export interface SocketServerOptions {
  /** Where it listens; only this user may connect. */
  readonly path: string;
  /** Gives the result as JSON text; throws a `FrameFault` for a call that failed. The signal aborts when the agent leaves. */
  readonly call: (call: CallFrame, signal: AbortSignal) => Promise<string>;
}

export interface SocketServer extends AsyncDisposable {
  /** Tells every agent what is new, and who connects later. */
  configure(config: CallerToolsConfig): void;
}

/** The largest result has 64 MiB, and so have the arguments; JSON may need some more. */
const maxLineBytes = 72 * 1024 * 1024;
/** Of the address of a unix socket, on Linux; 104 on macOS. */
const maxPathBytes = process.platform === "linux" ? 107 : 103;

/** Serves the tools of one session's caller on a unix socket. Throws a `UsageFault` for a path that cannot be one. */
export async function openSocketServer({ path, call }: SocketServerOptions): Promise<SocketServer> {
  await clearPath(path);
  const sockets = new Set<Socket>();
  let config = configLine({ caller_id: "", tools: [] });
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    socket.on("error", () => socket.destroy()); // the agent is gone, and with it who would be told
    socket.write(config);
    void serve(socket, call);
  });
  await listen(server, path);

  return {
    configure(next) {
      const line = configLine(next);
      if (line === config) return;
      config = line;
      for (const socket of sockets) socket.write(line);
    },
    async [Symbol.asyncDispose]() {
      const closed = once(server, "close");
      server.close();
      for (const socket of sockets) socket.destroySoon();
      await closed;
    },
  };
}

/** Answers each line when its call has ended, many at a time, until the agent closes its side. */
async function serve(socket: Socket, call: SocketServerOptions["call"]): Promise<void> {
  const leaving = new AbortController();
  socket.once("close", () => leaving.abort(new Error("the agent has left")));
  const answer = async (line: string) => {
    const text = await answerOf(line, (frame) => call(frame, leaving.signal));
    if (text !== undefined && socket.writable) socket.write(text);
  };
  try {
    for await (const line of readLines(socket, { maxLineBytes })) if (line.trim() !== "") void answer(line);
  } catch (error) {
    if (!socket.writable) return;
    socket.end(errorLine(null, { code: codes.parseError, message: messageFromUnknown(error) }));
  }
}

async function answerOf(line: string, call: (frame: CallFrame) => Promise<string>): Promise<string | undefined> {
  let id: ReturnType<typeof idOfFrame> = null;
  try {
    const frame = parseFrame(line);
    id = idOfFrame(frame);
    const resultJson = await call(callOfFrame(frame));
    return id === undefined ? undefined : resultLine(id, resultJson);
  } catch (error) {
    if (id === undefined) return undefined;
    const code = error instanceof FrameFault ? error.code : codes.toolError;
    return errorLine(id, { code, message: messageFromUnknown(error) });
  }
}

/** Removes a socket that nobody listens on any more. */
async function clearPath(path: string): Promise<void> {
  if (Buffer.byteLength(path) > maxPathBytes)
    throw new UsageFault(`the path of a socket has at most ${maxPathBytes} bytes: ${path}`);
  try {
    if (!(await lstat(path)).isSocket()) throw new UsageFault(`${path} is there, and is no socket`);
  } catch (error) {
    if (isErrno(error, "ENOENT")) return;
    throw error;
  }
  if (await isServed(path)) throw new UsageFault(`another process listens on ${path}: a socket serves one session`);
  await rm(path, { force: true });
}

async function isServed(path: string): Promise<boolean> {
  const socket = connect(path);
  try {
    await once(socket, "connect");
    return true;
  } catch {
    return false; // left over
  } finally {
    socket.destroy();
  }
}

async function listen(server: Server, path: string): Promise<void> {
  const umask = process.umask(0o177); // from its first moment on, for this user alone
  try {
    const listening = once(server, "listening");
    server.listen(path);
    await listening;
  } catch (error) {
    throw new UsageFault(`no socket can be made at ${path}: ${messageFromUnknown(error)}`, { cause: error });
  } finally {
    process.umask(umask);
  }
}
