import { PROTOCOL_VERSION_META_KEY } from "@modelcontextprotocol/server";
import { fieldsOf, isObject } from "#runtime/schema/json-object.ts";

/**
 * A request that names its revision in itself is none of the older protocol, as the SDK says of it, too, after reading all of it; its
 * handler reads it again. Only `initialize` and answers are the older protocol's whatever they hold.
 */
export function namesRevision(body: unknown): boolean {
  if (!isObject(body) || typeof body.method !== "string" || body.method === "initialize") return false;
  return PROTOCOL_VERSION_META_KEY in fieldsOf(fieldsOf(body.params)._meta) && !("result" in body || "error" in body);
}
