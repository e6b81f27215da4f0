import { MsgHdrsImpl } from "@nats-io/nats-core";
import fc from "fast-check";
import { expect, test } from "vitest";
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

test("BUS-2 an opening without a readable expiry, timeout or credit is none", () => {
  const parse = (record: Record<string, string>) => {
    const headers = Object.entries(record).map(([key, value]): [string, string[]] => [key, [value]]);
    return parseOpening({ data: new Uint8Array(0), headers });
  };
  expect(parse({ "Rpc-Expires": "12", "Rpc-Timeout": "5", "Rpc-Credit": "3 4" })).toMatchObject({
    expires: 12,
    timeoutMs: 5,
    credit: { messages: 3, bytes: 4 },
    hasMore: false,
  });
  for (const wrong of [
    {},
    { "rpc-expires": "12" },
    { "Rpc-Expires": "-1" },
    { "Rpc-Expires": "12", "Rpc-Timeout": "soon" },
    { "Rpc-Expires": "12", "Rpc-Credit": "3" },
  ]) {
    expect(parse(wrong)).toBeUndefined();
  }
  expect(parseOpening({ data: new Uint8Array(0) })).toBeUndefined();
});
