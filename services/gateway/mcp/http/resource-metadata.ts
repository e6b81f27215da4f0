import type { TokenSettings } from "#runtime/config/access/token-settings.ts";
import { urlBelow } from "#runtime/config/public-url.ts";
import type { PathTaker } from "#runtime/rpc/http/messages.ts";
import { answerJson } from "../../plain/exchange.ts";

const WELL_KNOWN = "/.well-known/oauth-protected-resource";
const RESOURCE_PATH = "/mcp";

export interface ResourceMetadataOptions {
  readonly publicUrl: URL | undefined;
  readonly tokens: Pick<TokenSettings, "issuer"> | undefined;
}

/** How a client without a token finds out where to get one (RFC 9728): nothing is said where the gateway takes none. */
export interface ResourceMetadata {
  /** What stands beside a 401. */
  readonly challenge: string;
  readonly paths: PathTaker;
}

/** One resource for all agents, since tokens say by their grants which are for whom. */
export function createResourceMetadata({ publicUrl, tokens }: ResourceMetadataOptions): ResourceMetadata {
  if (publicUrl === undefined || tokens === undefined) return { challenge: "Bearer", paths: () => false };
  const document = {
    resource: urlBelow(publicUrl, RESOURCE_PATH),
    resource_name: "toolbus",
    authorization_servers: [tokens.issuer],
    bearer_methods_supported: ["header"],
  };
  return {
    challenge: `Bearer resource_metadata="${urlBelow(publicUrl, WELL_KNOWN + RESOURCE_PATH)}"`,
    paths(request, response) {
      const path = (request.url ?? "/").split("?", 1)[0] ?? "";
      if (request.method !== "GET" || !/^\/\.well-known\/oauth-protected-resource(\/mcp(\/[\w~-]+)?\/?)?$/.test(path))
        return false;
      response.setHeader("access-control-allow-origin", "*"); // everybody may know it
      answerJson(response, 200, document);
      return true;
    },
  };
}
