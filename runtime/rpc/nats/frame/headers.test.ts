import { MsgHdrsImpl } from "@nats-io/nats-core";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { headersFromMetadata, readMetadata } from "./headers.ts";
import { parseOpening } from "./opening.ts";

const keys = fc.stringMatching(/^[a-zA-Z0-9_-][a-zA-Z0-9_.-]{0,12}$/);
/** What a header may hold: Latin-1 without control characters. `Headers` takes white space at the ends away by itself. */
const values = fc.string({
  unit: fc
    .integer({ min: 0x20, max: 0xff })
    .filter((c) => c < 0x7f || c > 0xa0)
    .map((c) => String.fromCharCode(c)),
  maxLength: 20,
});
const metadata = fc.dictionary(keys, values, { maxKeys: 5 });

test("BUS-2 metadata comes out of a message as it went in, headers and trailers apart", () => {
  fc.assert(
    fc.property(metadata, metadata, (header, trailer) => {
      const sent = { header: new Headers(header), trailer: new Headers(trailer) };
      const wire = headersFromMetadata(sent);
      const received = { header: new Headers(), trailer: new Headers() };
      if (wire) readMetadata(MsgHdrsImpl.decode(wire.encode()), received.header, received.trailer);
      expect([...received.header]).toEqual([...sent.header]);
      expect([...received.trailer]).toEqual([...sent.trailer]);
    }),
  );
});

describe("an opening", () => {
  const parse = (record: Record<string, string | string[]>) => {
    const headers = Object.entries(record).map(([key, value]): [string, string[]] => [key, [value].flat()]);
    return parseOpening({ data: new Uint8Array(0), headers });
  };

  test("BUS-2 is read with its time, timeout and credit", () => {
    expect(parse({ "Rpc-Sent": "x 12", "Rpc-Timeout": "5", "Rpc-Patience": "0", "Rpc-Credit": "3 4" })).toMatchObject({
      sent: { clock: "x", ms: 12 },
      timeoutMs: 5,
      patienceMs: 0,
      credit: { messages: 3, bytes: 4 },
      hasMore: false,
    });
  });

  test.each<[string, Record<string, string | string[]>]>([
    ["Rpc-Sent cannot be read", { "Rpc-Sent": "x -1" }],
    ["Rpc-Sent is there 2 times", { "Rpc-Sent": ["x 12", "x 13"] }],
    ['Rpc-Timeout cannot be read: "soon"', { "Rpc-Timeout": "soon" }],
    ["Rpc-Credit cannot be read", { "Rpc-Credit": "3" }],
    ["Rpc-Credit cannot be read", { "Rpc-Credit": "1 4294967296" }],
    ["Rpc-More cannot be read", { "Rpc-More": "0" }],
  ])("BUS-2 is none if the header %s", (fault, headers) => {
    expect(parse(headers)).toContain(fault);
  });
});
