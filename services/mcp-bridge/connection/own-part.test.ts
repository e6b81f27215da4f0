import { expect, test } from "vitest";
import { keptBytes } from "../../../runtime/collections/testing/kept-bytes.ts";
import { Connections, type ConnectionsOptions } from "./connections.ts";
import { createOwnPart } from "./own-part.ts";

test("ORCH-8 a watch of connections that has ended leaves nothing, though no connection changes", async () => {
  const part = createOwnPart(new Connections({} as ConnectionsOptions));
  const watchOnce = async () => {
    const leaving = new AbortController();
    const watching = part.watch("", leaving.signal)[Symbol.asyncIterator]();
    await watching.next();
    const more = watching.next();
    leaving.abort();
    await more.catch(() => {}); // ended by the test
  };
  expect(await keptBytes(watchOnce)).toBeLessThan(400);
});
