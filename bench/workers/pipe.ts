import { fileURLToPath } from "node:url";
import { findUv } from "#runtime/bus/nats-server/find/find-uv.ts";
import { openChildProcess } from "#runtime/lifecycle/child-process/child-process.ts";

const SDK = fileURLToPath(new URL("../../sdk/python/toolbus_sdk", import.meta.url));

export interface Pipe extends AsyncDisposable {
  call(name: string, kwargs: object): Promise<unknown>;
}

/** A worker of the file behind nothing but its stdin and stdout. */
export async function openPipe(path: string): Promise<Pipe> {
  const words = ["run", "--quiet", "--no-project", "--no-config", "python", "-X", "utf8", SDK, path];
  const child = await openChildProcess({ command: await findUv(), args: words });
  const lines = child.lines()[Symbol.asyncIterator]();
  const waiting = new Map<number, (result: unknown) => void>();
  await lines.next(); // it is ready
  void read();
  let lastId = 0;

  async function read(): Promise<void> {
    for (let line = await lines.next(); !line.done; line = await lines.next()) {
      const { id, result } = JSON.parse(line.value);
      waiting.get(id)?.(result);
      waiting.delete(id);
    }
  }

  return {
    call(name, kwargs) {
      const id = ++lastId;
      const { promise, resolve } = Promise.withResolvers<unknown>();
      waiting.set(id, resolve);
      void child.write(`${JSON.stringify({ id, function: name, kwargs })}\n`);
      return promise;
    },
    [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
  };
}
