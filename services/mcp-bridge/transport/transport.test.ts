import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { callThrough, openConnection, serverFrom } from "../testing/connection.ts";
import { type Channel, transportFromChannel } from "./channel.ts";
import { eventsOf } from "./http/event-stream.ts";
import type { TransportModule } from "./module.ts";
import { createTransportRegistry } from "./registry.ts";

/** A third party's transport: a server in this process, reached by a scheme of its own. */
const memory: TransportModule = {
  name: "memory",
  schemes: ["memory"],
  async open() {
    const texts: string[] = [];
    let wake = () => {};
    let isClosed = false;
    const results: Record<string, object> = {
      initialize: {
        protocolVersion: "2025-06-18",
        capabilities: { tools: {} },
        serverInfo: { name: "m", version: "1" },
      },
      "tools/list": { tools: [{ name: "here", inputSchema: { type: "object" } }] },
      "tools/call": { content: [{ type: "text", text: "from memory" }] },
    };
    const channel: Channel = {
      async send(text) {
        const { id, method } = JSON.parse(text);
        const result = results[method];
        if (id !== undefined)
          texts.push(
            JSON.stringify({
              jsonrpc: "2.0",
              id,
              ...(result ? { result } : { error: { code: -32601, message: "?" } }),
            }),
          );
        wake();
      },
      async *receive() {
        while (!isClosed) {
          yield* texts.splice(0);
          if (texts.length === 0 && !isClosed) await new Promise<void>((resolve) => (wake = resolve));
        }
      },
      async close() {
        isClosed = true;
        wake();
      },
    };
    return { transport: transportFromChannel(channel) };
  },
};

describe("transports", () => {
  const choose = createTransportRegistry([memory]);
  const server = (given: object) => serverFrom({ name: "s", ...given });

  test("ORCH-13 are chosen by name, else by scheme, else by having a command", () => {
    expect(choose(server({ command: "x" })).name).toBe("stdio");
    expect(choose(server({ url: "https://x/mcp" })).name).toBe("http");
    expect(choose(server({ url: "memory://x" })).name).toBe("memory");
    expect(choose(server({ url: "http://x", transport: "memory" })).name).toBe("memory");
  });

  test("ORCH-13 that are not registered are refused with those that are", () => {
    expect(() => choose(server({ url: "carrier-pigeon://x" }))).toThrow(
      /carrier-pigeon.*known are memory, stdio, http/,
    );
    expect(() => choose(server({ url: "http://x", transport: "smoke" }))).toThrow(/smoke/);
  });

  test("ORCH-13 of third parties are used like any other", async () => {
    await using connection = openConnection({ name: "m", url: "memory://here" }, { transports: [memory] });
    expect((await callThrough(connection, "here")).output).toBe("from memory");
  });
});

describe("a stream of events", () => {
  test("gives the same events however its bytes are cut", async () => {
    const text =
      'id: 1\nevent: message\ndata: {"ä":1}\n\n: a comment\r\ndata: two\r\ndata: lines\r\n\r\nid: 2\ndata:\n\n';
    const bytes = new TextEncoder().encode(text);
    const expected = [
      { id: "1", event: "message", data: '{"ä":1}' },
      { id: undefined, event: undefined, data: "two\nlines" },
      { id: "2", event: undefined, data: "" },
    ];
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(fc.nat(bytes.length), { maxLength: 8 }), async (cuts) => {
        const edges = [0, ...cuts.sort((a, b) => a - b), bytes.length];
        const chunks = edges.slice(1).map((end, index) => bytes.subarray(edges[index], end));
        const events = await Array.fromAsync(eventsOf(ReadableStream.from(chunks)));
        expect(events.map(({ id, event, data }) => ({ id, event, data }))).toEqual(expected);
      }),
    );
  });
});
