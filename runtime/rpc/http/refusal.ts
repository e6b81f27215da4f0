import type { ConnectError } from "@connectrpc/connect";
import { createAsyncIterable, encodeEnvelope, type UniversalServerResponse } from "@connectrpc/connect/protocol";
import {
  codeToHttpStatus,
  endStreamFlag,
  endStreamToJson,
  errorToJsonBytes,
} from "@connectrpc/connect/protocol-connect";
import { findTrailerError, setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { trailerFlag, trailerSerialize } from "@connectrpc/connect/protocol-grpc-web";
import { universalResponseToNodeResponse } from "@connectrpc/connect-node";
import { refusalFromUnknown, shortenedError } from "../../failure/connect.ts";

type Request = { headers: { "content-type"?: string | undefined } };
type Response = Parameters<typeof universalResponseToNodeResponse>[1];

/** What ends a request that no handler gets. */
export interface Refusal {
  /** For clients that read the status; those of streams, gRPC and gRPC-Web find the error in what ends their answer, with 200. */
  status: number;
  error: ConnectError;
  header?: Record<string, string>;
}

/** Answers by itself, in the form that the sender of the request reads. */
export function answerRefusal(request: Request, response: Response, refusal: Refusal): void {
  const answer = responseFromRefusal(request.headers["content-type"], refusal);
  universalResponseToNodeResponse(answer, response).catch(() => response.destroy()); // whoever asked is gone
}

/** Answers with what was thrown, in the form that the sender of the request reads. */
export function answerThrown(request: Request, response: Response, thrown: unknown): void {
  const error = refusalFromUnknown(thrown);
  answerRefusal(request, response, { status: codeToHttpStatus(error.code), error });
}

/** The error as the protocol of the request's content type writes it: that of Connect's JSON for what is no protocol's. */
export function responseFromRefusal(contentType: string | undefined, refusal: Refusal): UniversalServerResponse {
  const type = contentType ?? "";
  const header = new Headers(refusal.header);
  if (isGrpc.test(type)) {
    header.set("content-type", type);
    return { status: 200, header, trailer: readableStatus(setTrailerStatus(new Headers(), refusal.error)) };
  }
  const isWeb = isGrpcWeb.test(type);
  const isStream = isWeb || isConnectStream.test(type);
  header.set("content-type", isStream ? type : "application/json");
  const body = isStream ? lastEnvelope(isWeb, refusal.error) : errorToJsonBytes(refusal.error, undefined);
  return { status: isStream ? 200 : refusal.status, header, body: createAsyncIterable([body]) };
}

/** Clients of gRPC refuse trailers of 16 KiB, and some of those from 8 KiB on. */
const MOST_STATUS_BYTES = 7 * 1024;
const SHORT_CHARACTERS = 500; // of up to 13 bytes there
/** Printable ASCII that is escaped without need. `@grpc/grpc-js` leaves what is reserved in URIs as it comes. */
const NEEDLESS = /%(2[1-46-9A-F]|3[A-F]|40|5[B-E]|60|7[B-D])/g;

/** The same answer, with a status that every client of gRPC reads: of an error that is too big, its start and its reason. */
export function withReadableStatus(answer: UniversalServerResponse): UniversalServerResponse {
  const { trailer } = answer;
  // it is whole when the body has ended
  return trailer ? Object.defineProperty({ ...answer }, "trailer", { get: () => readableStatus(trailer) }) : answer;
}

function readableStatus(trailer: Headers): Headers {
  const [message, details] = ["grpc-message", "grpc-status-details-bin"].map((name) => trailer.get(name) ?? "");
  const error = `${message}${details}`.length > MOST_STATUS_BYTES && findTrailerError(trailer);
  if (error) return readableStatus(setTrailerStatus(new Headers(), shortenedError(error, SHORT_CHARACTERS)));
  if (message) trailer.set("grpc-message", message.replace(NEEDLESS, decodeURIComponent));
  return trailer;
}

const isGrpc = /^application\/grpc(\+\w+)?\s*(;|$)/i;
const isGrpcWeb = /^application\/grpc-web(\+\w+)?\s*(;|$)/i;
const isConnectStream = /^application\/connect\+\w+\s*(;|$)/i;

function lastEnvelope(isWeb: boolean, error: ConnectError): Uint8Array<ArrayBuffer> {
  if (isWeb) return encodeEnvelope(trailerFlag, trailerSerialize(setTrailerStatus(new Headers(), error)));
  const end = JSON.stringify(endStreamToJson(new Headers(), error, undefined));
  return encodeEnvelope(endStreamFlag, new TextEncoder().encode(end));
}
