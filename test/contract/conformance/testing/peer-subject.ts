// The independent peer as a subject under test.

import { create, toBinary } from "@bufbuild/protobuf";
import { type BytesValue, BytesValueSchema } from "@bufbuild/protobuf/wkt";
import { JSONCodec, type NatsConnection, StringCodec } from "nats";
import { EchoService } from "#runtime/rpc/nats/testing/echo-service.ts";
import { type Bytes, EchoFailure, echo, type Shape } from "../../../../examples/wire-conformance/subject/echo.ts";
import type { Command, ReportedError } from "../../../../examples/wire-conformance/subject/protocol.ts";
import {
  type CallRequest,
  type Implementation,
  Subject,
  type SubjectCall,
} from "../../../../examples/wire-conformance/subject/subject.ts";
import { PeerClient } from "../../independent-peer/client.ts";
import type { CallOptions } from "../../independent-peer/client-call.ts";
import { PeerError, toPeerError } from "../../independent-peer/peer-error.ts";
import { PeerServer } from "../../independent-peer/server.ts";

const json = JSONCodec();
const text = StringCodec();
const shapes: readonly Shape[] = ["unary", "serverStream", "clientStream", "bidi"];

export async function openPeerSubject(connection: NatsConnection, control: string): Promise<Subject> {
  const subject = new Subject(implementation(connection), (to, event) => connection.publish(to, json.encode(event)));
  connection.subscribe(control, {
    callback: (error, message) => {
      if (!error) void subject.obey(message.json<Command>()).then((answer) => message.respond(json.encode(answer)));
    },
  });
  await connection.flush();
  return subject;
}

function implementation(connection: NatsConnection): Implementation {
  return {
    async serve(service, patienceMs) {
      const server = await PeerServer.open(connection, service, patienceMs);
      for (const shape of shapes) {
        server.serve(EchoService.method[shape], (requests, context) => {
          const notify = (subject: string, note: string) => connection.publish(subject, text.encode(note));
          return messages(echo(shape, values(requests), { ...context, notify }));
        });
      }
      await server.ready();
      return server;
    },
    call: (request) => callOf(connection, request),
    errorFrom,
  };
}

function callOf(connection: NatsConnection, request: CallRequest): SubjectCall {
  const shape = shapes.find((each) => EchoService.method[each].name === request.method) ?? "unary";
  const isStreamed = shape === "serverStream" || shape === "bidi";
  const client = new PeerClient(connection, request.service);
  const options: CallOptions = {
    metadata: request.metadata,
    signal: request.signal,
    ...(isStreamed && { window: { messages: 64, bytes: 65_536 } }),
    ...(request.timeoutMs !== undefined && { timeoutMs: request.timeoutMs }),
  };
  const requests = messages(request.requests);
  const made = { header: new Headers(), trailer: new Headers() };
  const answers = async function* () {
    if (!isStreamed) {
      const { message, ...metadata } = await client.ask(EchoService.method[shape], requests, options);
      Object.assign(made, metadata);
      yield message;
      return;
    }
    const call = client.call(EchoService.method[shape], requests, options);
    yield* call;
    Object.assign(made, { header: call.raw.header, trailer: call.raw.trailer });
  };
  return Object.assign(made, { messages: values(answers()) });
}

function errorFrom(thrown: unknown): ReportedError {
  const error = toPeerError(thrown);
  return {
    code: error.code,
    message: error.text,
    delivery: error.delivery ?? null,
    metadata: Object.fromEntries(error.metadata),
    details: error.details
      .filter(({ type }) => type === BytesValueSchema.typeName)
      .map(({ value }) => Buffer.from(value.subarray(2)).toString("hex")), // after tag and length
  };
}

async function* values(answers: AsyncIterable<BytesValue>): AsyncGenerator<Bytes> {
  for await (const { value } of answers) yield new Uint8Array(value);
}

async function* messages(answers: AsyncIterable<Bytes>) {
  try {
    for await (const value of answers) yield create(BytesValueSchema, { value });
  } catch (error) {
    if (!(error instanceof EchoFailure)) throw error;
    const value = toBinary(BytesValueSchema, create(BytesValueSchema, { value: error.detail }));
    const details = [{ type: BytesValueSchema.typeName, value }];
    throw new PeerError(error.code, error.message, { details, metadata: new Headers({ "x-why": "asked" }) });
  }
}
