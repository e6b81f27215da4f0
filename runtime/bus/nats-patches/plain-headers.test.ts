import { headers, type MsgHdrsImpl } from "@nats-io/nats-core";
import { expect, test } from "vitest";
import { PlainHeaders } from "./plain-headers.ts";

test("plain headers are written as the client's own, and are as long as they say", () => {
  const own = headers();
  own.set("Toolbus-Append-Id", "a1");
  own.set("Nats-Msg-Id", "ünïque");
  const plain = new PlainHeaders().add("Toolbus-Append-Id", "a1");
  plain.set("Nats-Msg-Id", "ünïque");
  expect(plain.encode()).toEqual(Buffer.from((own as MsgHdrsImpl).encode()));
  expect(Buffer.byteLength(plain.toString())).toBe(plain.encode().length);
});

test("a value with a line break, which would be another header, is refused", () => {
  expect(() => new PlainHeaders().set("Nats-Msg-Id", "a\r\nb: c")).toThrow("line break");
});
