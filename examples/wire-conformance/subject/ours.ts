// The TypeScript ends of this project as a subject under test.

import { create } from "@bufbuild/protobuf";
import { BytesValueSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type ConnectRouter, createClient, type HandlerContext } from "@connectrpc/connect";
import { codeFromString, codeToString } from "@connectrpc/connect/protocol-connect";
import type { NatsConnection } from "@nats-io/nats-core";
import { deliveryOf } from "#runtime/rpc/nats/call/delivery.ts";
import { createNatsTransport } from "#runtime/rpc/nats/client/transport.ts";
import { serveOnNats } from "#runtime/rpc/nats/server/server.ts";
import { EchoService } from "#runtime/rpc/nats/testing/echo-service.ts";
import { type Bytes, EchoFailure, echo, type Shape } from "./echo.ts";
import type { ReportedError } from "./protocol.ts";
import { type CallRequest, type Implementation, Subject, type SubjectCall } from "./subject.ts";

interface BytesMessage {
  readonly value: Uint8Array;
}

/** Listens to a control subject on the connection. Disposing stops what is served. */
export async function openOurSubject(connection: NatsConnection, control: string): Promise<Subject> {
  const subject = new Subject(ourImplementation(connection), (to, event) =>
    connection.publish(to, JSON.stringify(event)),
  );
  connection.subscribe(control, {
    callback: (error, message) => {
      if (!error) void subject.obey(message.json()).then((answer) => message.respond(JSON.stringify(answer)));
    },
  });
  await connection.flush();
  return subject;
}

function ourImplementation(connection: NatsConnection): Implementation {
  return {
    serve: (service, patienceMs) =>
      serveOnNats(
        { connection },
        {
          service,
          routes: (router) => serveEcho(router, connection),
          ...(patienceMs !== undefined && { drainTimeoutMs: patienceMs }),
        },
      ),
    call: (request) => callOf(connection, request),
    errorFrom,
  };
}

function serveEcho(router: ConnectRouter, connection: NatsConnection): void {
  const run = (shape: Shape, requests: AsyncIterable<BytesMessage>, context: HandlerContext) => {
    const { requestHeader: metadata, responseHeader: header, responseTrailer: trailer, signal } = context;
    const notify = (subject: string, text: string) => connection.publish(subject, text);
    return messages(echo(shape, values(requests), { metadata, header, trailer, signal, notify }));
  };
  router.service(EchoService, {
    unary: (request, context) => only(run("unary", sequence(request), context)),
    serverStream: (request, context) => run("serverStream", sequence(request), context),
    clientStream: (requests, context) => only(run("clientStream", requests, context)),
    bidi: (requests, context) => run("bidi", requests, context),
  });
}

function callOf(connection: NatsConnection, request: CallRequest): SubjectCall {
  const client = createClient(EchoService, createNatsTransport({ connection }, { service: request.service }));
  const header = new Headers();
  const trailer = new Headers();
  const options = {
    headers: request.metadata,
    signal: request.signal,
    ...(request.timeoutMs !== undefined && { timeoutMs: request.timeoutMs }),
    onHeader: (found: Headers) => copy(found, header),
    onTrailer: (found: Headers) => copy(found, trailer),
  };
  const requests = messages(request.requests);
  const answers = async function* () {
    if (request.method === "Unary") yield await client.unary(await only(requests), options);
    else if (request.method === "ClientStream") yield await client.clientStream(requests, options);
    else if (request.method === "ServerStream") yield* client.serverStream(await only(requests), options);
    else yield* client.bidi(requests, options);
  };
  return { messages: values(answers()), header, trailer };
}

function errorFrom(thrown: unknown): ReportedError {
  const error = ConnectError.from(thrown);
  const metadata = new Headers(error.metadata);
  metadata.delete("toolbus-delivery");
  return {
    code: codeToString(error.code),
    message: error.rawMessage,
    delivery: deliveryOf(error) ?? null,
    metadata: Object.fromEntries(metadata),
    details: error.findDetails(BytesValueSchema).map(({ value }) => Buffer.from(value).toString("hex")),
  };
}

function copy(from: Headers, to: Headers): void {
  from.forEach((value, key) => {
    to.append(key, value);
  });
}

async function* sequence<T>(item: T): AsyncGenerator<T> {
  yield item;
}

async function* values(answers: AsyncIterable<BytesMessage>): AsyncGenerator<Bytes> {
  for await (const { value } of answers) yield new Uint8Array(value);
}

async function* messages(answers: AsyncIterable<Bytes>) {
  try {
    for await (const value of answers) yield create(BytesValueSchema, { value });
  } catch (error) {
    if (!(error instanceof EchoFailure)) throw error;
    throw connectErrorFrom(error);
  }
}

function connectErrorFrom({ code, message, detail }: EchoFailure): ConnectError {
  const details = [{ desc: BytesValueSchema, value: { value: detail } }];
  return new ConnectError(message, codeFromString(code) ?? Code.Unknown, { "x-why": "asked" }, details);
}

async function only<T>(items: AsyncIterable<T>): Promise<T> {
  for await (const item of items) return item;
  throw new ConnectError("there is no message", Code.InvalidArgument);
}
