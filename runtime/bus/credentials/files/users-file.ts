import type { BusUser, Permissions } from "../permissions.ts";

/** What goes between the brackets of nats-server's `authorization { include … }`: each key, and what it may do. */
export function textOfUsers(users: readonly (BusUser & { readonly publicKey: string })[]): string {
  const lines = users.map(({ name, publicKey, permissions }) => {
    const allowed = permissions === undefined ? {} : { permissions: serverPermissions(permissions) };
    return `  # ${name}\n  ${JSON.stringify({ nkey: publicKey, ...allowed })}`;
  });
  return `# Written by toolbus. Changes are lost: \`toolbus bus credentials\` writes it anew.\nusers: [\n${lines.join("\n")}\n]\n`;
}

function serverPermissions({ publish, subscribe, answersFor }: Permissions) {
  // With permission to answer, all else is denied by the server unless it is allowed by name.
  const answers = answersFor === undefined ? {} : { allow_responses: { max: -1, expires: answersFor } };
  const published = publish.length > 0 ? { publish: { allow: publish } } : {};
  return { ...published, subscribe: { allow: subscribe }, ...answers };
}
