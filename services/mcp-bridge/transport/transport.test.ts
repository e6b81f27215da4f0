import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { callThrough, openConnection, serverFrom } from "../testing/connection.ts";
import { type Channel, transportFromChannel } from "./channel.ts";
import { boundedResponse } from "./http/bounded-body.ts";
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

function busy(ms: number): void {
  for (const until = performance.now() + ms; performance.now() < until; );
}

/** How many turns of the event loop there are for others. */
function countTurns() {
  let count = 0;
  const others = () => {
    count += 1;
    next = setImmediate(others);
  };
  let next = setImmediate(others);
  return {
    get count() {
      return count;
    },
    [Symbol.dispose]: () => clearImmediate(next),
  };
}

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
  test("SEC-5 of many events at once leaves the event loop to others meanwhile", async () => {
    const text = 'data: {"jsonrpc":"2.0","method":"notifications/message"}\n\n'.repeat(1_000);
    const response = new Response(text, { headers: { "content-type": "text/event-stream" } });
    const bounds = { maxBytes: 1_000_000, limitName: "", onTooLarge: () => {} };
    using turns = countTurns();
    let count = 0;
    for await (const _ of eventsOf(boundedResponse(response, bounds).body!)) {
      count += 1;
      busy(0.2);
    }
    expect(count).toBe(1_000);
    expect(turns.count).toBeGreaterThan(10);
  });

  test.each([0, 30_000])(
    "SEC-5 is cut after its long events, and in them nowhere: one of %i bytes first",
    async (size) => {
      const long = `data: ${"x".repeat(size)}\n\n`;
      const piecesOf = async (text: string) => {
        const response = new Response(text, { headers: { "content-type": "text/event-stream" } });
        const { body } = boundedResponse(response, { maxBytes: 1_000_000, limitName: "", onTooLarge: () => {} });
        return (await Array.fromAsync(body!)).map(({ length }) => length);
      };
      expect(await piecesOf(long)).toEqual([long.length]);
      const [first, ...others] = await piecesOf(long + "data: 1\n\n".repeat(2_000));
      expect(first).toBeLessThan(size + 1_100);
      expect(Math.max(...others)).toBeLessThan(1_100);
    },
  );

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

test("ORCH-6 messages that come in one batch are taken one by one, as servers of 2025-03-26 send them", async () => {
  const messages = [1, 2].map((id) => ({ jsonrpc: "2.0", id, result: {} }));
  const channel: Channel = {
    send: async () => {},
    async *receive() {
      yield JSON.stringify(messages);
      yield JSON.stringify([messages[0], 7]);
    },
    close: async () => {},
  };
  const transport = transportFromChannel(channel);
  const [taken, errors]: [unknown[], string[]] = [[], []];
  transport.onmessage = (message) => taken.push(message);
  transport.onerror = ({ message }) => errors.push(message);
  const ended = new Promise<void>((resolve) => (transport.onclose = resolve));
  await transport.start();
  await ended;
  expect(taken).toEqual([...messages, messages[0]]);
  expect(errors).toEqual([`not a message of MCP: ${JSON.stringify([messages[0], 7])}`]);
});

test("SEC-5 a server that says much at once leaves the event loop to others meanwhile", async () => {
  const channel: Channel = {
    send: async () => {},
    async *receive() {
      for (let count = 0; count < 2_000; count++) yield '{"jsonrpc":"2.0","method":"notifications/message"}';
    },
    close: async () => {},
  };
  const transport = transportFromChannel(channel);
  let told = 0;
  transport.onmessage = () => {
    told += 1;
    busy(0.1);
  };
  const ended = new Promise<void>((resolve) => (transport.onclose = resolve));
  await transport.start();
  using turns = countTurns();
  await ended;
  expect(told).toBe(2_000);
  expect(turns.count).toBeGreaterThan(10);
});
