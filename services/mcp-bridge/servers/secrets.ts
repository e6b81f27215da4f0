import type { McpServer } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { withTransportMap } from "./key.ts";

/**
 * The server with `${secret:NAME}` replaced in the values of its environment, its headers and its client. Throws `failed_precondition`,
 * which names what is missing. The result must reach neither a log nor a key.
 */
export function withSecrets(server: McpServer, secrets: ReadonlyMap<string, string>): McpServer {
  const resolved = withTransportMap(server, (values) =>
    Object.fromEntries(Object.entries(values).map(([name, value]) => [name, resolve(value, secrets)])),
  );
  const { auth } = resolved;
  if (auth) auth.clientSecret = resolve(auth.clientSecret, secrets);
  if (auth) auth.privateKey = resolve(auth.privateKey, secrets);
  return resolved;
}

function resolve(value: string, secrets: ReadonlyMap<string, string>): string {
  return value.replace(/\$\{secret:([^}]*)\}/g, (_, name: string) => {
    return (
      secrets.get(name) ??
      refuse("failed_precondition", `the secret ${name} is not known here: set TOOLBUS_SECRET_${name}`, {
        reason: "SECRET_NOT_FOUND",
        metadata: { secret: name },
      })
    );
  });
}
