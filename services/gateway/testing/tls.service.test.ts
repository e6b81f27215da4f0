// The gateway with a certificate of its own: by the clients that people have, and while it is renewed.

import { generateKeyPairSync, X509Certificate } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect as connectHttp2 } from "node:http2";
import { request as requestHttps } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { connect as connectTls } from "node:tls";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { credentials, Metadata, makeGenericClientConstructor } from "@grpc/grpc-js";
import { pino } from "pino";
import { afterAll, beforeAll, expect, it } from "vitest";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { createSelfSigned } from "#runtime/rpc/http/testing/self-signed.ts";
import { serveOnNats } from "#runtime/rpc/nats/server/server.ts";
import { openTelemetry } from "#runtime/telemetry/telemetry.ts";
import { until } from "#runtime/time/until.ts";
import { openTestBus, type TestBus } from "../../../test/harness/bus.ts";
import { readConfig } from "../config.ts";
import { openService } from "../service.ts";

const key = "a-key-of-some-length";
const headers = { "x-api-key": key };
const stack = new AsyncDisposableStack();
const first = createSelfSigned();
const logged: string[] = [];
let bus: TestBus;
let directory = "";
let url = "";

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "toolbus-test-tls-"));
  stack.defer(() => rm(directory, { recursive: true }));
  await write(first);
  bus = stack.use(await openTestBus());
  const routes = { listAgents: () => ({ agents: [{ origin: "rpc" }] }) };
  stack.use(
    await serveOnNats(bus, { service: "tool-router", routes: (router) => router.service(AgentService, routes) }),
  );
  url = await openGateway({});
});
afterAll(() => stack.disposeAsync());

async function write({ cert, key }: { cert?: string; key?: string }): Promise<void> {
  if (key !== undefined) await writeFile(join(directory, "tls.key"), key);
  if (cert !== undefined) await writeFile(join(directory, "tls.crt"), cert);
}

async function openGateway(env: NodeJS.ProcessEnv, isLoopback = true): Promise<string> {
  const config = readConfig({
    NATS_URL: bus.server.url,
    TOOLBUS_BUS_CREDENTIALS: bus.server.credentials,
    TOOLBUS_HTTP_PORT: "0",
    TOOLBUS_API_KEYS: `alice:${key}`,
    TOOLBUS_TLS_CERT_FILE: join(directory, "tls.crt"),
    TOOLBUS_TLS_KEY_FILE: join(directory, "tls.key"),
    ...env,
  });
  const telemetry = stack.use(await openTelemetry({ service: "gateway" }));
  const logger = pino({ level: "info" }, { write: (line: string) => logged.push(line) });
  const context = { name: "gateway", instance: "g1", logger, telemetry, signal: new AbortController().signal };
  return String(stack.use(await openService({ ...config, isLoopback }, context)).announcement?.url);
}

const printOf = ({ cert }: { cert: string }) => new X509Certificate(cert).fingerprint256;

/** The certificate that a new connection is shown, and the protocol that was agreed on. */
function shown(): Promise<{ cert: string | undefined; protocol: string | false | null }> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const options = {
      host: hostname,
      port: Number(port),
      ALPNProtocols: ["h2", "http/1.1"],
      rejectUnauthorized: false,
    };
    const socket = connectTls(options, () => {
      const cert = socket.getPeerX509Certificate()?.fingerprint256;
      resolve({ cert, protocol: socket.alpnProtocol });
      socket.destroy();
    });
    socket.on("error", reject);
  });
}

it("SEC-1 the gateway says by its address that it speaks TLS, and agrees on h2", async () => {
  expect(url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
  expect(await shown()).toEqual({ cert: printOf(first), protocol: "h2" });
});

it.each(["1.1", "2"] as const)(
  "SEC-1 Connect calls over TLS and HTTP/%s, and trusts the certificate that it is given",
  async (httpVersion) => {
    const open = (nodeOptions: object) =>
      createClient(AgentService, createConnectTransport({ baseUrl: url, httpVersion, nodeOptions }));
    expect((await open({ ca: first.cert }).listAgents({}, { headers })).agents).toHaveLength(1);
    await expect(open({}).listAgents({}, { headers })).rejects.toThrow(/self.signed/);
  },
);

it("SEC-1 grpc-js calls over TLS", async () => {
  const path = `/${AgentService.typeName}/ListAgents`;
  const bytes = {
    requestSerialize: (b: Buffer) => b,
    requestDeserialize: (b: Buffer) => b,
    responseSerialize: (b: Buffer) => b,
    responseDeserialize: (b: Buffer) => b,
  };
  const Client = makeGenericClientConstructor({}, "Agents");
  const client = new Client(new URL(url).host, credentials.createSsl(Buffer.from(first.cert)));
  const metadata = new Metadata();
  metadata.set("authorization", `Bearer ${key}`);
  const answer = await new Promise<Buffer>((resolve, reject) => {
    client.makeUnaryRequest(
      path,
      bytes.requestSerialize,
      bytes.responseDeserialize,
      Buffer.alloc(0),
      metadata,
      (error, value) => (error ? reject(error) : resolve(value as Buffer)),
    );
  });
  client.close();
  expect(answer.toString("latin1")).toContain("rpc");
});

it("SEC-1 plain HTTP over TLS answers, and the port answers nobody without TLS", async () => {
  const body = await new Promise<string>((resolve, reject) => {
    requestHttps(`${url}/healthz`, { ca: first.cert, agent: false }, (response) => resolve(text(response)))
      .on("error", reject)
      .end();
  });
  expect(body).toBe("ok\n");
  await expect(fetch(`${url.replace("https", "http")}/healthz`)).rejects.toThrow();
});

it("SEC-1 a renewed certificate is shown to the next connection, and cuts none that is open", async () => {
  const session = connectHttp2(url, { ca: first.cert });
  stack.defer(() => session.destroy());
  const healthz = async () => {
    const stream = session.request({ ":path": "/healthz" });
    return text(stream.end());
  };
  expect(await healthz()).toBe("ok\n");
  const second = createSelfSigned();
  await write({ cert: second.cert }); // the key is still the one before: the two do not belong together
  const hasWarned = () => logged.some((line) => line.includes("the one before holds on"));
  await until(hasWarned, { timeoutMs: 10_000 });
  expect((await shown()).cert).toBe(printOf(first));
  await write({ key: second.key });
  await until(async () => (await shown()).cert === printOf(second), { timeoutMs: 10_000, intervalMs: 100 });
  expect(await healthz()).toBe("ok\n");
});

it("SEC-1 a certificate that is not there, or half of one, is refused at the start", async () => {
  await expect(openGateway({ TOOLBUS_TLS_CERT_FILE: join(directory, "nothing") })).rejects.toThrow(
    /the certificate .*nothing cannot be used with the key .*tls\.key: ENOENT/,
  );
  expect(() => readConfig({ TOOLBUS_LOCAL_KEY: key, TOOLBUS_TLS_CERT_FILE: "x" })).toThrow(
    /TOOLBUS_TLS_KEY_FILE is not set/,
  );
  expect(() => readConfig({ TOOLBUS_LOCAL_KEY: key, TOOLBUS_TLS_KEY_FILE: "x" })).toThrow(
    /TOOLBUS_TLS_CERT_FILE is not set/,
  );
});

it("SEC-1 a key of another kind than the certificate's, or one that a passphrase locks, is refused at the start", async () => {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const locked = { cipher: "aes-256-cbc", passphrase: "secret" };
  const keyFile = join(directory, "other.key");
  for (const [lock, says] of [
    [{}, /key of another certificate/],
    [locked, /passphrase/i],
  ] as const) {
    await writeFile(keyFile, privateKey.export({ type: "pkcs8", format: "pem", ...lock }));
    await expect(openGateway({ TOOLBUS_TLS_KEY_FILE: keyFile })).rejects.toThrow(says);
  }
});

it("SEC-1 beyond this machine a gateway without TLS warns", async () => {
  const plain = { TOOLBUS_TLS_CERT_FILE: "", TOOLBUS_TLS_KEY_FILE: "" };
  const warnings = () => logged.filter((line) => line.includes("cross the network in plain text"));
  await openGateway(plain);
  await openGateway({}, false);
  expect(warnings()).toHaveLength(0);
  await openGateway(plain, false);
  expect(warnings()).toHaveLength(1);
  expect(readConfig({ TOOLBUS_API_KEYS: `alice:${key}`, TOOLBUS_HTTP_HOST: "0.0.0.0" }).isLoopback).toBe(false);
});
