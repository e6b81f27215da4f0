import { extractWWWAuthenticateParams } from "@modelcontextprotocol/client";
import type { Authorization } from "../module.ts";

type Request = (url: string | URL, init: RequestInit) => Promise<Response>;

/** Sends with the token that there is, and once more with another when it is refused. */
export function authorized(request: Request, authorization: Authorization | undefined): Request {
  if (authorization === undefined) return request;
  return async (url, init) => {
    for (let isAgain = false; ; isAgain = true) {
      const token = await authorization.token();
      const headers = new Headers(init.headers);
      if (token !== undefined) headers.set("authorization", `Bearer ${token}`);
      const response = await request(url, { ...init, headers });
      if (!isRefusal(response)) return response;
      await response.body?.cancel();
      await authorization.refused(response, token, isAgain);
    }
  };
}

function isRefusal(response: Response): boolean {
  if (response.status !== 403) return response.status === 401;
  return challengeIn(response).error === "insufficient_scope";
}

/** What a refusal says of tokens, among challenges of other kinds: the SDK (2.4.0) looks at the first one alone. */
export function challengeIn({ headers }: Response) {
  const [, challenge = ""] = /(?:^|,\s*)((?:Bearer|DPoP)\s.*)$/i.exec(headers.get("www-authenticate") ?? "") ?? [];
  return extractWWWAuthenticateParams(new Response(null, { headers: { "www-authenticate": challenge } }));
}
