import { createServer, type IncomingMessage, request } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { expect, it } from "vitest";
import { guardHost } from "./host-guard.ts";

const hosts: [string, number][] = [
  ["localhost", 200],
  ["LOCALHOST:7480", 200],
  ["127.0.0.1:7480", 200],
  ["127.8.9.1", 200],
  ["[::1]:7480", 200],
  ["evil.example", 403],
  ["localhost.evil.example", 403],
  ["127.0.0.1.evil.example:7480", 403],
  ["10.0.0.1", 403],
];

it.each(hosts)("a request for %s gets %i from a gateway without keys", async (host, status) => {
  const server = createServer((incoming, response) => {
    if (!guardHost(incoming, response)) response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const got = await new Promise<IncomingMessage>((resolve, reject) => {
    request({ port, host: "127.0.0.1", headers: { host } }, resolve).on("error", reject).end();
  });
  const body = await text(got);
  server.close();
  expect(got.statusCode).toBe(status);
  if (status === 403)
    expect(JSON.parse(body)).toMatchObject({ details: [{ debug: { reason: "REASON_HOST_NOT_ALLOWED" } }] });
});
