// What can be wrong with a request before a handler sees it.

import { gzipSync } from "node:zlib";
import { Code } from "@connectrpc/connect";
import { ServerReflection } from "#gen/grpc/reflection/v1/reflection_pb.ts";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import type { Reason } from "#gen/toolbus/error/v1/error_pb.ts";
import { framed, type HttpVersion, type ProbeRequest, type Protocol, protocols } from "./http-probe.ts";

export interface Fault {
  fault: string;
  /** All, unless told. */
  of?: (protocol: Protocol, version: HttpVersion) => boolean;
  request: (protocol: Protocol) => Partial<ProbeRequest>;
  code: Code;
  reason: keyof typeof Reason;
  says: RegExp;
  /** Of an answer in plain Connect, where another one than that of its code. */
  status?: number;
}

const isPlain = ({ isEnveloped }: Protocol) => !isEnveloped;
const isEnveloped = (protocol: Protocol) => protocol.isEnveloped;
const isConnect = ({ timeout }: Protocol) => timeout === protocols.Connect.timeout;
const isOldHttp = (_: Protocol, version: HttpVersion) => version === "1.1";
const ofAgents = `/${AgentService.typeName}`;
const big = "x".repeat(70_000);
const json = (text: string | Uint8Array) => (protocol: Protocol) => ({
  headers: { "content-type": protocol.json },
  body: framed(protocol, text),
});
const unreadable = { reason: "REQUEST_MALFORMED" } as const;
const unsupported = { code: Code.Unimplemented, reason: "PROTOCOL_UNSUPPORTED" } as const;

export const faults: Fault[] = [
  {
    fault: "JSON that ends too early",
    request: json("{"),
    code: Code.InvalidArgument,
    ...unreadable,
    says: /AgentsRequest from JSON.*position/,
  },
  {
    fault: "JSON that is no object",
    request: json("[]"),
    code: Code.InvalidArgument,
    ...unreadable,
    says: /AgentsRequest from JSON/,
  },
  {
    fault: "JSON that is not UTF-8",
    of: ({ method }) => method === "ListAgents",
    request: json(Buffer.from('{"pageToken":"caf\xe9"}', "latin1")),
    code: Code.InvalidArgument,
    ...unreadable,
    says: /not UTF-8/,
  },
  {
    fault: "packed JSON that is not UTF-8",
    of: ({ method }) => method === "ListAgents",
    request: (protocol) => ({
      headers: { "content-type": protocol.json, [protocol.encoding]: "gzip" },
      body: framed(protocol, gzipSync(Buffer.from('{"pageToken":"caf\xe9"}', "latin1")), 1),
    }),
    code: Code.InvalidArgument,
    ...unreadable,
    says: /not UTF-8/,
  },
  {
    fault: "a field that there is not",
    request: json('{"pageSise":1}'),
    code: Code.InvalidArgument,
    ...unreadable,
    says: /"pageSise" is unknown/,
  },
  {
    fault: "a value of another type",
    of: ({ method }) => method === "ListAgents",
    request: json('{"pageSize":"many"}'),
    code: Code.InvalidArgument,
    ...unreadable,
    says: /page_size.*"many"/,
  },
  {
    fault: "an integer of which JavaScript would lose digits",
    request: json('{"pageSize":9007199254740993}'),
    code: Code.InvalidArgument,
    ...unreadable,
    says: /9007199254740993.*as text/,
  },
  {
    fault: "a value that breaks a rule",
    of: ({ method }) => method === "ListAgents",
    request: json('{"pageSize":1001}'),
    code: Code.InvalidArgument,
    reason: "INVALID_REQUEST",
    says: /page_size/,
  },
  {
    fault: "a value below a rule's limit",
    of: ({ method }) => method === "ListAgents",
    request: json('{"pageSize":-1}'),
    code: Code.InvalidArgument,
    reason: "INVALID_REQUEST",
    says: /page_size/,
  },
  {
    fault: "broken protobuf",
    request: (protocol) => ({ body: framed(protocol, Uint8Array.of(0xff)) }),
    code: Code.InvalidArgument,
    ...unreadable,
    says: /parse binary/,
  },
  {
    fault: "a compression that there is not",
    request: ({ encoding }) => ({ headers: { [encoding]: "zstd" } }),
    ...unsupported,
    says: /"zstd".*gzip/,
  },
  {
    fault: "bytes that are not compressed as they say",
    request: (protocol) => ({ headers: { [protocol.encoding]: "gzip" }, body: framed(protocol, "no gzip at all", 1) }),
    code: Code.InvalidArgument,
    ...unreadable,
    says: /decompression failed/,
  },
  {
    fault: "compressed bytes that end too early",
    request: (protocol) => ({
      headers: { [protocol.encoding]: "gzip" },
      body: framed(protocol, gzipSync(big).subarray(0, 20), 1),
    }),
    code: Code.InvalidArgument,
    ...unreadable,
    says: /decompression failed/,
  },
  {
    fault: "a message over the limit",
    request: (protocol) => ({ body: framed(protocol, big) }),
    code: Code.ResourceExhausted,
    reason: "MESSAGE_TOO_LARGE",
    says: /readMaxBytes 65536/,
  },
  {
    fault: "a message that is unpacked over the limit",
    request: (protocol) => ({ headers: { [protocol.encoding]: "gzip" }, body: framed(protocol, gzipSync(big), 1) }),
    code: Code.ResourceExhausted,
    reason: "MESSAGE_TOO_LARGE",
    says: /65536 after decompression/,
  },
  {
    fault: "a timeout that is no time",
    request: ({ timeout }) => ({ headers: { [timeout]: "soon" } }),
    code: Code.InvalidArgument,
    ...unreadable,
    says: /timeout.*soon/,
  },
  {
    fault: "a time that is over at once",
    request: (protocol) => ({ headers: { [protocol.timeout]: isConnect(protocol) ? "0" : "0m" } }),
    code: Code.DeadlineExceeded,
    reason: "DEADLINE_EXCEEDED",
    says: /timed out/,
  },
  {
    fault: "no key",
    request: () => ({ headers: { "x-api-key": "" } }),
    code: Code.Unauthenticated,
    reason: "CREDENTIALS_INVALID",
    says: /X-Api-Key/,
  },
  {
    fault: "a method that there is not",
    request: () => ({ path: `${ofAgents}/LstAgents` }),
    code: Code.Unimplemented,
    reason: "METHOD_UNIMPLEMENTED",
    says: /no method LstAgents.*ListAgents/,
    status: 404,
  },
  {
    fault: "a service that there is not",
    request: () => ({ path: "/toolbus.agnt.v1.AgentService/ListAgents" }),
    code: Code.Unimplemented,
    reason: "SERVICE_NOT_FOUND",
    says: /toolbus\.agnt\.v1\.AgentService/,
    status: 404,
  },
  {
    fault: "a path of no method",
    request: () => ({ path: "/agents" }),
    code: Code.NotFound,
    reason: "PATH_NOT_FOUND",
    says: /POST \/agents.*<Method>/,
  },
  {
    fault: "another HTTP method",
    request: () => ({ method: "PUT" }),
    ...unsupported,
    says: /PUT.*POST/,
    status: 405,
  },
  {
    fault: "a content type that is read nowhere",
    of: isPlain,
    request: () => ({ headers: { "content-type": "text/plain" } }),
    ...unsupported,
    says: /"text\/plain".*application\/json/,
    status: 415,
  },
  {
    fault: "a stream where one message is due",
    of: isPlain,
    request: () => ({ path: `${ofAgents}/WatchAgents` }),
    ...unsupported,
    says: /application\/proto.*application\/connect\+json/,
    status: 415,
  },
  {
    fault: "another version of the protocol",
    of: isConnect,
    request: () => ({ headers: { "connect-protocol-version": "2" } }),
    code: Code.InvalidArgument,
    reason: "PROTOCOL_UNSUPPORTED",
    says: /"1", not "2"/,
  },
  {
    fault: "a frame that is cut short",
    of: isEnveloped,
    request: (protocol) => ({ body: framed(protocol, "abc").subarray(0, 6) }),
    code: Code.InvalidArgument,
    ...unreadable,
    says: /incomplete envelope/,
  },
  {
    fault: "a frame that says it is compressed, by nobody knows what",
    of: isEnveloped,
    request: (protocol) => ({ body: framed(protocol, "", 1) }),
    code: Code.InvalidArgument,
    ...unreadable,
    says: /do not know how to decompress/,
  },
  {
    fault: "no message",
    of: isEnveloped,
    request: () => ({ body: new Uint8Array() }),
    code: Code.Unimplemented,
    ...unreadable,
    says: /missing input message/,
  },
  {
    fault: "two messages for one",
    of: isEnveloped,
    request: (protocol) => ({ body: Buffer.concat([framed(protocol, ""), framed(protocol, "")]) }),
    code: Code.Unimplemented,
    ...unreadable,
    says: /extra input message/,
  },
  {
    fault: "a stream both ways over HTTP/1.1",
    of: (protocol, version) => isEnveloped(protocol) && isOldHttp(protocol, version),
    request: () => ({ path: `/${ServerReflection.typeName}/ServerReflectionInfo` }),
    ...unsupported,
    says: /HTTP\/2/,
  },
  {
    fault: "a host that cannot be read",
    of: isOldHttp,
    request: () => ({ headers: { host: "[" } }),
    code: Code.InvalidArgument,
    ...unreadable,
    says: /Host/,
  },
];
