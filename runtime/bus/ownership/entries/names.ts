/**
 * A key as one token of a subject: plain ones stand as they are, others are encoded behind an equals sign, which no plain
 * one holds, so that two keys never share a token.
 */
export function tokenFromKey(key: string): string {
  return /^[A-Za-z0-9_-]{1,128}$/.test(key) ? key : `=${Buffer.from(key, "utf8").toString("base64url")}`;
}

export function keyFromToken(token: string): string {
  return token.startsWith("=") ? Buffer.from(token.slice(1), "base64url").toString("utf8") : token;
}

/** The subject that the owner answers on; with `*`, every revision of the entry. */
export function ownerSubject(kind: string, key: string, revision: number | "*"): string {
  return `toolbus.owner.${kind}.${tokenFromKey(key)}.${revision}`;
}

/**
 * The bus name of one instance of a service, for calls that must reach that one: serve it beside the service's own. The dot
 * makes it a part of the service's name, so that whoever may serve or ask the service may serve and ask its instances.
 */
export function instanceService(service: string, instance: string): string {
  if (!/^[A-Za-z0-9_-]+$/.test(instance))
    throw new TypeError(`an instance is named by letters, digits, _ and -: ${instance}`);
  return `${service}.${instance}`;
}
