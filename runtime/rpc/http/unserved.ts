import type { UniversalHandler } from "@connectrpc/connect/protocol";
import { connectError } from "../../failure/connect.ts";
import type { Refusal } from "./refusal.ts";

/** What of a request decides that nobody serves it. */
export interface UnservedRequest {
  method?: string | undefined;
  url?: string | undefined;
  contentType?: string | undefined;
}

/** Of a path, in characters: the error may have to fit into a header, and no method has a name as long. */
const MOST_SHOWN = 500;

/** A request whose path is that of no method: says whether its service or its method is missing, or what calls look like. */
export function unservedPath(handlers: readonly UniversalHandler[], { method, url }: UnservedRequest): Refusal {
  const status = 404;
  const path = url?.split("?", 1)[0] ?? "";
  const [, service, name] = (path.length <= MOST_SHOWN && /^\/(\w+(?:\.\w+)+)\/(\w+)$/.exec(path)) || [];
  if (service === undefined) {
    const text = `there is nothing at ${method} ${path.slice(0, MOST_SHOWN)}; calls go to POST /<package.Service>/<Method>`;
    return { status, error: connectError("not_found", text, { reason: "PATH_NOT_FOUND" }) };
  }
  const offered = handlers.filter((handler) => handler.service.typeName === service);
  if (offered.length === 0) {
    const text = `there is no service ${service} here: ask for one of the contract`;
    const metadata = { service };
    return { status, error: connectError("unimplemented", text, { reason: "SERVICE_NOT_FOUND", metadata }) };
  }
  const text = `the service ${service} has no method ${name}: it has ${offered.map((each) => each.method.name).join(", ")}`;
  const metadata = { service, method: name ?? "" };
  return { status, error: connectError("unimplemented", text, { reason: "METHOD_UNIMPLEMENTED", metadata }) };
}

/** A request in a form in which Connect does not serve its method; it answers with a bare status. */
export function unservedForm(handler: UniversalHandler, status: number, request: UnservedRequest): Refusal {
  const { text, header } = faultOf(handler, status, request);
  return { status, header, error: connectError("unimplemented", text, { reason: "PROTOCOL_UNSUPPORTED" }) };
}

function faultOf({ method }: UniversalHandler, status: number, request: UnservedRequest) {
  if (status === 405)
    return { text: `${method.name} is not called by ${request.method}: send POST`, header: { allow: "POST" } };
  if (status === 505) {
    const text = `${method.name} streams both ways, which HTTP/1.1 cannot: call it over HTTP/2`;
    return { text, header: { connection: "close" } }; // its client may wait for an answer before it ends its request
  }
  const forms = method.methodKind === "unary" ? unaryForms : streamForms;
  const given = request.contentType === undefined ? "no content type" : JSON.stringify(request.contentType);
  return {
    text: `${method.name} cannot be called with ${given}: send one of ${forms}`,
    header: { "accept-post": forms },
  };
}

const grpcForms = "application/grpc, application/grpc-web";
const unaryForms = `application/json, application/proto, ${grpcForms}`;
const streamForms = `application/connect+json, application/connect+proto, ${grpcForms}`;
