import { connectError } from "#runtime/failure/connect.ts";
import type { HttpRequest, HttpResponse } from "#runtime/rpc/http/messages.ts";
import { answerRefusal } from "#runtime/rpc/http/refusal.ts";

/**
 * For a gateway that lets everybody on this machine in: refuses requests that name another host, as those of a page do whose
 * own name was made to point at this machine (DNS rebinding). Says with `true` that it has answered.
 */
export function guardHost(request: HttpRequest, response: HttpResponse): boolean {
  const host = "authority" in request ? request.authority : request.headers.host;
  if (host === undefined || /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?$/i.test(host)) return false;
  const message = "this gateway has no keys and so serves this machine only: call it as localhost, or give it keys";
  const error = connectError("permission_denied", message, { reason: "HOST_NOT_ALLOWED" });
  answerRefusal(request, response, { status: 403, error });
  return true;
}
