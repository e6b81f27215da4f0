import { once } from "node:events";
import { expect, it } from "vitest";
import { openTestDoor } from "../../http/testing/door.ts";

const resource = (name: string) => ({ source: "files", uri: `files://${name}`, name });
const [quiet, busy, slow] = [resource("quiet"), resource("busy"), resource("slow")];

it("DOOR-1 a resource that changes often before a stream begins takes no other's news away", async () => {
  await using door = await openTestDoor({
    tools: { listTools: () => ({ toolsRevision: "1", sources: [{ source: "files", available: true }] }) },
    content: {
      listResources: () => ({ resources: [quiet, busy, slow] }),
      async *watchResources(_, { signal }) {
        yield { watched: [quiet, busy], updated: [quiet] };
        for (let n = 0; n < 300; n++) yield { updated: [busy] };
        yield { watched: [slow] }; // the stream begins
        if (!signal.aborted) await once(signal, "abort");
      },
    },
  });
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": { name: "hand", version: "1" },
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const params = { _meta, notifications: { resourceSubscriptions: [quiet.uri, busy.uri, slow.uri] } };
  const answer = await fetch(door.url, {
    method: "POST",
    headers: {
      accept: "application/json, text/event-stream",
      "content-type": "application/json",
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": "subscriptions/listen",
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "subscriptions/listen", params }),
  });
  const told = new Set<string>();
  for await (const text of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    for (const [, uri = ""] of text.matchAll(/updated".*?"uri":"(.*?)"/g)) told.add(uri);
    if (told.has(busy.uri)) break;
  }
  expect([...told]).toEqual([quiet.uri, busy.uri]);
});
