import type { HttpRequest } from "../messages.ts";

/** A client of a proxy names the whole URL, whose host counts, and not that of the header (RFC 9112, 3.2.2). */
export function toOriginForm(request: HttpRequest): void {
  const [, host, target] = /^https?:\/\/([^/?]*)(.*)$/i.exec(request.url ?? "") ?? [];
  if (host === undefined || target === undefined) return;
  request.url = target.startsWith("/") ? target : `/${target}`;
  request.headers.host = host;
}
